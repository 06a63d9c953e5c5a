//! One service with planned faults, in memory or in workerd, behind one interface.
use sidetone_engine::ports::{JobQueue, Wake};
use sidetone_engine::storage::jobs::JobKind;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde::{Deserialize, Serialize};
use serde_json::{Value, json};
use sidetone::Sandbox;

use super::database::FaultyDatabase;
use super::endpoint::Endpoint;
use super::plan::{FaultPlan, HintFault};
use super::until_stalled::until_stalled;
use crate::edge::Edge;
use crate::reply::Reply;
use crate::wire;
use crate::world::World;

/// Allows tools on this machine.
const SETTINGS: &[(&str, &str)] = &[("SIDETONE_ALLOW_PRIVATE_TARGETS", "1")];
/// The Worker's queue settings: batch size and polling per invocation.
const JOBS_AT_ONCE: usize = 4;
const CLAIMS_MAX: usize = 4;
/// The time in which a queue in workerd delivers pending messages.
const QUEUE_MS: u64 = 200;
/// How long to wait for an expected event: longer than the queue's pause before a redelivery.
const WAIT_MS: u64 = 25_000;

/// A service with a workspace, a tool endpoint, and planned faults.
pub struct FaultHarness {
    /// The workspace. On the Sandbox, [`FaultHarness::call`] delivers its hints.
    pub world: World,
    /// The endpoint for tools.
    pub endpoint: Endpoint,
    host: Host,
}

enum Host {
    Sandbox {
        database: Arc<FaultyDatabase>,
        plan: Mutex<FaultPlan>,
        queue: Mutex<Counts>,
        late: Mutex<Vec<JobQueue>>,
    },
    Edge {
        edge: Arc<Edge>,
        /// Held because the plan applies to the whole Worker: one test at a time.
        _lock: Option<MutexGuard<'static, ()>>,
    },
}

/// Counters since the start of the plan.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// Database batches except the final ones of a job runner.
    pub storage: usize,
    /// Written batches that name a lease.
    pub leases: usize,
    /// Hints sent to the queue.
    pub hints: usize,
    /// Consumer invocations by the queue.
    pub deliveries: usize,
    /// Consumer invocations by the cron trigger.
    pub sweeps: usize,
    /// Faults that occurred.
    pub met: usize,
}

impl FaultHarness {
    /// On the host `sandbox` or `worker`, without a plan.
    pub fn on_host(name: &str) -> Self {
        match name {
            "sandbox" => Self::in_memory(),
            "worker" => {
                static TURN: Mutex<()> = Mutex::new(());
                let turn = TURN.lock().unwrap_or_else(|poisoned| poisoned.into_inner());
                let edge = Edge::shared_faulty();
                let key = edge.fresh_key();
                let harness = Self::at_edge(edge, key, Endpoint::start(), Some(turn));
                harness.stop_plan();
                harness
            }
            other => panic!("fault plans are not supported on {other}"),
        }
    }

    /// On a Worker of its own.
    pub fn at(edge: Arc<Edge>, key: String, endpoint: Endpoint) -> Self {
        Self::at_edge(edge, key, endpoint, None)
    }

    fn at_edge(
        edge: Arc<Edge>,
        key: String,
        endpoint: Endpoint,
        turn: Option<MutexGuard<'static, ()>>,
    ) -> Self {
        let world = World::at_edge(edge.clone(), key);
        Self { world, endpoint, host: Host::Edge { edge, _lock: turn } }
    }

    fn in_memory() -> Self {
        let database = Arc::new(FaultyDatabase::default());
        let world = World::over_with(database.clone(), SETTINGS);
        let endpoint = Endpoint::start();
        let answering = endpoint.clone();
        sandbox(&world).answer_http_with(move |request| answering.answer(request));
        let host = Host::Sandbox {
            database,
            plan: Mutex::default(),
            queue: Mutex::default(),
            late: Mutex::default(),
        };
        Self { world, endpoint, host }
    }

    /// Starts a plan.
    pub fn start_plan(&self, plan: &FaultPlan) {
        match &self.host {
            Host::Sandbox { database, plan: current, queue, .. } => {
                database.start_plan(plan.clone());
                *lock(current) = plan.clone();
                *lock(queue) = Counts::default();
            }
            Host::Edge { .. } => {
                self.control("/__faults", Some(&json!(plan)));
            }
        }
    }

    /// Ends the plan; returns the counters.
    pub fn stop_plan(&self) -> Counts {
        let counts = self.counts();
        self.start_plan(&FaultPlan::default());
        counts
    }

