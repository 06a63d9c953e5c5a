//! Keys that the assistant presses: tones on the line, after what it is saying.
use std::collections::VecDeque;

use super::{Voice, VoiceEvent};
use crate::speech::dtmf;
use crate::speech::synthesizer::LineId;

/// Keys that were not played to their end.
#[derive(Debug, Default)]
pub(super) struct PressedKeys {
    /// Each with the id of its request.
    waiting: VecDeque<(String, String)>,
    /// The player's line of the first of them, once it is being played.
    line: Option<LineId>,
}

impl Voice {
    /// Presses keys once everything before them was heard. [`VoiceEvent::KeysPressed`] follows with this id. Whoever speaks
    /// meanwhile does not interrupt them: a menu goes on talking while one presses.
    pub fn press_keys(&mut self, now_ms: i64, id: String, keys: String) {
        self.keys.waiting.push_back((id, keys));
        self.report_spoken(now_ms);
    }

    /// Plays the next keys, if nothing else is to be heard.
    pub(super) fn begin_keys(&mut self) {
        if self.keys.line.is_none()
            && self.lines.is_empty()
            && self.player.is_idle()
            && let Some((_, keys)) = self.keys.waiting.front()
        {
            self.last_line += 1;
            self.keys.line = Some(self.last_line);
            self.player.add_keys(self.last_line, dtmf::frames(keys));
        }
    }

    /// Reports keys that were played, if the line is theirs.
    pub(super) fn keys_played(&mut self, line: LineId, heard_ms: i64) {
        if self.keys.line == Some(line) {
            self.keys.line = None;
            self.report_keys(heard_ms);
        }
    }

    /// The call is over: reports as much of the keys as was played.
    pub fn end_keys(&mut self, now_ms: i64) {
        let line = self.keys.line.take();
        let progress = self.player.progress(now_ms);
        let heard = progress.iter().find(|progress| Some(progress.line) == line);
        let mut heard_ms = heard.map_or(0, |progress| progress.heard_ms);
        while !self.keys.waiting.is_empty() {
            self.report_keys(std::mem::take(&mut heard_ms));
        }
    }

    fn report_keys(&mut self, heard_ms: i64) {
        if let Some((id, keys)) = self.keys.waiting.pop_front() {
            let pressed = dtmf::pressed(&keys, heard_ms);
            self.events.push_back(VoiceEvent::KeysPressed { id, pressed });
        }
    }
}
