//! Several databases behind one service, for a host that has them. The engine decides which of them a request is about.
use std::sync::Arc;

use super::{Database, Queue, Wake};

/// The databases of workspaces, and the one that says which of them has what.
#[derive(Clone)]
pub struct Shards {
    /// Only places, numbers and what callbacks are known by.
    pub directory: Arc<dyn Database>,
    /// At least one; the first is [`Ports::database`](super::Ports::database).
    pub all: Vec<Shard>,
}

/// One database of workspaces.
#[derive(Clone)]
pub struct Shard {
    /// Its name for the directory and for hints, which stays the same.
    pub name: Arc<str>,
    /// The database.
    pub database: Arc<dyn Database>,
}

/// The hints of one shard: each names it.
pub(crate) struct ShardQueue {
    pub(crate) shard: Arc<str>,
    pub(crate) queue: Arc<dyn Queue>,
}

impl Queue for ShardQueue {
    fn wake(&self, wake: &Wake) {
        self.queue.wake_on(&self.shard, wake);
    }

    fn wake_on(&self, shard: &str, wake: &Wake) {
        self.queue.wake_on(shard, wake);
    }
}
