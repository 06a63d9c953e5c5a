//! Several databases behind one service: the host selects one for each request, by its key, before it calls the engine.
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};

use sidetone::Sandbox;
use sidetone::database::Memory;
use sidetone::sandbox::memory;
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::ports::statement::{Rows, Statement};
use sidetone_engine::ports::{BoxFuture, Database, DatabaseError};
use sidetone_tests::{Reply, World};

use crate::schema::{ask, texts};

/// Where a workspace is. The directory stores this durably. The change from `Moving` to `Settling` is the moment of the
/// move.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Place {
    /// On this shard.
    At(usize),
    /// Still at `from`; `to` is being filled.
    Moving { from: usize, to: usize },
    /// At `to`, which is being thawed while `from` is emptied.
    Settling { from: usize, to: usize },
}

/// The workspace of each key, and the place of each workspace. The keys are a cache: the shards have the truth.
#[derive(Default)]
pub struct Directory {
    pub places: BTreeMap<String, Place>,
    keys: BTreeMap<String, String>,
    /// How often all shards were searched for a key that the directory did not know.
    pub asked: usize,
}

/// One isolate at the edge. It caches the place of each key, which may be outdated.
#[derive(Default)]
pub struct Isolate {
    remembered: RefCell<BTreeMap<String, usize>>,
}

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
    pub directory: Arc<Mutex<Directory>>,
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
        Self { shards, directory: Arc::default(), world }
    }

    /// Creates a workspace on a shard; returns its id too.
    pub fn workspace(&self, shard: usize) -> (World, String) {
        self.shards.pick(shard);
        let world = self.world.other();
        let id = self.owner(shard, &hash(world.key())).unwrap();
        self.directory.lock().unwrap().places.insert(id.clone(), Place::At(shard));
        (world, id)
    }

    /// Handles a request like the host; `None` is a 503 with Retry-After.
    pub fn send(
        &self,
        isolate: &Isolate,
        tenant: &World,
        request: impl Fn(&World) -> Reply,
    ) -> Option<Reply> {
        let key = hash(tenant.key());
        let remembered = isolate.remembered.borrow().get(&key).copied();
        let mut shard = match remembered.map(Place::At).or_else(|| self.find(&key)) {
            Some(Place::At(shard)) => shard,
            Some(_) => return None,
            None => 0,
        };
        loop {
            self.shards.pick(shard);
            // Invalid keys are counted by address, and an outdated cache entry looks like an invalid key.
            let reply = request(&tenant.from_elsewhere());
            if reply.status != 401 {
                isolate.remembered.borrow_mut().insert(key, shard);
                return Some(reply);
            }
            isolate.remembered.borrow_mut().remove(&key);
            match self.find(&key) {
                Some(Place::At(fresh)) if fresh != shard => shard = fresh,
                Some(Place::At(_)) | None => return Some(reply),
                Some(Place::Moving { .. } | Place::Settling { .. }) => return None,
            }
        }
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

    fn find(&self, key: &str) -> Option<Place> {
        let known = self.directory.lock().unwrap().keys.get(key).cloned();
        let workspace = known.or_else(|| {
            self.directory.lock().unwrap().asked += 1;
            (0..self.shards.all.len()).find_map(|shard| self.owner(shard, key))
        })?;
        let mut directory = self.directory.lock().unwrap();
        directory.keys.insert(key.to_owned(), workspace.clone());
        directory.places.get(&workspace).copied()
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
