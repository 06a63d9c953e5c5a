//! Shared by every part of the service: the operator's settings, the host's ports, ids, and what workspaces share
//! of one process: places for live conversations, and memory.
mod shards;

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, PoisonError};

use crate::base::fair_pool::{FairPool, SharedPool};
use crate::base::fetched::Fetched;
use crate::base::ids::{Id, Ids, WorkspaceId};
use crate::base::lateness::Lateness;
use crate::base::limits::{
    FOLLOWERS_MAX, KNOWN_KEYS_MAX, LIVE_SESSIONS_FOR_NEWCOMERS, LIVE_SESSIONS_MAX,
    MEMORY_FOR_NEWCOMERS_PERCENT, STARTS_BYTES_MAX, TOOL_TESTS_MAX,
};
use crate::base::shared_cache::SharedCache;
use crate::base::stopping::Stopping;
use crate::base::time::Timestamp;
use crate::config::Config;
use crate::models::AssistantInUse;
use crate::ports::statement::{Rows, Statement};
use crate::ports::{DatabaseError, Ports};

pub(crate) use shards::Sharding;

/// Settings, ports, ids and shared resources of one process. Cheap to clone.
#[derive(Clone)]
pub struct Services {
    inner: Arc<Inner>,
    /// With the database of one shard, where there are several.
    ports: Arc<Ports>,
}

struct Inner {
    config: Config,
    sharding: Option<Sharding>,
    ids: Ids,
    live_places: SharedPool<WorkspaceId>,
    memory: SharedPool<WorkspaceId>,
    tool_tests: SharedPool<WorkspaceId>,
    starts: SharedPool<WorkspaceId>,
    lateness: Lateness,
    followers: SharedPool<WorkspaceId>,
    stopping: Stopping,
    assistants: AssistantsInUse,
    fetched: Fetched,
    /// The workspaces of keys that were valid a short time ago, by the key's hash: for whom something is, not what it may.
    keys: Mutex<BTreeMap<String, WorkspaceId>>,
}

/// The assistants in use, by workspace and by the id of their snapshot or of their version.
type AssistantsInUse = SharedCache<(WorkspaceId, String), AssistantInUse>;

impl Services {
    /// Combines settings and ports.
    pub fn new(config: Config, ports: Ports) -> Self {
        let places = FairPool::new(LIVE_SESSIONS_MAX).keeping_for_newcomers(LIVE_SESSIONS_FOR_NEWCOMERS);
        let memory = memory_pool(config.memory_bytes);
        let sharding = ports.shards.clone().map(|shards| Sharding::new(&ports, shards));
        let first = sharding.as_ref().and_then(Sharding::first).unwrap_or_else(|| Arc::new(ports));
        let inner = Inner {
            config,
            sharding,
            ids: Ids::default(),
            live_places: SharedPool::new(places),
            memory: SharedPool::new(memory),
            tool_tests: SharedPool::new(FairPool::for_one_holder(TOOL_TESTS_MAX)),
            starts: SharedPool::new(FairPool::new(STARTS_BYTES_MAX)),
            lateness: Lateness::default(),
            followers: SharedPool::new(FairPool::new(FOLLOWERS_MAX)),
            stopping: Stopping::default(),
            assistants: SharedCache::default(),
            fetched: Fetched::default(),
            keys: Mutex::default(),
        };
        Self { inner: Arc::new(inner), ports: first }
    }

    /// The workspace of a key that was valid a short time ago.
    pub(crate) fn workspace_of_key(&self, hash: &str) -> Option<WorkspaceId> {
        self.inner.keys.lock().unwrap_or_else(PoisonError::into_inner).get(hash).cloned()
    }

    /// The key with this hash opens this workspace.
    pub(crate) fn key_opens(&self, hash: &str, workspace_id: &WorkspaceId) {
        let mut keys = self.inner.keys.lock().unwrap_or_else(PoisonError::into_inner);
        if keys.len() >= KNOWN_KEYS_MAX && !keys.contains_key(hash) {
            keys.clear();
        }
        keys.insert(hash.to_owned(), workspace_id.clone());
    }

    /// The key with this hash opens no workspace any more: what comes with it is nobody's.
    pub(crate) fn key_opens_nothing(&self, hash: &str) {
        self.inner.keys.lock().unwrap_or_else(PoisonError::into_inner).remove(hash);
    }

