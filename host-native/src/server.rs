//! The HTTP server: accepts a limited number of connections and passes their requests to `request`.
mod request;
mod socket;
mod write_timeout;

use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::{Duration, Instant};

use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sidetone_engine::base::limits::{RESPONSE_WINDOW_BYTES_MIN, RESPONSE_WINDOW_MS};
use sidetone_engine::engine::Engine;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use write_timeout::{FloorSwitch, ReadingFloor, WriteTimeout};

/// A connection, idle or not, is closed after this time without a complete request head.
const HEAD_READ_MS: u64 = 60_000;
/// A connection is closed when its client reads a response more slowly than this.
const READING_FLOOR: ReadingFloor =
    ReadingFloor { bytes: RESPONSE_WINDOW_BYTES_MIN, window: Duration::from_millis(RESPONSE_WINDOW_MS) };
/// Concurrent connections; further ones wait to be accepted.
const CONNECTIONS_MAX: usize = 10_000;
/// Open files reserved for everything except connections: the database, its readers, outgoing requests.
#[cfg(unix)]
const OTHER_FILES: usize = 64;
/// Total size of request bodies in memory; further bodies are read later.
const BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// The shortest interval between log entries about connections that cannot be accepted.
const ACCEPT_LOG_MS: u64 = 1_000;
/// Grace period for open requests after the signal to stop.
const SHUTDOWN_MS: u64 = 10_000;

#[derive(Clone)]
struct Host {
    engine: Engine,
    /// Memory for bodies, in bytes.
    bodies: Arc<Semaphore>,
    /// Becomes true when the service is to stop.
    stop: watch::Receiver<bool>,
}

/// The connection of a request.
#[derive(Clone)]
struct Connection {
    peer: SocketAddr,
    /// The floor for reading responses.
    floor: FloorSwitch,
    /// One of [`CONNECTIONS_MAX`] slots. A WebSocket keeps it after the HTTP connection has ended.
    _slot: Arc<OwnedSemaphorePermit>,
}

/// Serves until `stop` becomes true, then finishes the open requests.
pub async fn serve(listener: TcpListener, engine: Engine, mut stop: watch::Receiver<bool>) {
    let bodies = Arc::new(Semaphore::new(BODIES_BYTES_MAX));
    let host = Host { engine, bodies, stop: stop.clone() };
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(Duration::from_millis(HEAD_READ_MS));
    let slots_max = connections_max();
    let slots = Arc::new(Semaphore::new(slots_max));
    let mut acceptor = Acceptor { listener, slots: slots.clone(), logged: None };
    while !*stop.borrow() {
        let accepted = tokio::select! {
            accepted = acceptor.accept() => accepted,
            _ = stop.changed() => continue,
        };
        let Some((stream, connection)) = accepted else { continue };
        let (host, held) = (host.clone(), connection.clone());
        let service = service_fn(move |request| {
            let answering = request::answer(host.clone(), connection.clone(), request);
            async move { Ok::<_, Infallible>(answering.await) }
        });
        let serving = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let mut stop = stop.clone();
        tokio::spawn(async move {
            tokio::pin!(serving);
            // A broken connection requires no action.
            tokio::select! {
                _ = serving.as_mut() => {}
                () = stopped(&mut stop) => {
                    serving.as_mut().graceful_shutdown();
                    let _ = serving.await;
                }
            }
            drop(held);
        });
    }
    drop(acceptor);
    let grace = Duration::from_millis(SHUTDOWN_MS);
    // Connections and conversations hold their slots until they end.
    let all = slots.acquire_many(u32::try_from(slots_max).unwrap_or(u32::MAX));
    if tokio::time::timeout(grace, all).await.is_err() {
        tracing::warn!("some requests or conversations did not finish in time and were cut off");
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

/// The maximum number of connections within the limit on open files, after raising it as far as permitted.
#[cfg(unix)]
fn connections_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // `None`: unlimited.
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    CONNECTIONS_MAX.min(files.saturating_sub(OTHER_FILES)).max(1)
}

#[cfg(not(unix))]
fn connections_max() -> usize {
    CONNECTIONS_MAX
}

/// Accepts connections while slots are free.
struct Acceptor {
    listener: TcpListener,
    slots: Arc<Semaphore>,
    /// When a failure was last logged.
    logged: Option<Instant>,
}

impl Acceptor {
    async fn accept(&mut self) -> Option<(WriteTimeout<TcpStream>, Connection)> {
        let slot = self.slots.clone().acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, peer)) => {
                // Responses are small and written at once: waiting to fill a packet would only delay them.
                let _ = stream.set_nodelay(true);
                let stream = WriteTimeout::new(stream, READING_FLOOR);
                let connection = Connection { peer, floor: stream.switch(), _slot: Arc::new(slot) };
                Some((stream, connection))
            }
            Err(error) => {
                // Probably out of file descriptors: wait for connections to end.
                let pause = Duration::from_millis(ACCEPT_LOG_MS);
                if self.logged.is_none_or(|logged| logged.elapsed() >= pause) {
                    tracing::warn!(%error, "connections cannot be accepted");
                    self.logged = Some(Instant::now());
                }
                tokio::time::sleep(Duration::from_millis(100)).await;
                None
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use sidetone_engine::config::Config;
    use sidetone_engine::ports::statement::{Rows, Statement};
    use sidetone_engine::ports::{BoxFuture, Database, DatabaseError, Ports};
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
        let config = Config::from_settings(|_| None, "http://127.0.0.1", "a secret for the tests").unwrap();
        let ports = Ports {
            database: Arc::new(Panics),
            blobs: Arc::new(crate::sandbox::MemoryBlobs::default()),
            clock: Arc::new(crate::system::SystemClock),
            random: Arc::new(crate::system::SystemRandom),
            queue: Arc::new(crate::runner::Wakes::default()),
            http: Arc::new(crate::http_client::HttpClient::new().unwrap()),
            keys: Arc::new(crate::keys::RingKeys),
        };
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (stop, stopped) = watch::channel(false);
        tokio::spawn(serve(listener, Engine::new(config, ports).unwrap(), stopped));
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
}
