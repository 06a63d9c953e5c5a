//! The whole service in memory, for our tests and yours: without network, files and real time.
mod http;
mod ports;
mod socket;

use std::net::{IpAddr, Ipv4Addr};
use std::pin::pin;
use std::sync::atomic::{AtomicBool, AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use ::http::{HeaderMap, Method, Request};
use bytes::Bytes;
use futures_util::{StreamExt, TryStreamExt};
use serde_json::{Value, json};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::config::Config;
use sidetone_engine::engine::{Admission, Engine, FinalResponse, PreparedResponse, SocketAdmission};
use sidetone_engine::ports::{
    Blobs, Database, Homes, HttpError, HttpReply, HttpRequest, Metrics, NoWebSockets, Ports, Shard, Shards,
    Wake,
};
use sidetone_engine::services::Services;
use sidetone_engine::sql;
use sidetone_engine::storage::jobs::JobKind;

use crate::database::Memory;
use crate::keys::RingKeys;

use self::http::{ScriptedAnswer, ScriptedHttp};
pub use self::ports::MemoryBlobs;
use self::ports::{Hints, ManualClock, SeededRandom};
pub use self::socket::SandboxSocket;
use self::socket::Sessions;

/// Jobs that a sandbox runs concurrently.
const JOBS_AT_ONCE: usize = 32;
/// The client address of all requests.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The manual clock starts here: 2026-01-01T00:00:00Z.
const START_MS: i64 = 1_767_225_600_000;

/// An independent in-memory service with one workspace and its API key.
///
/// ```
/// use serde_json::json;
/// use sidetone::Sandbox;
///
/// let sandbox = Sandbox::new();
/// let reply = sandbox.post("/assistants", json!({"name": "Front desk", "instructions": "Be kind."}));
/// assert_eq!(reply.status, 201);
/// assert_eq!(reply["revision"], 1);
/// ```
///
/// The test controls everything: [`Sandbox::advance`] moves the clock, [`Sandbox::run_jobs`] runs due jobs, and
/// [`Sandbox::answer_http`] scripts the responses to outgoing requests. The same requests to two sandboxes get the same
/// responses, byte for byte.
pub struct Sandbox {
    engine: Engine,
    /// With the database of the sandbox's workspace.
    services: Services,
    clock: Arc<ManualClock>,
    hints: Arc<Hints>,
    http: Arc<ScriptedHttp>,
    key: String,
    sessions: Sessions,
    notes: Mutex<Vec<String>>,
}

/// A response of the service.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The raw body.
    pub body: Bytes,
    /// The body as JSON; null if it is empty or not JSON.
    pub json: Value,
}

impl std::ops::Index<&str> for Reply {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        &self.json[name]
    }
}

impl Reply {
    /// Creates a reply from its parts.
    pub fn new(status: u16, headers: HeaderMap, body: Bytes) -> Self {
        let json = serde_json::from_slice(&body).unwrap_or(Value::Null);
        Self { status, headers, body, json }
    }
}

impl Default for Sandbox {
    fn default() -> Self {
        Self::new()
    }
}

impl Sandbox {
    /// A new service without settings.
    pub fn new() -> Self {
        Self::with_settings(&[])
    }

    /// A new service with these settings, by their environment names.
    pub fn with_settings(settings: &[(&str, &str)]) -> Self {
        Self::over(Arc::new(memory()), settings)
    }

    /// A new service with a custom database, such as one that injects failures.
    pub fn over(database: Arc<dyn Database>, settings: &[(&str, &str)]) -> Self {
        Self::over_both(database, Arc::new(MemoryBlobs::default()), settings)
    }

    /// A new service with a custom database and custom blobs.
    pub fn over_both(database: Arc<dyn Database>, blobs: Arc<dyn Blobs>, settings: &[(&str, &str)]) -> Self {
        Self::over_any(database, None, blobs, None, settings)
    }

    /// A new service that these metrics measure.
    pub fn with_metrics(metrics: Arc<dyn Metrics>, settings: &[(&str, &str)]) -> Self {
        Self::over_any(Arc::new(memory()), None, Arc::new(MemoryBlobs::default()), Some(metrics), settings)
    }

    /// A new service over several databases, as at the edge.
    pub fn over_shards(shards: Shards, settings: &[(&str, &str)]) -> Self {
        let first = shards.all.first().map_or_else(|| shards.directory.clone(), |one| one.database.clone());
        Self::over_any(first, Some(shards), Arc::new(MemoryBlobs::default()), None, settings)
    }

