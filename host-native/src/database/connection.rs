//! One SQLite connection, made to behave as D1 does: numbers bound as floats, its limits on statements.
use std::cell::RefCell;
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use hashbrown::HashMap;
use rusqlite::config::DbConfig;
use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, ToSql};
use sidetone_engine::ports::DatabaseError;
use sidetone_engine::ports::statement::{Rows, Statement, Value};

/// D1's limits, as workerd sets them (`src/workerd/util/sqlite.c++`): what it refuses is refused here too.
const D1_LIMITS: &[(Limit, i32)] = &[
    (Limit::SQLITE_LIMIT_VARIABLE_NUMBER, 100),
    (Limit::SQLITE_LIMIT_SQL_LENGTH, 100_000),
    (Limit::SQLITE_LIMIT_COLUMN, 100),
    (Limit::SQLITE_LIMIT_COMPOUND_SELECT, 5),
    (Limit::SQLITE_LIMIT_VDBE_OP, 25_000),
    (Limit::SQLITE_LIMIT_FUNCTION_ARG, 32),
    (Limit::SQLITE_LIMIT_LIKE_PATTERN_LENGTH, 50),
];
/// Statements kept prepared on each connection: all there are, with room to spare.
const PREPARED_STATEMENTS_MAX: usize = 512;
/// How long to wait for another process (a backup, the command line).
const BUSY_MS: u64 = 5_000;
/// What is kept of the write-ahead log after a transaction that made it larger.
const LOG_BYTES_KEPT_MAX: i64 = 64 * 1024 * 1024;

/// A connection with what it remembers of the statements it has run.
pub struct Session {
    connection: Connection,
    /// Column names by statement, so that they are not copied for every answer.
    columns: RefCell<HashMap<Box<str>, Arc<[String]>>>,
}

impl Session {
    fn new(connection: Connection) -> rusqlite::Result<Self> {
        connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
        connection.pragma_update(None, "foreign_keys", "ON")?;
        // A plan does not depend on the values bound. Else SQLite prepares most statements anew for every
        // call, which costs more than running them.
        connection.set_db_config(DbConfig::SQLITE_DBCONFIG_ENABLE_QPSG, true)?;
        for (limit, most) in D1_LIMITS {
            connection.set_limit(*limit, *most)?;
        }
        connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS_MAX);
        Ok(Self { connection, columns: RefCell::default() })
    }

    /// The connection itself.
    pub fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Whether no transaction is open.
    pub fn is_autocommit(&self) -> bool {
        self.connection.is_autocommit()
    }

    fn columns(&self, sql: &str, prepared: &CachedStatement<'_>) -> Arc<[String]> {
        let mut known = self.columns.borrow_mut();
        if let Some(columns) = known.get(sql) {
            return columns.clone();
        }
        let columns: Arc<[String]> = prepared.column_names().map(str::to_owned).collect();
        if known.len() >= PREPARED_STATEMENTS_MAX {
            known.clear();
        }
        known.insert(sql.into(), columns.clone());
        columns
    }
}

/// The writing connection: WAL, and durable when `COMMIT` returns.
pub fn open(path: &Path) -> rusqlite::Result<Session> {
    let session = Session::new(Connection::open(path)?)?;
    session.connection.pragma_update(None, "journal_mode", "WAL")?;
    session.connection.pragma_update(None, "synchronous", "FULL")?;
    session.connection.pragma_update(None, "journal_size_limit", LOG_BYTES_KEPT_MAX)?;
    Ok(session)
}

/// A connection that cannot write.
pub fn open_reader(path: &Path) -> rusqlite::Result<Session> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    Session::new(Connection::open_with_flags(path, flags)?)
}

/// A connection to a database of its own.
pub fn open_in_memory() -> rusqlite::Result<Session> {
    Session::new(Connection::open_in_memory()?)
}

/// Runs statements that change nothing, all at one moment.
pub fn read(session: &Session, batch: &[Statement]) -> Result<Vec<Rows>, DatabaseError> {
    if let [one] = batch {
        return Ok(vec![run(session, one)?]);
    }
    command(session, "BEGIN")?;
    let rows = batch.iter().map(|statement| run(session, statement)).collect();
    command(session, "COMMIT")?;
    rows
}

/// Begins a write transaction, whatever an earlier failure has left behind.
pub fn begin(session: &Session) -> Result<(), DatabaseError> {
    if !session.is_autocommit() {
        command(session, "ROLLBACK")?;
    }
    command(session, "BEGIN IMMEDIATE")
}

/// Runs a batch as a transaction of its own.
pub fn write_one(session: &Session, batch: &[Statement]) -> Result<Vec<Rows>, DatabaseError> {
    begin(session)?;
    let rows: Result<Vec<Rows>, DatabaseError> =
        batch.iter().map(|statement| run(session, statement)).collect();
    let outcome = rows.and_then(|rows| command(session, "COMMIT").map(|()| rows));
    // SQLite has rolled some failures back by itself; `begin` tries again if this fails.
    if outcome.is_err() && !session.is_autocommit() {
        let _ = command(session, "ROLLBACK");
    }
    outcome
}

/// Runs a batch within a transaction; a failing batch undoes itself and nothing else. When it
/// cannot, that is the outer error: then the transaction holds half a batch and must not commit.
pub fn write_within(
    session: &Session,
    batch: &[Statement],
) -> Result<Result<Vec<Rows>, DatabaseError>, DatabaseError> {
    command(session, "SAVEPOINT batch")?;
    let rows: Result<Vec<Rows>, DatabaseError> =
        batch.iter().map(|statement| run(session, statement)).collect();
    if session.is_autocommit() {
        // SQLite has rolled the whole transaction back (a full disk, say).
        return Err(DatabaseError::Unavailable("the transaction was rolled back".to_owned()));
    }
    if rows.is_err() {
        command(session, "ROLLBACK TO batch")?;
    }
    command(session, "RELEASE batch")?;
    Ok(rows)
}

/// `BEGIN` and its kind.
pub fn command(session: &Session, sql: &str) -> Result<(), DatabaseError> {
    let mut statement = session.connection.prepare_cached(sql).map_err(error)?;
    statement.execute([]).map_err(error)?;
    Ok(())
}

/// One statement and all its rows.
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
            Value::Text(text) => ToSqlOutput::Borrowed(ValueRef::Text(text.as_bytes())),
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

/// SQLite's errors as the port tells them.
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
