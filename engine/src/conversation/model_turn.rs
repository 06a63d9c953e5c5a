//! The request to the assistant's model in a turn, and its reply.
use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::base::json_text::JsonText;

/// One entry of the history that a model receives, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// A line of the user: the person, or the simulated caller.
    User {
        /// The text.
        text: String,
    },
    /// A line of the assistant.
    Assistant {
        /// The text.
        text: String,
    },
    /// A tool call by the assistant.
    ToolCall {
        /// Identifies the call; its result has the same id.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments, an object that fits the tool's `parameters`.
        arguments: Value,
    },
    /// The result of a tool call.
    ToolResult {
        /// The id of the [`Message::ToolCall`].
        id: String,
        /// The tool's name.
        name: String,
        /// The tool's response as text, or the reason of its failure.
        text: String,
        /// Whether the tool failed.
        is_error: bool,
    },
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Function name, `^[A-Za-z_][A-Za-z0-9_]{0,63}$`.
    pub name: String,
    /// The owner's description of the tool; may be empty.
    pub description: String,
    /// JSON Schema (`type: object`) of its arguments.
    pub parameters: JsonText,
}

/// A knowledge document as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    /// The document's name.
    pub name: String,
    /// Its plain text.
    pub content: String,
}

/// The input of the assistant's model for its next step.
#[derive(Debug, Clone, Copy)]
pub struct AssistantTurn<'a> {
    /// The owner's business instructions.
    pub instructions: &'a str,
    /// Attached documents, in the order of attachment.
    pub knowledge: &'a [Knowledge],
    /// Attached tools, in the order of attachment.
    pub tools: &'a [ToolSpec],
    /// The conversation so far; the last entry is the one to answer.
    pub history: &'a [Message],
    /// The seed: the same seed and inputs produce the same reply.
    pub seed: u64,
}

/// The next step that the assistant's model chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AssistantReply {
    /// Say this and listen.
    Say {
        /// The text.
        text: String,
    },
    /// Call these tools concurrently; their results are added to the history.
    CallTools {
        /// A line to say first ("one moment …"); may be empty.
        #[serde(default)]
        text: String,
        /// At least one call.
        calls: Vec<ToolRequest>,
    },
    /// Say this and hang up.
    Goodbye {
        /// The text; may be empty.
        text: String,
    },
}

/// A tool call as the assistant's model requests it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The tool's name as the model wrote it; such a tool may not exist.
    pub name: String,
    /// The arguments, not validated yet: normally an object for the tool's `parameters`. Any other JSON is passed on
    /// unchanged, and invalid JSON as a string.
    pub arguments: Value,
}

impl AssistantReply {
    /// One call without a line before it.
    #[must_use]
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::CallTools { text: String::new(), calls: vec![ToolRequest { name: name.into(), arguments }] }
    }
}
