//! Reads a database that another process may use, and that a later version may have written.
use rusqlite::Connection;

pub(super) use crate::database::open_to_read as open;

/// The first column of what is selected.
pub(super) fn texts(database: &Connection, select: &str) -> rusqlite::Result<Vec<String>> {
    database.prepare(select)?.query_map([], |row| row.get(0))?.collect()
}
