//! Recordings of calls: WAV, 16-bit PCM, the caller on the first channel and the assistant on the second.
//!
//! The audio is a blob, its metadata a row (`0006_recordings.sql`). A blob is reachable only through a row in the state
//! `ready`, so the row is written before the blob and outlives it: [`store`] writes the row (`writing`), the blob, the row
//! (`ready`); deleting writes the row (`deleted`), then removes the blob; the sweep removes what a crash in between leaves
//! behind. A telephone call is recorded while it runs, and a voice run when it is over, in segments (`in_segments`): a blob
//! each, and what they contain in the row. No partial recording is served, and no blob stays for ever.
mod in_segments;
mod read;
mod store;
mod sweep;
pub(crate) mod wav;
pub(crate) mod waveform;

pub(crate) use in_segments::{Recording, abandon, end, file, in_progress, remove, segment_ms};
pub(crate) use read::delete_before;
pub use read::{NotServed, State, columns, delete, ready, select};
pub use store::{Kept, store};
pub(crate) use sweep::due;

use crate::base::ids::{CallId, RecordingId, WorkspaceId};
use crate::ports::blobs::BlobKey;
use crate::storage::fault::Fault;

/// The speaker of each channel.
pub const CHANNELS: [&str; 2] = ["caller", "assistant"];

/// The key of a recording's blob.
pub(crate) fn key(workspace_id: &WorkspaceId, call_id: &CallId, id: &RecordingId) -> Result<BlobKey, Fault> {
    BlobKey::recording(workspace_id, call_id, id)
        .ok_or_else(|| Fault::Bug(format!("no blob can be named after {workspace_id}, {call_id}, {id}")))
}
