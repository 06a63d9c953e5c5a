//! The databases of one process, where there are several: each has ports of its own, and what is known of where keys belong.
use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::Services;
use crate::base::limits::KNOWN_KEYS_MAX;
use crate::ports::statement::{Rows, Statement};
use crate::ports::{Database, DatabaseError, Ports, ShardQueue, Shards};

/// The shards of a process.
pub(crate) struct Sharding {
    directory: Arc<dyn Database>,
    /// The ports of each, by its name.
    all: Vec<(Arc<str>, Arc<Ports>)>,
    /// Where a key was found. It may be outdated.
    remembered: Mutex<BTreeMap<String, usize>>,
}

impl Sharding {
    pub(super) fn new(ports: &Ports, shards: Shards) -> Self {
        let of = |shard: crate::ports::Shard| {
            let queue = ShardQueue { shard: shard.name.clone(), queue: ports.queue.clone() };
            let ports = Ports { database: shard.database, queue: Arc::new(queue), ..ports.clone() };
            (shard.name, Arc::new(ports))
        };
        let all = shards.all.into_iter().map(of).collect();
        Self { directory: shards.directory, all, remembered: Mutex::default() }
    }

    pub(super) fn first(&self) -> Option<Arc<Ports>> {
        self.all.first().map(|(_, ports)| ports.clone())
    }

    /// How many there are.
    pub(crate) fn count(&self) -> usize {
        self.all.len()
    }

    /// The name of a shard.
    pub(crate) fn name(&self, shard: usize) -> &str {
        self.all.get(shard).map_or("", |(name, _)| name)
    }

    /// The shard with this name.
    pub(crate) fn named(&self, name: &str) -> Option<usize> {
        self.all.iter().position(|(known, _)| &**known == name)
    }

    /// Reads the directory.
    pub(crate) async fn read<const N: usize>(
        &self,
        statements: [Statement; N],
    ) -> Result<[Rows; N], DatabaseError> {
        super::one_for_each(self.directory.read(Vec::from(statements)).await?)
    }

    /// Writes the directory.
    pub(crate) async fn write<const N: usize>(
        &self,
        statements: [Statement; N],
    ) -> Result<[Rows; N], DatabaseError> {
        super::one_for_each(self.directory.write(Vec::from(statements)).await?)
    }

    /// The directory's database.
    pub(crate) fn directory(&self) -> &dyn Database {
        &*self.directory
    }

    /// The shard on which the key with this hash was found.
    pub(crate) fn remembered(&self, hash: &str) -> Option<usize> {
        self.memory().get(hash).copied()
    }

    /// The key with this hash is on this shard.
    pub(crate) fn remember(&self, hash: &str, shard: usize) {
        let mut memory = self.memory();
        if memory.len() >= KNOWN_KEYS_MAX {
            memory.clear();
        }
        memory.insert(hash.to_owned(), shard);
    }

    /// It is not there any more.
    pub(crate) fn forget(&self, hash: &str) {
        self.memory().remove(hash);
    }

    fn memory(&self) -> MutexGuard<'_, BTreeMap<String, usize>> {
        self.remembered.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Services {
    /// The shards, where there are several databases.
    pub(crate) fn sharding(&self) -> Option<&Sharding> {
        self.inner.sharding.as_ref()
    }

    /// Which shard's database these have.
    pub(crate) fn shard(&self) -> Option<usize> {
        self.sharding()?.all.iter().position(|(_, ports)| Arc::ptr_eq(ports, &self.ports))
    }

    /// The same process with the database of a shard.
    pub(crate) fn on_shard(&self, shard: usize) -> Self {
        let ports = self.sharding().and_then(|sharding| sharding.all.get(shard));
        Self { inner: self.inner.clone(), ports: ports.map_or(&self.ports, |(_, ports)| ports).clone() }
    }

    /// The same process with each database of workspaces, in their order; once where there is one.
    pub fn on_every_shard(&self) -> Vec<Self> {
        let count = self.sharding().map_or(1, Sharding::count);
        (0..count).map(|shard| self.on_shard(shard)).collect()
    }
}
