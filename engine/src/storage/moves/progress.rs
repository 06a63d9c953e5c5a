//! How far an export is, beside its state.
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::storage::fault::Fault;
use crate::storage::moves::{Move, import};

/// The progress of an export that is frozen or was handed over.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Progress {
    /// When it was frozen, in milliseconds since 1970.
    pub frozen_at: i64,
    /// How far its rows are deleted.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub erased: Option<Erased>,
}

/// How far the rows of a workspace are deleted.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Erased {
    /// The table whose rows are deleted now.
    pub table: String,
    /// The key after which its rows are not yet.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub after: Vec<Value>,
    /// How many were deleted, of all tables.
    pub rows: u64,
}

impl Progress {
    /// That of an export.
    pub fn of(found: &Move) -> Result<Self, Fault> {
        import::progress(found)
    }

    /// As the row has it.
    pub fn to_json(&self) -> String {
        // Texts and whole numbers can always be written.
        serde_json::to_string(self).unwrap_or_default()
    }
}
