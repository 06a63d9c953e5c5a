//! The database schema as numbered migrations; released ones never change. The self-hosted server applies them itself, at
//! the edge `wrangler d1 migrations apply` does. Both record the applied ones by file name.

/// One migration.
pub struct Migration {
    /// The file name; it defines the order.
    pub name: &'static str,
    /// Statements, each ended by `;`.
    pub sql: &'static str,
}

macro_rules! migration {
    ($name:literal) => {
        Migration { name: $name, sql: include_str!(concat!("../../migrations/", $name)) }
    };
}

/// The migrations of the directory of several databases (`storage/directory.rs`), which has a schema of its own.
pub const DIRECTORY_MIGRATIONS: &[Migration] = &[
    Migration { name: "0001_directory.sql", sql: include_str!("../../directory/0001_directory.sql") },
    Migration { name: "0002_moves.sql", sql: include_str!("../../directory/0002_moves.sql") },
];

/// All migrations, oldest first. Nothing ever had the numbers 0013 and 0014.
pub const MIGRATIONS: &[Migration] = &[
    migration!("0001_foundation.sql"),
    migration!("0002_calls.sql"),
    migration!("0003_events.sql"),
    migration!("0004_runs_that_think.sql"),
    migration!("0005_test_tokens.sql"),
    migration!("0006_recordings.sql"),
    migration!("0007_phone_calls.sql"),
    migration!("0008_uncounted_answers.sql"),
    migration!("0009_leased_jobs.sql"),
    migration!("0010_spending_reservations.sql"),
    migration!("0011_limits.sql"),
    migration!("0012_service_facts.sql"),
    migration!("0015_erase.sql"),
    migration!("0016_carrier_tokens.sql"),
    migration!("0017_search.sql"),
    migration!("0018_voice.sql"),
    migration!("0019_dashboard.sql"),
    migration!("0020_waits.sql"),
    migration!("0021_assistant_revisions.sql"),
    migration!("0022_seen.sql"),
    migration!("0023_invitations_sent.sql"),
    migration!("0024_call_inputs.sql"),
    migration!("0025_failed_evaluation.sql"),
    migration!("0026_membership_used.sql"),
    migration!("0027_audit_subject_name.sql"),
    migration!("0028_following.sql"),
    migration!("0029_keys.sql"),
    migration!("0030_transfers.sql"),
    migration!("0031_voicemail.sql"),
    migration!("0033_transferred_lines.sql"),
    migration!("0034_judge_votes.sql"),
    migration!("0035_variables_metadata.sql"),
    migration!("0036_tool_mocks.sql"),
    migration!("0037_events.sql"),
    migration!("0038_snapshots.sql"),
    migration!("0039_tidying.sql"),
    migration!("0040_runs_by_result.sql"),
    migration!("0041_kept_bytes.sql"),
    migration!("0042_stored_responses.sql"),
    migration!("0043_runs_under_way.sql"),
    migration!("0044_mocks_unused.sql"),
    migration!("0045_archives.sql"),
    migration!("0046_starts_of_links.sql"),
    migration!("0047_carried_secrets.sql"),
    migration!("0048_moves.sql"),
];
