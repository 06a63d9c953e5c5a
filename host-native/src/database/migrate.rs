//! Applies migrations to a database, in one transaction.
use std::collections::BTreeSet;
use std::sync::{Mutex, PoisonError};
use std::time::Duration;

use rusqlite::backup::Backup;
use rusqlite::{Connection, Transaction};
use sidetone_engine::storage::migrations::{MIGRATIONS, Migration};

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
    let missing: Vec<&Migration> =
        MIGRATIONS.iter().filter(|migration| !applied.contains(migration.name)).collect();
    if !missing.is_empty() {
        apply(&transaction, &missing)?;
    }
    transaction.commit()?;
    Ok(())
}

/// Makes an empty database one with the current schema. A process migrates one, and copies its pages: tests make
/// thousands of databases, and most of their time went into migrations.
pub fn copy_migrated(connection: &mut Connection) -> Result<(), OpenError> {
    static MIGRATED: Mutex<Option<Connection>> = Mutex::new(None);
    let mut migrated = MIGRATED.lock().unwrap_or_else(PoisonError::into_inner);
    let migrated = match &mut *migrated {
        Some(migrated) => migrated,
        none => {
            let mut first = Connection::open_in_memory()?;
            migrate(&mut first)?;
            none.insert(first)
        }
    };
    Backup::new(migrated, connection)?.run_to_completion(i32::MAX, Duration::ZERO, None)?;
    Ok(())
}

/// A workspace that moves to another host refuses every change. Its lock is lifted meanwhile, which nobody else sees: the row of
/// the move says which schema its rows are of, so such a move is canceled and begun again.
fn apply(transaction: &Transaction<'_>, missing: &[&Migration]) -> Result<(), OpenError> {
    let has_moves: bool = transaction.query_row(
        "SELECT EXISTS (SELECT 1 FROM sqlite_schema WHERE type = 'table' AND name = 'moves')",
        [],
        |row| row.get(0),
    )?;
    if has_moves {
        transaction.execute("UPDATE moves SET lock = lock - 3 WHERE lock > 0", [])?;
    }
    for migration in missing {
        transaction.execute_batch(migration.sql)?;
        transaction.execute("INSERT INTO migrations (name) VALUES (?1)", [migration.name])?;
    }
    if has_moves {
        transaction.execute("UPDATE moves SET lock = lock + 3 WHERE lock < 0", [])?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_migration_changes_rows_of_a_locked_workspace_and_it_stays_locked() {
        let mut connection = Connection::open_in_memory().unwrap();
        migrate(&mut connection).unwrap();
        connection
            .execute_batch(
                "INSERT INTO workspaces (id, name, created_at) VALUES ('ws_1', 'Acme', 0);
                 INSERT INTO moves (workspace_id, id, state, lock, schema, file_key, began_at, changed_at)
                   VALUES ('ws_1', 'exp_1', 'frozen', 2, '', '', 0, 0);
                 CREATE TRIGGER moving_1 BEFORE UPDATE ON workspaces
                   WHEN (SELECT lock FROM moves WHERE workspace_id = 'ws_1') >= 2
                   BEGIN SELECT RAISE(ABORT, 'workspace_moving'); END;",
            )
            .unwrap();
        let rename = Migration { name: "9999_rename.sql", sql: "UPDATE workspaces SET name = name || '!';" };
        assert!(connection.execute_batch(rename.sql).is_err());
        let transaction = connection.transaction().unwrap();
        apply(&transaction, &[&rename]).unwrap();
        transaction.commit().unwrap();
        let name: String = connection.query_row("SELECT name FROM workspaces", [], |row| row.get(0)).unwrap();
        assert_eq!(name, "Acme!");
        assert!(connection.execute_batch(rename.sql).is_err(), "it is locked again");
    }
}