    #[expect(clippy::expect_used, reason = "a test that cannot start must fail")]
    fn over_any(
        database: Arc<dyn Database>,
        shards: Option<Shards>,
        blobs: Arc<dyn Blobs>,
        metrics: Option<Arc<dyn Metrics>>,
        settings: &[(&str, &str)],
    ) -> Self {
        let lookup = |name: &str| {
            let set = settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
            // Whoever advances the clock by hand is always late.
            set.or_else(|| (name == "SIDETONE_LATE_PERCENT").then(|| "100".to_owned()))
        };
        let config = Config::from_settings(lookup, "http://sandbox.example", "the sandbox has no secrets")
            .expect("valid settings");
        let clock = Arc::new(ManualClock(AtomicI64::new(START_MS)));
        let hints = Arc::new(Hints::default());
        let http = Arc::new(ScriptedHttp::default());
        let ports = Ports {
            database,
            shards,
            blobs,
            clock: clock.clone(),
            random: Arc::new(SeededRandom::default()),
            queue: hints.clone(),
            http: http.clone(),
            web_sockets: Arc::new(NoWebSockets),
            keys: Arc::new(RingKeys),
            live: Arc::new(Homes::new(clock.clone())),
            mailer: None,
            metrics,
            traces: None,
        };
        let engine = Engine::new(config, ports).expect("a valid operation table");
        let mut every = engine.services().on_every_shard();
        if every.len() > 1 {
            // Takes the first database: what works there by chance does not work where the sandbox's workspace is.
            block_on(engine.create_workspace("in the first database")).expect("a workspace");
        }
        let services = every.swap_remove(every.len().saturating_sub(1).min(1));
        let created = block_on(engine.create_workspace("sandbox")).expect("a workspace");
        Self {
            engine,
            services,
            clock,
            hints,
            http,
            key: created.key,
            sessions: Sessions::default(),
            notes: Mutex::default(),
        }
    }

    /// Another process of the same service, such as a second isolate at the edge: it has the same databases, clock and scripts, and
    /// remembers nothing of what this one has seen.
    #[expect(clippy::expect_used, reason = "a test that cannot start must fail")]
    pub fn another_process(&self) -> Self {
        let services = self.engine.services();
        let engine = Engine::new(services.config().clone(), services.ports().clone());
        Self {
            engine: engine.expect("a valid operation table"),
            services: self.services.clone(),
            clock: self.clock.clone(),
            hints: self.hints.clone(),
            http: self.http.clone(),
            key: self.key.clone(),
            sessions: Sessions::default(),
            notes: Mutex::default(),
        }
    }

    /// The key of the sandbox's workspace.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The engine.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The functions below the engine's interfaces, for tests of the service itself, with the database of the sandbox's workspace.
    pub fn services(&self) -> &Services {
        &self.services
    }

    /// The same with the database of the workspace that has this key; of a key that none has, with that of the sandbox's.
    pub fn services_of(&self, key: &str) -> Services {
        let every = self.services.on_every_shard();
        if every.len() < 2 {
            return self.services.clone();
        }
        let hash = ApiKey::parse(key).map(|key| key.sha256_hex()).unwrap_or_default();
        let has_key = |services: &&Services| {
            let find = sql!("SELECT 1 AS found FROM api_keys WHERE hash = :hash", hash = &hash);
            let found = block_on(services.ports().database.read(vec![find]));
            found.is_ok_and(|answers| answers.iter().any(|rows| !rows.is_empty()))
        };
        every.iter().find(has_key).unwrap_or(&self.services).clone()
    }

    /// Creates another workspace and returns its key.
    #[expect(clippy::expect_used, reason = "a test that cannot continue must fail")]
    pub fn create_workspace(&self, name: &str) -> String {
        block_on(self.engine.create_workspace(name)).expect("a workspace").key
    }

    /// `GET path`
    pub fn get(&self, path: &str) -> Reply {
        self.request(Method::GET, path, None)
    }

    /// `POST path`
    pub fn post(&self, path: &str, body: Value) -> Reply {
        self.request(Method::POST, path, Some(body))
    }

    /// `PUT path`
    pub fn put(&self, path: &str, body: Value) -> Reply {
        self.request(Method::PUT, path, Some(body))
    }

