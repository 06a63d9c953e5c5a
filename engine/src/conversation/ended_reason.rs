//! The reasons for the end of a conversation, with their outcomes and faults.
use super::{CallFault, Outcome};

// Reports group by this list: it stays below 25 values, and a new one requires a reason that no existing one covers.
crate::words! {
    /// Why a call ended.
    json EndedReason {
        /// The user hung up or closed the conversation.
        UserHungUp = "user_hung_up",
        /// The assistant's side closed the conversation.
        AssistantEnded = "assistant_ended",
        /// The assistant handed the call over to a person.
        Transferred = "transferred",
        /// The user stayed silent each time it was their turn.
        Silence = "silence",
        /// The conversation reached its limit of turns.
        TurnLimit = "turn_limit",
        /// The conversation reached its time limit.
        DurationLimit = "duration_limit",
        /// The conversation reached its cost limit.
        CostLimit = "cost_limit",
        /// The next row would have exceeded the maximum size of the transcript; it was omitted.
        TranscriptLimit = "transcript_limit",
        /// The model kept requesting tools although it had to answer.
        ToolLoop = "tool_loop",
        /// The assistant repeated the same line.
        AssistantRepeating = "assistant_repeating",
        /// A model did not respond: the assistant's, or the simulated caller's.
        ModelFailed = "model_failed",
        /// The assistant could not hear or speak: its transcriber or its voices failed.
        SpeechFailed = "speech_failed",
        /// The service stopped the conversation; neither side is at fault.
        Aborted = "aborted",
        /// A hang-up was requested from the service.
        HungUpByRequest = "hung_up_by_request",
        /// The call was not answered.
        NoAnswer = "no_answer",
        /// The line was busy.
        Busy = "busy",
        /// The call was declined.
        Declined = "declined",
        /// The call was canceled before it was answered.
        Canceled = "canceled",
        /// The number cannot be called: it does not exist, is out of service, or cannot be reached.
        Unreachable = "unreachable",
        /// The carrier rejected the call: its account, its permissions, its limits.
        CarrierRefused = "carrier_refused",
        /// The carrier accepted the call and failed to complete it.
        CarrierFailed = "carrier_failed",
        /// The call was connected, but its audio never arrived or was lost.
        MediaLost = "media_lost",
        /// The carrier never reported the end of the call.
        Unsettled = "unsettled",
    }
}

impl EndedReason {
    /// Whether a call with this reason was not answered.
    #[must_use]
    pub const fn is_without_an_answer(self) -> bool {
        matches!(self, Self::NoAnswer | Self::Busy | Self::Declined | Self::Canceled | Self::Unreachable)
    }

    /// The outcome of a call with this reason.
    #[must_use]
    pub const fn outcome(self) -> Outcome {
        match self {
            Self::ModelFailed
            | Self::SpeechFailed
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

    /// The fault of a call with this reason.
    #[must_use]
    pub const fn fault(self) -> CallFault {
        match self {
            Self::UserHungUp | Self::AssistantEnded | Self::Transferred | Self::HungUpByRequest => {
                CallFault::None
            }
            Self::NoAnswer | Self::Busy | Self::Declined | Self::Canceled => CallFault::None,
            Self::Silence | Self::Unreachable => CallFault::Caller,
            Self::ToolLoop | Self::AssistantRepeating => CallFault::Assistant,
            Self::TurnLimit | Self::DurationLimit | Self::CostLimit | Self::TranscriptLimit => {
                CallFault::Operator
            }
            Self::CarrierRefused => CallFault::Operator,
            Self::CarrierFailed | Self::MediaLost | Self::Unsettled => CallFault::Carrier,
            Self::ModelFailed | Self::SpeechFailed => CallFault::Provider,
            Self::Aborted => CallFault::Platform,
        }
    }
}
