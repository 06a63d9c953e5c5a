//! A spoken line that the model is still writing: it is said while it grows.
use serde::{Deserialize, Serialize};

use super::record::{BRACKETS_BYTES, text_bytes};
use super::speech::size_with_cut_row;
use super::{Conversation, Output, State};
use crate::base::text::truncate;
use crate::conversation::{
    AssistantReply, EndedReason, Message, TEXT_BYTES_MAX, TRANSCRIPT_BYTES_MAX, ToolRequest,
};

/// The line.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct LineBeingWritten {
    /// The index of its transcript row.
    row: usize,
    /// The index of its message in the model's history.
    message: usize,
}

/// What follows the text of an answer.
enum Next {
    Listen,
    Call(Vec<ToolRequest>),
    HangUp,
}

impl Conversation {
    /// The index of the row whose text is not complete, if any.
    #[must_use]
    pub fn being_written(&self) -> Option<usize> {
        self.being_written.map(|line| line.row)
    }

    /// The model has written more of its answer.
    pub(super) fn assistant_text(&mut self, request: u64, text: &str) {
        if self.state != State::Thinking || request != self.requests || !self.setup.is_spoken {
            return;
        }
        if let Some(line) = self.being_written {
            self.write_more(line, text);
            return;
        }
        let text = truncate(text.trim_start().to_owned(), TEXT_BYTES_MAX);
        let line = LineBeingWritten { row: self.transcript.len(), message: self.history.len() };
        if text.is_empty() || !self.utter(text.clone(), Some(line.message)) {
            return;
        }
        self.turns = self.turns.saturating_add(1);
        self.history.push(Message::Assistant { text });
        self.being_written = Some(line);
    }

    /// The whole answer is there, whose line is being said.
    pub(super) fn answer_written(&mut self, line: LineBeingWritten, reply: AssistantReply) {
        let (text, next) = match reply {
            AssistantReply::Say { text } => (text, Next::Listen),
            AssistantReply::CallTools { text, calls } => (text, Next::Call(calls)),
            AssistantReply::Goodbye { text } => (text, Next::HangUp),
        };
        let said = self.transcript.get(line.row).map_or("", |row| row.text.as_str());
        // What was said stays said, whatever the whole is.
        if let Some(rest) = text.strip_prefix(said).map(str::to_owned) {
            self.write_more(line, &rest);
        }
        self.line_written(line);
        if self.ended().is_some() {
            return;
        }
        match next {
            Next::Listen => self.listen_again(),
            Next::Call(calls) => {
                self.call_tools(String::new(), calls);
            }
            Next::HangUp => self.end(EndedReason::AssistantEnded),
        }
    }

    /// The model failed in the middle of a line. What it wrote stays said, and the conversation goes on: asking again would
    /// say the beginning twice.
    pub(super) fn answer_broke_off(&mut self, line: LineBeingWritten, reason: &str) {
        self.line_written(line);
        if self.ended().is_none() {
            self.note(format!("The model's answer broke off: {reason}"));
            self.listen_again();
        }
    }

    /// The lines were cut: the rest of the answer is not wanted any more.
    pub(super) fn stop_writing(&mut self) {
        let Some(line) = self.being_written.take() else { return };
        if let Some(row) = self.transcript.get_mut(line.row) {
            // Even if all that was written was heard.
            let written = row.intended_text.get_or_insert_with(|| row.text.trim_end().to_owned()).clone();
            row.text.truncate(row.text.trim_end().len());
            if !row.interrupted {
                row.interrupted = true;
                // The row is counted twice: an upper bound.
                self.transcript_bytes = size_with_cut_row(row, self.transcript_bytes);
            }
            if let Some(Message::Assistant { text }) = self.history.get_mut(line.message) {
                *text = format!("{}…", row.text);
            }
            self.count_repeats(&written);
        }
        if self.state == State::Thinking {
            self.listen_again();
        }
    }

    /// Waits for the user, or asks about what they said meanwhile.
    fn listen_again(&mut self) {
        self.state = State::Listening;
        if !self.held.is_empty() {
            self.history.extend(self.held.drain(..).map(|text| Message::User { text }));
            self.request_reply();
        }
    }

    fn write_more(&mut self, line: LineBeingWritten, text: &str) {
        let Some(row) = self.transcript.get_mut(line.row) else { return };
        let end = text.floor_char_boundary(TEXT_BYTES_MAX.saturating_sub(row.text.len()));
        let more = text.get(..end).unwrap_or_default();
        if more.is_empty() {
            return;
        }
        let bytes = self.transcript_bytes.saturating_add(text_bytes(more));
        if bytes > TRANSCRIPT_BYTES_MAX - BRACKETS_BYTES {
            return self.end(EndedReason::TranscriptLimit);
        }
        self.transcript_bytes = bytes;
        row.text.push_str(more);
        if let Some(Message::Assistant { text }) = self.history.get_mut(line.message) {
            text.push_str(more);
        }
        self.outputs.push_back(Output::Say { text: more.to_owned() });
    }

    /// The text of the line is complete.
    fn line_written(&mut self, line: LineBeingWritten) {
        self.being_written = None;
        let Some(row) = self.transcript.get_mut(line.row) else { return };
        // A few bytes less than counted.
        row.text.truncate(row.text.trim_end().len());
        let text = row.text.clone();
        if let Some(Message::Assistant { text: known }) = self.history.get_mut(line.message) {
            known.clone_from(&text);
        }
        self.count_repeats(&text);
        if self.ended().is_none() {
            self.end_at_limits();
        }
    }
}
