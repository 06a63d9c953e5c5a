//! The schema as SQLite reports it, and the conditions under which a workspace can be moved by copying its rows.
use std::collections::BTreeSet;

use sidetone::database::Memory;
use sidetone::sandbox::{block_on, memory};
use sidetone_engine::ports::Database;
use sidetone_engine::ports::statement::{Rows, Statement};

/// Tables without rows of workspaces, which are not moved.
const OF_THE_DATABASE: &[&str] =
    &["batch_guard", "carrier_tokens", "migrations", "search_upgrade", "service_facts"];

/// People and their sessions: a person belongs to workspaces of several databases, so these tables belong to the
/// directory.
const OF_THE_DIRECTORY: &[&str] =
    &["accounts", "invitations", "memberships", "oidc_sign_ins", "sessions", "sign_ins"];

/// The text index, its former version, and their internal tables. They have no owner column: each entry contains its
/// workspace in its words. The index is not copied but written again from the words of the calls.
const OF_THE_TEXT_INDEX: &[&str] = &[
    "call_index",
    "call_index_config",
    "call_index_data",
    "call_index_docsize",
    "call_index_idx",
    "call_search",
    "call_search_config",
    "call_search_data",
    "call_search_docsize",
    "call_search_idx",
];

/// Why a number that is local to its database may be unique.
const NUMBER: &str = "a local number of the database; moved rows get a new one";

/// Constraints that are unique across workspaces, with the reason why that is possible. A new line here means a new entry in
/// the directory, or a reason why it is not needed.
const ACROSS_WORKSPACES: &[(&str, &str, &str)] = &[
    ("api_keys", "hash", "of 32 random bytes; the directory finds the workspace by it"),
    ("api_keys", "id", "a ULID: 79 random bits beside the time"),
    ("archives_to_remove", "call_id", "a call of one workspace"),
    ("assistant_documents", "assistant_id, position", "begins with an id of one workspace"),
    ("assistant_tools", "assistant_id, position", "begins with an id of one workspace"),
    ("assistants", "id", "a ULID"),
    ("audit_entries", "id", "a ULID"),
    ("call_groups", "id", NUMBER),
    ("call_inputs", "call_id, place, piece", "begins with an id of one workspace"),
    ("call_transcripts", "seq", NUMBER),
    ("call_words", "seq", NUMBER),
    ("calls", "id", "a ULID"),
    ("calls", "seq", NUMBER),
    ("conversation_journal", "conversation_id, place", "begins with an id of one workspace"),
    ("deliveries", "id", "a ULID"),
    ("documents", "id", "a ULID"),
    ("event_log", "id", "a ULID"),
    ("events", "id", "a ULID"),
    ("jobs", "id", "a ULID"),
    ("jobs", "subject_id", "a webhook of one workspace"),
    ("live_call_rows", "call_id, place", "begins with an id of one workspace"),
    ("live_call_turns", "call_id, place", "begins with an id of one workspace"),
    ("live_calls", "call_id", "a call of one workspace"),
    ("numbers", "number", "a phone number has one place: the directory must assign it"),
    ("personas", "id", "a ULID"),
    ("phone_calls", "call_id", "a call of one workspace"),
    (
        "phone_calls",
        "provider, carrier_call_id",
        "the carrier's own id: callbacks without our token are routed by the directory, by number",
    ),
    ("recordings", "call_id", "a call of one workspace"),
    ("recordings", "id", "a ULID"),
    ("runs", "id", "a ULID"),
    ("scenarios", "id", "a ULID"),
    ("simulations", "id", "a ULID"),
    ("test_token_values", "id", "a ULID"),
    ("tools", "id", "a ULID"),
    ("used_test_tokens", "id", "a ULID"),
    ("webhooks", "id", "a ULID"),
    ("workspaces", "id", "a ULID; the directory's own key"),
];

/// A table with rows of workspaces.
#[derive(Debug, Clone)]
pub struct Table {
    pub name: String,
    /// The column with the owner of the row.
    pub owner: &'static str,
    pub columns: Vec<String>,
    /// The primary key, in order.
    pub key: Vec<String>,
    /// The column with the local number of a row, which differs between databases.
    pub number: Option<String>,
    /// Columns that refer to the local number of another table.
    pub by_number: Vec<ByNumber>,
    /// Tables it refers to.
    refers_to: BTreeSet<String>,
}

/// A column that refers to a row of another table by its local number.
#[derive(Debug, Clone)]
pub struct ByNumber {
    pub column: String,
    pub table: String,
    /// The number column of the other table.
    pub number: String,
    /// The unique columns of the row, which are equal in every database.
    pub known_by: Vec<String>,
}

