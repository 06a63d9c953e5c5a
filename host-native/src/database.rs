//! SQLite in a file: one writer that commits all waiting batches together, and concurrent readers.
mod connection;
mod file_identity;
mod migrate;
mod readers;
mod reserve;
mod turns;
mod waiting_writes;
mod writer;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use sidetone_engine::base::limits::LONG_READ_MS;
use sidetone_engine::ports::statement::{Rows, Statement, long_read_of};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError, NotWritable};
use sidetone_engine::storage::migrations::{DIRECTORY_MIGRATIONS, MIGRATIONS};

use crate::data;
use crate::lost_database::Lost;
use crate::metrics::Metrics;
use connection::Session;
pub(crate) use connection::open_to_read;
pub use file_identity::FileIdentity;
use readers::Readers;
use reserve::Reserve;
pub use reserve::Reserved;
use writer::Writer;

/// Changes that wait to be written, and their bytes.
#[cfg(test)]
pub(crate) const WAITING_CHANGES_MAX: (u64, u64) =
    (waiting_writes::WAITING_MAX, waiting_writes::WAITING_BYTES_MAX);

/// A database file.
pub struct Sqlite {
    readers: Readers,
    writer: Writer,
    reserve: Arc<Reserve>,
    file: FileIdentity,
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
    /// There is no database, and something of one.
    Lost(Lost),
}

impl std::fmt::Display for OpenError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Self::Newer(migration) => write!(
                f,
                "the database was written by a newer Sidetone (it has migration {migration}); run that version, or restore a \
                 backup"
            ),
            Self::Sqlite(error) if is_damaged(error) => write!(
                f,
                "the database is damaged ({error}); keep the folder, set SIDETONE_DATA to a new one and run `sidetone \
                 restore` with your last backup"
            ),
            Self::Sqlite(error) => write!(f, "the database cannot be used: {error}"),
            Self::File(error) => write!(f, "the database cannot be written: {error}"),
            Self::Lost(lost) => lost.fmt(f),
        }
    }
}

impl std::error::Error for OpenError {}

/// Whether the file is no database, or not a sound one.
pub(crate) fn is_damaged(error: &rusqlite::Error) -> bool {
    use rusqlite::ErrorCode::{DatabaseCorrupt, NotADatabase};
    matches!(error.sqlite_error_code(), Some(DatabaseCorrupt | NotADatabase))
}

impl From<rusqlite::Error> for OpenError {
    fn from(error: rusqlite::Error) -> Self {
        Self::Sqlite(error)
    }
}

impl From<OpenError> for DatabaseError {
    fn from(error: OpenError) -> Self {
        match error {
            OpenError::Sqlite(error) => connection::error(error),
            other => Self::Unavailable(other.to_string()),
        }
    }
}

impl From<std::io::Error> for OpenError {
    fn from(error: std::io::Error) -> Self {
        Self::File(error)
    }
}

impl Sqlite {
    /// Opens the file, creates it if it does not exist, and applies missing migrations. `reserve_bytes` of disk space are
    /// kept for deletes.
    pub fn open(path: &Path, reserve_bytes: u64) -> Result<Self, OpenError> {
        Self::open_measured(path, Reserved::Kept(reserve_bytes), Arc::default())
    }

    /// The same, with its transactions measured in `metrics`.
    pub fn open_measured(path: &Path, reserved: Reserved, metrics: Arc<Metrics>) -> Result<Self, OpenError> {
        if let Some(lost) = Lost::log_of(path) {
            return Err(OpenError::Lost(lost));
        }
        // SQLite creates its other files with the mode of this one.
        match data::private().create_new(true).write(true).open(path) {
            Err(error) if error.kind() != ErrorKind::AlreadyExists => return Err(error.into()),
            _ => {}
        }
        let mut session = connection::open(path)?;
        let file = FileIdentity::of(path)?;
        session.commits_to(file.clone());
        migrate::migrate(session.connection())?;
        settle(path, &mut session)?;
        let readers = Readers::open(path, Duration::from_millis(LONG_READ_MS))?;
        let reserve = Reserve::open(path, reserved);
        let writer = Writer::start(session, reserve.clone(), metrics);
        Ok(Self { readers, writer, reserve, file })
    }