    /// The counters since the plan was set.
    pub fn counts(&self) -> Counts {
        match &self.host {
            Host::Sandbox { database, queue, .. } => {
                let (storage, queue) = (database.counts(), *lock(queue));
                Counts {
                    storage: storage.storage,
                    leases: storage.leases,
                    met: storage.met + queue.met,
                    ..queue
                }
            }
            Host::Edge { .. } => {
                serde_json::from_value(self.control("/__faults", None)).expect("the wrapper counts")
            }
        }
    }

    /// Waits until the counters satisfy a condition.
    #[track_caller]
    pub fn wait_until(&self, done: impl Fn(Counts) -> bool) {
        let started = Instant::now();
        while !done(self.counts()) {
            assert!(started.elapsed() < Duration::from_millis(WAIT_MS), "{:?}", self.counts());
            std::thread::sleep(Duration::from_millis(10));
        }
    }

    /// Advances the clock and delivers late hints.
    pub fn pass(&self, ms: i64) {
        match &self.host {
            Host::Sandbox { late, .. } => {
                sandbox(&self.world).advance(ms);
                let late = std::mem::take(&mut *lock(late));
                late.into_iter().for_each(|queue| self.consume(queue));
            }
            Host::Edge { .. } => {
                self.control("/__clock", Some(&json!({"advance_ms": ms})));
                std::thread::sleep(Duration::from_millis(QUEUE_MS));
            }
        }
    }

    /// Runs the cron trigger. The plan may kill it.
    pub fn sweep(&self) {
        match &self.host {
            Host::Sandbox { queue, .. } => {
                lock(queue).sweeps += 1;
                if JobQueue::ALL.iter().copied().all(|queue| self.turns(queue)) {
                    let _ = until_stalled(sandbox(&self.world).services().sweep());
                }
            }
            Host::Edge { edge, .. } => {
                let request = http::Request::get("/__scheduled?cron=*+*+*+*+*").body(Bytes::new());
                wire::send(edge.address, &request.expect("a path")).expect("workerd answers");
            }
        }
    }

    /// Sends a request with the workspace's key and delivers its hints.
    pub fn call(&self, method: Method, path: &str, body: Option<&Value>, headers: &[(&str, &str)]) -> Reply {
        let reply = self.world.call_with(method, path, body, headers);
        self.deliver();
        reply
    }

    /// Whether the host is the Worker.
    pub fn is_edge(&self) -> bool {
        matches!(self.host, Host::Edge { .. })
    }

    /// Delivers the Sandbox's hints; workerd does that by itself.
    fn deliver(&self) {
        let Host::Sandbox { plan, queue: counted, late, .. } = &self.host else { return };
        for Wake { queue, .. } in sandbox(&self.world).hints() {
            let fault = {
                let mut counts = lock(counted);
                counts.hints += 1;
                let fault = lock(plan).hints.get(counts.hints - 1).copied().unwrap_or(HintFault::None);
                counts.met += usize::from(fault != HintFault::None);
                fault
            };
            match fault {
                HintFault::None => self.consume(queue),
                HintFault::Lose | HintFault::Refuse => {}
                HintFault::Double => (0..2).for_each(|_| self.consume(queue)),
                HintFault::Late => lock(late).push(queue),
            }
        }
    }

    fn consume(&self, queue: JobQueue) {
        let Host::Sandbox { queue: counted, .. } = &self.host else { return };
        lock(counted).deliveries += 1;
        self.turns(queue);
    }

    /// One invocation of a consumer; `false` when it was killed.
    fn turns(&self, queue: JobQueue) -> bool {
        let Host::Sandbox { database, .. } = &self.host else { return true };
        database.start_job_runner();
        let engine = sandbox(&self.world).services();
        for _ in 0..CLAIMS_MAX {
            // A killed invocation never completes, and is dropped in its current state.
            let ended =
                until_stalled(engine.run_due_jobs("consumer", &JobKind::of_queue(queue), JOBS_AT_ONCE));
            match ended {
                None => {
                    database.start_job_runner();
                    return false;
                }
                Some(Ok(turn)) if turn.ran > 0 => {}
                Some(_) => break,
            }
        }
        true
    }

    /// Ends the object of a live call, as the platform does when it deploys or moves it.
    pub fn abort_call(&self, call_id: &str) {
        self.control("/__abort", Some(&json!({"call_id": call_id})));
    }

    fn control(&self, path: &str, body: Option<&Value>) -> Value {
        let Host::Edge { edge, .. } = &self.host else { return Value::Null };
        let method = if body.is_some() { Method::POST } else { Method::GET };
        let bytes = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        let request = http::Request::builder().method(method).uri(path).body(bytes).expect("a path");
        wire::send(edge.address, &request).expect("the wrapper answers").json
    }
}

fn sandbox(world: &World) -> &Sandbox {
    world.sandbox().expect("the world is in memory")
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
