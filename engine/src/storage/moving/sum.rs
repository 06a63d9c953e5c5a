//! Whether two databases have the same rows.
use super::page::row_as_json;
use crate::base::hash::sha256_hex;
use crate::ports::statement::Value;

/// The count and SHA-256 of rows in their order, however they were divided into pages. It can be put aside between two
/// pages.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Sum {
    /// How many rows.
    pub rows: u64,
    /// Of the last row, after that of the rows before it.
    pub sha256: String,
}

impl Sum {
    /// Of no rows of this table.
    pub fn of(table: &str) -> Self {
        Self { rows: 0, sha256: sha256_hex(table.as_bytes()) }
    }

    /// Adds the next row.
    pub fn add(&mut self, row: &[Value]) {
        self.rows += 1;
        self.sha256 = sha256_hex(format!("{} {}", self.sha256, row_as_json(row)).as_bytes());
    }
}
