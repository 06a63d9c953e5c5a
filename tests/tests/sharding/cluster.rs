//! A service over databases of which a test picks the one that the engine sees.
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sidetone::Sandbox;
use sidetone::database::Memory;
use sidetone::sandbox::memory;
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use sidetone_tests::World;

use crate::schema::{ask, texts};

type Hook = Box<dyn FnOnce() + Send>;

/// The databases. The engine sees the selected one.
pub struct Shards {
    all: Vec<Memory>,
    picked: AtomicUsize,
    before_write: Mutex<Option<(u32, Hook)>>,
}

/// A service over several shards.
pub struct Cluster {
    pub shards: Arc<Shards>,
    world: World,
}

impl Shards {
    pub fn new(count: usize) -> Arc<Self> {
        let all = (0..count).map(|_| memory()).collect();
        Arc::new(Self { all, picked: AtomicUsize::new(0), before_write: Mutex::new(None) })
    }

    pub fn pick(&self, shard: usize) {
        self.picked.store(shard, Ordering::SeqCst);
    }

    pub fn at(&self, shard: usize) -> &Memory {
        &self.all[shard]
    }

    /// Calls the hook just before the `nth` write from now, so that the engine's reads are outdated.
    pub fn before_write(&self, nth: u32, hook: Hook) {
        *self.before_write.lock().unwrap() = Some((nth, hook));
    }

    fn picked(&self) -> &Memory {
        self.at(self.picked.load(Ordering::SeqCst))
    }
}

impl Database for Shards {
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        self.picked().read(batch)
    }

    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
        let planned = self.before_write.lock().unwrap().take();
        match planned {
            Some((1, hook)) => hook(),
            Some((nth, hook)) => self.before_write(nth - 1, hook),
            None => {}
        }
        self.picked().write(batch)
    }
}

impl Cluster {
    pub fn new(shards: usize) -> Self {
        Self::with_settings(shards, &[])
    }

    pub fn with_settings(shards: usize, settings: &[(&str, &str)]) -> Self {
        let shards = Shards::new(shards);
        let world = World::over_with(shards.clone(), settings);
        Self { shards, world }
    }

    /// Creates a workspace on a shard; returns its id too.
    pub fn workspace(&self, shard: usize) -> (World, String) {
        self.shards.pick(shard);
        let world = self.world.other();
        let id = self.owner(shard, &hash(world.key())).unwrap();
        (world, id)
    }

    /// Runs the jobs of every shard, like the cron.
    pub fn run_jobs(&self) -> usize {
        let turn = |shard| {
            self.shards.pick(shard);
            self.world.sandbox().unwrap().run_jobs()
        };
        (0..self.shards.all.len()).map(turn).sum()
    }

    pub fn sandbox(&self) -> &Sandbox {
        self.world.sandbox().unwrap()
    }

    fn owner(&self, shard: usize, key: &str) -> Option<String> {
        let question = "SELECT workspace_id AS text FROM api_keys WHERE hash = ?1";
        texts(&ask(self.shards.at(shard), question, &[key])).pop()
    }
}

/// The hash of a key.
pub fn hash(key: &str) -> String {
    ApiKey::parse(key).unwrap().sha256_hex()
}
