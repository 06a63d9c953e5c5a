//! The queues that jobs wait in.

crate::words! {
    /// A queue of jobs of similar kinds. Each queue has its own slots on every host, so that slow receivers delay no
    /// conversation, and conversations delay no delivery.
    plain JobQueue {
        /// Simulation runs, and the work that calls leave behind.
        Conversations = "conversations",
        /// Deliveries to webhooks.
        Deliveries = "deliveries",
    }
}
