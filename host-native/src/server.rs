//! The HTTP server: accepts a limited number of connections and passes their requests to `request`.
mod compressed;
mod connections;
#[cfg(test)]
mod limits_page_tests;
mod one_message;
mod request;
mod socket;
pub mod tls;
mod watched;
mod write_timeout;

use std::convert::Infallible;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};
use std::time::{Duration, Instant};

use http::StatusCode;
use hyper::body::{Body, Frame, SizeHint};
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sidetone_engine::base::limits::{
    HEAD_BYTES_MAX, HEAD_READ_MS, RESPONSE_WINDOW_BYTES_MIN, RESPONSE_WINDOW_MS,
};
use sidetone_engine::engine::{Engine, LogRecord};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;
use tokio_rustls::server::TlsStream;

use connections::{Connection, Connections, Cut, OpenRequest};
use tls::{Stream, Tls};
use watched::{Limits, Watched};
use write_timeout::{ReadingFloor, WriteTimeout};

use crate::fair::Lanes;
use crate::log;
use crate::metrics::Metrics;
use crate::system::cores;

/// A connection is closed after this time without a byte of the next request.
const IDLE_MS: u64 = 60_000;
/// A connection is closed when its client reads a response more slowly than this.
const READING_FLOOR: ReadingFloor =
    ReadingFloor { bytes: RESPONSE_WINDOW_BYTES_MIN, window: Duration::from_millis(RESPONSE_WINDOW_MS) };
/// The shortest interval between log entries about connections that cannot be accepted.
const ACCEPT_LOG_MS: u64 = 1_000;
/// Of what a stop cuts off, so many have a line of the log each.
const CUT_LOGGED_MAX: usize = 20;

/// What serving a connection needs besides the connection.
struct Host {
    engine: Engine,
    http: http1::Builder,
    limits: Limits,
    /// Conversations by text compute by turns of their workspaces.
    lanes: Lanes,
    /// The certificate; `None` for plain HTTP.
    tls: Option<Arc<Tls>>,
    /// Becomes true when the service is to stop.
    stop: watch::Receiver<bool>,
    metrics: Arc<Metrics>,
}

/// The threads for requests and conversations. Conversations by text compute on all but two, so that requests find one.
pub fn threads() -> usize {
    cores() + 2
}

/// Where the server listens, and within which bounds.
pub struct Listening {
    /// Accepts the connections.
    pub listener: TcpListener,
    /// Connections at once.
    pub connections_max: usize,
    /// How long requests and conversations may go on after the signal to stop.
    pub grace: Duration,
    /// The certificate; `None` for plain HTTP.
    pub tls: Option<Arc<Tls>>,
}

/// Serves until `stop` becomes true, then finishes what is open within the grace period. What it had to cut off is logged.
pub async fn serve(listening: Listening, engine: Engine, stop: watch::Receiver<bool>, metrics: Arc<Metrics>) {
    let limits = Limits { head: Duration::from_millis(HEAD_READ_MS), idle: Duration::from_millis(IDLE_MS) };
    serve_within(listening, engine, stop, limits, metrics).await;
}

async fn serve_within(
    listening: Listening,
    engine: Engine,
    mut stop: watch::Receiver<bool>,
    limits: Limits,
    metrics: Arc<Metrics>,
) {
    let Listening { listener, connections_max, grace, tls } = listening;
    let mut http = http1::Builder::new();
    // `Watched` has a time limit of its own for heads.
    http.timer(TokioTimer::new()).header_read_timeout(None);
    http.max_header_size(HEAD_BYTES_MAX).max_buf_size(HEAD_BYTES_MAX);
    let host = Arc::new(Host {
        engine,
        http,
        limits,
        lanes: Lanes::start(cores()),
        tls,
        stop: stop.clone(),
        metrics,
    });
    let connections = Connections::new(connections_max);
    let mut acceptor = Acceptor { listener, connections: connections.clone(), logged: None };
    while !*stop.borrow() {
        let accepted = tokio::select! {
            accepted = acceptor.accept() => accepted,
            _ = stop.changed() => continue,
        };
        if let Some((stream, connection)) = accepted {
            tokio::spawn(host.clone().converse(stream, connection));
        }
    }
    drop(acceptor);
    host.engine.services().begin_to_stop();
    // Connections and conversations keep their places until they end.
    if tokio::time::timeout(grace, connections.all_ended()).await.is_err() {
        log_cut(&connections.unfinished());
    }
}

