//! Moving workspaces between hosts: how much one request reads, carries or deletes, so that the client repeats it.

/// Workspaces that move at once: each has three triggers on each table with rows of workspaces.
pub const MOVES_AT_ONCE_MAX: i64 = 4;
/// Rows in one part of a move.
pub const MOVE_PART_ROWS_MAX: i64 = 200;
/// Words of calls in one part: whoever receives them writes an entry of the text index for each.
pub const MOVE_PART_WORDS_MAX: i64 = 100;
/// Rows of any workspace that one look for the rows of a workspace passes.
pub const MOVE_LOOKED_AT_MAX: i64 = 5_000;
/// Looks of one request.
pub const MOVE_LOOKS_MAX: usize = 20;
/// A part ends after the row that reaches so many bytes.
pub const MOVE_ROWS_BYTES: i64 = 1024 * 1024;
/// A part ends after the blob that reaches so many bytes.
pub const MOVE_BLOBS_BYTES: u64 = 2 * 1024 * 1024;
/// Blobs in one part.
pub const MOVE_PART_BLOBS_MAX: usize = 64;
/// The size of a blob: a segment of a recording has up to 3 MB, an archived transcript 1 MiB.
pub const MOVE_BLOB_BYTES_MAX: u64 = 8 * 1024 * 1024;
/// The size of a part: a row has up to 2 MB of text, which is six times that as JSON if all of it is control characters.
pub const MOVE_PART_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The size of the line that a part begins with.
pub const MOVE_PART_HEAD_BYTES_MAX: usize = 64 * 1024;
/// Tools and webhooks in one part of secrets.
pub const MOVE_PART_SECRETS_MAX: i64 = 200;
/// Rows that are deleted at once from a workspace that has moved.
pub const MOVE_ERASED_ROWS_MAX: i64 = 200;
/// Recordings of it that are deleted at once.
pub const MOVE_ERASED_RECORDINGS_MAX: i64 = 16;
/// After a recording that reaches so many segments, no other one is deleted at once.
pub const MOVE_ERASED_SEGMENTS_MAX: i64 = 2_000;
/// The size of the head of a move: numbers and hashes of keys, each of all that a workspace can have.
pub const MOVE_HEAD_BYTES_MAX: usize = 512 * 1024;
/// Models, voices or transcribers that the head of a move names.
pub const MOVE_NEEDS_MAX: i64 = 200;
