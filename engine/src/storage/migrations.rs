//! The database's schema, as numbered steps that are only ever added to. A box applies them itself,
//! the edge with `wrangler d1 migrations apply`; both remember which by the file's name.

/// One step.
pub struct Migration {
    /// The file's name, which sorts.
    pub name: &'static str,
    /// Statements, each ended by `;`.
    pub sql: &'static str,
}

macro_rules! migration {
    ($name:literal) => {
        Migration { name: $name, sql: include_str!(concat!("../../migrations/", $name)) }
    };
}

/// All steps, oldest first.
pub const MIGRATIONS: &[Migration] = &[
    migration!("0001_foundation.sql"),
    migration!("0002_calls.sql"),
    migration!("0003_events.sql"),
    migration!("0004_runs_that_think.sql"),
    migration!("0005_test_tokens.sql"),
    migration!("0006_recordings.sql"),
    migration!("0007_phone_calls.sql"),
    migration!("0008_uncounted_answers.sql"),
];
