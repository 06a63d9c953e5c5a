//! The whole service in memory, for tests: ours and yours. No network, no files, no real time.
mod socket;

use sidetone_engine::storage::jobs::JobKind;
use std::collections::{BTreeMap, VecDeque};
use std::sync::atomic::{AtomicI64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};

use bytes::{Bytes, BytesMut};
use futures_util::{TryStreamExt, stream};
use http::{HeaderMap, Method};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use sidetone_engine::base::limits::BODY_BYTES_MAX;
use sidetone_engine::config::Config;
use sidetone_engine::engine::Engine;
use sidetone_engine::live::Accept;
use sidetone_engine::ports::blobs::{self, Slice};
use sidetone_engine::ports::{
    BlobError, BlobKey, Blobs, BoxFuture, ByteRange, Clock, Database, Http, HttpError, HttpReply,
    HttpRequest, HttpStream, Incoming, Ports, Queue, Random, Wake,
};

use crate::database::Memory;
use crate::keys::RingKeys;

pub use socket::SandboxSocket;
use socket::Sessions;

/// Jobs a sandbox runs together.
const JOBS_AT_ONCE: usize = 32;
/// Hints a sandbox remembers.
const HINTS_KEPT_MAX: usize = 10_000;
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
    pub fn send(&self, request: http::Request<Bytes>) -> Reply {
        let response = if request.body().len() > BODY_BYTES_MAX {
            self.engine.body_too_large()
        } else {
            block_on(self.engine.handle(Incoming { request, peer: Some([127, 0, 0, 1].into()) }))
        };
        Self::reply(self.with_body(response))
    }

    /// Opens a WebSocket, such as a test token's, by its path and query. `Err` is what the service
    /// answers instead of upgrading.
    #[expect(clippy::expect_used, reason = "a test that cannot go on should say so loudly")]
    pub fn connect(&self, path: &str) -> Result<SandboxSocket<'_>, Box<Reply>> {
        let request = http::Request::builder().uri(path).header("upgrade", "websocket");
        let (parts, body) = request.body(Bytes::new()).expect("the path is a path").into_parts();
        let wants = self.engine.wants_socket(&parts);
        let incoming =
            Incoming { request: http::Request::from_parts(parts, body), peer: Some([127, 0, 0, 1].into()) };
        if !wants {
            return Err(Box::new(Self::reply(block_on(self.engine.handle(incoming)))));
        }
        match block_on(self.engine.accept(incoming)) {
            Accept::Refused(response) => Err(Box::new(Self::reply(response))),
            Accept::Session(session) => Ok(self.sessions.open(self.clock.clone(), |mut socket| {
                Box::pin(async move { session.run(&mut socket).await })
            })),
        }
    }

    /// Stops all conversations where they are, as a process that is killed does.
    pub fn kill_conversations(&self) {
        self.sessions.kill();
    }

    #[expect(clippy::expect_used, reason = "a test that cannot go on should say so loudly")]
    fn reply(response: http::Response<Bytes>) -> Reply {
        let (parts, body) = response.into_parts();
        assert!(
            parts.status.as_u16() != 500,
            "{:?}",
            parts.extensions.get::<sidetone_engine::base::response::Incident>().expect("a 500 has a reason")
        );
        Reply::new(parts.status.as_u16(), parts.headers, body)
    }

    /// What a host streams comes at once here.
    fn with_body(&self, response: http::Response<Bytes>) -> http::Response<Bytes> {
        let Some(slice) = response.extensions().get::<Slice>().cloned() else { return response };
        let whole = async {
            let Some(stream) = blobs::open(self.engine.ports().blobs.clone(), slice.clone()).await? else {
                return Ok(None);
            };
            let pieces: Vec<Bytes> = stream.try_collect().await?;
            Ok(Some(Bytes::from(pieces.concat())))
        };
        match block_on(whole) {
            Ok(Some(body)) => response.map(|_| body),
            Ok(None) => self.engine.lost(&slice),
            Err(error) => self.engine.unreadable(error),
        }
    }

    /// Runs all jobs that are due, and those they cause, until none is; returns how many.
    #[expect(clippy::expect_used, reason = "a test that cannot go on should say so loudly")]
    pub fn run_jobs(&self) -> usize {
        let mut ran = 0;
        loop {
            let turn = block_on(self.engine.run_due_jobs("sandbox", JobKind::ALL, JOBS_AT_ONCE))
                .expect("jobs can be run");
            assert!(turn.incidents.is_empty(), "{:?}", turn.incidents);
            if turn.ran == 0 {
                return ran;
            }
            ran += turn.ran;
        }
    }

    /// The hints to a job runner so far, oldest first. The list is emptied. A real queue delivers them; what they announce is run by [`Sandbox::run_jobs`] or by
    /// the engine's own `run_due_jobs`.
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
        let mut request = http::Request::builder()
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

/// Blobs in memory, for one engine in one test.
#[derive(Default)]
pub struct MemoryBlobs(Mutex<BTreeMap<BlobKey, Bytes>>);

impl MemoryBlobs {
    /// The keys of all there are, in order.
    pub fn keys(&self) -> Vec<BlobKey> {
        lock(&self.0).keys().cloned().collect()
    }
}

