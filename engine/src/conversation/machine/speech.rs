//! The assistant's lines, and how much of each was heard.
use super::record::{BRACKETS_BYTES, row_bytes};
use super::{Conversation, Output};
use crate::base::text::{casefold, truncate};
use crate::conversation::transcript::TranscriptRole;
use crate::conversation::{EndedReason, Message, TEXT_BYTES_MAX, TRANSCRIPT_BYTES_MAX};

impl Conversation {
    /// The index of the row that the assistant is speaking, if any.
    #[must_use]
    pub const fn speaking(&self) -> Option<usize> {
        self.speaking
    }

    pub(super) fn say(&mut self, text: String) {
        let text = truncate(text, TEXT_BYTES_MAX);
        let row = self.row(TranscriptRole::Assistant, text.clone(), self.offset_ms);
        self.speaking = Some(row.index);
        if !self.record(row) {
            return;
        }
        self.history.push(Message::Assistant { text: text.clone() });
        self.turns = self.turns.saturating_add(1);
        let line = casefold(&text);
        self.repeats = if line == self.last_line { self.repeats.saturating_add(1) } else { 1 };
        self.last_line = line;
        self.is_being_spoken = self.setup.is_spoken;
        self.outputs.push_back(Output::Say { text });
        if self.turns >= self.setup.limits.turns_max {
            self.end(EndedReason::TurnLimit);
        } else if self.repeats >= self.setup.limits.repeats_max {
            self.end(EndedReason::AssistantRepeating);
        }
    }

    pub(super) fn spoken(&mut self) {
        self.is_being_spoken = false;
        let end_ms = self.offset_ms;
        if let Some(row) = self.speaking.take().and_then(|index| self.transcript.get_mut(index)) {
            row.end_ms = end_ms;
        }
    }

    /// Cuts the interrupted line to the part that was heard. The transcript keeps the complete line as well; the
    /// model's history has only the heard part.
    pub(super) fn interrupted(&mut self, heard_permille: u32) {
        self.is_being_spoken = false;
        let end_ms = self.offset_ms;
        let Some(row) = self.speaking.take().and_then(|index| self.transcript.get_mut(index)) else { return };
        row.end_ms = end_ms;
        if heard_permille >= 1_000 {
            return;
        }
        let others = self.transcript_bytes.saturating_sub(row_bytes(row));
        let intended = std::mem::take(&mut row.text);
        row.text = heard_part(&intended, heard_permille).to_owned();
        row.interrupted = true;
        let heard = row.text.clone();
        row.intended_text = Some(intended);
        if others.saturating_add(row_bytes(row)) > TRANSCRIPT_BYTES_MAX - BRACKETS_BYTES {
            // Both texts exceed the limit: keep the heard part.
            row.intended_text = None;
        }
        self.transcript_bytes = others.saturating_add(row_bytes(row));
        let line = self.history.iter_mut().rev().find_map(|message| match message {
            Message::Assistant { text } => Some(text),
            _ => None,
        });
        if let Some(line) = line {
            *line = format!("{heard}…");
        }
    }
}

/// The first `permille` thousandths of a text, cut at the end of a word.
fn heard_part(text: &str, permille: u32) -> &str {
    let bytes = (text.len() as u64).saturating_mul(u64::from(permille)) / 1_000;
    let end = text.floor_char_boundary(usize::try_from(bytes).unwrap_or(text.len()));
    let (heard, rest) = text.split_at(end);
    match rest.starts_with(char::is_whitespace) || rest.is_empty() {
        true => heard.trim_end(),
        false => heard.rfind(char::is_whitespace).map_or("", |place| heard[..place].trim_end()),
    }
}
