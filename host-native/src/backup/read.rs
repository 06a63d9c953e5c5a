//! Reads a database that another process may use, and that a later version may have written.
use std::path::Path;

use rusqlite::{Connection, OpenFlags};

/// Opens the file of a database to read it.
pub(crate) fn open(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Connection::open_with_flags(path, flags)
}

/// The first column of what is selected.
pub(super) fn texts(database: &Connection, select: &str) -> rusqlite::Result<Vec<String>> {
    database.prepare(select)?.query_map([], |row| row.get(0))?.collect()
}
