//! The words for how a conversation went: what came of it, how the caller felt, and whose fault a failure is.

crate::words! {
    /// What came of a call.
    json Outcome {
        /// There was a conversation.
        Completed = "completed",
        /// Nobody answered.
        NoAnswer = "no_answer",
        /// The line was busy.
        Busy = "busy",
        /// It could not be connected or broke.
        Failed = "failed",
        /// It was called off before anybody talked.
        Canceled = "canceled",
        /// A machine answered.
        Voicemail = "voicemail",
    }
}

crate::words! {
    /// How the caller felt about the call.
    json Sentiment {
        /// Pleased.
        Positive = "positive",
        /// Neither.
        Neutral = "neutral",
        /// Displeased.
        Negative = "negative",
        /// It cannot be told.
        Unknown = "unknown",
    }
}

crate::words! {
    /// Whose fault it is that a call did not go well.
    json CallFault {
        /// Nobody's: it went well, or as such things go.
        None = "none",
        /// The other side's.
        Caller = "caller",
        /// The assistant's configuration.
        Assistant = "assistant",
        /// The server's settings.
        Operator = "operator",
        /// A model's or a voice's provider.
        Provider = "provider",
        /// The telephone carrier.
        Carrier = "carrier",
        /// This service.
        Platform = "platform",
    }
}
