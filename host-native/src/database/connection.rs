//! A SQLite connection that behaves like D1: numbers are bound as floats, and D1's limits on statements apply.
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, InterruptHandle, OpenFlags, ToSql};
use sidetone_engine::ports::DatabaseError;
use sidetone_engine::ports::statement::{Rows, Statement, Value};

use super::OpenError;
use super::file_identity::FileIdentity;
use crate::lost_database::Lost;

/// D1's limits, as workerd sets them (`src/workerd/util/sqlite.c++`). Of a text and a row, what D1 promises: 2 MB.
const D1_LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_LENGTH, 2_000_000),
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 100),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 5),
    (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
];
/// Prepared statements cached per connection: more than the service has.
const PREPARED_STATEMENTS_MAX: usize = 512;
/// How long to wait for another process (a backup, the command line).
const BUSY_MS: u64 = 5_000;
/// The write-ahead log is truncated to this size after a larger transaction.
const LOG_BYTES_KEPT_MAX: i64 = 64 * 1024 * 1024;

/// A connection with a cache of its statements' column names.
pub struct Session {
    connection: Connection,
    /// Column names by statement, so that they are not copied for every result.
    columns: RefCell<HashMap<Box<str>, Arc<[String]>>>,
    /// The file that commits have to be in; `None`: whatever was opened.
    file: Option<FileIdentity>,
}

impl Session {
    fn new(connection: Connection) -> rusqlite::Result<Self> {
        connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        // Query plans do not depend on bound values. Otherwise SQLite prepares most statements again for each call,
        // which takes longer than running them.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        for (limit, max) in D1_LIMITS {
            connection.set_limit(*limit, *max)?;
        }
        connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS_MAX);
        Ok(Self { connection, columns: RefCell::default(), file: None })
    }

    /// The underlying connection.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// From now on, a commit succeeds only while this file is at its path.
    pub fn commits_to(&mut self, file: FileIdentity) {
        self.file = Some(file);
    }

    /// Interrupts what the connection does, from another thread.
    pub fn interrupt_handle(&self) -> InterruptHandle {
        self.connection.get_interrupt_handle()
    }

    /// Calls this after so many instructions of a statement, again and again; `None` ends it.
    pub fn each_steps(&mut self, steps: i32, call: Option<Box<dyn FnMut() + Send>>) {
        let handler = call.map(|mut call| {
            move || {
                call();
                false
            }
        });
        if let Err(error) = self.connection.progress_handler(steps, handler) {
            tracing::debug!(%error, "no progress is reported");
        }
    }

    /// Whether no transaction is open.
    pub fn is_autocommit(&self) -> bool {
        self.connection.is_autocommit()
    }

    fn columns(&self, sql: &str, prepared: &CachedStatement<'_>) -> Arc<[String]> {
        let mut cache = self.columns.borrow_mut();
        if let Some(columns) = cache.get(sql) {
            return columns.clone();
        }
        let columns: Arc<[String]> = prepared.column_names().map(str::to_owned).collect();
        // D1 has one value for each name, so a second column of a name would be lost there.
        debug_assert!(
            columns.iter().enumerate().all(|(n, name)| !columns[..n].contains(name)),
            "two columns have one name: {sql}"
        );
        if cache.len() >= PREPARED_STATEMENTS_MAX {
            cache.clear();
        }
        cache.insert(sql.into(), columns.clone());
        columns
    }
}

/// Opens the writing connection: WAL mode, and commits are durable when `COMMIT` returns.
pub fn open(path: &Path) -> rusqlite::Result<Session> {
    let session = Session::new(Connection::open(path)?)?;
    session.connection.pragma_update(None, "journal_mode", "WAL")?;
    session.connection.pragma_update(None, "synchronous", "FULL")?;
    // What is deleted is overwritten with zeros, in the text index too.
    session.connection.pragma_update(None, "secure_delete", "ON")?;
    session.connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT_MAX)?;
    Ok(session)
}

/// Writes the write-ahead log back and empties it, so that it keeps nothing that was deleted. `false` if a reader is in
/// the way; this does not wait for it.
pub fn truncate_log(session: &Session) -> rusqlite::Result<bool> {
    session.connection.busy_timeout(Duration::ZERO)?;
    let busy =
        session.connection.query_row("PRAGMA wal_checkpoint(TRUNCATE)", [], |row| row.get::<_, i64>(0));
    session.connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
    Ok(busy? == 0)
}

/// Opens a database to read it, without the limits of D1. Another process may use it, and a later version may have written it.
pub fn open_to_read(path: &Path) -> Result<Connection, OpenError> {
    if let Some(lost) = Lost::log_of(path) {
        return Err(OpenError::Lost(lost));
    }
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Ok(Connection::open_with_flags(path, flags)?)
}

/// Opens a read-only connection.
pub fn open_reader(path: &Path) -> Result<Session, OpenError> {
    Ok(Session::new(open_to_read(path)?)?)
}

/// Opens a new in-memory database.
pub fn open_in_memory() -> rusqlite::Result<Session> {
    Session::new(Connection::open_in_memory()?)
}

/// Runs read-only statements on one consistent snapshot.
pub fn read(session: &Session, batch: &[Statement]) -> Result<Vec<Rows>, DatabaseError> {
    if let [one] = batch {
        return Ok(vec![run(session, one)?]);
    }
    command(session, "BEGIN")?;
    let rows = batch.iter().map(|statement| run(session, statement)).collect();
    command(session, "COMMIT")?;
    rows
}

