//! What the lock of a workspace that moves rests on: triggers see every write that the engine makes.
#![allow(clippy::unwrap_used, reason = "a test")]
mod common;

use std::fs;
use std::path::{Path, PathBuf};

use common::rust_files;
use regex::Regex;
use sidetone_engine::storage::migrations::MIGRATIONS;
use sidetone_engine::storage::workspace_rows::Table;

/// Tables without rows of workspaces, in which a row may be replaced: the removal of the former one fires no trigger.
const REPLACED: &[&str] = &["call_index", "call_search", "service_facts"];

fn sources() -> Vec<(PathBuf, String)> {
    let mut files = Vec::new();
    rust_files(&Path::new(env!("CARGO_MANIFEST_DIR")).join("src"), &mut files);
    assert!(files.len() > 200, "only {} files found", files.len());
    files.into_iter().map(|path| (path.clone(), fs::read_to_string(&path).unwrap())).collect()
}

#[test]
fn no_row_of_a_workspace_is_replaced() {
    let mut found = 0;
    for (path, text) in sources() {
        for (at, _) in text.match_indices("OR REPLACE").chain(text.match_indices("REPLACE INTO")) {
            let table = text[at..].split("INTO ").nth(1).unwrap().split(' ').next().unwrap();
            assert!(REPLACED.contains(&table), "{}: {table}", path.display());
            found += 1;
        }
    }
    assert!(found >= REPLACED.len(), "{found}");
}

/// An action of a foreign key changes rows, and fires no trigger of the statement's table.
#[test]
fn no_foreign_key_acts_and_no_migration_has_a_trigger() {
    for migration in MIGRATIONS {
        let sql = migration.sql.to_uppercase();
        for what in ["ON DELETE", "ON UPDATE", "CREATE TRIGGER"] {
            assert!(!sql.contains(what), "{}: {what}", migration.name);
        }
    }
}

/// Whatever lifts a lock has to lock again in the same batch, or to end the move.
#[test]
fn only_the_lock_itself_is_lifted_where_it_is_known() {
    let lifts = Regex::new(r#"UPDATE moves SET [^"]*\block = 0"#).unwrap();
    let lifting: Vec<String> = sources()
        .into_iter()
        .filter(|(_, text)| lifts.is_match(text))
        .map(|(path, _)| path.file_name().unwrap().to_string_lossy().into_owned())
        .collect();
    // Canceling and opening end the move; an import that begins over a tombstone locks it again in the same batch.
    assert_eq!(lifting, ["arrive.rs", "cancel_export.rs", "lock.rs", "open.rs"]);
}

/// Statements about rows that are found without their workspace, and why they are in nobody's way.
const WITHOUT_WORKSPACE: &[(&str, &str)] = &[
    ("DELETE FROM api_keys WHERE id = :id", "the key of the first start, unless its workspace is locked"),
    ("UPDATE deliveries SET", "those of one job, under its lease"),
    ("UPDATE runs SET status = 'running'", "those of jobs that were claimed: a locked workspace has none"),
    ("UPDATE runs SET snapshot = NULL WHERE {OF_CALLS}", "of calls of workspace `:ws`"),
    (
        "DELETE FROM numbers WHERE number = :number AND workspace_id <>",
        "of one shard, where the operator has given it to another one: it is refused as long as its workspace is locked",
    ),
];

/// What such a statement has in its text, or the part of it that finds the rows.
const LEAVES_OUT: &[&str] = &["{STAYS}", "{INDEX_STAYS}", "{oldest}", "{left}", "{which}"];

#[test]
fn whatever_works_for_all_workspaces_leaves_out_those_that_are_locked() {
    let literal = Regex::new(r#"(?s)"((?:[^"\\]|\\.)*)""#).unwrap();
    let own = Regex::new(r":ws\b|workspace_id = [:?]").unwrap();
    let (mut found, mut wrong) = (0, Vec::new());
    for (path, text) in sources() {
        let text = text.split("#[cfg(test)]").next().unwrap();
        for sql in literal.captures_iter(text).map(|found| found[1].trim().to_owned()) {
            let table = sql.strip_prefix("DELETE FROM ").or_else(|| sql.strip_prefix("UPDATE "));
            let Some(table) = table.and_then(|rest| rest.split(' ').next()) else { continue };
            // A part that is told by its first words is no statement.
            let is_statement = sql.contains(" WHERE ");
            let is_of_workspaces = Table::named(table).is_some() || table.starts_with('{');
            // A locked workspace has no jobs.
            if !is_statement || !is_of_workspaces || table == "jobs" || own.is_match(&sql) {
                continue;
            }
            found += 1;
            let leaves_out = LEAVES_OUT.iter().any(|what| sql.contains(what));
            if !leaves_out && !WITHOUT_WORKSPACE.iter().any(|(begin, _)| sql.starts_with(begin)) {
                wrong.push(format!("{}: {sql}", path.display()));
            }
        }
    }
    assert!(wrong.is_empty(), "leave out what is locked (STAYS), or say why not:\n{}", wrong.join("\n"));
    assert!(found > 20, "{found}");
}
