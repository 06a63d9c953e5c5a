//! [`World`]: one service with a workspace for the test.
mod make;

use std::net::{IpAddr, Ipv4Addr, TcpStream};
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::{Arc, OnceLock};
use std::time::{Duration, Instant};

use bytes::Bytes;
use http::Method;
use serde_json::{Value, json};
use sidetone::Sandbox;
use sidetone::sandbox::memory_shards;
use sidetone_engine::ports::{Blobs, Database, HttpError, Metrics, Shards};

use crate::edge::Edge;
use crate::fakes::carrier;
use crate::host::{host, only_on, shards};
use crate::live_client::LiveClient;
use crate::native::Native;
use crate::reply::{Reply, ToolReply};
use crate::{fakes, wire};

/// The public URL of every service under test, so that responses can be compared byte by byte.
pub const BASE_URL: &str = "http://sandbox.example";

/// How long to wait for the end of a run.
const SETTLE_MS: u64 = 120_000;

/// The environment of one test: a service, a workspace, and a client address.
#[derive(Clone)]
pub struct World {
    service: Service,
    key: String,
    /// Invalid keys are counted by address, so each `World` has its own.
    address: IpAddr,
    made: Arc<AtomicU32>,
}

#[derive(Clone)]
enum Service {
    Sandbox(Arc<Sandbox>),
    Native(&'static Native),
    Edge(Arc<Edge>),
}

/// A created resource.
#[derive(Debug, Clone, PartialEq)]
pub struct Created {
    /// Its id.
    pub id: String,
    /// The whole response.
    pub json: Value,
}

impl std::ops::Index<&str> for Created {
    type Output = Value;

    fn index(&self, name: &str) -> &Value {
        &self.json[name]
    }
}

impl Default for World {
    fn default() -> Self {
        Self::new()
    }
}

impl World {
    /// A new workspace on the host that `SIDETONE_TEST_HOST` names: `sandbox` (the default), an in-memory service for each `World`;
    /// `native`, the real binary, shared; or `worker`, the Worker in workerd.
    pub fn new() -> Self {
        Self::on_host(host())
    }

    /// A new workspace on the named host.
    pub fn on_host(name: &str) -> Self {
        match name {
            "sandbox" => Self::with_settings(&[]),
            "native" => {
                let native = Native::shared();
                Self::on(Service::Native(native), native.fresh_key())
            }
            "worker" => {
                let edge = Edge::shared();
                let key = edge.fresh_key();
                Self::at_edge(edge, key)
            }
            other => panic!("SIDETONE_TEST_HOST={other}: not one of sandbox, native, worker"),
        }
    }

    /// A new workspace on the host that `SIDETONE_TEST_HOST` names, with the fake model provider as the provider `fake`. Tools and
    /// webhooks may be on this machine, which a Sandbox can reach as well.
    pub fn with_fakes() -> Self {
        match host() {
            "sandbox" => {
                let settings = fakes::settings();
                let settings: Vec<_> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
                let world = Self::with_settings(&settings);
                if let Some(sandbox) = world.sandbox() {
                    sandbox.answer_http_with(fakes::exchange);
                }
                world
            }
            "native" => {
                let native = Native::shared_with_fakes();
                Self::on(Service::Native(native), native.fresh_key())
            }
            "worker" => {
                let edge = Edge::shared_with_fakes();
                let key = edge.fresh_key();
                Self::on(Service::Edge(edge), key)
            }
            other => panic!("SIDETONE_TEST_HOST={other}: not one of sandbox, native, worker"),
        }
    }

    /// A new workspace of a service with an account at each carrier's fake and the fake model provider. Carriers need sockets, so
    /// the binary replaces the Sandbox here.
    pub fn with_phones() -> Self {
        match host() {
            "sandbox" | "native" => {
                let native = Native::shared_with_phones();
                Self::on(Service::Native(native), native.fresh_key())
            }
            "worker" => {
                let edge = Edge::shared_with_phones();
                let key = edge.fresh_key();
                Self::on(Service::Edge(edge), key)
            }
            other => panic!("SIDETONE_TEST_HOST={other}: not one of sandbox, native, worker"),
        }
    }

    /// With a manual clock and without a network: Sandbox only.
    #[track_caller]
    pub fn with_manual_clock() -> Self {
        only_on(&["sandbox"]);
        Self::new()
    }

    /// Behind a socket that our own server reads, for tests with raw bytes: binary only.
    #[track_caller]
    pub fn with_socket() -> Self {
        only_on(&["native"]);
        Self::new()
    }

