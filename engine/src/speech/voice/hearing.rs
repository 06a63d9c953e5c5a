//! What the person says, and what it does to what the assistant says.
use super::{Ear, RESUME_MS, Voice, VoiceEvent};
use crate::speech::backchannel::is_backchannel;
use crate::speech::echo::{Echo, echo};
use crate::speech::listener::Heard;

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
            Heard::VoiceBegan => {
                self.resume_at_ms = None;
                if self.is_speaking() && self.turn_taking.interruptible && !self.player.is_paused() {
                    self.player.pause(now_ms);
                    self.events.push_back(VoiceEvent::Paused);
                }
            }
            Heard::VoiceEnded => {
                if self.player.is_paused() {
                    self.resume_at_ms = Some(now_ms + RESUME_MS);
                }
            }
            Heard::Words(text) => {
                if self.turn_taking.interruptible && self.is_speaking() && self.interrupts(&text) {
                    self.interrupt(now_ms);
                }
                if !self.is_speaking() {
                    self.words_so_far.change(text);
                }
            }
            Heard::NoWords => {
                self.words_so_far.clear();
                self.resume(now_ms);
                self.events.push_back(VoiceEvent::Noise);
            }
            Heard::ProbablySaid(text) => {
                if !self.is_speaking() {
                    self.events.push_back(VoiceEvent::ProbablySaid(text));
                }
            }
            Heard::WentOn => self.events.push_back(VoiceEvent::WentOn),
            Heard::Said { text, duration_ms, until_ms } => {
                // An acknowledgement or an echo of a line is no turn.
                self.words_so_far.clear();
                if self.is_speaking() && (self.is_acknowledgement(&text) || self.is_echo(&text)) {
                    self.resume(now_ms);
                    self.events.push_back(VoiceEvent::Noise);
                    return;
                }
                if self.turn_taking.interruptible {
                    self.interrupt(now_ms);
                }
                self.turn_clock.turn_ended(until_ms, now_ms);
                let silence_ms = (now_ms - until_ms).max(0);
                self.events.push_back(VoiceEvent::Said { text, duration_ms, silence_ms });
            }
            Heard::Failed(failure) => self.events.push_back(VoiceEvent::Failed(failure)),
        }
    }

    /// Whether words over the assistant's speech interrupt it.
    fn interrupts(&self, text: &str) -> bool {
        text.split_whitespace().count() >= self.turn_taking.interruption_words_min
            && !self.is_acknowledgement(text)
            && !self.is_echo(text)
    }

    fn is_acknowledgement(&self, text: &str) -> bool {
        is_backchannel(text, &self.turn_taking.language)
    }

    fn is_echo(&self, text: &str) -> bool {
        echo(text, &self.spoken_text) == Echo::Yes
    }
}
