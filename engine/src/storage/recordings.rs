//! Recordings of calls: WAV, 16-bit PCM, the caller on the first channel and the assistant on the second.
//!
//! The audio is in segments, a blob each, and what they contain is in a row (`in_segments`): a conversation is recorded
//! while it runs, and a voice run when it is over. A blob is reachable only through a row in the state `ready`, so the row
//! is written before the blobs and outlives them: [`Recording`] writes the row (`writing`) and the segments, [`end`] the
//! row (`ready`); deleting writes the row (`deleted`), then removes the blobs. A live call that is ended after a crash has its
//! segments so far as its recording; what a crashed voice run had stored is given up (`abandoned`), because the run is
//! repeated, and the sweep removes it. No recording is served while it is written, and no blob stays for ever.
mod check;
mod in_segments;
mod read;
mod sweep;
pub(crate) mod waveform;

pub use in_segments::{Recording, SEGMENTS_UNCOUNTED_MAX, abandon, end, segment_ms};
pub(crate) use in_segments::{file, in_progress, remove};
pub(crate) use read::delete_before;
pub use read::{NotServed, State, columns, delete, ready, select};
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
