//! The schema as SQLite has it, and what has to hold for a workspace to be moved by its rows alone.
use std::collections::BTreeSet;

use sidetone::database::Memory;
use sidetone::sandbox::{block_on, memory};
use sidetone_engine::ports::Database;
use sidetone_engine::sql;
use sidetone_engine::statement::Rows;

/// Tables without rows of a workspace: they stay where they are.
const OF_THE_DATABASE: &[&str] = &["batch_guard", "migrations"];

/// What is unique across workspaces, and why it may be. A new line here is a new entry of the directory,
/// or a reason why none is needed.
const ACROSS_WORKSPACES: &[(&str, &str, &str)] = &[
    ("api_keys", "hash", "of 32 random bytes; the directory finds the workspace by it"),
    ("api_keys", "id", "a ULID: 79 random bits beside the time"),
    ("assistant_documents", "assistant_id, position", "begins with an id of one workspace"),
    ("assistant_tools", "assistant_id, position", "begins with an id of one workspace"),
    ("assistants", "id", "a ULID"),
    ("documents", "id", "a ULID"),
    ("jobs", "id", "a ULID"),
    ("numbers", "number", "a phone number rings in one place: the directory has to grant it"),
    ("personas", "id", "a ULID"),
    ("recordings", "call_id", "a call of one workspace"),
    ("recordings", "id", "a ULID"),
    ("runs", "id", "a ULID"),
    ("scenarios", "id", "a ULID"),
    ("simulations", "id", "a ULID"),
    ("tools", "id", "a ULID"),
    ("webhooks", "id", "a ULID"),
    ("workspaces", "id", "a ULID; the directory's own key"),
];

/// A table with rows of workspaces.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    /// The column that says whose row it is.
    pub owner: &'static str,
    pub columns: Vec<String>,
    /// The primary key, in order.
    pub key: Vec<String>,
    /// Tables it refers to.
    refers_to: BTreeSet<String>,
}

/// The tables with rows of workspaces, those that others refer to first.
pub fn tables(database: &Memory) -> Vec<Table> {
    let mut left: Vec<Table> = texts(&ask(
        database,
        "SELECT name AS text FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
        "",
    ))
    .into_iter()
    .filter(|name| !OF_THE_DATABASE.contains(&name.as_str()))
    .map(|name| table(database, name))
    .collect();
    let mut sorted: Vec<Table> = Vec::new();
    while !left.is_empty() {
        let known: BTreeSet<String> = sorted.iter().map(|table| table.name.clone()).collect();
        let (ready, blocked) = left.into_iter().partition(|table| table.refers_to.is_subset(&known));
        left = blocked;
        assert!(!Vec::is_empty(&ready), "tables refer to each other in a circle: {left:?}");
        sorted.extend::<Vec<Table>>(ready);
    }
    sorted
}

fn table(database: &Memory, name: String) -> Table {
    let columns = texts(&ask(database, "SELECT name AS text FROM pragma_table_info(?1) ORDER BY cid", &name));
    let key = texts(&ask(
        database,
        "SELECT name AS text FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk",
        &name,
    ));
    let mut refers_to: BTreeSet<String> =
        texts(&ask(database, "SELECT DISTINCT \"table\" AS text FROM pragma_foreign_key_list(?1)", &name))
            .into_iter()
            .collect();
    refers_to.remove(&name);
    let owner = if name == "workspaces" { "id" } else { "workspace_id" };
    Table { name, owner, columns, key, refers_to }
}

#[test]
fn every_row_of_a_workspace_says_whose_it_is() {
    let database = memory();
    for table in tables(&database) {
        let required = texts(&ask(
            &database,
            "SELECT name AS text FROM pragma_table_info(?1) WHERE \"notnull\" = 1 OR pk > 0",
            &table.name,
        ));
        assert!(
            required.iter().any(|column| column == table.owner),
            "{}: rows without {} cannot be moved with their workspace",
            table.name,
            table.owner
        );
        assert!(!table.key.is_empty(), "{}: rows without a key cannot be compared", table.name);
    }
}

#[test]
fn what_is_unique_across_workspaces_is_known() {
    let database = memory();
    let mut found = BTreeSet::new();
    for table in tables(&database) {
        let unique = texts(&ask(
            &database,
            "SELECT name AS text FROM pragma_index_list(?1) WHERE \"unique\" = 1",
            &table.name,
        ));
        let mut constraints: BTreeSet<Vec<String>> = BTreeSet::from([table.key.clone()]);
        for index in unique {
            constraints.insert(texts(&ask(
                &database,
                "SELECT name AS text FROM pragma_index_info(?1) ORDER BY seqno",
                &index,
            )));
        }
        for columns in constraints.into_iter().filter(|columns| columns[0] != "workspace_id") {
            found.insert((table.name.clone(), columns.join(", ")));
        }
    }
    let known: BTreeSet<(String, String)> =
        ACROSS_WORKSPACES.iter().map(|(table, columns, _)| ((*table).into(), (*columns).into())).collect();
    assert_eq!(found, known, "a constraint that spans workspaces needs its reason here");
}

/// The answer to one question.
pub fn ask(database: &Memory, question: &'static str, about: &str) -> Rows {
    let statement = if about.is_empty() { sql!(question) } else { sql!(question, about) };
    block_on(database.read(vec![statement])).unwrap().remove(0)
}

/// The column `text` of every row.
pub fn texts(rows: &Rows) -> Vec<String> {
    rows.iter().map(|row| row.text("text").unwrap()).collect()
}
