//! What a conversation is told and what it asks for.
use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(doc)]
use super::Conversation;
use crate::conversation::{AssistantReply, EndedReason};

/// One side of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The person, or the simulated caller.
    User,
    /// The assistant.
    Assistant,
}

/// What happened outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// The two are connected. Offsets in the transcript count from here.
    Start,
    /// The user said or wrote something. While the model thinks, it is asked anew with this line
    /// too; while a tool runs, the line waits for the result.
    UserText {
        /// The words.
        text: String,
        /// How long it took to say them, in ms; 0 for typed text.
        duration_ms: i64,
    },
    /// The user said or wrote something and hung up. Nobody answers, and it ends the conversation
    /// as [`EndedReason::UserHungUp`] even when it is the last line the limits allow.
    UserGoodbye {
        /// The words.
        text: String,
        /// How long it took to say them, in ms; 0 for typed text.
        duration_ms: i64,
    },
    /// The user pressed keys on a telephone. They count as a line of theirs.
    Keys {
        /// `0`–`9`, `*`, `#`, `A`–`D`, in their order.
        keys: String,
    },
    /// The user talked over the assistant's last line: the rest of it was not heard, and the conversation goes on
    /// from what was.
    Interrupted {
        /// How much of the line had been heard, in parts of a thousand.
        heard_permille: u32,
    },
    /// It was the user's turn and they said nothing. For drivers without a clock, such as a simulated caller with nothing
    /// to say; with [`silence_ms`](crate::conversation::ConversationLimits::silence_ms) the conversation decides it on
    /// [`Input::Tick`].
    Silence,
    /// Something was heard that is no line: the user is there.
    Noise,
    /// The model answered [`Output::AskModel`] of the same number.
    AssistantReply {
        /// The number asked with. An answer to an older question is ignored.
        request: u64,
        /// The answer.
        reply: AssistantReply,
    },
    /// The model could not answer [`Output::AskModel`] of the same number.
    ModelFailed {
        /// The number asked with.
        request: u64,
        /// Why, in words fit for the assistant's owner.
        reason: String,
    },
    /// The tool of [`Output::CallTool`] answered or failed.
    ToolResult {
        /// The id called with. A result for another call is ignored.
        id: String,
        /// The answer, or why there is none.
        text: String,
        /// True when `text` says why the tool failed.
        is_error: bool,
    },
    /// Nothing happened, but time has passed: the user may have been silent for too long, or a limit of time be
    /// reached. Due at [`Conversation::poll_timeout`]; harmless at any other time.
    Tick,
    /// The assistant's last line has been spoken to its end. It sets the row's `end_ms`, also of the line with which the
    /// conversation ended.
    Spoken,
    /// One side hung up.
    HangUp {
        /// Who.
        by: Party,
    },
    /// It has cost as much as it may.
    CostLimit,
    /// Something outside ended it: the carrier, whoever asked the service to hang up, a simulated caller's model that
    /// does not answer.
    Stop {
        /// Why.
        reason: EndedReason,
    },
}

impl Input {
    /// Whether the other end did or heard something, so that nobody is silent.
    pub(super) const fn is_activity(&self) -> bool {
        match self {
            Self::Start
            | Self::UserText { .. }
            | Self::UserGoodbye { .. }
            | Self::Keys { .. }
            | Self::Interrupted { .. }
            | Self::Silence
            | Self::Noise
            | Self::Spoken => true,
            Self::AssistantReply { .. }
            | Self::ModelFailed { .. }
            | Self::ToolResult { .. }
            | Self::Tick
            | Self::HangUp { .. }
            | Self::CostLimit
            | Self::Stop { .. } => false,
        }
    }
}

/// What the driver does next.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    /// Say this to the user.
    Say {
        /// The words.
        text: String,
    },
    /// Ask the model about [`Conversation::assistant_turn`] as it is now, and hand in its answer
    /// with this number. An earlier question still under way may be dropped.
    AskModel {
        /// The number of this question.
        request: u64,
    },
    /// Call this tool and hand in its result with this id. Several may be under way at once; the
    /// model is asked again when all have answered.
    CallTool {
        /// Unique in the conversation and the same after a restart, so it is fit to be the
        /// tool's idempotency key.
        id: String,
        /// One of the attached tools.
        name: String,
        /// A JSON object; not yet checked against the tool's schema.
        arguments: Value,
    },
    /// The conversation is over; nothing comes after this.
    Ended {
        /// Why.
        reason: EndedReason,
    },
}

/// Whose move it is.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor {
    /// [`Input::Start`].
    Start,
    /// [`Input::UserText`] or [`Input::Silence`].
    User,
    /// [`Input::AssistantReply`] or [`Input::ModelFailed`].
    Model,
    /// [`Input::ToolResult`], one or several.
    Tool,
    /// Nothing: it is over.
    Nothing,
}
