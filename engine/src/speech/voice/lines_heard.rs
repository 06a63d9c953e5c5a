//! What the person has heard of the assistant's lines, and how long that took.
use super::{Voice, VoiceEvent};
use crate::speech::turn_times::TurnTimes;

impl Voice {
    /// The model has answered what the person said.
    pub fn model_answered(&mut self, now_ms: i64) {
        self.turn_clock.model_answered(now_ms);
    }

    /// The person's turns so far, on the clock of the other calls.
    #[must_use]
    pub fn turns(&self) -> Vec<TurnTimes> {
        self.turn_clock.turns()
    }

    /// The person's latest turn.
    #[must_use]
    pub fn last_turn(&self) -> Option<TurnTimes> {
        self.turn_clock.last_turn()
    }

    /// Looks whether the person began to hear the first line, and the answer.
    pub(super) fn note_playback(&mut self, now_ms: i64) {
        self.note_first_line(now_ms);
        let Some(line) = self.turn_clock.awaits_playback_of() else { return };
        if let Some(at_ms) = self.player.began_at_ms(now_ms, line) {
            self.turn_clock.playback_began(at_ms);
        }
    }

    /// Reports the lines whose playback is over.
    pub(super) fn report_spoken(&mut self, now_ms: i64) {
        self.note_playback(now_ms);
        let over = self.player.take_played(now_ms);
        for progress in over {
            self.keys_played(progress.line, progress.heard_ms);
            self.pass_wordless_lines();
            if self.lines.front().is_none_or(|line| line.id != progress.line) {
                continue;
            }
            let Some(line) = self.lines.pop_front() else { continue };
            self.events.push_back(match line.heard_permille(Some(progress)) {
                1_000 => VoiceEvent::Spoken { until_ms: progress.heard_until_ms },
                heard_permille => VoiceEvent::BrokeOff { heard_permille },
            });
            self.note_first_line(now_ms);
        }
        self.pass_wordless_lines();
        self.begin_keys();
    }

    /// Reports when a line has nothing to play before its end, and when it goes on: if it is cut then, its sound had ended.
    pub(super) fn note_starved(&mut self, now_ms: i64) {
        let is_starved = self.player.is_starved(now_ms) && !self.player.is_paused();
        let has_changed = std::mem::replace(&mut self.is_starved, is_starved) != is_starved;
        if has_changed && !self.player.is_paused() && self.is_speaking() {
            self.events.push_back(if is_starved { VoiceEvent::Paused } else { VoiceEvent::Resumed });
        }
    }

    /// Lines without a word are over when those before them are.
    fn pass_wordless_lines(&mut self) {
        while self.lines.pop_front_if(|line| line.is_wordless).is_some() {
            self.events.push_back(VoiceEvent::Spoken { until_ms: None });
        }
    }

    /// Reports once when the playback of the first line began: the lines before it are over.
    fn note_first_line(&mut self, now_ms: i64) {
        let Some(line) = self.lines.front().map(|line| line.id).filter(|line| *line > self.line_begun) else {
            return;
        };
        if let Some(at_ms) = self.player.began_at_ms(now_ms, line) {
            self.line_begun = line;
            self.events.push_back(VoiceEvent::LineBegan { at_ms });
        }
    }
}
