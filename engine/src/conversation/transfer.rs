//! Handing a conversation over to a person: whom the assistant can reach, and the tool with which its model does so.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::limits::{TRANSFER_NAME_CHARS_MAX, TRANSFER_WHEN_CHARS_MAX};
use crate::base::phone::E164;
use crate::conversation::ToolSpec;

/// The name of the tool.
pub const TRANSFER_TOOL: &str = "transfer_call";

/// Somebody to whom the assistant can hand a call over.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Transfer {
    /// What the assistant calls them, such as `Sales`; unique in the list.
    #[schemars(length(min = 1, max = TRANSFER_NAME_CHARS_MAX))]
    pub name: String,
    /// The number that is called.
    pub number: E164,
    /// When the assistant hands over to them, for its model.
    #[serde(default)]
    #[schemars(length(max = TRANSFER_WHEN_CHARS_MAX))]
    pub when: String,
}

/// The tool as a model sees it.
pub(super) fn transfer_tool(transfers: &[Transfer]) -> ToolSpec {
    let mut description =
        "Transfers the call to a person and leaves it. Tell the caller first, in the same answer.".to_owned();
    for Transfer { name, when, .. } in transfers {
        description.push_str(format!("\n- {name}: {when}").trim_end_matches(": "));
    }
    let names: Vec<&str> = transfers.iter().map(|transfer| transfer.name.as_str()).collect();
    let parameters = json!({
        "type": "object",
        "properties": {"name": {"type": "string", "enum": names}},
        "required": ["name"],
        "additionalProperties": false,
    });
    ToolSpec { name: TRANSFER_TOOL.to_owned(), description, parameters: parameters.into() }
}
