//! The result of a conversation: outcome, sentiment and fault.

crate::words! {
    /// The outcome of a call.
    json Outcome {
        /// There was a conversation.
        Completed = "completed",
        /// The call was not answered.
        NoAnswer = "no_answer",
        /// The line was busy.
        Busy = "busy",
        /// The call could not be connected, or broke.
        Failed = "failed",
        /// The call was canceled before a conversation.
        Canceled = "canceled",
        /// A machine answered.
        Voicemail = "voicemail",
    }
}

crate::words! {
    /// The caller's sentiment.
    json Sentiment {
        /// The caller was satisfied.
        Positive = "positive",
        /// Neither satisfied nor dissatisfied.
        Neutral = "neutral",
        /// The caller was dissatisfied.
        Negative = "negative",
        /// It could not be determined.
        Unknown = "unknown",
    }
}

crate::words! {
    /// The cause of a failed call.
    json CallFault {
        /// No fault.
        None = "none",
        /// The other side.
        Caller = "caller",
        /// The assistant's configuration.
        Assistant = "assistant",
        /// The server's settings.
        Operator = "operator",
        /// The provider of a model or a voice.
        Provider = "provider",
        /// The telephone carrier.
        Carrier = "carrier",
        /// This service.
        Platform = "platform",
    }
}
