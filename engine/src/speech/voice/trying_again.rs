//! A line whose voice fails: one of which no sound was made is tried once more, because the person would hear nothing.
use super::Voice;
use crate::speech::exchange::SpeechFailure;
use crate::speech::spoken_line::SpokenLine;
use crate::speech::synthesizer::LineId;

/// The pause before a voice is given a line again: it may be busy, or the connection was lost.
const PAUSE_MS: i64 = 1_000;
/// After so many lines in a row of which no sound was made, nobody is listening any more: speech has failed for good.
const UNVOICED_LINES_MAX: u32 = 2;

impl Voice {
    /// Gives the last line to its voice again after a moment, under a new id, if that may help. Whether it does.
    pub(super) fn try_again(&mut self, now_ms: i64, line: LineId, failure: &SpeechFailure) -> bool {
        // A voice that made the text itself has tried again.
        let may_help = |last: &&mut SpokenLine| {
            last.id == line && !last.has_audio() && !last.is_tried_again && !last.is_even()
        };
        // A second line without a sound is the last.
        let is_first = self.unvoiced_lines + 1 < UNVOICED_LINES_MAX && failure.is_temporary;
        let Some(last) = self.lines.back_mut().filter(may_help).filter(|_| is_first) else { return false };
        self.unvoiced_lines += 1;
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

    /// What was synthesized of a line is played. Its text ends there.
    pub(super) fn line_failed(&mut self, line: LineId, failure: SpeechFailure) -> SpeechFailure {
        let failure = self.count_unvoiced_line(line, failure);
        self.audio_ended(line);
        self.with_line(line, |failed| failed.is_broken_off = failed.is_even());
        if let Some(open) = self.open_line.as_mut().filter(|open| open.id == line) {
            open.is_cut = true;
        }
        failure
    }

    /// A line of which nothing can be heard any more: the last of several makes its failure a permanent one.
    fn count_unvoiced_line(&mut self, line: LineId, failure: SpeechFailure) -> SpeechFailure {
        let unvoiced = self.lines.iter().find(|known| known.id == line && !known.has_audio());
        let Some(unvoiced) = unvoiced else { return failure };
        self.unvoiced_lines += u32::from(!unvoiced.is_tried_again);
        let is_temporary = failure.is_temporary && self.unvoiced_lines < UNVOICED_LINES_MAX;
        SpeechFailure { is_temporary, ..failure }
    }
}
