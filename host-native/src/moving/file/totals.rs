//! What the parts of a file have together.
use sidetone_engine::storage::moves::part::{Head, Kind, Part, Tally, WrongPart};

/// What the parts so far have.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Totals {
    /// As the file ends with it.
    pub tally: Tally,
    /// The bytes of all blobs.
    pub blob_bytes: u64,
}

impl Totals {
    /// Before the first part.
    pub(super) fn of(head: &Head) -> Self {
        Self { tally: Tally::of(head), blob_bytes: 0 }
    }

    /// Adds a part, or nothing of it if something is wrong with it.
    pub(super) fn add(&mut self, part: &Part) -> Result<(), WrongPart> {
        match part.head.kind {
            Kind::Rows(_) | Kind::Secrets => {}
            Kind::Blobs(_) => self.blob_bytes += part.head.bytes,
            Kind::End(_) => return Err(WrongPart("whoever writes the file ends it".to_owned())),
        }
        // It reads all lines before it adds the first.
        self.tally.add(part)
    }

    /// All rows.
    pub fn rows(&self) -> u64 {
        self.tally.sums.values().map(|sum| sum.rows).sum()
    }
}
