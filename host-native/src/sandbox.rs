//! The whole service in memory, for tests: ours and yours. No network, no files, no real time.
mod http;
mod ports;
mod socket;

use std::net::{IpAddr, Ipv4Addr};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use ::http::{HeaderMap, Method, Request};
use bytes::Bytes;
use futures_util::TryStreamExt;
use serde_json::{Value, json};
use sidetone_engine::config::Config;
use sidetone_engine::engine::{Admission, Engine, FinalResponse, PreparedResponse, SocketAdmission};
use sidetone_engine::ports::{Blobs, Database, HttpError, HttpReply, HttpRequest, Ports, Wake};
use sidetone_engine::services::Services;
use sidetone_engine::storage::jobs::JobKind;

use crate::database::Memory;
use crate::keys::RingKeys;

use self::http::{ScriptedAnswer, ScriptedHttp};
pub use self::ports::MemoryBlobs;
use self::ports::{Hints, ManualClock, SeededRandom};
pub use self::socket::SandboxSocket;
use self::socket::Sessions;

/// Jobs a sandbox runs together.
const JOBS_AT_ONCE: usize = 32;
/// Where requests come from.
const PEER: IpAddr = IpAddr::V4(Ipv4Addr::LOCALHOST);
/// The manual clock starts here: 2026-01-01T00:00:00Z.
const START_MS: i64 = 1_767_225_600_000;

/// A service of its own, with one workspace and its key.
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
/// Nothing happens by itself: time stands still until [`Sandbox::advance`], jobs wait until
/// [`Sandbox::run_jobs`], outgoing requests get the answers of [`Sandbox::answer_http`]. Two
/// sandboxes that are asked the same answer the same, to the byte.
pub struct Sandbox {
    engine: Engine,
    clock: Arc<ManualClock>,
    hints: Arc<Hints>,
    http: Arc<ScriptedHttp>,
    key: String,
    sessions: Sessions,
}

/// An answer of the service.
#[derive(Debug, Clone, PartialEq)]
pub struct Reply {
    /// The status code.
    pub status: u16,
    /// The headers.
    pub headers: HeaderMap,
    /// The body as it was sent.
    pub body: Bytes,
    /// The body as JSON; null when it is empty or something else.
    pub json: Value,
}

impl std::ops::Index<&str> for Reply {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        &self.json[name]
    }
}

impl Reply {
    /// From its parts.
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
    /// A fresh service with no settings.
    pub fn new() -> Self {
        Self::with_settings(&[])
    }

    /// A fresh service with these settings, by the names an operator uses.
    pub fn with_settings(settings: &[(&str, &str)]) -> Self {
        Self::over(Arc::new(memory()), settings)
    }

    /// A fresh service over a database of the test's own, such as one that fails on purpose.
    pub fn over(database: Arc<dyn Database>, settings: &[(&str, &str)]) -> Self {
        Self::over_both(database, Arc::new(MemoryBlobs::default()), settings)
    }

    /// A fresh service over a database and blobs of the test's own.
    #[expect(clippy::expect_used, reason = "a test that cannot start should say so loudly")]
    pub fn over_both(database: Arc<dyn Database>, blobs: Arc<dyn Blobs>, settings: &[(&str, &str)]) -> Self {
        let lookup = |name: &str| {
            settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
        };
        let config = Config::from_settings(lookup, "http://sandbox.example", "the sandbox has no secrets")
            .expect("the settings can be used");
        let clock = Arc::new(ManualClock(AtomicI64::new(START_MS)));
        let hints = Arc::new(Hints::default());
        let http = Arc::new(ScriptedHttp::default());
        let ports = Ports {
            database,
            blobs,
            clock: clock.clone(),
            random: Arc::new(SeededRandom::default()),
            queue: hints.clone(),
            http: http.clone(),
            keys: Arc::new(RingKeys),
        };
        let engine = Engine::new(config, ports).expect("the operation table is sound");
        let made = block_on(engine.create_workspace("sandbox")).expect("a workspace can be made");
        Self { engine, clock, hints, http, key: made.key, sessions: Sessions::default() }
    }

    /// The key of the sandbox's workspace.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The engine itself.
    pub fn engine(&self) -> &Engine {
        &self.engine
    }

    /// The functions below the engine's interfaces, for tests of the service itself.
    pub fn services(&self) -> &Services {
        self.engine.services()
    }

    /// Makes another workspace and returns its key.
    #[expect(clippy::expect_used, reason = "a test that cannot go on should say so loudly")]
    pub fn create_workspace(&self, name: &str) -> String {
        block_on(self.engine.create_workspace(name)).expect("a workspace can be made").key
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

    /// Calls an MCP tool; the reply's body is the tool's result, `isError` and all.
    pub fn tool(&self, name: &str, arguments: Value) -> Reply {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        let reply = self.post("/mcp", call);
        let result = Bytes::from(reply.json["result"].to_string());
        Reply::new(reply.status, reply.headers, result)
    }

    /// Sends any request, byte for byte.
    pub fn send(&self, request: Request<Bytes>) -> Reply {
        Self::whole(block_on(self.engine.handle(request, Some(PEER))))
    }

    /// Opens a WebSocket, such as a test token's, by its path and query. `Err` is what the service
    /// answers instead of upgrading.
    #[expect(clippy::expect_used, reason = "a test that cannot go on should say so loudly")]
    pub fn connect(&self, path: &str) -> Result<SandboxSocket<'_>, Box<Reply>> {
        let request = Request::builder().uri(path).header("upgrade", "websocket");
        let (head, ()) = request.body(()).expect("the path is a path").into_parts();
        let admitted = match self.engine.begin(head, Some(PEER), Some(())) {
            Admission::Socket(pending, ()) => block_on(pending.accept()),
            Admission::ReadBody(pending) => return Err(Box::new(Self::whole(block_on(pending.answer())))),
            Admission::Respond(response) => return Err(Box::new(Self::reply(response, None))),
        };
        match admitted {
            SocketAdmission::Refused(response) => Err(Box::new(Self::reply(*response, None))),
            SocketAdmission::Accepted(session) => Ok(self.sessions.open(self.clock.clone(), |mut socket| {
                Box::pin(async move { session.run(&mut socket).await })
            })),
        }
    }

