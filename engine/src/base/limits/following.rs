//! Following calls and runs in progress.

/// Clients that follow something in one process. Workspaces share the places fairly; clients beyond that are asked to try
/// again later.
pub const FOLLOWERS_MAX: u64 = 256;
/// So many of these stay free for workspaces whose clients follow nothing yet.
pub const FOLLOWERS_FOR_NEWCOMERS: u64 = 16;
/// How often a follower of a run looks for changes.
pub const FOLLOW_PAUSE_MS: u64 = 500;
/// How long a follower of a call waits to be told of a change, before it looks all the same.
pub const FOLLOW_LOOK_MS: u64 = 10_000;
const _: () = assert!(FOLLOW_LOOK_MS < FOLLOW_KEEP_ALIVE_MS.unsigned_abs());
/// Rows and turns that one look takes.
pub const FOLLOWED_AT_ONCE: usize = 50;
/// A stream sends something at least this often, so that no proxy takes it for dead.
pub const FOLLOW_KEEP_ALIVE_MS: i64 = 15_000;
/// How long a read waits for the end of what it reads. A request as a whole waits no longer, however many reads it has.
pub const WAIT_SECONDS_MAX: i64 = 25;
/// A waiting read looks after this time first, then after twice as long each time. A platform allows one request only so many
/// reads: it has at most 30 of them.
pub const WAIT_PAUSE_MS_MIN: i64 = 250;
/// Its longest pause between two looks.
pub const WAIT_PAUSE_MS_MAX: i64 = 1_000;
/// A stream ends after this time, and its client connects again: a platform allows one request only so many reads.
pub const FOLLOW_MS_MAX: i64 = 240_000;
/// The same in the dashboard, whose session is looked up with each request only.
pub const FOLLOW_SESSION_MS_MAX: i64 = 30_000;
