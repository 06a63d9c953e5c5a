//! The transcript's rows: made, counted, kept within the transcript's limit.
use super::Conversation;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::conversation::{EndedReason, TRANSCRIPT_BYTES_MAX};

impl Conversation {
    /// The next row; it ends now.
    pub(super) const fn row(&self, role: TranscriptRole, text: String, start_ms: i64) -> TranscriptRow {
        TranscriptRow::new(self.transcript.len(), role, text, start_ms, self.offset_ms)
    }

    /// Adds the row, or ends the conversation when the transcript has no room for it.
    pub(super) fn record(&mut self, row: TranscriptRow) -> bool {
        let bytes = self.transcript_bytes.saturating_add(row_bytes(&row));
        if bytes > TRANSCRIPT_BYTES_MAX - BRACKETS_BYTES {
            self.end(EndedReason::TranscriptLimit);
            return false;
        }
        self.transcript_bytes = bytes;
        self.note_activity();
        self.transcript.push(row);
        true
    }
}

/// The brackets around the rows.
pub(super) const BRACKETS_BYTES: usize = 2;

/// Bytes of the row as JSON, its comma included. When it is over may still become a longer number.
pub(super) fn row_bytes(row: &TranscriptRow) -> usize {
    const COMMA_AND_END_MS_BYTES: usize = 1 + 20;
    let mut count = Count(0);
    match serde_json::to_writer(&mut count, row) {
        Ok(()) => count.0.saturating_add(COMMA_AND_END_MS_BYTES),
        // Every row can be written; one that could not would have no place in a transcript.
        Err(_) => usize::MAX,
    }
}

/// Counts what is written.
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