    /// Stops all conversations where they are, as a process that is killed does.
    pub fn kill_conversations(&self) {
        self.sessions.kill();
    }

    /// What a host streams comes at once here.
    #[expect(clippy::expect_used, reason = "a test that cannot go on should say so loudly")]
    fn whole(outcome: PreparedResponse) -> Reply {
        let (response, stream) = match outcome {
            PreparedResponse::Complete(response) => (response, None),
            PreparedResponse::Blob(blob) => block_on(blob.open()),
        };
        let body = stream.map(|stream| {
            let pieces: Vec<Bytes> = block_on(stream.try_collect()).expect("a blob in memory can be read");
            Bytes::from(pieces.concat())
        });
        Self::reply(response, body)
    }

    /// `stream` stands in for the body.
    fn reply(response: FinalResponse, stream: Option<Bytes>) -> Reply {
        let (response, record) = response.into_parts();
        assert!(record.status().as_u16() != 500, "{record}");
        let (parts, body) = response.into_parts();
        Reply::new(parts.status.as_u16(), parts.headers, stream.unwrap_or(body))
    }

    /// Runs all jobs that are due, and those they cause, until none is; returns how many.
    #[expect(clippy::expect_used, reason = "a test that cannot go on should say so loudly")]
    pub fn run_jobs(&self) -> usize {
        let mut ran = 0;
        loop {
            let turn = block_on(self.services().run_due_jobs("sandbox", JobKind::ALL, JOBS_AT_ONCE))
                .expect("jobs can be run");
            assert!(turn.incidents.is_empty(), "{:?}", turn.incidents);
            if turn.ran == 0 {
                return ran;
            }
            ran += turn.ran;
        }
    }

    /// The hints to a job runner so far, oldest first. The list is emptied. A real queue delivers them;
    /// [`Sandbox::run_jobs`] runs the jobs that they announce.
    pub fn hints(&self) -> Vec<Wake> {
        std::mem::take(&mut *lock(&self.hints.0))
    }

    /// Lets time pass.
    pub fn advance(&self, ms: i64) {
        self.clock.0.fetch_add(ms, Ordering::SeqCst);
        self.sessions.move_on();
    }

    /// The next outgoing request gets this answer; without one it fails to connect.
    pub fn answer_http(&self, status: u16, body: &str) {
        self.answer_http_chunks(status, &[], [Ok(Bytes::from(body.to_owned()))]);
    }

    /// The next outgoing request gets this answer, its body in these pieces; an error among them cuts
    /// it off there. Names of headers in lower case.
    pub fn answer_http_chunks(
        &self,
        status: u16,
        headers: &[(&str, &str)],
        body: impl IntoIterator<Item = Result<Bytes, HttpError>>,
    ) {
        let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
        let answer = ScriptedAnswer { status, headers, body: body.into_iter().collect() };
        lock(&self.http.answers).push_back(Ok(answer));
    }

    /// The next outgoing request fails like this.
    pub fn fail_http(&self, error: HttpError) {
        lock(&self.http.answers).push_back(Err(error));
    }

    /// The next outgoing request comes to this.
    pub fn script_http(&self, outcome: Result<HttpReply, HttpError>) {
        lock(&self.http.answers).push_back(outcome.map(ScriptedAnswer::from));
    }

    /// Does something while the next outgoing request is under way.
    pub fn meanwhile(&self, deed: impl FnOnce() + Send + 'static) {
        *lock(&self.http.meanwhile) = Some(Box::new(deed));
    }

    /// Outgoing requests that no answer is scripted for get what `answer` says.
    pub fn answer_http_with(
        &self,
        answer: impl Fn(&HttpRequest) -> Result<HttpReply, HttpError> + Send + Sync + 'static,
    ) {
        *lock(&self.http.otherwise) = Some(Arc::new(answer));
    }

    /// The outgoing requests so far, oldest first; the list is emptied.
    pub fn sent_http(&self) -> Vec<HttpRequest> {
        std::mem::take(&mut *lock(&self.http.sent))
    }

    #[expect(clippy::expect_used, reason = "a test that cannot go on should say so loudly")]
    fn request(&self, method: Method, path: &str, body: Option<Value>) -> Reply {
        let mut request = Request::builder()
            .method(method)
            .uri(path)
            .header("authorization", format!("Bearer {}", self.key));
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        self.send(request.body(body).expect("the path is a path"))
    }
}

/// An empty database in memory.
#[expect(clippy::expect_used, reason = "a test that cannot start should say so loudly")]
pub fn memory() -> Memory {
    Memory::new().expect("SQLite opens in memory")
}

/// Everything in a sandbox is ready at once, so no runtime is needed.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    futures_util::FutureExt::now_or_never(future)
        .unwrap_or_else(|| unreachable!("nothing in a sandbox waits"))
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