    /// The file that is open. Once it is lost, all changes fail.
    pub fn file(&self) -> &FileIdentity {
        &self.file
    }

    /// Whether this version would change the schema of the file.
    pub fn is_earlier(path: &Path) -> Result<bool, OpenError> {
        let mut session = connection::open_reader(path)?;
        let applied: i64 =
            session.connection().query_row("SELECT COUNT(*) FROM migrations", [], |row| row.get(0))?;
        Ok(usize::try_from(applied).unwrap_or(0) < MIGRATIONS.len())
    }

    /// Copies a consistent snapshot of the database to `target`, also while it is in use. The file gets its final name
    /// when it is complete and durable.
    pub fn backup(path: &Path, target: &Path) -> Result<(), OpenError> {
        let mut source = connection::open_reader(path)?;
        let mut part = target.as_os_str().to_owned();
        part.push(".part");
        let part = PathBuf::from(part);
        let copied = copy(source.connection(), &part, target);
        if copied.is_err() {
            let _ = std::fs::remove_file(&part);
        }
        copied
    }
}

/// Makes durable what the database shows, before anybody sees it. After a kill, recovery finds commits that were never
/// synced: they are only in the operating system's memory, and SQLite would not sync them before the next write. The
/// checkpoint is for a fresh start with a short log; another process that reads may prevent it, and so may a full disk.
fn settle(path: &Path, session: &mut Session) -> Result<(), OpenError> {
    for file in [&*data::wal_of(path), path] {
        match std::fs::File::open(file) {
            Ok(file) => file.sync_all()?,
            Err(error) if error.kind() == ErrorKind::NotFound => {}
            Err(error) => return Err(error.into()),
        }
    }
    data::sync_folder(path)?;
    if let Err(error) = connection::truncate_log(session) {
        tracing::warn!(%error, "the write-ahead log stays as it is");
    }
    Ok(())
}

/// Uses `VACUUM INTO`, which reads in one transaction: concurrent writes do not prolong it.
fn copy(source: &rusqlite::Connection, part: &Path, target: &Path) -> Result<(), OpenError> {
    let file = data::create_private(part)?;
    let name = part
        .to_str()
        .ok_or_else(|| std::io::Error::new(ErrorKind::InvalidInput, "the name of a backup must be UTF-8"))?;
    source.execute("VACUUM INTO ?1", [name])?;
    Ok(data::publish(file, part, target)?)
}

