//! Several databases.

/// Databases beside the first one.
pub const SHARDS_BESIDE_MAX: usize = 31;
/// Shards that one regular timer looks at for due jobs and what is to be swept; the next one goes on with the others.
pub const SHARDS_PER_TIMER_MAX: usize = 4;
/// Shards whose sizes differ by less are equally full: the one with fewer workspaces gets the next one.
pub const FILL_STEP_BYTES: u64 = 64 * 1024 * 1024;
/// How long a number is kept for a workspace that has asked for it and has not bound it.
pub const NUMBER_CLAIM_MS: i64 = 60_000;
