//! The tables with rows of workspaces, as the database itself describes them.
use std::collections::BTreeSet;

use crate::ports::statement::Rows;
use crate::ports::{Database, DatabaseError};
use crate::sql;

/// Tables without rows of workspaces.
const OF_THE_DATABASE: &[&str] =
    &["batch_guard", "carrier_tokens", "d1_migrations", "migrations", "search_upgrade", "service_facts"];

/// People and their sessions: a person belongs to workspaces of several databases.
const OF_PEOPLE: &[&str] =
    &["accounts", "invitations", "memberships", "oidc_sign_ins", "sessions", "sign_ins"];

/// What the names of the text indexes' tables begin with. They have no owner column: each entry contains its workspace in
/// its words. An index is not copied but written again from the words of the calls.
const OF_TEXT_INDEXES: &[&str] = &["call_index", "call_search"];

/// A table with rows of workspaces.
#[derive(Debug, Clone)]
pub struct Table {
    /// Its name.
    pub name: String,
    /// The column with the owner of the row.
    pub owner: &'static str,
    /// All columns, in order.
    pub columns: Vec<Column>,
    /// The primary key, in order.
    pub key: Vec<String>,
    /// The column with the local number of a row, which differs between databases.
    pub number: Option<String>,
    /// Columns that refer to the local number of another table.
    pub by_number: Vec<ByNumber>,
    /// Whether an index has the rows of one workspace in the order of the key.
    pub is_sorted_by_owner: bool,
    /// Tables it refers to.
    refers_to: BTreeSet<String>,
}

/// A column.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: String,
    /// What it holds.
    pub kind: Kind,
    /// Whether it holds no NULL.
    pub is_required: bool,
    /// Its place in the primary key, from 1; 0 outside it.
    key_place: i64,
}

/// What a column holds.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// UTF-8.
    Text,
    /// A whole number.
    Integer,
}

/// A column that refers to a row of another table by its local number.
#[derive(Debug, Clone)]
pub struct ByNumber {
    /// The column.
    pub column: String,
    /// The other table.
    pub table: String,
    /// The other table's column with the number.
    pub number: String,
    /// The other table's column with the owner.
    pub owner: &'static str,
    /// The unique columns of the row, which are equal in every database.
    pub known_by: Vec<String>,
}

impl Table {
    /// The columns that are equal in every database, in order: all except the local number.
    pub fn carried(&self) -> impl Iterator<Item = &Column> {
        self.columns.iter().filter(|column| self.number.as_ref() != Some(&column.name))
    }

    /// How this column refers to another table by number, if it does.
    pub(super) fn reference(&self, column: &str) -> Option<&ByNumber> {
        self.by_number.iter().find(|one| one.column == column)
    }
}

/// The tables with rows of workspaces, referenced tables first.
pub async fn tables(database: &dyn Database) -> Result<Vec<Table>, DatabaseError> {
    let wanted = "m.type = 'table' AND substr(m.name, 1, 7) <> 'sqlite_' AND substr(m.name, 1, 1) <> '_'";
    let columns = format!(
        "SELECT m.name AS in_table, c.name AS name, c.type AS type, c.\"notnull\" AS is_required, c.pk AS key_place
         FROM sqlite_schema AS m CROSS JOIN pragma_table_info(m.name) AS c WHERE {wanted} ORDER BY m.name, c.cid"
    );
    let references = format!(
        "SELECT m.name AS in_table, f.\"from\" AS name, f.\"table\" AS other, f.\"to\" AS other_name
         FROM sqlite_schema AS m CROSS JOIN pragma_foreign_key_list(m.name) AS f WHERE {wanted} ORDER BY m.name, f.id, f.seq"
    );
    let indexes = format!(
        "SELECT m.name AS in_table, i.name AS in_index, i.origin AS origin, c.name AS name
         FROM sqlite_schema AS m CROSS JOIN pragma_index_list(m.name) AS i CROSS JOIN pragma_index_info(i.name) AS c
         WHERE {wanted} AND i.partial = 0 AND c.name IS NOT NULL ORDER BY m.name, i.name, c.seqno"
    );
    let answers = database.read(vec![sql!(columns), sql!(references), sql!(indexes)]).await?;
    let [columns, references, indexes]: [Rows; 3] = answers
        .try_into()
        .map_err(|_| DatabaseError::Shape("three questions have three answers".to_owned()))?;
    let schema = Schema {
        columns: read_columns(&columns)?,
        references: read_references(&references)?,
        indexes: read_indexes(&indexes)?,
    };
    sorted(schema.tables())
}

struct Schema {
    /// By table.
    columns: Vec<(String, Vec<Column>)>,
    references: Vec<Reference>,
    indexes: Vec<Index>,
}

struct Reference {
    table: String,
    column: String,
    other: String,
    other_column: String,
}

struct Index {
    table: String,
    name: String,
    is_constraint: bool,
    columns: Vec<String>,
}

