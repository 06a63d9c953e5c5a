//! Jobs: how many at once, leases, and retries.

/// Simulation runs of a workspace that a process runs at once, when no other workspace has any; they mostly wait for models
/// and tools. There is an eighth more of places, for the others.
pub const RUNS_AT_ONCE: u64 = 64;
/// Likewise, hang-ups; and likewise, calls that are settled and analyzed.
pub const CALL_JOBS_AT_ONCE: u64 = 64;
/// Likewise, webhooks. Deliveries only wait, and an unresponsive receiver takes long.
pub const DELIVERY_JOBS_AT_ONCE: u64 = 128;
/// Due jobs of a kind that are counted for the operator, and webhooks that are asked for their oldest delivery.
pub const JOBS_COUNTED_MAX: i64 = 1_000;
/// Lease on a claimed job.
pub const JOB_LEASE_MS: i64 = 60_000;
/// Attempts of a job. The end of its process counts as an attempt, so the limit exceeds the number of restarts on a bad
/// day.
pub const JOB_ATTEMPTS_MAX: i64 = 12;
/// The pause after the first failed attempt of a job; it doubles each time.
pub const JOB_RETRY_MS: i64 = 1_000;
/// Doublings of that pause.
pub const JOB_RETRY_DOUBLINGS_MAX: i64 = 10;