    /// The operator's settings.
    pub fn config(&self) -> &Config {
        &self.inner.config
    }

    /// The host's ports.
    pub fn ports(&self) -> &Ports {
        &self.ports
    }

    /// A new id with `prefix`.
    pub fn id(&self, prefix: &str) -> String {
        let Ports { clock, random, .. } = self.ports();
        self.inner.ids.generate(prefix, clock.now_ms(), |bytes| random.fill(bytes))
    }

    /// A new id of type `I`.
    pub fn new_id<I: Id>(&self) -> I {
        I::from_stored(self.id(I::PREFIX))
    }

    /// The current time of the host's clock.
    pub fn now(&self) -> Timestamp {
        Timestamp::from_ms(self.ports().clock.now_ms())
    }

    /// Reads from one consistent snapshot and returns the rows of each statement, in order.
    pub async fn read<const N: usize>(&self, statements: [Statement; N]) -> Result<[Rows; N], DatabaseError> {
        one_for_each(self.ports().database.read(Vec::from(statements)).await?)
    }

    /// Writes atomically and returns the rows of each statement, in order. A [`Batch`](crate::storage::batch::Batch)
    /// does the same for statements that are collected step by step, and wakes the jobs among them.
    pub async fn write<const N: usize>(
        &self,
        statements: [Statement; N],
    ) -> Result<[Rows; N], DatabaseError> {
        one_for_each(self.ports().database.write(Vec::from(statements)).await?)
    }

    /// The places for live conversations in this process.
    pub(crate) fn live_places(&self) -> &SharedPool<WorkspaceId> {
        &self.inner.live_places
    }

    /// A host whose conversations share processors tells by how much its timer was late, every
    /// [`crate::base::limits::LATENESS_TICK_MS`]: so late is the audio of its conversations, too. Whether no further call is begun
    /// now.
    pub fn note_lateness(&self, late_ms: i64) -> bool {
        self.inner.lateness.note(self.ports().clock.now_ms(), late_ms);
        self.is_late()
    }

    /// Whether this process is late with the conversations that it has.
    pub(crate) fn is_late(&self) -> bool {
        let has_conversations = self.live_places().free() < LIVE_SESSIONS_MAX;
        has_conversations
            && self.inner.lateness.exceeds(self.config().late_percent, self.ports().clock.now_ms())
    }

    /// Counts a call or a browser test that is declined because this process is late.
    pub(crate) fn count_declined(&self) {
        if let Some(metrics) = &self.ports().metrics {
            metrics.declined();
        }
    }

    /// The places for tests of tools in this process.
    pub(crate) fn tool_tests(&self) -> &SharedPool<WorkspaceId> {
        &self.inner.tool_tests
    }

    /// The memory of this process for what starts of runs have read, in bytes.
    pub(crate) fn starts(&self) -> &SharedPool<WorkspaceId> {
        &self.inner.starts
    }

    /// The places for clients that follow calls and runs of this process.
    pub(crate) fn followers(&self) -> &SharedPool<WorkspaceId> {
        &self.inner.followers
    }

    /// A host that stops tells it as soon as it takes no more requests: reads that wait for an end are answered then.
    pub fn begin_to_stop(&self) {
        self.inner.stopping.begin();
    }

    /// Whether this process stops.
    pub(crate) fn stopping(&self) -> &Stopping {
        &self.inner.stopping
    }

    /// The assistants that conversations use now.
    pub(crate) fn assistants(&self) -> &AssistantsInUse {
        &self.inner.assistants
    }

    /// What was fetched of the operator's OpenID provider.
    pub(crate) fn fetched(&self) -> &Fetched {
        &self.inner.fetched
    }

    /// The memory for conversations in this process, in bytes.
    pub(crate) fn memory(&self) -> &SharedPool<WorkspaceId> {
        &self.inner.memory
    }
}

/// Memory that workspaces share.
pub(crate) fn memory_pool(bytes: u64) -> FairPool<WorkspaceId> {
    FairPool::new(bytes).keeping_for_newcomers(bytes / 100 * MEMORY_FOR_NEWCOMERS_PERCENT)
}

fn one_for_each<const N: usize>(rows: Vec<Rows>) -> Result<[Rows; N], DatabaseError> {
    let expected =
        |rows: Vec<Rows>| DatabaseError::Shape(format!("{} answers to {N} statements", rows.len()));
    rows.try_into().map_err(expected)
}
