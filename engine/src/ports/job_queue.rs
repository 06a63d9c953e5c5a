//! The job queues.

crate::words! {
    /// A queue of jobs that wait for the same resource. Each queue has its own slots on every host: slow receivers delay no
    /// run, runs that compute delay no delivery, and neither delays what a call still needs.
    plain JobQueue {
        /// Hang-ups at the carrier, and what is left to do for an ended call.
        Calls = "calls",
        /// Deliveries to webhooks.
        Deliveries = "deliveries",
        /// Simulation runs.
        Runs = "runs",
    }
}

/// In hints of earlier versions, [`JobQueue::Runs`] and [`JobQueue::Calls`] together.
const CONVERSATIONS: &str = "conversations";

impl JobQueue {
    /// The queues that a hint names; `None` if this version does not know the name.
    pub fn named_by(hint: &str) -> Option<Vec<Self>> {
        match hint {
            CONVERSATIONS => Some(vec![Self::Calls, Self::Runs]),
            name => Self::parse(name).map(|queue| vec![queue]),
        }
    }
}
