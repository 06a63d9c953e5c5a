//! Which version this is: its number, its commit, and the newest migration that it knows.
use std::sync::LazyLock;

use sidetone_engine::storage::migrations::MIGRATIONS;

/// The commit that the program was built of; `unknown` outside of a clone and without SIDETONE_COMMIT.
pub const COMMIT: &str = env!("BUILT_COMMIT");

/// `0.1.0 (commit 0123456789ab, schema 0044_name)`
pub fn text() -> &'static str {
    static TEXT: LazyLock<String> = LazyLock::new(|| {
        let schema = MIGRATIONS.last().map_or("", |last| last.name).trim_end_matches(".sql");
        format!("{} (commit {COMMIT}, schema {schema})", env!("CARGO_PKG_VERSION"))
    });
    &TEXT
}