    /// In memory, over the test's database and blobs, on any host.
    pub fn over_both(database: Arc<dyn Database>, blobs: Arc<dyn Blobs>) -> Self {
        Self::in_memory(Sandbox::over_both(database, blobs, settings()))
    }

    /// The same with additional settings.
    pub fn over_all(database: Arc<dyn Database>, blobs: Arc<dyn Blobs>, settings: &[(&str, &str)]) -> Self {
        Self::in_memory(Sandbox::over_both(database, blobs, &[self::settings(), settings].concat()))
    }

    /// In memory, measured by the test, on any host.
    pub fn with_metrics(metrics: Arc<dyn Metrics>, settings: &[(&str, &str)]) -> Self {
        Self::in_memory(Sandbox::with_metrics(metrics, &[self::settings(), settings].concat()))
    }

    /// In memory, over the test's database, on any host.
    pub fn over(database: Arc<dyn Database>) -> Self {
        Self::in_memory(Sandbox::over(database, settings()))
    }

    /// The same with additional settings.
    pub fn over_with(database: Arc<dyn Database>, settings: &[(&str, &str)]) -> Self {
        Self::in_memory(Sandbox::over(database, &[self::settings(), settings].concat()))
    }

    /// A workspace of this Worker.
    pub fn at_edge(edge: Arc<Edge>, key: String) -> Self {
        Self::on(Service::Edge(edge), key)
    }

    /// In memory, with additional settings, on any host.
    pub fn with_settings(settings: &[(&str, &str)]) -> Self {
        let settings = [self::settings(), settings].concat();
        match shards() {
            0 => Self::in_memory(Sandbox::with_settings(&settings)),
            shards => Self::in_memory(Sandbox::over_shards(memory_shards(shards), &settings)),
        }
    }

    /// In memory, over these databases.
    pub fn over_shards(shards: Shards, settings: &[(&str, &str)]) -> Self {
        Self::in_memory(Sandbox::over_shards(shards, &[self::settings(), settings].concat()))
    }

    /// A service of its own with these settings, on the host that `SIDETONE_TEST_HOST` names. It ends with the test
    /// process, so few tests have one.
    pub fn of_its_own(settings: &[(&str, &str)]) -> Self {
        match host() {
            "native" => {
                let native = Native::of_its_own(settings);
                Self::on(Service::Native(native), native.fresh_key())
            }
            "worker" => {
                let edge = Edge::of_its_own(settings);
                let key = edge.fresh_key();
                Self::at_edge(edge, key)
            }
            _ => Self::with_settings(settings),
        }
    }

    fn in_memory(sandbox: Sandbox) -> Self {
        // Only the carrier is reachable, unless the test changes that.
        sandbox.answer_http_with(|request| match carrier::is_default_carrier(&request.url) {
            true => fakes::exchange(request),
            false => Err(HttpError::Failed("no answer is scripted".to_owned())),
        });
        let key = sandbox.key().to_owned();
        Self::on(Service::Sandbox(Arc::new(sandbox)), key)
    }

    fn on(service: Service, key: String) -> Self {
        Self { service, key, address: fresh_address(), made: Arc::default() }
    }

    /// Another workspace of the same service.
    pub fn other(&self) -> Self {
        let key = match &self.service {
            Service::Sandbox(sandbox) => sandbox.create_workspace("other"),
            Service::Native(native) => native.fresh_key(),
            Service::Edge(edge) => edge.fresh_key(),
        };
        Self::on(self.service.clone(), key)
    }

    /// The same workspace with another key.
    pub fn with_key(&self, key: &str) -> Self {
        Self { key: key.to_owned(), ..self.clone() }
    }

    /// The same workspace from another address.
    pub fn from_elsewhere(&self) -> Self {
        self.from_address(fresh_address())
    }

    /// The same workspace from this address.
    pub fn from_address(&self, address: IpAddr) -> Self {
        Self { address, ..self.clone() }
    }

    /// The workspace's key.
    pub fn key(&self) -> &str {
        &self.key
    }

    /// The sandbox, if the service is one.
    pub fn sandbox(&self) -> Option<&Sandbox> {
        match &self.service {
            Service::Sandbox(sandbox) => Some(sandbox),
            Service::Native(_) | Service::Edge(_) => None,
        }
    }

    /// The server, if the service is one.
    pub fn native(&self) -> Option<&'static Native> {
        match &self.service {
            Service::Native(native) => Some(native),
            Service::Sandbox(_) | Service::Edge(_) => None,
        }
    }

