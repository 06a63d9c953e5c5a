//! The schema as SQLite reports it, and the conditions under which a workspace can be moved by copying its rows.
use std::collections::BTreeSet;

use sidetone::database::Memory;
use sidetone::sandbox::{block_on, memory};
use sidetone_engine::ports::Database;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::storage::workspace_rows::{OWNED, TABLES};

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

#[test]
fn every_row_of_a_workspace_has_an_owner_column() {
    for table in TABLES {
        assert!(
            table.columns.iter().any(|column| column.is_required && column.name == table.owner),
            "{}: rows without {} cannot be moved with their workspace",
            table.name,
            table.owner
        );
        assert!(!table.key.is_empty(), "{}: rows without a key cannot be compared", table.name);
    }
}

#[test]
fn rows_with_a_local_number_have_other_unique_columns() {
    let numbers: Vec<(&str, &str)> =
        TABLES.iter().filter_map(|table| Some((table.name, table.number?))).collect();
    assert_eq!(numbers, [("call_groups", "id"), ("calls", "seq")]);
    let references = TABLES.iter().flat_map(|table| table.by_number.iter().map(move |one| (table.name, one)));
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
    for table in TABLES {
        let unique = texts(&ask(
            &database,
            "SELECT name AS text FROM pragma_index_list(?1) WHERE \"unique\" = 1",
            &[table.name],
        ));
        let key = table.key.iter().map(|column| (*column).to_owned()).collect();
        let mut constraints: BTreeSet<Vec<String>> = BTreeSet::from([key]);
        for index in unique {
            constraints.insert(texts(&ask(
                &database,
                "SELECT name AS text FROM pragma_index_info(?1) ORDER BY seqno",
                &[&index],
            )));
        }
        for columns in constraints.into_iter().filter(|columns| columns[0] != "workspace_id") {
            found.insert((table.name.to_owned(), columns.join(", ")));
        }
    }
    let known: BTreeSet<(String, String)> =
        ACROSS_WORKSPACES.iter().map(|(table, columns, _)| ((*table).into(), (*columns).into())).collect();
    assert_eq!(found, known, "a constraint across workspaces needs a reason in ACROSS_WORKSPACES");
}

/// An id of another workspace is found in a page by the table in which it is a key.
#[test]
fn every_table_with_ids_as_its_key_is_known_as_their_owner() {
    let with_ids = TABLES.iter().filter(|table| table.key == ["id"] && table.number.is_none());
    // A call's id is unique beside its number.
    let found: BTreeSet<&str> = with_ids.map(|table| table.name).chain(["calls"]).collect();
    let known: BTreeSet<&str> = OWNED.iter().map(|(_, table)| *table).collect();
    assert_eq!(found, known, "ids of another workspace must be found in each: OWNED");
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
