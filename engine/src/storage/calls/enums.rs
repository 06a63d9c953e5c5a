//! The enums of the call log: source, direction and status of a call, and who analyzed it.

crate::words! {
    /// Where a call comes from.
    json Source {
        /// An incoming telephone call.
        Inbound = "inbound",
        /// An outgoing telephone call.
        Outbound = "outbound",
        /// A test conversation in a browser.
        Browser = "browser",
        /// A simulation run.
        Simulation = "simulation",
    }
}

crate::words! {
    /// The direction of a call.
    json Direction {
        /// Placed by the other side.
        Inbound = "inbound",
        /// Placed by this service.
        Outbound = "outbound",
    }
}

crate::words! {
    /// The status of a call.
    json CallStatus {
        /// Accepted and waiting.
        Queued = "queued",
        /// The other side's telephone rings.
        Ringing = "ringing",
        /// The two sides are connected.
        InProgress = "in_progress",
        /// The call has ended, answered or not.
        Ended = "ended",
    }
}

crate::words! {
    /// The source of an analysis.
    json AnalysisMethod {
        /// The built-in rules.
        Rule = "rule",
        /// A model.
        Model = "model",
    }
}