/// Begins a write transaction, after rolling back one that an earlier failure left open.
pub fn begin(session: &Session) -> Result<(), DatabaseError> {
    if !session.is_autocommit() {
        command(session, "ROLLBACK")?;
    }
    command(session, "BEGIN IMMEDIATE")
}

/// Runs a batch as a separate transaction.
pub fn write_one(session: &Session, batch: &[Statement]) -> Result<Vec<Rows>, DatabaseError> {
    begin(session)?;
    let rows: Result<Vec<Rows>, DatabaseError> =
        batch.iter().map(|statement| run(session, statement)).collect();
    let outcome = rows.and_then(|rows| commit(session).map(|()| rows));
    // SQLite rolls back some failures itself. If this rollback fails, `begin` repeats it.
    if outcome.is_err() && !session.is_autocommit() {
        let _ = command(session, "ROLLBACK");
    }
    outcome
}

/// Runs a batch within a transaction, in a savepoint: a failing batch is rolled back alone. The outer error means that
/// this rollback failed, so the transaction contains a partial batch and must not be committed.
pub fn write_within(
    session: &Session,
    batch: &[Statement],
) -> Result<Result<Vec<Rows>, DatabaseError>, DatabaseError> {
    command(session, "SAVEPOINT batch")?;
    let rows: Result<Vec<Rows>, DatabaseError> =
        batch.iter().map(|statement| run(session, statement)).collect();
    if session.is_autocommit() {
        // SQLite has rolled back the whole transaction, for example because the disk is full.
        return Err(DatabaseError::Unavailable("the transaction was rolled back".to_owned()));
    }
    if rows.is_err() {
        command(session, "ROLLBACK TO batch")?;
    }
    command(session, "RELEASE batch")?;
    Ok(rows)
}

/// Commits a write transaction. It fails if the file is lost. That is looked at when the commit is durable, so that none
/// is acknowledged whose file was removed while the disk was busy with it.
pub fn commit(session: &Session) -> Result<(), DatabaseError> {
    command(session, "COMMIT")?;
    match session.file.as_ref().is_some_and(FileIdentity::is_lost) {
        true => Err(DatabaseError::Unavailable("the database file was removed or replaced".to_owned())),
        false => Ok(()),
    }
}

/// Runs a statement without values and rows, such as `BEGIN`.
pub fn command(session: &Session, sql: &str) -> Result<(), DatabaseError> {
    let mut statement = session.connection.prepare_cached(sql).map_err(error)?;
    statement.execute([]).map_err(error)?;
    Ok(())
}

/// Runs a statement and returns its rows.
fn run(session: &Session, statement: &Statement) -> Result<Rows, DatabaseError> {
    let mut prepared = session.connection.prepare_cached(&statement.sql).map_err(error)?;
    let parameters = rusqlite::params_from_iter(statement.params.iter().map(Bound));
    let width = prepared.column_count();
    let mut rows = prepared.query(parameters).map_err(error)?;
    let mut values = Vec::new();
    while let Some(row) = rows.next().map_err(error)? {
        let mut one = Vec::with_capacity(width);
        for at in 0..width {
            one.push(value(row.get_ref(at).map_err(error)?)?);
        }
        values.push(one);
    }
    drop(rows);
    let columns = match values.as_slice() {
        [] => Arc::default(),
        _ => session.columns(&statement.sql, &prepared),
    };
    Ok(Rows { columns, values })
}

struct Bound<'a>(&'a Value);

impl ToSql for Bound<'_> {
    fn to_sql(&self) -> rusqlite::Result<ToSqlOutput<'_>> {
        Ok(match self.0 {
            Value::Null => ToSqlOutput::Borrowed(ValueRef::Null),
            Value::Number(number) => ToSqlOutput::Borrowed(ValueRef::Real(*number)),
            Value::Text(text) | Value::Asker(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
        })
    }
}

fn value(value: ValueRef<'_>) -> Result<Value, DatabaseError> {
    match value {
        ValueRef::Null => Ok(Value::Null),
        ValueRef::Integer(number) => Ok(Value::Number(number as f64)),
        ValueRef::Real(number) => Ok(Value::Number(number)),
        ValueRef::Text(bytes) => match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Value::Text(text.to_owned())),
            Err(_) => Err(DatabaseError::Shape("a text is not UTF-8".to_owned())),
        },
        ValueRef::Blob(_) => Err(DatabaseError::Shape("a blob in a row".to_owned())),
    }
}

/// Converts an error of SQLite to the port's error.
pub fn error(error: rusqlite::Error) -> DatabaseError {
    match &error {
        rusqlite::Error::SqliteFailure(failure, message)
            if failure.code == ErrorCode::ConstraintViolation =>
        {
            DatabaseError::Constraint(message.clone().unwrap_or_else(|| error.to_string()))
        }
        rusqlite::Error::SqliteFailure(failure, _) if failure.code == ErrorCode::Unknown => {
            DatabaseError::Shape(error.to_string())
        }
        rusqlite::Error::SqliteFailure(..) => DatabaseError::Unavailable(error.to_string()),
        _ => DatabaseError::Shape(error.to_string()),
    }
}
