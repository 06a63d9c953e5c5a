//! The job queues.

crate::words! {
    /// A queue of jobs that wait for the same resource. Each queue has its own slots on every host, so slow receivers do not
    /// delay conversations, and conversations that compute do not delay deliveries.
    plain JobQueue {
        /// Simulation runs, and the follow-up work of calls.
        Conversations = "conversations",
        /// Deliveries to webhooks.
        Deliveries = "deliveries",
    }
}
