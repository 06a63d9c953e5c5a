//! The assistant's lines, and how much of each was heard.
use serde::{Deserialize, Serialize};

use super::record::{BRACKETS_BYTES, row_bytes};
use super::{Conversation, Output, State};
use crate::base::text::{casefold, truncate};
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::conversation::{EndedReason, Message, TEXT_BYTES_MAX, TRANSCRIPT_BYTES_MAX};
use crate::speech::vocabulary::end_of_whole_words;

/// A line that is being played.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LineUnderWay {
    /// The index of its transcript row.
    row: usize,
    /// The index of its message in the model's history; `None` for a line that the model does not know of.
    message: Option<usize>,
}

/// The whole line, in thousandths.
const WHOLE_PERMILLE: u32 = 1_000;

impl Conversation {
    /// The index of the first row that the assistant is speaking, if any.
    #[must_use]
    pub fn speaking(&self) -> Option<usize> {
        self.speaking.front().filter(|_| self.is_being_spoken).map(|line| line.row)
    }

    /// The index of the first row that can still be cut, if any: one being spoken, or a written one that the user has not
    /// answered.
    #[must_use]
    pub fn first_open_line(&self) -> Option<usize> {
        self.open_lines().next()
    }

    /// The indices of all rows that can still be cut.
    pub fn open_lines(&self) -> impl Iterator<Item = usize> {
        self.speaking.iter().map(|line| line.row)
    }

    /// The rows from `from`, as they would be if the conversation ended at `now_ms`. `heard_permille` has the part of
    /// each line being spoken that was heard; nothing was heard of further lines.
    #[must_use]
    pub fn rows_as_heard(&self, from: usize, now_ms: i64, heard_permille: &[u32]) -> Vec<TranscriptRow> {
        let mut rows = self.transcript.get(from..).unwrap_or_default().to_vec();
        if !self.is_being_spoken {
            return rows;
        }
        let now_ms = self.offset_ms.max(now_ms.saturating_sub(self.started_ms));
        let end_ms = self.paused_at_ms.unwrap_or(now_ms);
        let mut transcript_bytes = self.transcript_bytes;
        for (nth, line) in self.speaking.iter().enumerate() {
            let heard_permille = heard_permille.get(nth).copied().unwrap_or(0);
            if let Some(row) = line.row.checked_sub(from).and_then(|place| rows.get_mut(place)) {
                transcript_bytes = cut(row, heard_permille, end_ms, transcript_bytes);
            }
        }
        rows
    }

    /// Says a line. It may be the last one within the limits.
    pub(super) fn say(&mut self, text: String) {
        if self.speak(text) {
            self.end_at_limits();
        }
    }

    /// Ends the conversation if the line that was said is the last one within the limits.
    pub(super) fn end_at_limits(&mut self) {
        if self.turns >= self.setup.limits.turns_max {
            self.end(EndedReason::TurnLimit);
        } else if self.repeats >= self.setup.limits.repeats_max {
            self.end(EndedReason::AssistantRepeating);
        }
    }

    /// Says a line whatever the limits of turns and repetitions. Returns false if it exceeds the transcript's limit.
    pub(super) fn speak(&mut self, text: String) -> bool {
        let text = truncate(text, TEXT_BYTES_MAX);
        if !self.utter(text.clone(), Some(self.history.len())) {
            return false;
        }
        self.turns = self.turns.saturating_add(1);
        self.count_repeats(&text);
        self.history.push(Message::Assistant { text });
        true
    }

    /// Counts how often the assistant has said this in a row.
    pub(super) fn count_repeats(&mut self, text: &str) {
        let line = casefold(text);
        self.repeats = if line == self.last_line { self.repeats.saturating_add(1) } else { 1 };
        self.last_line = line;
    }

    /// Records a line of the assistant and says it after the earlier ones. `message` is its future index in the model's
    /// history. Returns false if it exceeds the transcript's limit.
    pub(super) fn utter(&mut self, text: String, message: Option<usize>) -> bool {
        let row = self.row(TranscriptRole::Assistant, text.clone(), self.offset_ms);
        let line = LineUnderWay { row: row.index, message };
        if !self.record(row) {
            return false;
        }
        self.speaking.push_back(line);
        self.is_being_spoken = self.setup.is_spoken;
        self.outputs.push_back(Output::Say { text });
        true
    }

    /// The user answers: written lines cannot be interrupted any more.
    pub(super) fn line_answered(&mut self) {
        if !self.is_being_spoken {
            self.speaking.clear();
        }
    }

    /// The first line being spoken is heard since `at_ms`.
    pub(super) fn line_began(&mut self, at_ms: i64) {
        let start_ms = at_ms.saturating_sub(self.started_ms).clamp(0, self.offset_ms);
        if let Some(row) = self.speaking.front().and_then(|line| self.transcript.get_mut(line.row)) {
            (row.start_ms, row.end_ms) = (start_ms, row.end_ms.max(start_ms));
        }
    }

    pub(super) fn spoken(&mut self, until_ms: Option<i64>) {
        let end_ms =
            until_ms.map_or(self.offset_ms, |ms| ms.saturating_sub(self.started_ms).clamp(0, self.offset_ms));
        if let Some(row) = self.speaking.pop_front().and_then(|line| self.transcript.get_mut(line.row)) {
            row.end_ms = end_ms.max(row.start_ms);
        }
        self.first_line_over(end_ms);
    }

