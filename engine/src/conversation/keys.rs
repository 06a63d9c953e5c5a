//! The tool with which a model presses keys on a telephone.
use serde_json::json;

use super::ToolSpec;
use crate::base::limits::SEND_KEYS_CHARS_MAX;

/// Its name.
pub const SEND_KEYS: &str = "send_keys";

/// The tool as models see it.
#[must_use]
pub fn send_keys() -> ToolSpec {
    let parameters = json!({
        "type": "object",
        "properties": {"keys": {
            "type": "string",
            "maxLength": SEND_KEYS_CHARS_MAX,
            // At least one key.
            "pattern": "^w*[0-9*#A-D][0-9*#A-Dw]*$",
            "description": "0-9, * and #, also A-D, in their order; w waits half a second",
        }},
        "required": ["keys"],
        "additionalProperties": false,
    });
    ToolSpec {
        name: SEND_KEYS.to_owned(),
        description: "Presses keys of the telephone: to choose in a menu, or to enter a number.".to_owned(),
        parameters: parameters.into(),
    }
}
