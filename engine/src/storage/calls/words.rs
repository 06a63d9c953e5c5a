//! The closed lists of words a call is described with.

crate::words! {
    /// Where a call comes from.
    json Source {
        /// Somebody called a bound number.
        Inbound = "inbound",
        /// The service placed it.
        Outbound = "outbound",
        /// A browser's voice test.
        Browser = "browser",
        /// A simulated caller.
        Simulation = "simulation",
    }
}

crate::words! {
    /// Who placed a call.
    json Direction {
        /// The other side.
        Inbound = "inbound",
        /// The service.
        Outbound = "outbound",
    }
}

crate::words! {
    /// Where a call is.
    json CallStatus {
        /// Accepted and waiting.
        Queued = "queued",
        /// The other side's telephone rings.
        Ringing = "ringing",
        /// The two sides are connected.
        InProgress = "in_progress",
        /// Over.
        Ended = "ended",
    }
}

crate::words! {
    /// Who analysed a call.
    json AnalysisMethod {
        /// The built-in rules.
        Rule = "rule",
        /// A model.
        Model = "model",
    }
}
