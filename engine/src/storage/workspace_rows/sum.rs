//! Whether two databases have the same rows.
use serde::{Deserialize, Serialize};

use super::page::add_as_json;
use crate::base::hash::sha256_hex;
use crate::ports::statement::Value;

/// The count and SHA-256 of rows in their order, however they were divided into pages. It can be put aside between two
/// pages.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
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
        let mut text = format!("{} ", self.sha256).into_bytes();
        add_as_json(row, &mut text);
        self.sha256 = sha256_hex(&text);
    }
}
