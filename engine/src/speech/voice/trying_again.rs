//! A line of which its voice made no sound is tried once more: the next line would be all that the person hears.
use super::Voice;
use crate::speech::exchange::SpeechFailure;
use crate::speech::spoken_line::SpokenLine;
use crate::speech::synthesizer::LineId;

/// The pause before a voice is given a line again: it may be busy, or the connection was lost.
const PAUSE_MS: i64 = 1_000;

impl Voice {
    /// Gives the last line to its voice again after a moment, under a new id, if that may help. Whether it does.
    pub(super) fn try_again(&mut self, now_ms: i64, line: LineId, failure: &SpeechFailure) -> bool {
        let may_help = |last: &&mut SpokenLine| {
            last.id == line && !last.has_audio() && !last.is_tried_again && failure.is_temporary
        };
        let Some(last) = self.lines.back_mut().filter(may_help) else { return false };
        self.last_line += 1;
        (last.id, last.is_tried_again) = (self.last_line, true);
        self.turn_clock.line_renamed(line, self.last_line);
        self.given.hold(now_ms + PAUSE_MS);
        for text in last.texts() {
            self.given.text(self.last_line, text);
        }
        match &mut self.open_line {
            Some(open) => open.id = self.last_line,
            None => self.given.end(self.last_line),
        }
        true
    }
}