/// The tables with rows of workspaces, referenced tables first.
pub fn tables(database: &Memory) -> Vec<Table> {
    let mut left: Vec<Table> = texts(&ask(
        database,
        "SELECT name AS text FROM sqlite_schema WHERE type = 'table' AND name NOT LIKE 'sqlite%' ORDER BY name",
        &[],
    ))
    .into_iter()
    .filter(|name| !OF_THE_DIRECTORY.contains(&name.as_str()))
    .filter(|name| !OF_THE_DATABASE.contains(&name.as_str()) && !OF_THE_TEXT_INDEX.contains(&name.as_str()))
    .map(|name| table(database, name))
    .collect();
    let numbered: Vec<(String, String)> = left
        .iter()
        .filter_map(|table| table.number.clone().map(|number| (table.name.clone(), number)))
        .collect();
    for table in &mut left {
        for (to, number) in &numbered {
            let columns = texts(&ask(
                database,
                "SELECT \"from\" AS text FROM pragma_foreign_key_list(?1) AS f WHERE \"table\" || ' ' || \"to\" = ?2",
                &[&table.name, &format!("{to} {number}")],
            ));
            table.by_number.extend(columns.into_iter().map(|column| ByNumber {
                column,
                table: to.clone(),
                number: number.clone(),
                known_by: known_by(database, to),
            }));
        }
    }
    let mut sorted: Vec<Table> = Vec::new();
    while !left.is_empty() {
        let known: BTreeSet<String> = sorted.iter().map(|table| table.name.clone()).collect();
        let (ready, blocked) = left.into_iter().partition(|table| table.refers_to.is_subset(&known));
        left = blocked;
        assert!(!Vec::is_empty(&ready), "circular references between tables: {left:?}");
        sorted.extend::<Vec<Table>>(ready);
    }
    sorted
}

fn table(database: &Memory, name: String) -> Table {
    let columns =
        texts(&ask(database, "SELECT name AS text FROM pragma_table_info(?1) ORDER BY cid", &[&name]));
    let key = texts(&ask(
        database,
        "SELECT name AS text FROM pragma_table_info(?1) WHERE pk > 0 ORDER BY pk",
        &[&name],
    ));
    // An INTEGER PRIMARY KEY that is not a foreign key.
    let number = texts(&ask(
        database,
        "SELECT name AS text FROM pragma_table_info(?1) WHERE pk > 0 AND type = 'INTEGER'
         AND name NOT IN (SELECT \"from\" FROM pragma_foreign_key_list(?1))",
        &[&name],
    ));
    let number = number.into_iter().next().filter(|_| key.len() == 1);
    let mut refers_to: BTreeSet<String> =
        texts(&ask(database, "SELECT DISTINCT \"table\" AS text FROM pragma_foreign_key_list(?1)", &[&name]))
            .into_iter()
            .collect();
    refers_to.remove(&name);
    let owner = if name == "workspaces" { "id" } else { "workspace_id" };
    Table { name, owner, columns, key, number, by_number: Vec::new(), refers_to }
}

/// The columns of a table's UNIQUE constraint.
fn known_by(database: &Memory, table: &str) -> Vec<String> {
    texts(&ask(
        database,
        "SELECT c.name AS text FROM pragma_index_list(?1) AS i JOIN pragma_index_info(i.name) AS c
         WHERE i.origin = 'u' ORDER BY c.seqno",
        &[table],
    ))
}

#[test]
fn every_row_of_a_workspace_has_an_owner_column() {
    let database = memory();
    for table in tables(&database) {
        let required = texts(&ask(
            &database,
            "SELECT name AS text FROM pragma_table_info(?1) WHERE \"notnull\" = 1 OR pk > 0",
            &[&table.name],
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
fn rows_with_a_local_number_have_other_unique_columns() {
    let database = memory();
    let tables = tables(&database);
    let numbers = tables.iter().filter_map(|table| Some((table.name.as_str(), table.number.as_deref()?)));
    let numbers: Vec<(&str, &str)> = numbers.collect();
    assert_eq!(numbers, [("call_groups", "id"), ("calls", "seq")]);
    let references =
        tables.iter().flat_map(|table| table.by_number.iter().map(move |one| (&table.name, one)));
    let mut columns = Vec::new();
    for (table, one) in references {
        assert!(
            !one.known_by.is_empty(),
            "{}: no unique columns to find a row in another database",
            one.table
        );
        columns.push(format!("{table}.{}", one.column));
    }
    assert_eq!(
        columns,
        [
            "call_rollups.group_id",
            "calls.group_id",
            "call_metadata.seq",
            "call_transcripts.seq",
            "call_words.seq"
        ]
    );
}

#[test]
fn all_constraints_across_workspaces_are_listed() {
    let database = memory();
    let mut found = BTreeSet::new();
    for table in tables(&database) {
        let unique = texts(&ask(
            &database,
            "SELECT name AS text FROM pragma_index_list(?1) WHERE \"unique\" = 1",
            &[&table.name],
        ));
        let mut constraints: BTreeSet<Vec<String>> = BTreeSet::from([table.key.clone()]);
        for index in unique {
            constraints.insert(texts(&ask(
                &database,
                "SELECT name AS text FROM pragma_index_info(?1) ORDER BY seqno",
                &[&index],
            )));
        }
        for columns in constraints.into_iter().filter(|columns| columns[0] != "workspace_id") {
            found.insert((table.name.clone(), columns.join(", ")));
        }
    }
    let known: BTreeSet<(String, String)> =
        ACROSS_WORKSPACES.iter().map(|(table, columns, _)| ((*table).into(), (*columns).into())).collect();
    assert_eq!(found, known, "a constraint across workspaces needs a reason in ACROSS_WORKSPACES");
}

/// The result of one query.
pub fn ask(database: &Memory, question: &'static str, about: &[&str]) -> Rows {
    let params = about.iter().map(|text| (*text).into()).collect();
    let statement = Statement { sql: question.into(), params };
    block_on(database.read(vec![statement])).unwrap().remove(0)
}

/// The column `text` of every row.
pub fn texts(rows: &Rows) -> Vec<String> {
    rows.iter().map(|row| row.text("text").unwrap()).collect()
}
