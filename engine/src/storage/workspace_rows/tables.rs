//! What there is to know of a table to move its rows. Which tables there are is in `known.rs`.
use super::known::TABLES;

/// A table with rows of workspaces.
#[derive(Debug)]
pub struct Table {
    /// Its name.
    pub name: &'static str,
    /// The column with the owner of the row.
    pub owner: &'static str,
    /// The primary key, in order.
    pub key: &'static [&'static str],
    /// The column with the local number of a row, which differs between databases.
    pub number: Option<&'static str>,
    /// Columns that refer to the local number of another table.
    pub by_number: &'static [ByNumber],
    /// Whether an index has the rows of one workspace in the order of the key.
    pub is_sorted_by_owner: bool,
    /// All columns, in order.
    pub columns: &'static [Column],
}

/// A column.
#[derive(Debug, PartialEq, Eq)]
pub struct Column {
    /// Its name.
    pub name: &'static str,
    /// What it holds.
    pub kind: Kind,
    /// Whether it holds no NULL.
    pub is_required: bool,
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
#[derive(Debug)]
pub struct ByNumber {
    /// The column.
    pub column: &'static str,
    /// The other table.
    pub table: &'static str,
    /// The other table's column with the number.
    pub number: &'static str,
    /// The other table's column with the owner.
    pub owner: &'static str,
    /// The unique columns of the row, which are equal in every database.
    pub known_by: &'static [&'static str],
}

impl Table {
    /// The table with this name.
    pub fn named(name: &str) -> Option<&'static Self> {
        TABLES.iter().find(|table| table.name == name)
    }

    /// The columns that are equal in every database, in order: all except the local number.
    pub fn carried(&self) -> impl Iterator<Item = &'static Column> + use<> {
        let number = self.number;
        self.columns.iter().filter(move |column| number != Some(column.name))
    }

    /// How this column refers to another table by number, if it does.
    pub(super) fn reference(&self, column: &str) -> Option<&'static ByNumber> {
        self.by_number.iter().find(|one| one.column == column)
    }

    /// The key's columns, for a statement, each after `alias`.
    pub(super) fn key_of(&self, alias: &str) -> String {
        let columns: Vec<String> = self.key.iter().map(|column| format!("{alias}{column}")).collect();
        columns.join(", ")
    }
}

/// A column of texts.
pub(super) const fn text(name: &'static str) -> Column {
    Column { name, kind: Kind::Text, is_required: true }
}

/// A column of texts or NULL.
pub(super) const fn text_or_null(name: &'static str) -> Column {
    Column { name, kind: Kind::Text, is_required: false }
}

/// A column of whole numbers.
pub(super) const fn integer(name: &'static str) -> Column {
    Column { name, kind: Kind::Integer, is_required: true }
}

/// A column of whole numbers or NULL.
pub(super) const fn integer_or_null(name: &'static str) -> Column {
    Column { name, kind: Kind::Integer, is_required: false }
}
