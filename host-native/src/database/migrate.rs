//! Applies migrations to a database, in one transaction.
use std::collections::BTreeSet;

use rusqlite::Connection;
use sidetone_engine::storage::migrations::MIGRATIONS;

use super::OpenError;

/// Applies the missing migrations. Fails if the database has a migration that this version does not know.
pub fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT",
    )?;
    // Only one process migrates at a time; a concurrent one waits and finds the migrations applied.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let applied: BTreeSet<String> = {
        let mut names = transaction.prepare("SELECT name FROM migrations")?;
        let rows = names.query_map([], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    if let Some(unknown) =
        applied.iter().find(|name| MIGRATIONS.iter().all(|migration| migration.name != name.as_str()))
    {
        return Err(OpenError::Newer(unknown.clone()));
    }
    for migration in MIGRATIONS.iter().filter(|migration| !applied.contains(migration.name)) {
        transaction.execute_batch(migration.sql)?;
        transaction.execute("INSERT INTO migrations (name) VALUES (?1)", [migration.name])?;
    }
    transaction.commit()?;
    Ok(())
}
