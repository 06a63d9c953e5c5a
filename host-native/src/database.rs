//! SQLite in a file: one writer that commits all waiting batches together, and concurrent readers.
mod connection;
mod migrate;
mod writer;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Mutex;

use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};

use crate::data;
use connection::Session;
use writer::Writer;

/// Idle reading connections to keep; more are opened under load and closed afterwards.
const IDLE_READERS_MAX: usize = 16;

/// A database file.
pub struct Sqlite {
    path: PathBuf,
    readers: Mutex<Vec<Session>>,
    writer: Writer,
}

/// Why a database cannot be used.
#[derive(Debug)]
pub enum OpenError {
    /// A newer version of Sidetone has migrated it.
    Newer(String),
    /// An error of SQLite.
    Sqlite(rusqlite::Error),
    /// A file cannot be written.
    File(std::io::Error),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Newer(step) => write!(
                f,
                "the database was written by a newer Sidetone (it has step {step}); run that version, or restore a backup"
            ),
            Self::Sqlite(error) => write!(f, "the database cannot be used: {error}"),
            Self::File(error) => write!(f, "the database cannot be written: {error}"),
        }
    }
}

impl std::error::Error for OpenError {}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<std::io::Error> for OpenError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

impl Sqlite {
    /// Opens the file, creates it if it does not exist, and applies missing migrations.
    pub fn open(path: &Path) -> Result<Self, OpenError> {
        // SQLite creates its other files with the mode of this one.
        match data::private().create_new(true).write(true).open(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let mut session = connection::open(path)?;
        migrate::migrate(session.connection())?;
        let readers = Mutex::new(vec![connection::open_reader(path)?]);
        Ok(Self { path: path.to_owned(), readers, writer: Writer::start(session) })
    }

    /// Copies a consistent snapshot of the database to `target`, also while it is in use. The file gets its final name
    /// when it is complete and durable.
    pub fn backup(path: &Path, target: &Path) -> Result<(), OpenError> {
        let mut source = connection::open_reader(path)?;
        let mut part = target.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        // Left over from an interrupted backup.
        match std::fs::remove_file(&part) {
            Err(error) if error.kind() != ErrorKind::NotFound => return Err(error.into()),
            _ => {}
        }
        let copied = copy(source.connection(), &part, target);
        if copied.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        copied
    }

    fn read_now(&self, batch: &[Statement]) -> Result<Vec<Rows>, DatabaseError> {
        let idle = self.readers.lock().unwrap_or_else(|poisoned| poisoned.into_inner()).pop();
        let session = match idle {
            Some(session) => session,
            None => connection::open_reader(&self.path).map_err(connection::error)?,
        };
        let rows = connection::read(&session, batch);
        let mut readers = self.readers.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        if readers.len() < IDLE_READERS_MAX && session.is_autocommit() {
            readers.push(session);
        }
        rows
    }
}

/// Uses `VACUUM INTO`, which reads in one transaction: concurrent writes do not prolong it.
fn copy(source: &rusqlite::Connection, part: &Path, target: &Path) -> Result<(), OpenError> {
    let file = data::private().create_new(true).write(true).open(part)?;
    let name = part
        .to_str()
        .ok_or_else(|| std::io::Error::new(ErrorKind::InvalidInput, "the name of a backup must be UTF-8"))?;
    source.execute("VACUUM INTO ?1", [name])?;
    Ok(data::publish(file, part, target)?)
}

impl Database for Sqlite {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        // A read takes microseconds; passing it to another thread would take longer.
        Box::pin(async move { self.read_now(&batch) })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(self.writer.write(batch))
    }
}

/// An in-memory database for tests.
pub struct Memory {
    session: Mutex<Session>,
}

impl Memory {
    /// An empty database with the current schema.
    pub fn new() -> Result<Self, OpenError> {
        let mut session = connection::open_in_memory()?;
        migrate::migrate(session.connection())?;
        Ok(Self { session: Mutex::new(session) })
    }

    /// The schema as SQLite stores it, one statement per line.
    pub fn schema(&self) -> Result<String, OpenError> {
        let mut session = self.session.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
        let mut statement = session
            .connection()
            .prepare("SELECT sql FROM sqlite_schema WHERE sql IS NOT NULL ORDER BY type, name")?;
        let rows = statement.query_map([], |row| row.get::<_, String>(0))?;
        let all: Vec<String> = rows.collect::<Result<_, _>>()?;
        Ok(all.join(";\n") + ";\n")
    }
}

impl Database for Memory {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move {
            let session = self.session.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            connection::read(&session, &batch)
        })
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(async move {
            let session = self.session.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
            connection::write_one(&session, &batch)
        })
    }
}
