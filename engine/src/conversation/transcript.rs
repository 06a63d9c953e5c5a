//! The rows of a transcript.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// The source of a transcript row.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum TranscriptRole {
    /// The user: the person on the call, or the simulated caller.
    User,
    /// The assistant.
    Assistant,
    /// A tool call by the assistant's model.
    ToolCall,
    /// The tool's result, or why it was not called.
    ToolResult,
    /// Keys the user pressed.
    Dtmf,
    /// The service.
    System,
}

/// One row of a transcript, in chronological order.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct TranscriptRow {
    /// The index of the row, from 0 without gaps.
    pub index: usize,
    /// The source of the row.
    pub role: TranscriptRole,
    /// The text that was said and heard; for tools, the call or its result as text.
    pub text: String,
    /// When it began, in ms from the start of the conversation.
    pub start_ms: i64,
    /// When it ended, in ms from the start of the conversation.
    pub end_ms: i64,
    /// Whether the line was cut off, because the user interrupted it (barge-in) or the call ended: `text` then has only the
    /// part that was heard.
    pub interrupted: bool,
    /// The complete line if it was cut off, or is still being said; otherwise null.
    pub intended_text: Option<String>,
    /// True while the assistant is still saying the line: `text` has what was heard so far. Rows of a call in progress only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub in_progress: bool,
    /// The tool's name (tool rows only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_name: Option<String>,
    /// The id of the tool call, also in its result (tool rows only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tool_call_id: Option<String>,
    /// The arguments of the tool call (`tool_call` rows only).
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub arguments: Option<Value>,
    /// On a `tool_result` row, true when the tool failed. On a `tool_call` row, true when the call was rejected and not
    /// sent (an unknown tool, arguments that do not fit its parameters, too many calls); its result says why. Tool rows
    /// only.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_error: Option<bool>,
    /// True on a `tool_result` row when the scenario's `tool_mocks` answered and no endpoint was called. Such rows only.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub mocked: bool,
}

impl TranscriptRow {
    /// A plain row, from `start_ms` to `end_ms`.
    #[must_use]
    pub const fn new(index: usize, role: TranscriptRole, text: String, start_ms: i64, end_ms: i64) -> Self {
        Self {
            index,
            role,
            text,
            start_ms,
            end_ms,
            interrupted: false,
            intended_text: None,
            in_progress: false,
            tool_name: None,
            tool_call_id: None,
            arguments: None,
            is_error: None,
            mocked: false,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn spoken_rows_have_no_tool_fields() {
        let row = TranscriptRow::new(0, TranscriptRole::User, "hi".into(), 0, 300);
        assert_eq!(
            serde_json::to_value(row).unwrap(),
            json!({"index": 0, "role": "user", "text": "hi", "start_ms": 0, "end_ms": 300,
                   "interrupted": false, "intended_text": null})
        );
    }
}