/// One line for all that is cut off, and one for each of the oldest.
fn log_cut(cut: &[Cut]) {
    let conversations = cut.iter().filter(|one| one.is_socket).count();
    let requests = cut.len() - conversations;
    tracing::warn!(requests, conversations, "what did not finish in time is cut off");
    for Cut { address, is_socket, open_ms } in cut.iter().take(CUT_LOGGED_MAX) {
        let what = if *is_socket { "conversation" } else { "request" };
        tracing::warn!(%address, open_ms, "a {what} is cut off");
    }
}

impl Host {
    /// Serves one connection to its end.
    async fn converse(self: Arc<Self>, stream: TcpStream, connection: Connection) {
        let mut stop = self.stop.clone();
        // hyper's buffers are only made for a client that sends something. `readable` would also return without a byte.
        let mut first = [0; 1];
        tokio::select! {
            peeked = tokio::time::timeout(self.limits.idle, stream.peek(&mut first)) => {
                if !matches!(peeked, Ok(Ok(1..))) {
                    return;
                }
            }
            () = connection.closed() => return,
            () = stopped(&mut stop) => return,
        }
        // Boxed, so that a silent connection has no memory for it.
        let Some(tls) = &self.tls else {
            let stream = WriteTimeout::new(stream, READING_FLOOR, connection.floor.clone());
            return Box::pin(self.serve_http(Stream::Plain(stream), connection)).await;
        };
        if !tls::is_handshake(first[0]) {
            return tls::refuse_plain(&stream);
        }
        if let Some(stream) = Box::pin(self.shake_hands(tls, stream, &connection, &mut stop)).await {
            Box::pin(self.serve_http(Stream::Tls(Box::new(stream)), connection)).await;
        }
    }

    /// The handshake of TLS, within the bounds of a request's head: its time, and the memory of all that are unfinished, which
    /// is shared among addresses. Meanwhile the connection is one of those that make room for others.
    async fn shake_hands(
        &self,
        tls: &Tls,
        stream: TcpStream,
        connection: &Connection,
        stop: &mut watch::Receiver<bool>,
    ) -> Option<TlsStream<WriteTimeout<TcpStream>>> {
        let _memory = connection.place().take_head(None, tls::HANDSHAKE_BYTES)?;
        connection.place().received();
        let stream = WriteTimeout::new(stream, READING_FLOOR, connection.floor.clone());
        tokio::select! {
            shaken = tokio::time::timeout(self.limits.head, tls.acceptor().accept(stream)) => shaken.ok()?.ok(),
            () = connection.closed() => None,
            () = stopped(stop) => None,
        }
    }

    /// Logs a request that was answered, and counts it.
    fn note(&self, record: &LogRecord, took: Duration) {
        self.metrics.request(record, took);
        log::request(record, took);
    }

    async fn serve_http(self: Arc<Self>, stream: Stream, connection: Connection) {
        let mut stop = self.stop.clone();
        let stream = Watched::new(stream, connection.place().clone(), self.engine.clone(), self.limits);
        let (http, held) = (self.http.clone(), connection.clone());
        let service = service_fn(move |request| {
            let host = self.clone();
            let open = connection.begin_request();
            // Boxed: hyper keeps the space for it between requests.
            let answering = Box::pin(request::answer(self.clone(), connection.clone(), request));
            let started = Instant::now();
            async move {
                let mut response = answering.await;
                if let Some(record) = response.extensions_mut().remove::<LogRecord>() {
                    host.note(&record, started.elapsed());
                }
                let open = match response.status() {
                    StatusCode::SWITCHING_PROTOCOLS => {
                        open.upgraded();
                        None
                    }
                    _ => Some(open),
                };
                Ok::<_, Infallible>(response.map(|body| Held { body, _open: open }))
            }
        });
        let serving = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        tokio::pin!(serving);
        // A broken connection requires no action.
        tokio::select! {
            _ = serving.as_mut() => {}
            () = held.closed() => {}
            () = stopped(&mut stop) => {
                serving.as_mut().graceful_shutdown();
                let _ = serving.await;
            }
        }
    }
}

/// The body of a response; its request is open until it is sent.
struct Held<B> {
    body: B,
    _open: Option<OpenRequest>,
}

impl<B: Body + Unpin> Body for Held<B> {
    type Data = B::Data;
    type Error = B::Error;

