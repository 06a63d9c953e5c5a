//! `tools/list`: every operation but downloads as a tool.
#[cfg(not(target_arch = "wasm32"))]
mod brief;
#[cfg(not(target_arch = "wasm32"))]
mod derive;

use serde_json::{Value, json};

#[cfg(not(target_arch = "wasm32"))]
pub use self::derive::{list, path_value};
use crate::interfaces::mcp::message::{self, Refusal};
use crate::interfaces::mcp::modern;

/// The tool list, ready to send.
pub struct Tools {
    /// As a result of revisions up to 2025-11-25.
    pub legacy_list: String,
    /// As a result of revision 2026-07-28.
    pub modern_list: String,
}

impl Tools {
    /// Derives the second result from the first.
    pub fn new(legacy_list: String) -> Self {
        let more = json!({
            "resultType": "complete",
            "ttlMs": modern::LIST_TTL_MS,
            "cacheScope": "public",
            "_meta": modern::result_meta(),
        })
        .to_string();
        // Both are JSON objects, so their fields can be concatenated.
        let modern_list = match (legacy_list.strip_suffix('}'), more.strip_prefix('{')) {
            (Some(tools), Some(more)) => format!("{tools},{more}"),
            _ => more,
        };
        Self { legacy_list, modern_list }
    }
}

/// For a list that has one page, so that every cursor is invalid.
pub fn refuse_cursor(params: &Value) -> Option<Refusal> {
    params
        .get("cursor")
        .map(|_| Refusal::new(message::INVALID_PARAMS, "Unknown cursor: this list has one page."))
}
