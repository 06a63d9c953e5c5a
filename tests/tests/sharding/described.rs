//! The tables with rows of workspaces, as SQLite describes them: the engine's `storage/workspace_rows/known.rs` has the same, because
//! D1 describes nothing.
use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::path::Path;

use sidetone::database::Memory;
use sidetone::sandbox::memory;
use sidetone_engine::base::hash::sha256_hex;
use sidetone_engine::ports::statement::Rows;
use sidetone_engine::storage::migrations::MIGRATIONS;
use sidetone_engine::storage::workspace_rows::Kind;

use crate::schema::ask;

/// Tables without rows of workspaces.
const OF_THE_DATABASE: &[&str] = &[
    "batch_guard",
    "carrier_tokens",
    "d1_migrations",
    "migrations",
    "moves",
    "search_upgrade",
    "service_facts",
];

/// People and their sessions: a person belongs to workspaces of several databases.
const OF_PEOPLE: &[&str] =
    &["accounts", "invitations", "memberships", "oidc_sign_ins", "sessions", "sign_ins"];

/// What the names of the text indexes' tables begin with. They have no owner column: each entry contains its workspace in
/// its words. An index is not copied but written again from the words of the calls.
const OF_TEXT_INDEXES: &[&str] = &["call_index", "call_search"];

/// Characters of a line.
const WIDTH: usize = 110;

struct Table {
    name: String,
    columns: Vec<Column>,
    /// The primary key, in order.
    key: Vec<String>,
    references: Vec<Reference>,
    indexes: Vec<Index>,
}

struct Column {
    name: String,
    kind: Kind,
    is_required: bool,
}

struct Reference {
    column: String,
    other: String,
    other_column: String,
}

struct Index {
    is_constraint: bool,
    columns: Vec<String>,
}

/// `SIDETONE_UPDATE_SNAPSHOTS=1 cargo test -p sidetone-tests --test sharding described` writes the file.
#[test]
fn the_compiled_description_is_that_of_the_schema() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("../engine/src/storage/workspace_rows/known.rs");
    let described = as_source(&sorted(tables(&memory())));
    if std::env::var_os("SIDETONE_UPDATE_SNAPSHOTS").is_some() {
        std::fs::write(&path, described).unwrap();
        return;
    }
    assert!(
        std::fs::read_to_string(&path).unwrap() == described,
        "the schema has changed: run this test with SIDETONE_UPDATE_SNAPSHOTS=1 and commit {}",
        path.display()
    );
}

fn tables(database: &Memory) -> Vec<Table> {
    let names = ask(
        database,
        "SELECT name AS text FROM sqlite_schema
         WHERE type = 'table' AND substr(name, 1, 7) <> 'sqlite_' AND substr(name, 1, 1) <> '_' ORDER BY name",
        &[],
    );
    let names = crate::schema::texts(&names);
    names.into_iter().filter(|name| is_of_workspaces(name)).map(|name| table(database, name)).collect()
}

fn is_of_workspaces(table: &str) -> bool {
    !OF_THE_DATABASE.contains(&table)
        && !OF_PEOPLE.contains(&table)
        && !OF_TEXT_INDEXES.iter().any(|name| table.starts_with(name))
}

fn table(database: &Memory, name: String) -> Table {
    let columns = ask(
        database,
        "SELECT name, type, \"notnull\" AS is_required, pk FROM pragma_table_info(?1) ORDER BY cid",
        &[&name],
    );
    let references = ask(
        database,
        "SELECT \"from\" AS name, \"table\" AS other, \"to\" AS other_name FROM pragma_foreign_key_list(?1) ORDER BY id, seq",
        &[&name],
    );
    let indexes = ask(
        database,
        "SELECT i.name AS in_index, i.origin AS origin, c.name AS name
         FROM pragma_index_list(?1) AS i CROSS JOIN pragma_index_info(i.name) AS c
         WHERE i.partial = 0 AND c.name IS NOT NULL ORDER BY i.name, c.seqno",
        &[&name],
    );
    let mut key: Vec<(i64, String)> = columns
        .iter()
        .map(|row| (row.integer("pk").unwrap(), row.text("name").unwrap()))
        .filter(|(place, _)| *place > 0)
        .collect();
    key.sort();
    Table {
        columns: columns
            .iter()
            .map(|row| Column {
                name: row.text("name").unwrap(),
                kind: match row.str("type").unwrap() {
                    "TEXT" => Kind::Text,
                    "INTEGER" => Kind::Integer,
                    other => panic!("{name}: a page has no values of the type {other}"),
                },
                is_required: row.flag("is_required").unwrap() || row.integer("pk").unwrap() > 0,
            })
            .collect(),
        key: key.into_iter().map(|(_, column)| column).collect(),
        references: references
            .iter()
            .map(|row| Reference {
                column: row.text("name").unwrap(),
                other: row.text("other").unwrap(),
                // Without a column, it is the other table's key; every reference of ours names one.
                other_column: row.optional_text("other_name").unwrap().unwrap_or_default(),
            })
            .collect(),
        indexes: read_indexes(&indexes),
        name,
    }
}

