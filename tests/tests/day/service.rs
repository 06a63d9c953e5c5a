//! The service in virtual time: the engine over SQLite in memory, with the workers of its job queues as the binary runs
//! them.
use std::collections::BTreeSet;
use std::net::{IpAddr, Ipv4Addr};
use std::sync::{Arc, Mutex};

use bytes::Bytes;
use http::Method;
use serde_json::Value;
use sha2::{Digest, Sha256};
use sidetone::keys::RingKeys;
use sidetone::sandbox::{MemoryBlobs, Reply, block_on, memory};
use sidetone_engine::config::Config;
use sidetone_engine::engine::{Admission, Engine, PreparedResponse, SocketAdmission};
use sidetone_engine::jobs::{QueueWorker, Step};
use sidetone_engine::ports::{Clock, JobQueue, Ports, Queue, Random, Wake};

use crate::guest::Guest;
use crate::outside::{Outside, OutsidePort};
use crate::time::{Tasks, Time, TimePort, lock};

/// The address of the service.
pub const BASE_URL: &str = "http://sandbox.example";

/// A running service.
pub struct Service {
    pub time: Arc<Time>,
    pub outside: Arc<Outside>,
    engine: Engine,
    runners: Vec<Runner>,
    hints: Arc<Hints>,
    tasks: Tasks,
    /// What jobs and conversations have to log.
    incidents: Arc<Mutex<Vec<String>>>,
}

/// What the binary does with a worker: see `host-native/src/runner.rs`.
struct Runner {
    worker: QueueWorker,
    running: Vec<u64>,
    next_step_ms: i64,
    until_running: Option<usize>,
    /// The most jobs that ran at once.
    most_running: usize,
}