impl Schema {
    fn tables(&self) -> Vec<Table> {
        let mut tables: Vec<Table> =
            self.columns.iter().map(|(name, columns)| self.table(name, columns)).collect();
        let numbered: Vec<(String, String, &'static str)> = tables
            .iter()
            .filter_map(|table| Some((table.name.clone(), table.number.clone()?, table.owner)))
            .collect();
        for table in &mut tables {
            for (other, number, owner) in &numbered {
                let here = self.references.iter().filter(|one| {
                    one.table == table.name && one.other == *other && one.other_column == *number
                });
                table.by_number.extend(here.map(|one| ByNumber {
                    column: one.column.clone(),
                    table: other.clone(),
                    number: number.clone(),
                    owner,
                    known_by: self.known_by(other),
                }));
            }
        }
        tables
    }

    fn table(&self, name: &str, columns: &[Column]) -> Table {
        let owner = if name == "workspaces" { "id" } else { "workspace_id" };
        let mut in_key: Vec<&Column> = columns.iter().filter(|column| column.key_place > 0).collect();
        in_key.sort_by_key(|column| column.key_place);
        let references: Vec<&Reference> = self.references.iter().filter(|one| one.table == name).collect();
        // An INTEGER PRIMARY KEY that is not a foreign key.
        let number = match in_key.as_slice() {
            [one] if one.kind == Kind::Integer && references.iter().all(|other| other.column != one.name) => {
                Some(one.name.clone())
            }
            _ => None,
        };
        let key: Vec<String> = in_key.into_iter().map(|column| column.name.clone()).collect();
        let by_owner: Vec<&str> = [owner].into_iter().chain(key.iter().map(String::as_str)).collect();
        let is_sorted_by_owner = key.first().is_some_and(|first| first == owner)
            || self.indexes.iter().any(|index| {
                index.table == name
                    && index
                        .columns
                        .iter()
                        .map(String::as_str)
                        .take(by_owner.len())
                        .eq(by_owner.iter().copied())
            });
        let refers_to =
            references.iter().map(|one| one.other.clone()).filter(|other| other != name).collect();
        Table {
            name: name.to_owned(),
            owner,
            columns: columns.to_vec(),
            key,
            number,
            by_number: Vec::new(),
            is_sorted_by_owner,
            refers_to,
        }
    }

    /// The columns of a table's UNIQUE constraint.
    fn known_by(&self, table: &str) -> Vec<String> {
        let unique = self.indexes.iter().find(|index| index.table == table && index.is_constraint);
        unique.map(|index| index.columns.clone()).unwrap_or_default()
    }
}

fn is_of_workspaces(table: &str) -> bool {
    !OF_THE_DATABASE.contains(&table)
        && !OF_PEOPLE.contains(&table)
        && !OF_TEXT_INDEXES.iter().any(|name| table.starts_with(name))
}

fn read_columns(rows: &Rows) -> Result<Vec<(String, Vec<Column>)>, DatabaseError> {
    let mut tables: Vec<(String, Vec<Column>)> = Vec::new();
    for row in rows.iter() {
        let table = row.str("in_table")?;
        if !is_of_workspaces(table) {
            continue;
        }
        let name = row.text("name")?;
        let kind = match row.str("type")? {
            "TEXT" => Kind::Text,
            "INTEGER" => Kind::Integer,
            other => {
                return Err(DatabaseError::Shape(format!("{table}.{name} is of the unknown type {other}")));
            }
        };
        let key_place = row.integer("key_place")?;
        let is_required = row.flag("is_required")? || key_place > 0;
        let column = Column { name, kind, is_required, key_place };
        match tables.last_mut() {
            Some((last, columns)) if last == table => columns.push(column),
            _ => tables.push((table.to_owned(), vec![column])),
        }
    }
    Ok(tables)
}

fn read_references(rows: &Rows) -> Result<Vec<Reference>, DatabaseError> {
    rows.iter()
        .map(|row| {
            Ok(Reference {
                table: row.text("in_table")?,
                column: row.text("name")?,
                other: row.text("other")?,
                // Without a column, it is the other table's key; every reference of ours names one.
                other_column: row.optional_text("other_name")?.unwrap_or_default(),
            })
        })
        .collect()
}

fn read_indexes(rows: &Rows) -> Result<Vec<Index>, DatabaseError> {
    let mut indexes: Vec<Index> = Vec::new();
    for row in rows.iter() {
        let (table, name, column) = (row.text("in_table")?, row.text("in_index")?, row.text("name")?);
        match indexes.last_mut() {
            Some(last) if last.name == name => last.columns.push(column),
            _ => indexes.push(Index {
                table,
                name,
                is_constraint: row.str("origin")? == "u",
                columns: vec![column],
            }),
        }
    }
    Ok(indexes)
}

/// Referenced tables first.
fn sorted(mut left: Vec<Table>) -> Result<Vec<Table>, DatabaseError> {
    let mut sorted: Vec<Table> = Vec::new();
    while !left.is_empty() {
        let known: BTreeSet<String> = sorted.iter().map(|table| table.name.clone()).collect();
        let (ready, blocked): (Vec<Table>, Vec<Table>) =
            left.into_iter().partition(|table| table.refers_to.is_subset(&known));
        if ready.is_empty() {
            let names: Vec<&str> = blocked.iter().map(|table| table.name.as_str()).collect();
            return Err(DatabaseError::Shape(format!(
                "circular references between tables: {}",
                names.join(", ")
            )));
        }
        left = blocked;
        sorted.extend(ready);
    }
    Ok(sorted)
}
