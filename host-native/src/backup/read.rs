//! Reads a database that another process may use, and that a later version may have written.
use rusqlite::Connection;

pub(super) use crate::database::open_to_read as open;

/// Looks at all pages, and compares each index with its table.
pub(super) const INTEGRITY_CHECK: &str = "PRAGMA integrity_check";

/// The first thing that is wrong with a database by this check of SQLite's.
pub(super) fn damage(database: &Connection, check: &str) -> rusqlite::Result<Option<String>> {
    Ok(texts(database, check)?.into_iter().find(|line| line != "ok"))
}

/// What is wrong where a row is of something that does not exist, which SQLite does not count as damage.
pub(super) fn rows_of_nothing(database: &Connection) -> rusqlite::Result<Option<String>> {
    let tables = texts(database, "SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1")?;
    Ok(tables.first().map(|table| format!("{table} has rows of something that does not exist")))
}

/// The first column of what is selected.
pub(super) fn texts(database: &Connection, select: &str) -> rusqlite::Result<Vec<String>> {
    database.prepare(select)?.query_map([], |row| row.get(0))?.collect()
}
