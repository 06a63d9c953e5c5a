//! What the end of a conversation means for the log: what came of the call, and whose fault it is if it
//! did not go well.
use crate::conversation::{CallFault, EndedReason, Outcome};

impl EndedReason {
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
