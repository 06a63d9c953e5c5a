//! What the assistant's model is asked in a turn, and what it answers.
use serde::{Deserialize, Serialize};
use serde_json::Value;

/// One row of what a model has seen so far, oldest first.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "role", rename_all = "snake_case")]
pub enum Message {
    /// What the person (or the simulated caller) said.
    User {
        /// The words.
        text: String,
    },
    /// What the assistant said.
    Assistant {
        /// The words.
        text: String,
    },
    /// The assistant asked for a tool.
    ToolCall {
        /// Identifies this call of the tool; the result names it.
        id: String,
        /// The tool's name.
        name: String,
        /// The arguments, an object that fits the tool's `parameters`.
        arguments: Value,
    },
    /// What the tool answered.
    ToolResult {
        /// The [`Message::ToolCall`] it answers.
        id: String,
        /// The tool's name.
        name: String,
        /// The tool's answer as text, or why it failed.
        text: String,
        /// True when the tool failed; then `text` says why.
        is_error: bool,
    },
}

/// A tool as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSpec {
    /// Function name, `^[A-Za-z_][A-Za-z0-9_]{0,63}$`.
    pub name: String,
    /// What it is for, in the owner's words; may be empty.
    pub description: String,
    /// JSON Schema (`type: object`) of its arguments.
    pub parameters: Value,
}

/// A knowledge document as a model sees it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Knowledge {
    /// The document's name.
    pub name: String,
    /// Its plain text.
    pub content: String,
}

/// Everything the assistant's model may use to choose its next step.
#[derive(Debug, Clone, Copy)]
pub struct AssistantTurn<'a> {
    /// The owner's business instructions.
    pub instructions: &'a str,
    /// Attached documents, in the order of attachment.
    pub knowledge: &'a [Knowledge],
    /// Attached tools, in the order of attachment.
    pub tools: &'a [ToolSpec],
    /// The conversation so far; the last row is what to answer.
    pub history: &'a [Message],
    /// Same seed and same inputs, same reply.
    pub seed: u64,
}

/// What the assistant's model chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum AssistantReply {
    /// Say this and listen.
    Say {
        /// The words.
        text: String,
    },
    /// Call these tools, all at once; their results come back as history.
    CallTools {
        /// What to say first ("one moment …"); empty for nothing.
        #[serde(default)]
        text: String,
        /// At least one call.
        calls: Vec<ToolRequest>,
    },
    /// Say this and hang up.
    Goodbye {
        /// The words; empty for none.
        text: String,
    },
}

/// A call of a tool as the assistant's model asks for it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolRequest {
    /// The tool's name, as the model wrote it: it may be the name of no tool.
    pub name: String,
    /// An object that fits the tool's `parameters` as far as the model could fill it. What the model
    /// sent instead of a JSON object is here as it came, as a text where it was no JSON.
    pub arguments: Value,
}

impl AssistantReply {
    /// One call, with nothing said before.
    #[must_use]
    pub fn call(name: impl Into<String>, arguments: Value) -> Self {
        Self::CallTools { text: String::new(), calls: vec![ToolRequest { name: name.into(), arguments }] }
    }
}