    /// Cuts the first of the lines being spoken to the part that was heard. The next one is spoken.
    pub(super) fn broke_off(&mut self, heard_permille: u32) {
        let end_ms = self.paused_at_ms.unwrap_or(self.offset_ms);
        let Some(line) = self.speaking.pop_front() else { return };
        self.cut_line(line, heard_permille, end_ms);
        let is_whole = self.being_written() != Some(line.row);
        if !is_whole {
            self.stop_writing();
        }
        self.first_line_over(end_ms);
        if is_whole && line.message.is_some() {
            self.say_rest(line.row);
        }
    }

    /// Says the rest of a line whose voice failed in the middle, once in a turn: who heard half a sentence waits for the other
    /// half. A voice that says nothing of a line would say nothing of it a moment later.
    fn say_rest(&mut self, row: usize) {
        let is_silent =
            (self.state == State::Listening || self.is_leaving_message()) && self.speaking.is_empty();
        let row = self.transcript.get(row).filter(|row| row.interrupted && !row.text.is_empty());
        let Some(row) = row.filter(|_| is_silent && !self.has_said_rest) else { return };
        let rest = row.intended_text.as_ref().and_then(|intended| intended.strip_prefix(row.text.as_str()));
        let rest = rest.unwrap_or_default().trim().to_owned();
        // Punctuation alone makes no sound.
        if rest.chars().any(char::is_alphanumeric) {
            self.has_said_rest = true;
            self.say(rest);
        }
    }

    /// The first of the lines being spoken is over.
    fn first_line_over(&mut self, end_ms: i64) {
        self.is_being_spoken &= !self.speaking.is_empty();
        self.paused_at_ms = self.paused_at_ms.filter(|_| self.is_being_spoken);
        // The next line begins where this one ends.
        if let Some(row) = self.speaking.front().and_then(|line| self.transcript.get_mut(line.row)) {
            (row.start_ms, row.end_ms) = (end_ms, end_ms);
        }
    }

    /// The client has spoken this many characters of a line, and the lines before it.
    pub(super) fn heard(&mut self, row: usize, chars: usize) {
        let Some(before) = self.speaking.iter().position(|line| line.row == row) else { return };
        let Some(text) = self.transcript.get(row).map(|row| row.text.as_str()) else { return };
        let rest =
            text.char_indices().nth(chars).map(|(heard_bytes, _)| (heard_bytes as u64, text.len() as u64));
        self.note_activity();
        for _ in 0..before {
            self.spoken(None);
        }
        match rest {
            // Rounded up, so that the last word that was heard is kept.
            Some((heard, all)) => {
                let permille = heard.saturating_mul(u64::from(WHOLE_PERMILLE)).div_ceil(all.max(1));
                self.interrupted(u32::try_from(permille).unwrap_or(WHOLE_PERMILLE));
            }
            None => self.spoken(None),
        }
    }

    /// Cuts the lines being spoken to the part that was heard. The transcript keeps the complete lines as well; the
    /// model's history has only the heard part.
    pub(super) fn interrupted(&mut self, mut heard_permille: u32) {
        self.is_being_spoken = false;
        let end_ms = self.paused_at_ms.take().unwrap_or(self.offset_ms);
        for line in std::mem::take(&mut self.speaking) {
            self.cut_line(line, heard_permille, end_ms);
            heard_permille = 0;
        }
        self.stop_writing();
    }

    fn cut_line(&mut self, line: LineUnderWay, heard_permille: u32, end_ms: i64) {
        let Some(row) = self.transcript.get_mut(line.row) else { return };
        self.transcript_bytes = cut(row, heard_permille, end_ms, self.transcript_bytes);
        if let Some(Message::Assistant { text }) =
            line.message.and_then(|message| self.history.get_mut(message))
            && row.interrupted
        {
            *text = format!("{}…", row.text);
        }
    }
}

/// Ends the row of a line of which this part was heard, whatever cut it. Returns the transcript's size afterwards.
fn cut(row: &mut TranscriptRow, heard_permille: u32, end_ms: i64, transcript_bytes: usize) -> usize {
    row.end_ms = end_ms.max(row.start_ms);
    if heard_permille >= WHOLE_PERMILLE {
        return transcript_bytes;
    }
    let others = transcript_bytes.saturating_sub(row_bytes(row));
    let mut intended = std::mem::take(&mut row.text);
    row.text = heard_part(&intended, heard_permille).to_owned();
    // A line that is still being written ends with the space before its next sentence.
    intended.truncate(intended.trim_end().len());
    row.interrupted = true;
    row.intended_text = Some(intended);
    size_with_cut_row(row, others)
}

/// The transcript's size with a row that was cut, beside `others`. If both of its texts exceed the limit, it keeps the
/// heard part.
pub(super) fn size_with_cut_row(row: &mut TranscriptRow, others: usize) -> usize {
    if others.saturating_add(row_bytes(row)) > TRANSCRIPT_BYTES_MAX - BRACKETS_BYTES {
        row.intended_text = None;
    }
    others.saturating_add(row_bytes(row))
}

/// The first `permille` thousandths of a text, cut at the end of a word.
fn heard_part(text: &str, permille: u32) -> &str {
    let bytes = (text.len() as u64).saturating_mul(u64::from(permille)) / 1_000;
    let end = text.floor_char_boundary(usize::try_from(bytes).unwrap_or(text.len()));
    text[..end_of_whole_words(text, end)].trim_end()
}