    /// What the service has logged.
    pub fn log(&self) -> String {
        match &self.service {
            Service::Sandbox(sandbox) => sandbox.notes().join("\n"),
            Service::Native(native) => native.log(),
            Service::Edge(edge) => edge.log(),
        }
    }

    /// The last line that the service has logged with this text in it.
    pub fn logged(&self, text: &str) -> String {
        self.logged_after(text, 0)
    }

    /// How many lines the service has logged with this text in it.
    pub fn count_logged(&self, text: &str) -> usize {
        self.log().lines().filter(|line| line.contains(text)).count()
    }

    /// The last of more than `before` lines with this text in it: a log may come later than a response.
    pub fn logged_after(&self, text: &str, before: usize) -> String {
        let deadline = Instant::now() + Duration::from_secs(60);
        loop {
            let log = self.log();
            let lines: Vec<&str> = log.lines().filter(|line| line.contains(text)).collect();
            if let Some(line) = lines.last().filter(|_| lines.len() > before) {
                return (*line).to_owned();
            }
            assert!(Instant::now() < deadline, "nothing with `{text}` in the log");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Whether the engine receives requests unchanged. At the edge the platform's server parses them first: it drops empty headers,
    /// resolves `..` in paths and answers some requests itself.
    pub fn is_literal(&self) -> bool {
        !matches!(self.service, Service::Edge(_))
    }

    /// `GET path`
    pub fn get(&self, path: impl AsRef<str>) -> Reply {
        self.call(Method::GET, path.as_ref(), None)
    }

    /// `POST path`
    pub fn post(&self, path: impl AsRef<str>, body: Value) -> Reply {
        self.call(Method::POST, path.as_ref(), Some(&body))
    }

    /// `PUT path`
    pub fn put(&self, path: impl AsRef<str>, body: Value) -> Reply {
        self.call(Method::PUT, path.as_ref(), Some(&body))
    }

    /// `PATCH path`
    pub fn patch(&self, path: impl AsRef<str>, body: Value) -> Reply {
        self.call(Method::PATCH, path.as_ref(), Some(&body))
    }

    /// `DELETE path`
    pub fn delete(&self, path: impl AsRef<str>) -> Reply {
        self.call(Method::DELETE, path.as_ref(), None)
    }

    /// Any method with a JSON body or none.
    pub fn call(&self, method: Method, path: &str, body: Option<&Value>) -> Reply {
        self.call_with(method, path, body, &[])
    }

    /// Any method with additional headers.
    pub fn call_with(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        headers: &[(&str, &str)],
    ) -> Reply {
        let mut request = self.request(method, path);
        if body.is_some() {
            request = request.header("content-type", "application/json");
        }
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let body = body.map_or_else(Bytes::new, |body| Bytes::from(body.to_string()));
        self.send(request.body(body).expect("a valid path"))
    }

    /// `POST path` with an Idempotency-Key.
    pub fn post_once(&self, path: impl AsRef<str>, key: &str, body: Value) -> Reply {
        self.call_with(Method::POST, path.as_ref(), Some(&body), &[("idempotency-key", key)])
    }

    /// A request builder with the workspace's key.
    pub fn request(&self, method: Method, path: &str) -> http::request::Builder {
        let key = format!("Bearer {}", self.key);
        http::Request::builder().method(method).uri(path).header("authorization", key)
    }

    /// Sends a request without waiting for the response; returns the client's connection. Not on the Sandbox.
    pub fn begin(&self, request: &http::Request<Bytes>) -> TcpStream {
        let address = match &self.service {
            Service::Sandbox(_) => panic!("the Sandbox has no connections"),
            Service::Native(native) => native.address,
            Service::Edge(edge) => edge.address,
        };
        let (stream, sent) = wire::begin(address, request).expect("the service listens");
        sent.expect("the service reads");
        stream
    }

    /// Sends any request; checks the general properties of the response.
    pub fn send(&self, request: http::Request<Bytes>) -> Reply {
        let head = request.method() == Method::HEAD;
        let reply = self.send_unchecked(request);
        // A HEAD response has no body and thus no envelope.
        if head { reply } else { reply.sound() }
    }

    /// Sends any request without checks.
    pub fn send_unchecked(&self, mut request: http::Request<Bytes>) -> Reply {
        let address = self.address.to_string().parse().expect("an address is a header value");
        request.headers_mut().entry("x-forwarded-for").or_insert(address);
        match &self.service {
            Service::Sandbox(sandbox) => {
                let reply = sandbox.send(request);
                Reply::new(reply.status, reply.headers, reply.body)
            }
            Service::Native(native) => wire::send(native.address, &request).unwrap_or_else(|error| {
                panic!("{} {}: {error}\n{}", request.method(), request.uri(), native.log())
            }),
            Service::Edge(edge) => {
                // The edge sets the peer's address; workerd on this machine accepts any value.
                if let Some(address) = request.headers().get("x-forwarded-for").cloned() {
                    request.headers_mut().entry("cf-connecting-ip").or_insert(address);
                }
                wire::send(edge.address, &request).unwrap_or_else(|error| {
                    panic!("{} {}: {error}\n{}", request.method(), request.uri(), edge.log())
                })
            }
        }
    }

    /// Calls an MCP tool.
    #[track_caller]
    pub fn tool(&self, name: &str, arguments: Value) -> ToolReply {
        let call = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
            "params": {"name": name, "arguments": arguments}});
        ToolReply::read(&self.mcp(call).ok())
    }

