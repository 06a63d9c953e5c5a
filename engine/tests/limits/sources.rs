//! What the tests read: pages, and constants that no module exports.
use std::fs;
use std::path::Path;

use sidetone_engine::storage::migrations::MIGRATIONS;

use crate::render::count;

/// The default of a workspace's column.
pub fn of_migrations(column: &str) -> String {
    let begins = format!("ALTER TABLE workspaces ADD COLUMN {column} INTEGER NOT NULL DEFAULT ");
    let found = MIGRATIONS.iter().find_map(|migration| migration.sql.split_once(&begins));
    let (_, rest) = found.unwrap();
    count(rest.split(';').next().unwrap().parse::<u64>().unwrap())
}

/// The value of a constant that its module does not export, as it is written there.
pub fn of_source(file: &str, constant: &str) -> String {
    let text = read(file);
    let line = text.lines().find(|line| line.contains(&format!("const {constant}: "))).unwrap();
    let value = line.split(" = ").nth(1).unwrap();
    value.trim_end_matches(';').replace('_', "")
}

/// The text of a file of the repository.
pub fn read(file: &str) -> String {
    let text = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("..").join(file));
    text.map_err(|error| format!("{file}: {error}")).unwrap()
}
