//! Why a conversation ended, what that means for its call, and whose fault it is.
use super::{CallFault, Outcome};

crate::words! {
    /// Why a conversation ended: a closed list, so that reports can count by it.
    ///
    /// At most 25 values over the product's life. A new one needs a reason that no present one tells.
    json EndedReason {
        /// The user hung up or closed the conversation.
        UserHungUp = "user_hung_up",
        /// The assistant's side closed the conversation.
        AssistantEnded = "assistant_ended",
        /// The user stayed silent each time it was their turn.
        Silence = "silence",
        /// The conversation reached its limit of turns.
        TurnLimit = "turn_limit",
        /// The conversation reached its limit of time.
        DurationLimit = "duration_limit",
        /// The conversation cost as much as it may.
        CostLimit = "cost_limit",
        /// The next row would have made the transcript longer than one may be; it was left out.
        TranscriptLimit = "transcript_limit",
        /// The model kept asking for tools after it was told to stop and answer.
        ToolLoop = "tool_loop",
        /// The assistant said the same line over and over.
        AssistantRepeating = "assistant_repeating",
        /// A model did not answer: the assistant's, or the simulated caller's.
        ModelFailed = "model_failed",
        /// The service stopped the conversation: neither side did anything wrong.
        Aborted = "aborted",
        /// Somebody asked the service to hang up.
        HungUpByRequest = "hung_up_by_request",
        /// The telephone rang and nobody answered.
        NoAnswer = "no_answer",
        /// The line was busy.
        Busy = "busy",
        /// The call was declined where it rang.
        Declined = "declined",
        /// The call was called off before anybody answered.
        Canceled = "canceled",
        /// The number cannot be called: it does not exist, is out of service, or no way leads there.
        Unreachable = "unreachable",
        /// The carrier did not take the call: its account, its permissions, its limits.
        CarrierRefused = "carrier_refused",
        /// The carrier took the call and lost it.
        CarrierFailed = "carrier_failed",
        /// The call was connected and its audio never came, or broke off.
        MediaLost = "media_lost",
        /// The carrier never told what became of the call.
        Unsettled = "unsettled",
    }
}

impl EndedReason {
    /// True when one of the two sides closed the conversation of its own will.
    #[must_use]
    pub const fn is_proper(self) -> bool {
        matches!(self, Self::UserHungUp | Self::AssistantEnded)
    }

    /// What came of a call whose conversation ended like this.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::ModelFailed
            | Self::Aborted
            | Self::Unreachable
            | Self::CarrierRefused
            | Self::CarrierFailed
            | Self::MediaLost
            | Self::Unsettled => Outcome::Failed,
            Self::NoAnswer => Outcome::NoAnswer,
            Self::Busy | Self::Declined => Outcome::Busy,
            Self::Canceled => Outcome::Canceled,
            _ => Outcome::Completed,
        }
    }

    /// Whose fault it is.
    #[must_use]
    pub const fn fault(self) -> CallFault {
        match self {
            Self::UserHungUp | Self::AssistantEnded | Self::HungUpByRequest => CallFault::None,
            Self::NoAnswer | Self::Busy | Self::Declined | Self::Canceled => CallFault::None,
            Self::Silence | Self::Unreachable => CallFault::Caller,
            Self::ToolLoop | Self::AssistantRepeating => CallFault::Assistant,
            Self::TurnLimit | Self::DurationLimit | Self::CostLimit | Self::TranscriptLimit => {
                CallFault::Operator
            }
            Self::CarrierRefused => CallFault::Operator,
            Self::CarrierFailed | Self::MediaLost | Self::Unsettled => CallFault::Carrier,
            Self::ModelFailed => CallFault::Provider,
            Self::Aborted => CallFault::Platform,
        }
    }
}
