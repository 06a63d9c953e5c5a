//! What the person said last, which is understood only after the call has ended.
use super::hearing::said_late;
use super::{Ear, Voice, VoiceEvent};
use crate::speech::echo::Echo;
use crate::speech::exchange::{Arrival, ExchangeId, SpeechService};
use crate::speech::listener::Heard;

impl Voice {
    /// Time has passed after [`close`](Self::close), and something may have arrived on an exchange.
    pub fn hear_out(&mut self, now_ms: i64, arrived: Option<(SpeechService, ExchangeId, Arrival)>) {
        let Ear::Speech(listener) = &mut self.ear else { return };
        match arrived {
            Some((SpeechService::Transcriber, id, arrival)) => listener.arrived(now_ms, id, arrival),
            // Nothing is spoken any more.
            Some((SpeechService::Synthesizer, ..)) => {}
            None => listener.tick(now_ms),
        }
    }

    /// When the next tick is due, while the words of the person are awaited after [`close`](Self::close).
    #[must_use]
    pub fn awaits_last_words(&self) -> Option<i64> {
        match &self.ear {
            Ear::Speech(listener) if listener.awaits_words() => listener.poll_timeout(),
            Ear::Speech(_) | Ear::Tone(_) => None,
        }
    }

    /// What the person said last, in a call that ended at `ended_at_ms`: [`VoiceEvent::Said`], [`VoiceEvent::Failed`], and
    /// [`VoiceEvent::NotUnderstood`] if words were awaited in vain.
    pub fn take_last_words(&mut self, ended_at_ms: i64) -> Vec<VoiceEvent> {
        let mut events = Vec::new();
        if let Ear::Speech(listener) = &mut self.ear {
            listener.end_turn();
        }
        while let Ear::Speech(listener) = &mut self.ear
            && let Some(heard) = listener.poll_heard()
        {
            match heard {
                // "mhm", or an echo: no turn while the call went on, either.
                Heard::Said { text, .. } if self.is_speaking() && !self.interrupts(&text, Echo::Possible) => {
                }
                Heard::Said { text, duration_ms, until_ms } => {
                    let silence_ms = (ended_at_ms - until_ms).max(0);
                    events.push(VoiceEvent::Said { text, duration_ms, silence_ms });
                }
                Heard::SaidLate { text, until_ms } => events.push(said_late(text, ended_at_ms - until_ms)),
                Heard::Failed(failure) => events.push(VoiceEvent::Failed(failure)),
                Heard::NotUnderstood => events.push(VoiceEvent::NotUnderstood),
                _ => {}
            }
        }
        // One reason is enough.
        if events.iter().any(|event| matches!(event, VoiceEvent::Failed(_))) {
            events.retain(|event| *event != VoiceEvent::NotUnderstood);
        }
        events
    }
}