    /// `PATCH path`
    pub fn patch(&self, path: &str, body: Value) -> Reply {
        self.request(Method::PATCH, path, Some(body))
    }

    /// `DELETE path`
    pub fn delete(&self, path: &str) -> Reply {
        self.request(Method::DELETE, path, None)
    }

    /// Calls an MCP tool. The reply's body is the tool's complete result, including `isError`.
    pub fn tool(&self, name: &str, arguments: Value) -> Reply {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        let reply = self.post("/mcp", call);
        let result = Bytes::from(reply.json["result"].to_string());
        Reply::new(reply.status, reply.headers, result)
    }

    /// Sends a raw request.
    pub fn send(&self, request: Request<Bytes>) -> Reply {
        let reply = self.complete(block_on(self.engine.handle(request, Some(PEER))));
        // A conversation may have been told to look.
        self.sessions.poll_idle();
        reply
    }

    /// Opens a WebSocket by its path and query, such as that of a test token. `Err` is the response of a service that
    /// does not upgrade the connection.
    pub fn connect(&self, path: &str) -> Result<SandboxSocket<'_>, Box<Reply>> {
        self.connect_with(path, &[])
    }

    /// The same with these headers.
    #[expect(clippy::expect_used, reason = "a test that cannot continue must fail")]
    pub fn connect_with(
        &self,
        path: &str,
        headers: &[(&'static str, String)],
    ) -> Result<SandboxSocket<'_>, Box<Reply>> {
        let mut request = Request::builder().uri(path).header("upgrade", "websocket");
        for (name, value) in headers {
            request = request.header(*name, value);
        }
        let (head, ()) = request.body(()).expect("a valid path").into_parts();
        let admitted = match self.engine.begin(head, Some(PEER), Some(())) {
            Admission::Socket(pending, ()) => block_on(pending.accept()),
            Admission::ReadBody(pending) => return Err(Box::new(self.complete(block_on(pending.answer())))),
            Admission::Respond(response) => return Err(Box::new(self.reply(response, None))),
        };
        match admitted {
            SocketAdmission::Refused(response) => Err(Box::new(self.reply(*response, None))),
            SocketAdmission::Accepted(session) => Ok(self.sessions.open(self.clock.clone(), |mut socket| {
                Box::pin(async move { session.run(&mut socket).await })
            })),
        }
    }

    /// What a host would have logged for the operator so far, such as a code to sign in with, and what failed on our side.
    pub fn notes(&self) -> Vec<String> {
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    /// From now on, a conversation that fails, because another process has taken it over or storage is away, is no failure of the
    /// test.
    pub fn conversations_may_fail(&self) {
        self.sessions.may_fail();
    }

    /// Drops all running conversations, like a killed process.
    pub fn kill_conversations(&self) {
        self.sessions.kill();
    }

    /// The complete reply, with the whole body of a streamed response.
    #[expect(clippy::expect_used, reason = "a test that cannot continue must fail")]
    fn complete(&self, outcome: PreparedResponse) -> Reply {
        let (response, stream) = match outcome {
            PreparedResponse::Complete(response) => (response, None),
            PreparedResponse::Blob(blob) => block_on(blob.open()),
            PreparedResponse::Events(events) => {
                let (response, pieces) = events.into_parts();
                let pieces: Vec<Bytes> = block_on(pieces.collect());
                return self.reply(response, Some(Bytes::from(pieces.concat())));
            }
        };
        let body = stream.map(|stream| {
            let pieces: Vec<Bytes> = block_on(stream.try_collect()).expect("a readable blob");
            Bytes::from(pieces.concat())
        });
        self.reply(response, body)
    }

    /// `stream` replaces the body.
    fn reply(&self, response: FinalResponse, stream: Option<Bytes>) -> Reply {
        let (response, record) = response.into_parts();
        let told = record.note().into_iter().chain(record.incident()).map(str::to_owned);
        self.notes.lock().unwrap_or_else(PoisonError::into_inner).extend(told);
        assert!(record.status().as_u16() != 500, "{record}");
        let (parts, body) = response.into_parts();
        Reply::new(parts.status.as_u16(), parts.headers, stream.unwrap_or(body))
    }

    /// Runs due jobs, and the jobs that they cause, until none is due. Returns their number.
    #[expect(clippy::expect_used, reason = "a test that cannot continue must fail")]
    pub fn run_jobs(&self) -> usize {
        let mut ran = 0;
        loop {
            let before = ran;
            for services in self.services().on_every_shard() {
                let turn = block_on(services.run_due_jobs("sandbox", JobKind::ALL, JOBS_AT_ONCE))
                    .expect("a claim of jobs");
                assert!(turn.incidents.is_empty(), "{:?}", turn.incidents);
                ran += turn.ran;
            }
            if ran == before {
                return ran;
            }
        }
    }

    /// Takes the hints to the job runner so far, oldest first. A real queue delivers them; here, [`Sandbox::run_jobs`]
    /// runs the announced jobs.
    pub fn hints(&self) -> Vec<Wake> {
        self.named_hints().into_iter().map(|(_, wake)| wake).collect()
    }

    /// The same with the database that each names: none where there is one.
    pub fn named_hints(&self) -> Vec<(Option<String>, Wake)> {
        std::mem::take(&mut *lock(&self.hints.0))
    }

    /// Advances the clock.
    pub fn advance(&self, ms: i64) {
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
        self.sessions.poll_all();
    }

    /// Queues a response for the next outgoing request. Without a response, a request fails to connect.
    pub fn answer_http(&self, status: u16, body: &str) {
        self.answer_http_chunks(status, &[], [Ok(Bytes::from(body.to_owned()))]);
    }

    /// Queues a response whose body arrives in these pieces; an error truncates the body. Header names are in lower
    /// case.
    pub fn answer_http_chunks(
        &self,
        status: u16,
        headers: &[(&str, &str)],
        body: impl IntoIterator<Item = Result<Bytes, HttpError>>,
    ) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let answer = ScriptedAnswer { status, headers, body: body.into_iter().collect() };
        lock(&self.http.queued).push_back(Ok(answer));
    }

    /// Queues a failure for the next outgoing request.
    pub fn fail_http(&self, error: HttpError) {
        lock(&self.http.queued).push_back(Err(error));
    }

    /// Queues a result for the next outgoing request.
    pub fn script_http(&self, outcome: Result<HttpReply, HttpError>) {
        lock(&self.http.queued).push_back(outcome.map(ScriptedAnswer::from));
    }

    /// Runs `action` during the next outgoing request.
    pub fn meanwhile(&self, action: impl FnOnce() + Send + 'static) {
        *lock(&self.http.meanwhile) = Some(Box::new(action));
    }

    /// Answers outgoing requests without a queued response.
    pub fn answer_http_with(
        &self,
        answer: impl Fn(&HttpRequest) -> Result<HttpReply, HttpError> + Send + Sync + 'static,
    ) {
        *lock(&self.http.fallback) = Some(Arc::new(answer));
    }

    /// Takes the outgoing requests so far, oldest first.
    pub fn sent_http(&self) -> Vec<HttpRequest> {
        std::mem::take(&mut *lock(&self.http.sent))
    }

    #[expect(clippy::expect_used, reason = "a test that cannot continue must fail")]
    fn request(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.key));
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        self.send(request.body(body).expect("a valid path"))
    }
}

