//! One SQLite connection, made to behave as D1 does: numbers bound as floats, at most 100 parameters.
use std::path::Path;
use std::sync::Arc;
use std::time::Duration;

use rusqlite::limits::Limit;
use rusqlite::types::{ToSqlOutput, ValueRef};
use rusqlite::{CachedStatement, Connection, ErrorCode, OpenFlags, ToSql};
use sidetone_engine::ports::DatabaseError;
use sidetone_engine::statement::{Rows, Statement, Value};

/// D1's limit.
const PARAMETERS_MAX: i32 = 100;
/// Statements kept prepared on each connection: all there are, with room to spare.
const PREPARED_STATEMENTS_MAX: usize = 512;
/// How long to wait for another process (a backup, the command line).
const BUSY_MS: u64 = 5_000;

/// The writing connection: WAL, and durable when `COMMIT` returns.
pub fn open(path: &Path) -> rusqlite::Result<Connection> {
    let connection = Connection::open(path)?;
    prepare(&connection)?;
    connection.pragma_update(None, "journal_mode", "WAL")?;
    connection.pragma_update(None, "synchronous", "FULL")?;
    Ok(connection)
}

/// A connection that cannot write.
pub fn open_reader(path: &Path) -> rusqlite::Result<Connection> {
    let flags = OpenFlags::SQLITE_OPEN_READ_ONLY | OpenFlags::SQLITE_OPEN_NO_MUTEX;
    let connection = Connection::open_with_flags(path, flags)?;
    prepare(&connection)?;
    Ok(connection)
}

/// A connection to a database of its own.
pub fn open_in_memory() -> rusqlite::Result<Connection> {
    let connection = Connection::open_in_memory()?;
    prepare(&connection)?;
    Ok(connection)
}

fn prepare(connection: &Connection) -> rusqlite::Result<()> {
    connection.busy_timeout(Duration::from_millis(BUSY_MS))?;
    connection.pragma_update(None, "foreign_keys", "ON")?;
    connection.set_limit(Limit::SQLITE_LIMIT_VARIABLE_NUMBER, PARAMETERS_MAX)?;
    connection.set_prepared_statement_cache_capacity(PREPARED_STATEMENTS_MAX);
    Ok(())
}

/// Runs statements that change nothing, all at one moment.
pub fn read(connection: &Connection, batch: &[Statement]) -> Result<Vec<Rows>, DatabaseError> {
    if let [one] = batch {
        return Ok(vec![run(connection, one)?]);
    }
    command(connection, "BEGIN")?;
    let rows = batch.iter().map(|statement| run(connection, statement)).collect();
    command(connection, "COMMIT")?;
    rows
}

/// Runs a batch as a transaction of its own.
pub fn write_one(connection: &Connection, batch: &[Statement]) -> Result<Vec<Rows>, DatabaseError> {
    command(connection, "BEGIN IMMEDIATE")?;
    let rows: Result<Vec<Rows>, DatabaseError> =
        batch.iter().map(|statement| run(connection, statement)).collect();
    let outcome = rows.and_then(|rows| command(connection, "COMMIT").map(|()| rows));
    // SQLite has rolled some failures back by itself.
    if outcome.is_err() && !connection.is_autocommit() {
        command(connection, "ROLLBACK")?;
    }
    outcome
}

/// Runs a batch within a transaction; a failing batch undoes itself and nothing else.
pub fn write_within(connection: &Connection, batch: &[Statement]) -> Result<Vec<Rows>, DatabaseError> {
    command(connection, "SAVEPOINT batch")?;
    let rows: Result<Vec<Rows>, DatabaseError> =
        batch.iter().map(|statement| run(connection, statement)).collect();
    if connection.is_autocommit() {
        return rows;
    }
    if rows.is_err() {
        command(connection, "ROLLBACK TO batch")?;
    }
    command(connection, "RELEASE batch")?;
    rows
}

/// `BEGIN` and its kind.
pub fn command(connection: &Connection, sql: &str) -> Result<(), DatabaseError> {
    let mut statement = connection.prepare_cached(sql).map_err(error)?;
    statement.execute([]).map_err(error)?;
    Ok(())
}

/// One statement and all its rows.
fn run(connection: &Connection, statement: &Statement) -> Result<Rows, DatabaseError> {
    let mut prepared = connection.prepare_cached(&statement.sql).map_err(error)?;
    let columns = column_names(&prepared);
    let parameters = rusqlite::params_from_iter(statement.params.iter().map(Bound));
    let mut rows = prepared.query(parameters).map_err(error)?;
    let mut values = Vec::new();
    while let Some(row) = rows.next().map_err(error)? {
        let row: Result<Vec<Value>, DatabaseError> =
            (0..columns.len()).map(|at| value(row.get_ref(at).map_err(error)?)).collect();
        values.push(row?);
    }
    Ok(Rows { columns, values })
}

fn column_names(statement: &CachedStatement<'_>) -> Arc<[String]> {
    statement.column_names().map(str::to_owned).collect()
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
