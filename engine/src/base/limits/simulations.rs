//! Runs, batches and their snapshots.

/// Size of a run's snapshot of its assistant or scenario: a row of D1 holds 2 MB.
pub const SNAPSHOT_BYTES_MAX: usize = 1_800_000;
/// Size of the snapshots of all runs of one batch.
pub const BATCH_SNAPSHOTS_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// Metadata of the runs of one start together: a stored response is a row, and a row of D1 holds 2 MB.
pub const STARTED_METADATA_BYTES_MAX: usize = 500_000;
/// Variables of the runs of one start together: each run has them, and each call.
pub const STARTED_VARIABLES_BYTES_MAX: usize = 1024 * 1024;
/// What a workspace keeps of the configurations that runs and calls ran with, together.
pub const SNAPSHOTS_KEPT_BYTES_MAX: i64 = 2 * 1024 * 1024 * 1024;
/// Memory of one process for what starts of runs have read and not written yet.
pub const STARTS_BYTES_MAX: u64 = 96 * 1024 * 1024;
/// Memory of a start for each byte that it has read: the rows, the configuration, its text, what of it is hashed, and the write.
pub const START_MEMORY_PER_BYTE: u64 = 6;
/// Queued runs of a workspace.
pub const RUNS_QUEUED_MAX: i64 = 5_000;
/// Runs of one batch.
pub const BATCH_RUNS_MAX: usize = 1_000;
/// Runs of one simulation in a batch.
pub const REPEAT_MAX: i64 = 100;
/// Runs that one request deletes by a filter.
pub const RUNS_DELETED_AT_ONCE: i64 = 1_000;
/// Failing evaluations that the read of a batch shows, and runs that it looks for them in.
pub const BATCH_FAILURES_MAX: i64 = 20;
/// Each text of such an evaluation, in characters.
pub const BATCH_FAILURE_CHARS_MAX: i64 = 500;
/// Concurrent runs of a workspace.
pub const RUNS_AT_ONCE_MAX: u64 = 1_000;
/// Longest conversation of a voice run that is held for real: with its evaluations, it fits into a quarter of an hour, which
/// is all that a Worker has for a message of its queue.
pub const HELD_RUN_MS_MAX: i64 = 600_000;
/// Longest conversation time between two checkpoints.
pub const CHECKPOINT_MS: i64 = 3_000;
/// Default model cost of one run, in millionths of a US dollar.
pub const RUN_COST_MICROUSD_DEFAULT: i64 = 1_000_000;
/// Shortest pause of a queued run that waits for money or memory that other conversations have.
pub const RUN_WAIT_MS_MIN: i64 = 1_000;
/// Longest such pause.
pub const RUN_WAIT_MS_MAX: i64 = 30_000;
/// Waiting runs that continue when a conversation gives its reservation back.
pub const RUNS_WOKEN_MAX: i64 = 16;
/// The longest delay of a packet that a scenario can ask for.
pub const JITTER_MS_MAX: i64 = 1_000;
/// The quietest noise that a scenario can ask for, in dB of full scale: below it, 16 bits have none.
pub const NOISE_DB_MIN: i64 = -90;

/// Tools that a scenario answers for.
pub const TOOL_MOCKS_MAX: usize = 64;
/// Its answers for one of them.
pub const MOCKED_ANSWERS_MAX: usize = 64;
/// Tools that a run names as answered for in vain.
pub const MOCKS_UNUSED_MAX: usize = 8;
/// Size of all of them as JSON.
pub const TOOL_MOCKS_BYTES_MAX: usize = 64 * 1024;
/// The longest time that such an answer can take: longer than any tool may.
pub const MOCK_DELAY_MS_MAX: i64 = 60_000;

/// Rulings of a judge on one criterion.
pub const JUDGE_VOTES_MAX: i64 = 9;
