//! Runs, batches and their snapshots.

/// Size of a run's snapshot of its assistant or scenario: a row of D1 holds 2 MB.
pub const SNAPSHOT_BYTES_MAX: usize = 1_800_000;
/// Size of the snapshots of all runs of one batch.
pub const BATCH_SNAPSHOTS_BYTES_MAX: i64 = 8 * 1024 * 1024;
/// Queued runs of a workspace.
pub const RUNS_QUEUED_MAX: i64 = 5_000;
/// Simulations in one batch.
pub const BATCH_RUNS_MAX: usize = 1_000;
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

/// Rulings of a judge on one criterion.
pub const JUDGE_VOTES_MAX: i64 = 9;