impl Blobs for MemoryBlobs {
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            lock(&self.0).insert(key, bytes);
            Ok(())
        })
    }

    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>> {
        let key = key.clone();
        Box::pin(async move { Ok(lock(&self.0).get(&key).map(|bytes| bytes.len() as u64)) })
    }

    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            let place = |at: u64, bytes: &Bytes| usize::try_from(at).unwrap_or(usize::MAX).min(bytes.len());
            let blobs = lock(&self.0);
            Ok(blobs.get(&key).map(|bytes| {
                bytes.slice(place(range.first, bytes)..place(range.first.saturating_add(range.bytes), bytes))
            }))
        })
    }

    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>> {
        let key = key.clone();
        Box::pin(async move {
            lock(&self.0).remove(&key);
            Ok(())
        })
    }
}

/// Everything in a sandbox is ready at once, so no runtime is needed.
pub fn block_on<T>(future: impl Future<Output = T>) -> T {
    futures_util::FutureExt::now_or_never(future)
        .unwrap_or_else(|| unreachable!("nothing in a sandbox waits"))
}

struct ManualClock(AtomicI64);

impl Clock for ManualClock {
    fn now_ms(&self) -> i64 {
        self.0.load(Ordering::SeqCst)
    }

    /// Whoever waits has waited: the pause moves the clock.
    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
        self.0.fetch_add(i64::try_from(ms).unwrap_or(i64::MAX), Ordering::SeqCst);
        Box::pin(async {})
    }
}

/// SHA-256 of a counter: the same bytes in every sandbox.
#[derive(Default)]
struct SeededRandom(Mutex<u64>);

impl Random for SeededRandom {
    fn fill(&self, bytes: &mut [u8]) {
        let mut counter = lock(&self.0);
        for chunk in bytes.chunks_mut(32) {
            *counter += 1;
            let block = Sha256::digest(counter.to_le_bytes());
            chunk.copy_from_slice(&block[..chunk.len()]);
        }
    }
}

/// Keeps the hints for whoever asks, the newest of them: a sandbox may run for long.
#[derive(Default)]
struct Hints(Mutex<Vec<Wake>>);

impl Queue for Hints {
    fn wake(&self, wake: &Wake) {
        let mut hints = lock(&self.0);
        if hints.len() >= HINTS_KEPT_MAX {
            hints.drain(..HINTS_KEPT_MAX / 2);
        }
        hints.push(wake.clone());
    }
}

type Answering = Arc<dyn Fn(&HttpRequest) -> Result<HttpReply, HttpError> + Send + Sync>;

#[derive(Default)]
struct ScriptedHttp {
    answers: Mutex<VecDeque<Result<ScriptedAnswer, HttpError>>>,
    otherwise: Mutex<Option<Answering>>,
    sent: Mutex<Vec<HttpRequest>>,
    meanwhile: Mutex<Option<Deed>>,
}

/// See [`Sandbox::meanwhile`].
type Deed = Box<dyn FnOnce() + Send>;

struct ScriptedAnswer {
    status: u16,
    headers: Vec<(String, String)>,
    body: Vec<Result<Bytes, HttpError>>,
}

impl From<HttpReply> for ScriptedAnswer {
    fn from(HttpReply { status, headers, body }: HttpReply) -> Self {
        Self { status, headers, body: vec![Ok(body)] }
    }
}

impl ScriptedHttp {
    fn next(&self, request: HttpRequest) -> Result<ScriptedAnswer, HttpError> {
        let mut left_bytes = request.response_bytes_max;
        let scripted = lock(&self.answers).pop_front();
        let otherwise = lock(&self.otherwise).clone();
        let answer = match (scripted, otherwise) {
            (Some(answer), _) => answer,
            (None, Some(otherwise)) => otherwise(&request).map(ScriptedAnswer::from),
            (None, None) => Err(HttpError::Failed("no answer is scripted".to_owned())),
        };
        lock(&self.sent).push(request);
        let deed = lock(&self.meanwhile).take();
        if let Some(deed) = deed {
            deed();
        }
        let mut answer = answer?;
        let mut begun = BytesMut::new();
        for piece in &mut answer.body {
            if let Ok(bytes) = piece {
                let room = left_bytes.min(bytes.len());
                begun.extend_from_slice(&bytes[..room]);
                left_bytes -= room;
                if room < bytes.len() {
                    let (status, headers) = (answer.status, answer.headers.clone());
                    let body = std::mem::take(&mut begun).freeze();
                    *piece = Err(HttpError::TooLarge(HttpReply { status, headers, body }));
                    break;
                }
            }
        }
        // After an error nothing comes.
        if let Some(place) = answer.body.iter().position(Result::is_err) {
            answer.body.truncate(place + 1);
        }
        Ok(answer)
    }
}

impl Http for ScriptedHttp {
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>> {
        let reply = self.next(request).and_then(|ScriptedAnswer { status, headers, body }| {
            let pieces = body.into_iter().collect::<Result<Vec<Bytes>, _>>()?;
            Ok(HttpReply { status, headers, body: Bytes::from(pieces.concat()) })
        });
        Box::pin(async move { reply })
    }

    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpStream, HttpError>> {
        let stream = self.next(request).map(|ScriptedAnswer { status, headers, body }| HttpStream {
            status,
            headers,
            body: Box::pin(stream::iter(body)),
        });
        Box::pin(async move { stream })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
