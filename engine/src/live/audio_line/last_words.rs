//! The end of a call: what the caller was saying, and the keys of both sides that were not reported.
use super::AudioLine;
use crate::live::peer::PeerEvent;
use crate::speech::exchange::{Arrival, ExchangeId, SpeechService};
use crate::speech::voice::VoiceEvent;

/// The row of a call that ended before the last words of its caller were understood.
const NOT_UNDERSTOOD: &str =
    "The caller was speaking when the call ended, and the transcriber had not answered a moment later";

impl AudioLine {
    /// The call is over: nothing more is heard or spoken. Continue with [`awaits_last_words`](Self::awaits_last_words).
    pub fn end(&mut self, now_ms: i64) {
        if self.ended_at_ms.is_none() {
            self.keys_at_ms = now_ms;
            self.report_keys(now_ms);
            self.ended_at_ms = Some(now_ms);
            self.voice.end_keys(now_ms);
            self.take_voice_events();
            self.voice.close(now_ms);
        }
    }

    /// When [`hear_out`](Self::hear_out) is due, while the caller's last words are awaited.
    #[must_use]
    pub fn awaits_last_words(&self) -> Option<i64> {
        self.voice.awaits_last_words()
    }

    /// Time has passed after the end, and something may have arrived from a speech provider.
    pub fn hear_out(&mut self, now_ms: i64, arrived: Option<(SpeechService, ExchangeId, Arrival)>) {
        self.voice.hear_out(now_ms, arrived);
    }

    /// What the caller said and pressed last, as far as it is known by now. If it `was_awaited`, a note tells of words that
    /// did not come.
    pub fn take_last_words(&mut self, was_awaited: bool) -> Vec<PeerEvent> {
        let Some(ended_at_ms) = self.ended_at_ms else { return Vec::new() };
        let mut last: Vec<_> = self.events.drain(..).collect();
        for event in self.voice.take_last_words(ended_at_ms) {
            match event {
                VoiceEvent::Said { text, duration_ms, silence_ms } => {
                    last.push(PeerEvent::Said { text, duration_ms, silence_ms });
                }
                VoiceEvent::Failed(failure) => self.failures.push(failure),
                VoiceEvent::NotUnderstood if was_awaited => {
                    last.push(PeerEvent::Note(NOT_UNDERSTOOD.to_owned()))
                }
                _ => {}
            }
        }
        last.retain(|event| event.clone().into_input().counts_after_the_end());
        last
    }
}
