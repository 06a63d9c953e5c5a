//! Reads a database that another process may use, and that a later version may have written.
use rusqlite::Connection;

pub(super) use crate::database::open_to_read as open;

/// What is wrong where a row is of something that does not exist, which SQLite does not count as damage.
pub(super) fn rows_of_nothing(database: &Connection) -> rusqlite::Result<Option<String>> {
    let tables = texts(database, "SELECT \"table\" FROM pragma_foreign_key_check LIMIT 1")?;
    Ok(tables.first().map(|table| format!("{table} has rows of something that does not exist")))
}

/// The first column of what is selected.
pub(super) fn texts(database: &Connection, select: &str) -> rusqlite::Result<Vec<String>> {
    database.prepare(select)?.query_map([], |row| row.get(0))?.collect()
}
