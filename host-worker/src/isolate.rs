//! One engine per isolate, created by its first request.
use std::cell::RefCell;
use std::fmt;
use std::sync::Arc;

use sidetone_engine::base::setting::SettingError;
use sidetone_engine::engine::Engine;
use sidetone_engine::interfaces::generated::Documents;
use sidetone_engine::ports::{Clock, Ports, Random, Shard, Shards};
use worker::Env;

use crate::d1::D1;
use crate::homes::{EdgeHomes, LIVE};
use crate::http::PlatformHttp;
use crate::keys::PlatformKeys;
use crate::queue::Wakes;
use crate::r2::R2;
use crate::settings;
use crate::system::{PlatformClock, PlatformRandom};
use crate::traces::Traces;
use crate::web_sockets::PlatformWebSockets;

/// The service of an isolate. Cheap to clone.
#[derive(Clone)]
pub struct Service {
    /// The engine with the Worker's bindings.
    pub engine: Engine,
    /// The engine's hints that are not sent yet.
    pub wakes: Arc<Wakes>,
    /// The engine's blobs, for platform-specific streaming.
    pub blobs: Arc<R2>,
    /// Spans that are not sent yet, where somebody collects them.
    pub traces: Option<Arc<Traces>>,
    /// The owner of this isolate's job leases.
    pub owner: Arc<str>,
}

impl Service {
    /// Whether there is something to send.
    pub fn has_collected(&self) -> bool {
        !self.wakes.is_empty() || self.traces.as_ref().is_some_and(|traces| !traces.is_empty())
    }

    /// Sends the collected hints, and then the spans.
    pub async fn send_collected(&self) {
        self.send_wakes().await;
        if let Some(traces) = &self.traces {
            traces.send().await;
        }
    }

    /// Sends the collected hints.
    pub async fn send_wakes(&self) {
        self.wakes.send(PlatformClock.now_ms()).await;
    }
}

struct Held {
    service: Service,
    /// Whether the engine has the service's public URL, from its settings or a request.
    has_base_url: bool,
}

thread_local! {
    static HELD: RefCell<Option<Held>> = const { RefCell::new(None) };
}

/// The binding of the database.
const DATABASE: &str = "DB";
/// The binding of the directory, where `SIDETONE_SHARDS` names further databases.
const DIRECTORY: &str = "DIRECTORY";
/// The binding of the bucket.
const BUCKET: &str = "RECORDINGS";
/// The binding of the queue for runs.
const RUNS: &str = "JOBS";
/// The binding of the queue for what calls still need. A deployment for an earlier version has none; there, the hints go
/// with those for runs.
const CALLS: &str = "CALLS";
/// The binding of the queue for deliveries to webhooks.
const DELIVERIES: &str = "DELIVERIES";
/// A placeholder for the public URL before the first request. Without SIDETONE_BASE_URL it is in the links of what a job tells
/// webhooks, when the cron or a queue started the isolate.
const PLACEHOLDER_URL: &str = "http://localhost";

/// Why the service cannot be created.
pub struct NotReady {
    /// The setting or binding that is missing or wrong.
    pub name: String,
    /// The problem, for the log.
    pub detail: String,
}

impl fmt::Display for NotReady {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}", self.name, self.detail)
    }
}

/// The service for a request. Without SIDETONE_BASE_URL, the `origin` of the isolate's first request is the public URL.
pub fn for_request(env: &Env, origin: &str) -> Result<Service, NotReady> {
    service(env, Some(origin))
}

/// The service for jobs.
pub fn for_jobs(env: &Env) -> Result<Service, NotReady> {
    service(env, None)
}

fn service(env: &Env, origin: Option<&str>) -> Result<Service, NotReady> {
    let found = HELD.with_borrow(|held| {
        let held = held.as_ref().filter(|held| held.has_base_url || origin.is_none());
        held.map(|held| held.service.clone())
    });
    if let Some(service) = found {
        return Ok(service);
    }
    let service = create(env, origin.unwrap_or(PLACEHOLDER_URL))?;
    HELD.set(Some(Held { service: service.clone(), has_base_url: origin.is_some() }));
    Ok(service)
}

fn create(env: &Env, default_base_url: &str) -> Result<Service, NotReady> {
    let config = settings::read(env, default_base_url)
        .map_err(|SettingError { name, message }| NotReady { name: name.to_owned(), detail: message })?;
    let binding =
        |error: worker::Error| NotReady { name: "wrangler.toml".to_owned(), detail: error.to_string() };
    let queue = |name| env.queue(name).map_err(binding);
    let calls = queue(CALLS).or_else(|_| queue(RUNS))?;
    let wakes = Arc::new(Wakes::new(calls, queue(DELIVERIES)?, queue(RUNS)?));
    let blobs = Arc::new(R2::new(env.bucket(BUCKET).map_err(binding)?));
    let database =
        |name: &str| -> Result<Arc<D1>, NotReady> { Ok(Arc::new(D1::new(env.d1(name).map_err(binding)?))) };
    let first = database(DATABASE)?;
    let shards = if config.shards.is_empty() {
        None
    } else {
        let mut all = vec![Shard { name: DATABASE.into(), database: first.clone() }];
        for name in &config.shards {
            all.push(Shard { name: name.as_str().into(), database: database(name)? });
        }
        Some(Shards { directory: database(DIRECTORY)?, all })
    };
    let collector = settings::collector(env)
        .map_err(|SettingError { name, message }| NotReady { name: name.to_owned(), detail: message })?;
    let traces = collector.map(|collector| Arc::new(Traces::new(collector)));
    let ports = Ports {
        database: first,
        shards,
        blobs: blobs.clone(),
        clock: Arc::new(PlatformClock),
        random: Arc::new(PlatformRandom),
        queue: wakes.clone(),
        http: Arc::new(PlatformHttp),
        web_sockets: Arc::new(PlatformWebSockets),
        keys: Arc::new(PlatformKeys),
        live: Arc::new(EdgeHomes::new(env.durable_object(LIVE).map_err(binding)?)),
        mailer: None,
        metrics: None,
        traces: traces.clone().map(|traces| traces as Arc<dyn sidetone_engine::ports::Traces>),
    };
    let documents = Documents::embedded(include_str!(concat!(env!("OUT_DIR"), "/documents")));
    let engine = Engine::with_documents(config, ports, documents)
        .map_err(|fault| NotReady { name: "engine".to_owned(), detail: format!("{fault:?}") })?;
    let mut name = [0; 8];
    PlatformRandom.fill(&mut name);
    let owner = format!("edge-{:016x}", u64::from_le_bytes(name)).into();
    Ok(Service { engine, wakes, blobs, traces, owner })
}
