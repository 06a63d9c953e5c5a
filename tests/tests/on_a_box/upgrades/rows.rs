//! Data folders as earlier versions left them.
use std::collections::BTreeMap;
use std::fs::{self, DirBuilder, Permissions};
use std::os::unix::fs::{DirBuilderExt, PermissionsExt};
use std::path::Path;

use rusqlite::Connection;
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::storage::migrations::{MIGRATIONS, Migration};

/// A server secret, as the file has it.
const SECRET: &str = "0123456789abcdef0123456789abcdef0123456789abcdef0123456789abcdef";

macro_rules! rows {
    ($($name:literal)*) => {
        &[$(($name, include_str!($name))),*]
    };
}

/// Rows as the version of each migration wrote them. Later versions found them so. A `~` stands for the time of an id, see
/// [`full`].
pub const ROWS: &[(&str, &str)] = rows! {
    "0001_foundation.sql"
    "0002_calls.sql"
    "0003_events.sql"
    "0004_runs_that_think.sql"
    "0005_test_tokens.sql"
    "0006_recordings.sql"
    "0007_phone_calls.sql"
    "0008_uncounted_answers.sql"
    "0015_erase.sql"
    "0016_carrier_tokens.sql"
    "0017_search.sql"
    "0018_voice.sql"
    "0019_dashboard.sql"
    "0020_waits.sql"
    "0021_assistant_revisions.sql"
    "0022_seen.sql"
    "0024_call_inputs.sql"
    "0025_failed_evaluation.sql"
    "0026_membership_used.sql"
    "0027_audit_subject_name.sql"
    "0028_following.sql"
    "0029_keys.sql"
    "0030_transfers.sql"
    "0031_voicemail.sql"
    "0034_judge_votes.sql"
    "0035_variables_metadata.sql"
    "0036_tool_mocks.sql"
    "0037_events.sql"
    "0038_snapshots.sql"
    "0039_tidying.sql"
    "0044_mocks_unused.sql"
    "0045_archives.sql"
    "0046_starts_of_links.sql"
};

/// Files that rows name, with the migration that they came with.
const BLOBS: [(u32, &str, &[u8]); 2] = [
    // A second of silence.
    (18, "recordings/ws_~01/call_~04.rec_~04.0.pcm", &[0; 32_000]),
    (45, "transcripts/ws_~01/call_~03.json", ARCHIVED.as_bytes()),
];
const ARCHIVED: &str = concat!(
    r#"{"transcript":[{"index":0,"role":"user","#,
    r#""text":"Two baguettes.","start_ms":0,"end_ms":1560,"interrupted":false,"intended_text":null}],"turns":[]}"#,
);

/// The sums over calls, which every version writes with a call: of its group, and of the wide one.
const SUMS: &str = "
    DELETE FROM call_rollups;
    INSERT INTO call_rollups (workspace_id, group_id, span_ms, starts_at, calls, duration_ms, cost_microusd)
      SELECT calls.workspace_id, counted.id, column1,
        CASE column1 WHEN 0 THEN 0 ELSE started_at - started_at % column1 END AS since,
        COUNT(*), SUM(duration_ms), SUM(cost_microusd)
      FROM calls JOIN call_groups AS own ON own.id = group_id
      JOIN call_groups AS counted ON counted.id = own.id OR counted.assistant_id = '' AND counted.source = own.source
        AND counted.outcome = own.outcome AND counted.sentiment = own.sentiment
      CROSS JOIN (VALUES (0), (5529600000), (691200000), (86400000), (10800000)) GROUP BY counted.id, column1, since;";

/// The text with ids in full: what is before the last two digits, with the time 1700000000000.
pub fn full(text: &str) -> String {
    text.replace('~', "01hf7yat0000000000000000")
}

/// The key of the workspace.
pub fn key() -> ApiKey {
    ApiKey::from_bytes([5; 32])
}

/// The number of a migration.
pub fn number(migration: &Migration) -> u32 {
    migration.name[..4].parse().unwrap()
}

/// A data folder as the version with these migrations left it.
pub fn earlier(folder: &Path, migrations: usize) {
    fs::create_dir(folder).unwrap();
    fs::set_permissions(folder, Permissions::from_mode(0o700)).unwrap();
    for (name, content) in [("secret", SECRET), ("sidetone.db", "")] {
        fs::write(folder.join(name), content).unwrap();
        fs::set_permissions(folder.join(name), Permissions::from_mode(0o600)).unwrap();
    }
    let database = Connection::open(folder.join("sidetone.db")).unwrap();
    database.pragma_update(None, "journal_mode", "wal").unwrap();
    database
        .execute_batch(
            "CREATE TABLE migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT",
        )
        .unwrap();
    for migration in &MIGRATIONS[..migrations] {
        database.execute_batch(migration.sql).unwrap_or_else(|error| panic!("{}: {error}", migration.name));
        database.execute("INSERT INTO migrations (name) VALUES (?1)", [migration.name]).unwrap();
        // A row is written once, by the version that could first write it: later migrations find it.
        if let Some((_, rows)) = ROWS.iter().find(|(name, _)| *name == migration.name) {
            database
                .execute_batch(&full(rows))
                .unwrap_or_else(|error| panic!("rows of {}: {error}", migration.name));
        }
        if migration.name == MIGRATIONS[0].name {
            database
                .execute(
                    "INSERT INTO api_keys (id, workspace_id, name, hash, hint, created_at)
                     VALUES (?1, ?2, 'first', ?3, ?4, 1700000000000)",
                    [full("key_~01"), full("ws_~01"), key().sha256_hex(), key().hint()],
                )
                .unwrap();
        }
    }
    let newest = number(&MIGRATIONS[migrations - 1]);
    if newest >= 2 {
        database.execute_batch(SUMS).unwrap();
    }
    for (_, name, content) in BLOBS.into_iter().filter(|(since, ..)| *since <= newest) {
        let file = folder.join(full(name));
        DirBuilder::new().recursive(true).mode(0o700).create(file.parent().unwrap()).unwrap();
        fs::write(file, content).unwrap();
    }
}

/// How many rows each table has.
pub fn counted(folder: &Path) -> BTreeMap<String, i64> {
    let database = Connection::open(folder.join("sidetone.db")).unwrap();
    let mut names = database
        .prepare("SELECT name FROM sqlite_schema WHERE type = 'table' AND sql LIKE '%STRICT%'")
        .unwrap();
    let names: Vec<String> =
        names.query_map([], |row| row.get(0)).unwrap().collect::<Result<_, _>>().unwrap();
    let count = |name: &String| {
        database.query_row(&format!("SELECT COUNT(*) FROM {name}"), [], |row| row.get::<_, i64>(0)).unwrap()
    };
    names.iter().map(|name| (name.clone(), count(name))).collect()
}
