//! Recordings of calls: WAV, 16-bit PCM, the caller on the first channel and the assistant on the second.
//!
//! The audio is a blob, what is known of it a row (`0006_recordings.sql`). The row decides: a blob is reached
//! only through a row that says `ready`. So a row comes before its blob and outlives it: [`store`] writes the row
//! (`writing`), the blob, the row (`ready`); deleting writes the row (`deleted`), then removes the blob; and the
//! sweep removes what a crash in between leaves behind. Nothing is served half, nothing stays for ever.
mod read;
mod store;
mod sweep;
pub mod wav;
pub mod waveform;

pub use read::{NotServed, State, columns, delete, ready, select};
pub use store::{Kept, store};
pub(crate) use sweep::due;

use crate::ports::blobs::BlobKey;
use crate::storage::fault::Fault;

/// Who is on which channel.
pub const CHANNELS: [&str; 2] = ["caller", "assistant"];

/// The name of a recording's blob.
pub(crate) fn key(workspace_id: &str, call_id: &str, id: &str) -> Result<BlobKey, Fault> {
    BlobKey::recording(workspace_id, call_id, id)
        .ok_or_else(|| Fault::Bug(format!("no blob can be named after {workspace_id}, {call_id}, {id}")))
}