    fn poll_frame(
        self: Pin<&mut Self>,
        context: &mut Context<'_>,
    ) -> Poll<Option<Result<Frame<B::Data>, B::Error>>> {
        Pin::new(&mut self.get_mut().body).poll_frame(context)
    }

    fn is_end_stream(&self) -> bool {
        self.body.is_end_stream()
    }

    fn size_hint(&self) -> SizeHint {
        self.body.size_hint()
    }
}

/// Resolves when the service is to stop, or the sender is dropped.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// The message of a panic.
pub(crate) fn panic_message(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a message")
}

/// Accepts connections. It never waits for those that are open: one that waits for nothing makes room.
struct Acceptor {
    listener: TcpListener,
    connections: Arc<Connections>,
    /// When a failure was last logged.
    logged: Option<Instant>,
}

impl Acceptor {
    async fn accept(&mut self) -> Option<(TcpStream, Connection)> {
        match self.listener.accept().await {
            Ok((stream, peer)) => {
                // Responses are small and written at once: waiting to fill a packet would only delay them.
                let _ = stream.set_nodelay(true);
                let connection = self.connections.admit(peer).await;
                if connection.is_none() {
                    self.log("a connection was refused: all are answering requests");
                }
                Some((stream, connection?))
            }
            Err(error) => {
                // Probably out of file descriptors.
                self.log(&format!("connections cannot be accepted: {error}"));
                self.connections.make_any_room();
                tokio::time::sleep(Duration::from_millis(100)).await;
                None
            }
        }
    }

