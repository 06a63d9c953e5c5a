//! What is forgotten, and the upkeep of the search index.

/// How often a long-running process begins to sweep. At the edge the cron in `wrangler.toml` says it.
pub const SWEEP_MS: i64 = 5 * 60 * 1000;
/// Rounds of the sweep in a row; then such a process looks at its other work.
pub const SWEEP_ROUNDS_MAX: usize = 32;
/// Errors of one sweep that the log tells.
pub const SWEEP_FAULTS_TOLD_MAX: usize = 5;
/// Rounds of the sweep in one invocation at the edge: one batch each, and the requests for recordings.
pub const SWEEP_ROUNDS_PER_INVOCATION_MAX: usize = 4;
/// Expired rows of a kind that one round of the sweep removes.
pub const SWEEP_ROWS_MAX: i64 = 500;
/// Total size of the events that one round removes with their deliveries, when there is more than one.
pub const SWEEP_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// Events without deliveries that one round removes.
pub const SWEEP_LONE_EVENTS_MAX: i64 = 50;
/// Events of earlier versions whose call one round finds out; their sizes are unknown, so they are few.
pub const SWEEP_UNREAD_EVENTS_MAX: i64 = 50;
/// Longest retention of calls and recordings that a workspace can set, in days.
pub const RETENTION_DAYS_MAX: u64 = 3_650;
/// Workspaces per round of the sweep whose calls, or recordings, are older than they are kept; the rest waits for the next
/// round.
pub const RETENTION_WORKSPACES_MAX: usize = 16;
/// Batches per round that delete such calls, and as many that delete such recordings, each of one workspace.
pub const RETENTION_CHUNKS_MAX: usize = 16;
/// Calls of one such batch.
pub const RETENTION_CALLS_MAX: i64 = 50;
/// Calls that one request deletes by a filter, in batches of [`RETENTION_CALLS_MAX`].
pub const CALLS_DELETED_AT_ONCE: i64 = 500;
/// Recordings of one such batch.
pub const RETENTION_RECORDINGS_MAX: i64 = 200;
/// Longest time that transcripts can stay in the database before they are archived, in days.
pub const ARCHIVE_DAYS_MAX: i64 = 3_650;
/// Calls whose transcripts one batch archives, and the size of these transcripts without the last one.
pub const ARCHIVE_CALLS_MAX: i64 = 20;
/// See [`ARCHIVE_CALLS_MAX`].
pub const ARCHIVE_BYTES_MAX: i64 = 2 * 1024 * 1024;
/// A shorter transcript stays in the database.
pub const ARCHIVE_BYTES_MIN: i64 = 256;
/// Such batches per round of the sweep, of at most as many workspaces.
pub const ARCHIVE_BATCHES_MAX: usize = 2;
/// Archived transcripts that one read fetches at a time. A Worker has six connections.
pub const ARCHIVES_READ_AT_ONCE: usize = 6;
/// Archived transcripts that one read fetches: a Worker makes 1,000 requests for one of its own.
pub const ARCHIVES_READ_MAX: usize = 800;
/// Archived transcripts that are lost, which one line of the log names.
pub const ARCHIVES_LOST_NAMED_MAX: usize = 3;
/// How long after everything was archived the sweep looks again.
pub const ARCHIVE_PAUSE_MS: i64 = 60 * 60 * 1000;
/// How long after a call was deleted its archived transcript is removed: no process writes one for so long.
pub const ARCHIVE_REMOVED_AFTER_MS: i64 = 30 * 60 * 1000;
/// Requests with which a round removes archived transcripts when they cannot all be removed by one: an invocation at the edge
/// makes 1,000 for all rounds of its databases. One of [`SWEEP_ROWS_MAX`] that cannot be removed takes 19.
pub const ARCHIVE_REMOVALS_MAX: usize = 30;
/// How long those wait that such a round has not come to.
pub const ARCHIVE_REMOVAL_PAUSE_MS: i64 = 60 * 1000;
/// Pages of the text index that one batch of the sweep merges while words of deleted calls are in it.
pub const SEARCH_MERGE_PAGES: i64 = 256;
/// Such batches per round.
pub const SEARCH_MERGES_MAX: usize = 8;
/// Calls that one batch of the sweep moves from the text index of an earlier version.
pub const SEARCH_UPGRADE_CALLS_MAX: i64 = 100;
/// Their transcripts, without the last one: D1 holds texts of 2 MB.
pub const SEARCH_UPGRADE_BYTES_MAX: i64 = 256 * 1024;
/// Such batches per round.
pub const SEARCH_UPGRADE_BATCHES_MAX: usize = 8;
