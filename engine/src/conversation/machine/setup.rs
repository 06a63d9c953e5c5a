//! What a conversation is configured with.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::conversation::{ConversationLimits, Knowledge, ToolSpec, Voicemail};

/// The configuration of a conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ConversationSetup {
    /// The conversation's id and the prefix of its tool-call ids (`{id}_t1`, `{id}_t2`, …).
    pub id: String,
    /// The assistant's business instructions.
    pub instructions: String,
    /// The assistant's opening message; when empty, the assistant waits for the user.
    pub first_message: String,
    /// Attached documents.
    pub knowledge: Arc<[Knowledge]>,
    /// Attached tools.
    pub tools: Arc<[ToolSpec]>,
    /// Whether the tool [`TRANSFER_TOOL`](crate::conversation::TRANSFER_TOOL) hands the conversation over to a person.
    #[serde(default)]
    pub has_transfers: bool,
    /// The model's seed: the same seed and inputs produce the same conversation.
    pub seed: u64,
    /// The limits of the conversation.
    #[serde(default)]
    pub limits: ConversationLimits,
    /// Whether the assistant's lines are spoken. [`Spoken`](super::Input::Spoken) or
    /// [`Interrupted`](super::Input::Interrupted) then follows each line, and the user's silence counts from that input. A
    /// line of text is delivered at once.
    #[serde(default)]
    pub is_spoken: bool,
    /// What the assistant says before the conversation ends because its model failed; when empty, nothing.
    #[serde(default)]
    pub apology: String,
    /// What a spoken assistant asks a user who is silent; when empty, nothing.
    #[serde(default)]
    pub still_there: String,
    /// What a spoken assistant says to a user whose words were lost; when empty, nothing.
    #[serde(default)]
    pub not_understood: String,
    /// Whether one of the tools is [`SEND_KEYS`](crate::conversation::SEND_KEYS).
    #[serde(default)]
    pub keys: bool,
    /// What a spoken assistant says when the user waits for a tool; when empty, nothing.
    #[serde(default)]
    pub filler: String,
    /// What the transcript says first; when empty, nothing.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub opening_note: String,
    /// What happens after [`MachineAnswered`](super::Input::MachineAnswered); `None`: nothing.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub voicemail: Option<Voicemail>,
}