impl Database for Sqlite {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        match long_read_of(&batch).map(str::to_owned) {
            Some(asker) => Box::pin(self.readers.read_long(asker, batch)),
            None => Box::pin(async move { self.readers.read_here(&batch) }),
        }
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        Box::pin(self.writer.write(batch))
    }

    fn takes_writes(&self) -> BoxFuture<'_, Result<(), NotWritable>> {
        let not = |reason, detail: &str| Err(NotWritable { reason, detail: detail.to_owned() });
        let answer = match (self.reserve.has_room(), self.writer.is_running()) {
            (true, true) => Ok(()),
            (false, _) => not("the disk is full", "the disk is full; only deletes are written"),
            (_, false) => not("the database does not answer", "the writing thread has ended"),
        };
        Box::pin(async move { answer })
    }

    fn takes_turns(&self) -> bool {
        true
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
        migrate::copy_migrated(session.connection())?;
        Ok(Self { session: Mutex::new(session) })
    }

    /// An empty directory of several databases.
    pub fn directory() -> Result<Self, OpenError> {
        let mut session = connection::open_in_memory()?;
        for migration in DIRECTORY_MIGRATIONS {
            session.connection().execute_batch(migration.sql)?;
        }
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

#[cfg(test)]
mod tests {
    use super::*;
    use sidetone_engine::sql;

    #[test]
    fn what_recovery_finds_is_in_the_database_before_anybody_reads_it() {
        let folder = tempfile::tempdir().unwrap();
        let (path, copy) = (folder.path().join("a.db"), folder.path().join("b.db"));
        let mut session = connection::open(&path).unwrap();
        migrate::migrate(session.connection()).unwrap();
        let insert = sql!("INSERT INTO service_facts (name, value) VALUES ('a', 'b')");
        connection::write_one(&session, &[insert]).unwrap();
        // A process that was killed leaves the log behind.
        let log = |path: &Path| path.with_extension("db-wal");
        std::fs::copy(&path, &copy).unwrap();
        std::fs::copy(log(&path), log(&copy)).unwrap();
        assert!(log(&copy).metadata().unwrap().len() > 0);

        let database = Sqlite::open(&copy, 0).unwrap();
        assert_eq!(log(&copy).metadata().unwrap().len(), 0, "the log is empty");
        // The row is in the file itself: losing the log, as a power failure may, loses nothing.
        let alone = folder.path().join("c.db");
        std::fs::copy(&copy, &alone).unwrap();
        let find = sql!("SELECT value FROM service_facts");
        let read = |session: &Session| {
            connection::read(session, std::slice::from_ref(&find)).unwrap()[0].iter().count()
        };
        assert_eq!(read(&connection::open(&alone).unwrap()), 1);
        drop(database);
    }

    #[cfg(unix)]
    #[tokio::test]
    async fn nothing_is_acknowledged_that_went_into_a_file_that_was_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        let database = Sqlite::open(&path, 0).unwrap();
        let insert = |name: &str| {
            vec![sql!("INSERT INTO service_facts (name, value) VALUES (:name, 'b')", name = name)]
        };
        database.write(insert("one")).await.unwrap();
        std::fs::remove_file(&path).unwrap();
        let alone = database.write(insert("two")).await;
        let together = tokio::join!(database.write(insert("three")), database.write(insert("four")));
        for written in [alone, together.0, together.1] {
            assert!(matches!(written, Err(DatabaseError::Unavailable(_))), "{written:?}");
        }
        assert!(database.file().is_lost());
    }

    /// As after `mv sidetone.db elsewhere` under a service, which then ends and is started again.
    #[test]
    fn a_log_without_its_database_is_kept() {
        let folder = tempfile::tempdir().unwrap();
        let (path, elsewhere) = (folder.path().join("a.db"), folder.path().join("b.db"));
        let mut session = connection::open(&path).unwrap();
        migrate::migrate(session.connection()).unwrap();
        let insert = sql!("INSERT INTO service_facts (name, value) VALUES ('a', 'b')");
        connection::write_one(&session, &[insert]).unwrap();
        std::fs::rename(&path, &elsewhere).unwrap();
        let log = data::wal_of(&path);
        let bytes = std::fs::read(&log).unwrap();
        assert!(!bytes.is_empty());
        let told = Sqlite::open(&path, 0).err().unwrap().to_string();
        assert!(told.contains("a.db-wal") && told.contains("put the database back"), "{told}");
        assert!(!path.exists() && std::fs::read(&log).unwrap() == bytes);
        std::fs::write(&path, []).unwrap();
        let backup = folder.path().join("c.db");
        for outcome in [
            Sqlite::open(&path, 0).map(drop),
            Sqlite::is_earlier(&path).map(drop),
            Sqlite::backup(&path, &backup),
            open_to_read(&path).map(drop),
        ] {
            assert!(matches!(outcome, Err(OpenError::Lost(_))), "{outcome:?}");
            assert_eq!(std::fs::read(&log).unwrap(), bytes);
        }
        drop(session);
        std::fs::rename(&elsewhere, &path).unwrap();
        let database = Sqlite::open(&path, 0).unwrap();
        drop(database);
        let session = connection::open(&path).unwrap();
        let found = connection::read(&session, &[sql!("SELECT value FROM service_facts")]).unwrap();
        assert_eq!(found[0].iter().count(), 1);
    }

    #[test]
    fn a_reader_does_not_delay_the_start() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a.db");
        drop(Sqlite::open(&path, 0).unwrap());
        let reader = connection::open_reader(&path).unwrap();
        connection::command(&reader, "BEGIN").unwrap();
        connection::read(&reader, &[sql!("SELECT 1 AS one FROM service_facts")]).unwrap();
        let started = std::time::Instant::now();
        assert!(Sqlite::open(&path, 0).is_ok());
        assert!(started.elapsed().as_secs() < 4);
    }
}
