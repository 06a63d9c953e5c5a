//! Brings a database's schema up to date, one step a transaction.
use std::collections::BTreeSet;

use rusqlite::Connection;
use sidetone_engine::storage::migrations::MIGRATIONS;

use super::OpenError;

/// Applies the steps that are missing. A step this version does not know refuses the database.
pub fn migrate(connection: &mut Connection) -> Result<(), OpenError> {
    connection.execute_batch(
        "CREATE TABLE IF NOT EXISTS migrations (name TEXT PRIMARY KEY, applied_at TEXT NOT NULL DEFAULT CURRENT_TIMESTAMP) STRICT",
    )?;
    // One process migrates at a time; the other finds the steps done.
    let transaction = connection.transaction_with_behavior(rusqlite::TransactionBehavior::Immediate)?;
    let applied: BTreeSet<String> = {
        let mut names = transaction.prepare("SELECT name FROM migrations")?;
        let rows = names.query_map([], |row| row.get(0))?;
        rows.collect::<Result<_, _>>()?
    };
    if let Some(unknown) =
        applied.iter().find(|name| MIGRATIONS.iter().all(|step| step.name != name.as_str()))
    {
        return Err(OpenError::Newer(unknown.clone()));
    }
    for step in MIGRATIONS.iter().filter(|step| !applied.contains(step.name)) {
        transaction.execute_batch(step.sql)?;
        transaction.execute("INSERT INTO migrations (name) VALUES (?1)", [step.name])?;
    }
    transaction.commit()?;
    Ok(())
}
