//! Why a conversation ended.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

/// Why a conversation ended: a closed list, so that reports can count by it.
///
/// At most 25 values over the product's life. A new one needs a reason that no present one tells.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum EndedReason {
    /// The user hung up or closed the conversation.
    UserHungUp,
    /// The assistant's side closed the conversation.
    AssistantEnded,
    /// The user stayed silent each time it was their turn.
    Silence,
    /// The conversation reached its limit of turns.
    TurnLimit,
    /// The conversation reached its limit of time.
    DurationLimit,
    /// The conversation cost as much as it may.
    CostLimit,
    /// The next row would have made the transcript longer than one may be; it was left out.
    TranscriptLimit,
    /// The model kept asking for tools after it was told to stop and answer.
    ToolLoop,
    /// The assistant said the same line over and over.
    AssistantRepeating,
    /// A model did not answer: the assistant's, or the simulated caller's.
    ModelFailed,
    /// The service stopped the conversation: neither side did anything wrong.
    Aborted,
    /// Somebody asked the service to hang up.
    HungUpByRequest,
    /// The telephone rang and nobody answered.
    NoAnswer,
    /// The line was busy.
    Busy,
    /// The call was declined where it rang.
    Declined,
    /// The call was called off before anybody answered.
    Canceled,
    /// The number cannot be called: it does not exist, is out of service, or no way leads there.
    Unreachable,
    /// The carrier did not take the call: its account, its permissions, its limits.
    CarrierRefused,
    /// The carrier took the call and lost it.
    CarrierFailed,
    /// The call was connected and its audio never came, or broke off.
    MediaLost,
    /// The carrier never told what became of the call.
    Unsettled,
}

impl EndedReason {
    /// True when one of the two sides closed the conversation of its own will.
    #[must_use]
    pub const fn is_proper(self) -> bool {
        matches!(self, Self::UserHungUp | Self::AssistantEnded)
    }
}
