//! The turns of a voice run: what is said becomes audio, and what was heard becomes the conversation's input.
use super::Simulation;
use crate::conversation::{self, Party, WaitingFor};
use crate::models::CallerReply;
use crate::simulation::voice_line::{Exchange, LineEnd};

impl Simulation {
    /// The assistant speaks. A line that the caller talks over stays open until it is known what the caller says.
    pub(super) fn assistant_speaks(&mut self, text: String) {
        self.finish_line();
        let is_callers_turn = self.conversation.waiting_for() == WaitingFor::User;
        let Some(voice) = &mut self.voice else { return };
        let line = voice.open(self.now_ms, text);
        let stays_open = line.talked_over_ms.is_some() && is_callers_turn;
        self.open_line = Some(line);
        if !stays_open {
            self.finish_line();
        }
    }

    /// Speaks the open line to its end.
    pub(super) fn finish_line(&mut self) {
        if let (Some(voice), Some(line)) = (&mut self.voice, self.open_line.take()) {
            let end = voice.finish(line);
            self.line_ended(end);
        }
    }

    /// The caller speaks, hangs up, or is silent.
    pub(super) fn caller_speaks(&mut self, reply: &CallerReply) {
        if reply.text.trim().is_empty() {
            self.finish_line();
            return self.nothing_understood(reply.hang_up);
        }
        let line = self.open_line.take();
        let Some(voice) = &mut self.voice else { return };
        let Exchange { line_end, understood, over_ms } = voice.say(self.now_ms, line, &reply.text);
        if let Some(end) = line_end {
            self.line_ended(end);
            if self.conversation.ended().is_some() {
                return;
            }
        }
        let Some(understood) = understood else {
            self.now_ms = self.now_ms.max(over_ms);
            let text = format!("Not understood: the caller said “{}”", reply.text.trim());
            self.tell(conversation::Input::Note { text });
            return self.nothing_understood(reply.hang_up);
        };
        self.now_ms = self.now_ms.max(understood.at_ms);
        let (text, duration_ms) = (understood.text, understood.duration_ms);
        let silence_ms = self.now_ms - understood.until_ms;
        self.tell(if reply.hang_up {
            conversation::Input::UserGoodbye { text, duration_ms }
        } else {
            conversation::Input::UserText { text, duration_ms, silence_ms }
        });
    }

    fn nothing_understood(&mut self, hangs_up: bool) {
        self.tell(match hangs_up {
            true => conversation::Input::HangUp { by: Party::User },
            false => conversation::Input::Silence,
        });
    }

    fn line_ended(&mut self, end: LineEnd) {
        self.now_ms = self.now_ms.max(end.at_ms);
        self.tell(match end.heard_permille {
            1_000.. => conversation::Input::Spoken { until_ms: None },
            heard_permille => conversation::Input::Interrupted { heard_permille },
        });
    }
}