    fn log(&mut self, what: &str) {
        let pause = Duration::from_millis(ACCEPT_LOG_MS);
        if self.logged.is_none_or(|logged| logged.elapsed() >= pause) {
            tracing::warn!("{what}");
            self.logged = Some(Instant::now());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidetone_engine::config::Config;
    use sidetone_engine::ports::statement::{Rows, Statement};
    use sidetone_engine::ports::{BoxFuture, Database, DatabaseError, Ports};
    use std::net::SocketAddr;
    use tokio::io::{AsyncReadExt, AsyncWriteExt};

    struct Panics;

    impl Database for Panics {
        fn read(&self, _: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
            panic!("deliberate")
        }

        fn write(&self, _: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
            panic!("deliberate")
        }
    }

    async fn start() -> (SocketAddr, watch::Sender<bool>) {
        let second = Duration::from_secs(1);
        start_within(1_000, Limits { head: second, idle: 60 * second }).await
    }

    async fn start_within(max: usize, limits: Limits) -> (SocketAddr, watch::Sender<bool>) {
        let config = Config::from_settings(|_| None, "http://127.0.0.1", "a secret for the tests").unwrap();
        let ports = Ports {
            database: Arc::new(Panics),
            blobs: Arc::new(crate::sandbox::MemoryBlobs::default()),
            shards: None,
            clock: Arc::new(crate::system::SystemClock),
            random: Arc::new(crate::system::SystemRandom),
            queue: Arc::new(crate::runner::Wakes::default()),
            http: Arc::new(crate::http_client::HttpClient::new(Default::default()).unwrap()),
            web_sockets: Arc::new(sidetone_engine::ports::NoWebSockets),
            keys: Arc::new(crate::keys::RingKeys),
            live: Arc::new(sidetone_engine::ports::Homes::new(Arc::new(crate::system::SystemClock))),
            mailer: None,
            metrics: None,
            traces: None,
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        let engine = Engine::new(config, ports).unwrap();
        let listening =
            Listening { listener, connections_max: max, grace: Duration::from_secs(8), tls: None };
        tokio::spawn(serve_within(listening, engine, stopped, limits, Arc::default()));
        (address, stop)
    }

    /// Sends a request and reads until the server closes.
    async fn ask(address: SocketAddr, request: &str) -> String {
        let mut stream = TcpStream::connect(address).await.unwrap();
        stream.write_all(request.as_bytes()).await.unwrap();
        let mut answer = String::new();
        let reading = stream.read_to_string(&mut answer);
        let _ = tokio::time::timeout(Duration::from_secs(10), reading).await.expect("an answer");
        answer
    }

    fn key() -> String {
        sidetone_engine::base::api_key::ApiKey::from_bytes([9; 32]).as_str().to_owned()
    }

    #[tokio::test]
    async fn a_panic_is_answered() {
        let (address, _stop) = start().await;
        let answer = ask(address, "GET /healthz HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 500 "), "{answer}");
        assert!(answer.contains("\"internal\"") && !answer.contains("deliberate"), "{answer}");
    }

    #[tokio::test]
    async fn without_a_key_the_body_is_discarded_and_the_connection_stays_open() {
        let (address, _stop) = start().await;
        let body = "x".repeat(100_000);
        let post = |head: &str| format!("POST {head}host: a\r\ncontent-length: {}\r\n\r\n{body}", body.len());
        let requests = [
            post("/assistants HTTP/1.1\r\n"),
            post("/mcp HTTP/1.1\r\nauthorization: Bearer sidetone_nope\r\n"),
            post("/nowhere HTTP/1.1\r\n"),
            post("/docs HTTP/1.1\r\nconnection: close\r\n"),
        ];
        let answer = ask(address, &requests.concat()).await;
        let statuses: Vec<&str> =
            answer.split("HTTP/1.1 ").skip(1).filter_map(|part| part.get(..3)).collect();
        assert_eq!(statuses, ["401", "401", "404", "405"], "{answer}");
    }

    #[tokio::test]
    async fn a_malformed_body_is_a_400_and_a_truncated_one_a_408() {
        let (address, _stop) = start().await;
        let authorization = format!("authorization: Bearer {}\r\n", key());
        for key in ["", &authorization] {
            let head =
                format!("POST /assistants HTTP/1.1\r\nhost: a\r\n{key}transfer-encoding: chunked\r\n\r\n");
            let answer = ask(address, &format!("{head}nonsense\r\n")).await;
            assert!(answer.starts_with("HTTP/1.1 400 ") && answer.contains("invalid_json"), "{answer}");
            let mut stream = TcpStream::connect(address).await.unwrap();
            stream.write_all(format!("{head}5\r\n{{").as_bytes()).await.unwrap();
            stream.shutdown().await.unwrap();
            let mut answer = String::new();
            let _ = stream.read_to_string(&mut answer).await;
            assert!(answer.is_empty() || answer.starts_with("HTTP/1.1 408 "), "{answer}");
        }
    }
    #[tokio::test]
    async fn a_large_head_is_a_431_and_a_late_one_is_cut_off() {
        let (address, _stop) = start().await;
        let head = format!("GET /nowhere HTTP/1.1\r\nhost: a\r\nx-long: {}\r\n\r\n", "x".repeat(400_000));
        let answer = ask(address, &head).await;
        assert!(answer.starts_with("HTTP/1.1 431 ") && answer.contains("\"head_too_large\""), "{answer}");
        assert_eq!(ask(address, "GET /nowhere HTTP/1.1\r\nhost: a\r\n").await, "");
        let head =
            format!("GET /nowhere HTTP/1.1\r\nx-long: {}\r\nconnection: close\r\n\r\n", "x".repeat(30_000));
        assert!(ask(address, &head).await.starts_with("HTTP/1.1 404 "));
    }

    #[tokio::test]
    async fn an_idle_connection_lives_longer_than_an_unfinished_head() {
        let limits = Limits { head: Duration::from_millis(100), idle: Duration::from_secs(60) };
        let (address, _stop) = start_within(100, limits).await;
        let mut stream = TcpStream::connect(address).await.unwrap();
        for _ in 0..2 {
            tokio::time::sleep(Duration::from_millis(300)).await;
            stream.write_all(b"GET /nowhere HTTP/1.1\r\nhost: a\r\n\r\n").await.unwrap();
            let mut answer = [0; 12];
            stream.read_exact(&mut answer).await.unwrap();
            assert_eq!(&answer, b"HTTP/1.1 404");
            // The rest of the answer.
            let mut rest = [0; 4096];
            assert!(stream.read(&mut rest).await.unwrap() > 0);
        }
    }

    #[tokio::test]
    async fn silent_connections_make_room() {
        let limits = Limits { head: Duration::from_secs(60), idle: Duration::from_secs(60) };
        let (address, _stop) = start_within(20, limits).await;
        let mut silent = Vec::new();
        for n in 0..100 {
            let mut stream = TcpStream::connect(address).await.unwrap();
            if n % 2 == 0 {
                stream.write_all(b"GET /nowhere HTTP/1.1\r\n").await.unwrap();
            }
            silent.push(stream);
        }
        let answer = ask(address, "GET /nowhere HTTP/1.1\r\nhost: a\r\nconnection: close\r\n\r\n").await;
        assert!(answer.starts_with("HTTP/1.1 404 "), "{answer}");
    }
}
