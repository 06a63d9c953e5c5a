//! The queues that jobs wait in.

crate::words! {
    /// A queue of jobs that wait for the same kind of thing. Each queue has its own slots on every host, so receivers
    /// that hang delay no conversation, and conversations that compute delay no event.
    plain JobQueue {
        /// Simulation runs, and the work that calls leave behind.
        Conversations = "conversations",
        /// Deliveries to webhooks.
        Deliveries = "deliveries",
    }
}
