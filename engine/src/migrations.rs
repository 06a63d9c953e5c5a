//! The database's schema, as numbered steps that are only ever added to. A box applies them itself,
//! the edge with `wrangler d1 migrations apply`; both remember which by the file's name.

/// One step.
pub struct Migration {
    /// The file's name, which sorts.
    pub name: &'static str,
    /// Statements, each ended by `;`.
    pub sql: &'static str,
}

/// All steps, oldest first.
pub const MIGRATIONS: &[Migration] = &[
    Migration { name: "0001_foundation.sql", sql: include_str!("../migrations/0001_foundation.sql") },
    Migration { name: "0002_calls.sql", sql: include_str!("../migrations/0002_calls.sql") },
];