/// An empty database in memory.
#[expect(clippy::expect_used, reason = "a test that cannot start must fail")]
pub fn memory() -> Memory {
    Memory::new().expect("an in-memory database")
}

/// So many empty databases in memory, with their directory.
#[expect(clippy::expect_used, reason = "a test that cannot start must fail")]
pub fn memory_shards(count: usize) -> Shards {
    let shard = |n| Shard { name: format!("DB_{n}").into(), database: Arc::new(memory()) };
    let directory = Memory::directory().expect("an in-memory database");
    Shards { directory: Arc::new(directory), all: (1..=count).map(shard).collect() }
}

/// Runs a future to completion. In a sandbox a future waits for nothing: at most it lets others go first. So no runtime is
/// required.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    struct Woken(AtomicBool);
    impl std::task::Wake for Woken {
        fn wake(self: Arc<Self>) {
            self.0.store(true, Ordering::Relaxed);
        }
    }
    let woken = Arc::new(Woken(AtomicBool::new(false)));
    let waker = Waker::from(Arc::clone(&woken));
    let mut future = pin!(future);
    loop {
        if let Poll::Ready(output) = future.as_mut().poll(&mut Context::from_waker(&waker)) {
            return output;
        }
        assert!(woken.0.swap(false, Ordering::Relaxed), "a future of a sandbox waits for nothing");
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