impl Service {
    /// A service with these settings, and bytes from this seed.
    pub fn start(settings: &[(&'static str, String)], seed: u64) -> Self {
        let lookup =
            |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
        let config = Config::from_settings(lookup, BASE_URL, "no secret of anybody");
        let time = Time::new();
        let outside = Outside::new(&time);
        let hints = Arc::new(Hints::default());
        let ports = Ports {
            database: Arc::new(memory()),
            blobs: Arc::new(MemoryBlobs::default()),
            shards: None,
            clock: Arc::new(TimePort(time.clone())),
            random: Arc::new(SeededRandom { seed, counter: Mutex::default() }),
            queue: hints.clone(),
            http: Arc::new(OutsidePort(outside.clone())),
            web_sockets: Arc::new(sidetone_engine::ports::NoWebSockets),
            keys: Arc::new(RingKeys),
            live: Arc::new(sidetone_engine::ports::Homes::new(Arc::new(TimePort(time.clone())))),
            mailer: None,
            metrics: None,
            traces: None,
        };
        let engine = Engine::new(config.unwrap(), ports).unwrap();
        let workers = block_on(engine.start("day")).unwrap().workers;
        let runner = |worker| {
            let running = Vec::new();
            Runner { worker, running, next_step_ms: 0, until_running: None, most_running: 0 }
        };
        let runners = workers.into_iter().map(runner).collect();
        let (tasks, incidents) = (Tasks::default(), Arc::default());
        Self { time, outside, engine, runners, hints, tasks, incidents }
    }

    pub fn now_ms(&self) -> i64 {
        TimePort(self.time.clone()).now_ms()
    }

    pub fn create_workspace(&self, name: &str) -> String {
        block_on(self.engine.create_workspace(name)).unwrap().key
    }

    /// Sends a request and returns its response; what it has set in motion runs with the next [`Service::run_until`].
    #[track_caller]
    pub fn send(&self, peer: Ipv4Addr, request: http::Request<Bytes>) -> Reply {
        let shown = format!("{} {}", request.method(), request.uri());
        let response = match block_on(self.engine.handle(request, Some(IpAddr::V4(peer)))) {
            PreparedResponse::Complete(response) => response,
            PreparedResponse::Blob(_) | PreparedResponse::Events(_) => panic!("{shown} is no download"),
        };
        let (response, record) = response.into_parts();
        assert!(record.status().as_u16() != 500, "{shown}: {record}");
        let (parts, body) = response.into_parts();
        Reply::new(parts.status.as_u16(), parts.headers, body)
    }

    /// Opens the WebSocket of a test token for a guest; the refusal when the service does not want it.
    pub fn connect(&mut self, peer: Ipv4Addr, path: &str, guest: Guest) -> Result<(), Box<Reply>> {
        let request = http::Request::get(path).header("upgrade", "websocket").body(()).unwrap();
        let (head, ()) = request.into_parts();
        let admission = self.engine.begin(head, Some(IpAddr::V4(peer)), Some(()));
        let Admission::Socket(pending, ()) = admission else { panic!("{path} is no socket") };
        match block_on(pending.accept()) {
            SocketAdmission::Refused(response) => {
                let (response, record) = response.into_parts();
                assert!(record.status().as_u16() != 500, "{path}: {record}");
                let (parts, body) = response.into_parts();
                Err(Box::new(Reply::new(parts.status.as_u16(), parts.headers, body)))
            }
            SocketAdmission::Accepted(session) => {
                let (mut guest, incidents) = (guest, self.incidents.clone());
                self.tasks.add(async move {
                    let incident = session.run(&mut guest).await;
                    lock(&incidents).extend(incident);
                });
                Ok(())
            }
        }
    }

    /// Lets everything happen until this time.
    pub fn run_until(&mut self, until_ms: i64) {
        loop {
            while self.tasks.run() | self.step_workers() {}
            assert!(lock(&self.incidents).is_empty(), "{:?}", lock(&self.incidents));
            let steps = self.runners.iter().map(|runner| runner.next_step_ms).min();
            let next_ms = self.time.next_alarm_ms().into_iter().chain(steps).min();
            match next_ms.filter(|next_ms| *next_ms <= until_ms) {
                Some(next_ms) => self.time.move_to(next_ms.max(self.now_ms())),
                None => return self.time.move_to(until_ms),
            }
        }
    }

    /// The most jobs of each queue that ran at once so far.
    pub fn most_running(&self) -> Vec<(JobQueue, usize)> {
        self.runners.iter().map(|runner| (runner.worker.queue(), runner.most_running)).collect()
    }

    /// Asks each worker that is due what to do. False when none was.
    fn step_workers(&mut self) -> bool {
        let (now_ms, mut stepped) = (TimePort(self.time.clone()).now_ms(), false);
        let mut hinted = std::mem::take(&mut *lock(&self.hints.0));
        for runner in &mut self.runners {
            runner.running.retain(|task| self.tasks.is_running(*task));
            let has_room = runner.until_running.is_some_and(|most| runner.running.len() <= most);
            if !hinted.remove(runner.worker.queue().as_str()) && !has_room && now_ms < runner.next_step_ms {
                continue;
            }
            stepped = true;
            let step = block_on(runner.worker.step(runner.running.len()));
            let Step { jobs, wait_ms, until_running, incidents } = step;
            lock(&self.incidents).extend(incidents);
            for job in jobs {
                let incidents = self.incidents.clone();
                runner.running.push(self.tasks.add(async move {
                    let incident = job.run().await;
                    lock(&incidents).extend(incident);
                }));
            }
            runner.most_running = runner.most_running.max(runner.running.len());
            runner.next_step_ms = now_ms.saturating_add(i64::try_from(wait_ms).unwrap_or(i64::MAX));
            runner.until_running = until_running;
        }
        stepped
    }
}

/// The queues that were hinted at since they were last asked.
#[derive(Default)]
struct Hints(Mutex<BTreeSet<&'static str>>);

impl Queue for Hints {
    fn wake(&self, wake: &Wake) {
        lock(&self.0).insert(JobQueue::as_str(wake.queue));
    }
}

/// SHA-256 of the seed and a counter.
struct SeededRandom {
    seed: u64,
    counter: Mutex<u64>,
}

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut counter = lock(&self.counter);
        for chunk in bytes.chunks_mut(32) {
            *counter += 1;
            let block = Sha256::digest([self.seed.to_le_bytes(), counter.to_le_bytes()].concat());
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }
}

/// A request with a key.
pub fn request(method: Method, path: &str, key: &str, body: Option<&Value>) -> http::Request<Bytes> {
    let mut request =
        http::Request::builder().method(method).uri(path).header("authorization", format!("Bearer {key}"));
    if body.is_some() {
        request = request.header("content-type", "application/json");
    }
    let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
    request.body(body).unwrap()
}