    /// Posts a JSON-RPC message like a client of the revisions with a handshake.
    pub fn mcp(&self, message: Value) -> Reply {
        self.post("/mcp", message)
    }

    /// Opens the WebSocket at a URL from the service; `Err` is the rejection.
    pub fn connect(&self, url: &str) -> Result<LiveClient<'_>, Box<Reply>> {
        let path = url.find("/voice-test").map_or(url, |at| &url[at..]);
        match &self.service {
            Service::Sandbox(sandbox) => {
                let socket = sandbox.connect(path);
                let refused = |reply: Box<sidetone::sandbox::Reply>| {
                    Box::new(Reply::new(reply.status, reply.headers.clone(), reply.body.clone()))
                };
                socket.map(LiveClient::in_memory).map_err(refused)
            }
            Service::Native(native) => LiveClient::over_tcp(native.address, path),
            Service::Edge(edge) => LiveClient::over_tcp(edge.address, path),
        }
    }

    /// A test token for an assistant.
    #[track_caller]
    pub fn test_token(&self, assistant_id: &str) -> Value {
        self.post(format!("/assistants/{assistant_id}/test-token"), json!({})).ok().json
    }

    /// Starts a conversation with an assistant.
    #[track_caller]
    pub fn start_conversation(&self, assistant_id: &str) -> LiveClient<'_> {
        let token = self.test_token(assistant_id);
        self.connect(token["websocket_url"].as_str().expect("a URL")).expect("the token is good")
    }

    /// Reads a call after its end and analysis.
    #[track_caller]
    pub fn settled_call(&self, call_id: &str) -> Value {
        let started = Instant::now();
        loop {
            if let Some(sandbox) = self.sandbox() {
                sandbox.run_jobs();
            }
            let call = self.get(format!("/calls/{call_id}")).ok().json;
            if !call["analysis"].is_null() {
                return call;
            }
            let late = self.sandbox().is_some() || started.elapsed() > Duration::from_millis(SETTLE_MS);
            assert!(!late, "the call is not settled: {call}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }

    /// Waits for the end of a run and reads it.
    #[track_caller]
    pub fn settle(&self, run_id: &str) -> Value {
        let path = format!("/simulations/runs/{run_id}");
        let over = |run: &Value| run["status"] == "completed" || run["status"] == "error";
        if let Some(sandbox) = self.sandbox() {
            sandbox.run_jobs();
            let run = self.get(path).ok().json;
            assert!(over(&run), "the run is not over: {run}");
            return run;
        }
        let started = Instant::now();
        loop {
            let run = self.get(&path).ok().json;
            if over(&run) {
                return run;
            }
            assert!(started.elapsed() < Duration::from_millis(SETTLE_MS), "the run is not over: {run}");
            std::thread::sleep(Duration::from_millis(20));
        }
    }
}

/// Every test connects from the loopback address, so it is trusted to forward client addresses. Every service has an account
/// with one carrier.
fn settings() -> &'static [(&'static str, &'static str)] {
    static SETTINGS: OnceLock<Vec<(&str, &str)>> = OnceLock::new();
    SETTINGS.get_or_init(|| {
        let account = carrier::default_account().into_iter().map(|(name, value)| (name, &*value.leak()));
        std::iter::once(("SIDETONE_TRUSTED_PROXIES", "127.0.0.1")).chain(account).collect()
    })
}

fn fresh_address() -> IpAddr {
    static ADDRESSES: AtomicU32 = AtomicU32::new(0x0A00_0001);
    Ipv4Addr::from(ADDRESSES.fetch_add(1, Ordering::Relaxed)).into()
}
