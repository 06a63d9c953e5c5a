//! What the person says, and what it does to what the assistant says.
use super::{Ear, Voice, VoiceEvent};
use crate::speech::backchannel::is_backchannel;
use crate::speech::echo::{Echo, echo};
use crate::speech::listener::Heard;
use crate::speech::vocabulary::words_of;

impl Voice {
    /// Takes what the listener heard.
    pub(super) fn understand(&mut self, now_ms: i64) {
        while let Ear::Speech(listener) = &mut self.ear
            && let Some(heard) = listener.poll_heard()
        {
            self.heard(now_ms, heard);
        }
    }

    fn heard(&mut self, now_ms: i64, heard: Heard) {
        match heard {
            Heard::VoiceBegan => self.voice_began(now_ms),
            Heard::VoiceEnded => self.voice_ended(now_ms),
            Heard::Words(text) => {
                if self.is_speaking() && self.interrupts(&text, Echo::No) {
                    self.interrupt_if_allowed(now_ms);
                }
                if !self.is_speaking() {
                    self.words_so_far.change(text);
                }
            }
            Heard::NoWords => self.heard_no_words(now_ms, VoiceEvent::Noise),
            Heard::NotUnderstood => self.heard_no_words(now_ms, VoiceEvent::NotUnderstood),
            Heard::ProbablySaid(text) => {
                if !self.is_speaking() {
                    self.events.push_back(VoiceEvent::ProbablySaid(text));
                }
            }
            Heard::WentOn => self.events.push_back(VoiceEvent::WentOn),
            Heard::Said { text, duration_ms, until_ms } => {
                self.words_so_far.clear();
                let interrupts = self.interrupts(&text, Echo::Possible);
                self.person.is_answer = false;
                // An acknowledgement or an echo of a line is no turn; nor are fewer words than interrupt it.
                if self.is_speaking() && !interrupts {
                    self.resume_after_words(now_ms);
                    self.events.push_back(VoiceEvent::Noise);
                    return;
                }
                self.interrupt_if_allowed(now_ms);
                self.turn_clock.turn_ended(until_ms, now_ms);
                let silence_ms = (now_ms - until_ms).max(0);
                self.events.push_back(VoiceEvent::Said { text, duration_ms, silence_ms });
            }
            // It was said before what the assistant says now, so it is neither an echo nor an acknowledgement of it.
            Heard::SaidLate { text, until_ms } => {
                self.interrupt_if_allowed(now_ms);
                self.events.push_back(said_late(text, now_ms - until_ms));
            }
            Heard::Failed(failure) => self.events.push_back(VoiceEvent::Failed(failure)),
        }
    }

    /// A turn of the person is over, and there is nothing to answer: a line that gave way to it goes on.
    fn heard_no_words(&mut self, now_ms: i64, event: VoiceEvent) {
        self.person.is_answer = false;
        self.words_so_far.clear();
        self.resume(now_ms);
        self.events.push_back(event);
    }

    /// Whether words over the assistant's speech are a turn of the person, which interrupts it. At most this much of them may
    /// be its echo: the first word of one is also a word that people say, so it waits for more.
    pub(super) fn interrupts(&self, text: &str, echo_at_most: Echo) -> bool {
        // "Yes" at the end of a question is no acknowledgement, and all that there is to say. "Coffee", after "tea or
        // coffee?", need not be an echo.
        let echo_at_most = if self.person.is_answer { Echo::Possible } else { echo_at_most };
        let is_enough = self.person.is_answer
            || words_of(text).len() >= self.turn_taking.interruption_words_min
                && !self.is_acknowledgement(text);
        is_enough && echo(text, &self.spoken_text) <= echo_at_most
    }

    fn is_acknowledgement(&self, text: &str) -> bool {
        is_backchannel(text, &self.turn_taking.language)
    }
}

/// Words that a transcriber told late: when they began is not known.
pub(super) fn said_late(text: String, silence_ms: i64) -> VoiceEvent {
    VoiceEvent::Said { text, duration_ms: 0, silence_ms: silence_ms.max(0) }
}
