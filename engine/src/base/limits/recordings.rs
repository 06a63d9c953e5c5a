//! Recordings and the blobs that keep them.

/// A recording whose write takes longer counts as failed, and its blob is removed.
pub const RECORDING_WRITE_MS_MAX: i64 = 24 * 60 * 60 * 1000;
/// Duration of a segment of a running call's recording where a write costs nothing but time. A crash loses about as much.
pub const RECORDING_SEGMENT_MS: i64 = 5_000;
/// The same where each write is counted: an hour is 120 writes of the 1,000 that an invocation at the edge has, and a
/// segment is 1 to 3 MB of the 128 MB of its isolate.
pub const RECORDING_SEGMENT_METERED_MS: i64 = 30_000;
/// Segments of a running call's recording that wait for storage, beside the one that is being written.
pub const RECORDING_WAITING_MAX: usize = 3;
/// Segments of a running call's recording that are stored and not yet counted: they are counted with the next write of the
/// journal.
pub const RECORDING_UNCOUNTED_MAX: usize = 3;
/// How often a segment is written if storage fails.
pub const RECORDING_TRIES: u32 = 3;
/// The pause between two tries.
pub const RECORDING_TRY_AGAIN_MS: u64 = 1_000;
/// How long the end of a call waits for the last segments of its recording.
pub const RECORDING_FINAL_MS: u64 = 5_000;
/// Recordings that one round of the sweep removes: each takes a request, and an invocation at the edge has 50.
pub const RECORDINGS_SWEPT_MAX: usize = 16;
/// After a recording that reaches so many segments, the round removes no other one: each segment is a blob.
pub const RECORDING_SEGMENTS_SWEPT_MAX: i64 = 2_000;
/// When the sweep tries again to remove a recording that could not be removed.
pub const RECORDING_RETRY_MS: i64 = 10 * 60 * 1000;
/// Resolution of a waveform.
pub const WAVEFORM_PEAKS_PER_SECOND: u32 = 10;
/// Bytes of a blob in memory while it is streamed.
pub const BLOB_PIECE_BYTES: u64 = 256 * 1024;