fn read_indexes(rows: &Rows) -> Vec<Index> {
    let mut indexes: Vec<(String, Index)> = Vec::new();
    for row in rows.iter() {
        let (index, column) = (row.text("in_index").unwrap(), row.text("name").unwrap());
        match indexes.last_mut() {
            Some((last, one)) if *last == index => one.columns.push(column),
            _ => {
                let is_constraint = row.str("origin").unwrap() == "u";
                indexes.push((index, Index { is_constraint, columns: vec![column] }));
            }
        }
    }
    indexes.into_iter().map(|(_, index)| index).collect()
}

/// Referenced tables first.
fn sorted(mut left: Vec<Table>) -> Vec<Table> {
    let mut sorted: Vec<Table> = Vec::new();
    while !left.is_empty() {
        let known: BTreeSet<String> = sorted.iter().map(|table| table.name.clone()).collect();
        let is_ready = |table: &Table| {
            table.references.iter().all(|one| one.other == table.name || known.contains(&one.other))
        };
        let (ready, blocked): (Vec<Table>, Vec<Table>) = left.into_iter().partition(is_ready);
        assert!(!ready.is_empty(), "circular references between tables");
        left = blocked;
        sorted.extend(ready);
    }
    sorted
}

impl Table {
    fn owner(&self) -> &'static str {
        if self.name == "workspaces" { "id" } else { "workspace_id" }
    }

    /// An INTEGER PRIMARY KEY that is not a foreign key.
    fn number(&self) -> Option<&str> {
        let [one] = self.key.as_slice() else { return None };
        let is_integer =
            self.columns.iter().any(|column| column.name == *one && column.kind == Kind::Integer);
        let is_own = self.references.iter().all(|other| other.column != *one);
        (is_integer && is_own).then_some(one)
    }

    fn is_sorted_by_owner(&self) -> bool {
        let mut by_owner = vec![self.owner().to_owned()];
        by_owner.extend(self.key.iter().cloned());
        let begins = |index: &Index| index.columns.starts_with(&by_owner);
        self.key[0] == self.owner() || self.indexes.iter().any(begins)
    }

    /// The columns of its UNIQUE constraint.
    fn known_by(&self) -> &[String] {
        self.indexes.iter().find(|index| index.is_constraint).map_or(&[], |index| &index.columns)
    }
}

/// The schema's name is that of its last migration, with what the rows of workspaces are of it.
fn as_source(tables: &[Table]) -> String {
    let described = described(tables);
    let last = MIGRATIONS.last().unwrap().name;
    format!(
        "//! The tables with rows of workspaces. A test writes this from the migrations: \
         tests/tests/sharding/described.rs.\n\
         use super::tables::{{ByNumber, Table, integer, integer_or_null, text, text_or_null}};\n\n\
         /// What rows of workspaces are here: pages pass between hosts that say the same.\n\
         pub const SCHEMA: &str = \"{last} {}\";\n\n{described}",
        sha256_hex(described.as_bytes())
    )
}

fn described(tables: &[Table]) -> String {
    let mut text = "/// The tables with rows of workspaces, referenced tables first.\n\
         pub static TABLES: &[Table] = &[\n"
        .to_owned();
    for table in tables {
        let columns = table.columns.iter().map(|column| {
            let function = match (column.kind, column.is_required) {
                (Kind::Text, true) => "text",
                (Kind::Text, false) => "text_or_null",
                (Kind::Integer, true) => "integer",
                (Kind::Integer, false) => "integer_or_null",
            };
            format!("{function}({:?}),", column.name)
        });
        let by_number = tables.iter().flat_map(|other| {
            let number = other.number();
            let here = table
                .references
                .iter()
                .filter(move |one| one.other == other.name && Some(one.other_column.as_str()) == number);
            here.map(|one| {
                let (known_by, owner) = (other.known_by(), other.owner());
                let (column, other, number) = (&one.column, &one.other, &one.other_column);
                format!(
                    "ByNumber {{ column: {column:?}, table: {other:?}, number: {number:?}, owner: {owner:?}, \
                     known_by: &{known_by:?} }},"
                )
            })
        });
        let (name, owner, key, number) = (&table.name, table.owner(), &table.key, table.number());
        let is_sorted = table.is_sorted_by_owner();
        writeln!(text, "    Table {{").unwrap();
        writeln!(text, "        name: {name:?}, owner: {owner:?}, key: &{key:?}, number: {number:?},")
            .unwrap();
        writeln!(text, "        is_sorted_by_owner: {is_sorted},").unwrap();
        list(&mut text, "by_number", by_number);
        list(&mut text, "columns", columns);
        writeln!(text, "    }},").unwrap();
    }
    text + "];\n"
}

/// A field with these items, as many on a line as fit.
fn list(text: &mut String, field: &str, items: impl Iterator<Item = String>) {
    let mut lines: Vec<String> = Vec::new();
    for item in items {
        match lines.last_mut() {
            Some(line) if line.len() + 1 + item.len() + 12 <= WIDTH => {
                line.push(' ');
                line.push_str(&item);
            }
            _ => lines.push(item),
        }
    }
    if lines.is_empty() {
        writeln!(text, "        {field}: &[],").unwrap();
        return;
    }
    writeln!(text, "        {field}: &[").unwrap();
    for line in lines {
        writeln!(text, "            {line}").unwrap();
    }
    writeln!(text, "        ],").unwrap();
}
