//! Creates the transcript's rows and enforces the transcript's size limit.
use super::{Conversation, State};
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::conversation::{EndedReason, TRANSCRIPT_BYTES_MAX};

impl Conversation {
    /// Becomes one that was held elsewhere and has ended: what was said, and why it is over.
    pub(crate) fn replace_by_ended(
        &mut self,
        transcript: Vec<TranscriptRow>,
        turns: u32,
        offset_ms: i64,
        reason: EndedReason,
    ) {
        self.transcript_bytes = transcript.iter().map(row_bytes).sum();
        (self.transcript, self.turns, self.offset_ms) = (transcript, turns, offset_ms);
        self.state = State::Ended { reason };
        self.outputs.clear();
        self.pending.clear();
        self.speaking.clear();
    }

    /// The next row, which ends now.
    pub(super) const fn row(&self, role: TranscriptRole, text: String, start_ms: i64) -> TranscriptRow {
        TranscriptRow::new(self.transcript.len(), role, text, start_ms, self.offset_ms)
    }

    /// The latest time in the transcript's rows, in ms from the start.
    pub(super) fn last_row_ms(&self) -> i64 {
        self.transcript.iter().map(|row| row.end_ms.max(row.start_ms)).max().unwrap_or(0)
    }

    /// Adds the row, or ends the conversation, if it has not ended, because the row exceeds the transcript's limit. Returns
    /// whether it was added.
    pub(super) fn record(&mut self, row: TranscriptRow) -> bool {
        if !self.fits(&row) {
            if self.ended().is_none() {
                self.end(EndedReason::TranscriptLimit);
            }
            return false;
        }
        self.transcript_bytes = self.transcript_bytes.saturating_add(row_bytes(&row));
        // What the service reports is no sound that anybody made.
        if row.role != TranscriptRole::System {
            self.note_activity();
        }
        self.transcript.push(row);
        true
    }

    /// Whether the transcript has room for the row.
    pub(super) fn fits(&self, row: &TranscriptRow) -> bool {
        self.transcript_bytes.saturating_add(row_bytes(row)) <= TRANSCRIPT_BYTES_MAX - BRACKETS_BYTES
    }
}

/// The brackets of the JSON array around the rows.
pub(super) const BRACKETS_BYTES: usize = 2;

/// The size of the row as JSON with its comma. `start_ms` and `end_ms` may later become longer, so twice their maximum
/// length is added.
pub(super) fn row_bytes(row: &TranscriptRow) -> usize {
    const COMMA_AND_TIMES_BYTES: usize = 1 + 2 * 20;
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, row) {
        Ok(()) => count.0.saturating_add(COMMA_AND_TIMES_BYTES),
        // Serialising our own types cannot fail.
        Err(_) => usize::MAX,
    }
}

/// The size of a text inside a JSON string.
pub(super) fn text_bytes(text: &str) -> usize {
    const QUOTES_BYTES: usize = 2;
    let mut count = Count(0);
    serde_json::to_writer(&mut count, text).map_or(usize::MAX, |()| count.0.saturating_sub(QUOTES_BYTES))
}

/// Counts the written bytes.
struct Count(usize);

impl std::io::Write for Count {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        self.0 = self.0.saturating_add(bytes.len());
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        Ok(())
    }
}
