//! axum with one fallback into the engine: reads a body within the limit, hands the request over,
//! writes the answer and logs what must be logged.
mod socket;
mod write_timeout;

use std::error::Error;
use std::io;
use std::net::SocketAddr;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use http::{HeaderValue, Response, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use sidetone_engine::base::limits::{BODY_BYTES_MAX, REQUEST_READ_MS};
use sidetone_engine::base::response::Incident;
use sidetone_engine::engine::Engine;
use sidetone_engine::live::telephony::without_token;
use sidetone_engine::ports::blobs::{self, Slice};
use sidetone_engine::ports::{BlobError, Incoming as EngineRequest};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt;

use write_timeout::WriteTimeout;

/// After a 413, so much more is read and thrown away, so that the client gets to read the answer
/// instead of a reset connection.
const LINGER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// And for so long.
const LINGER_MS: u64 = 5_000;

/// A connection that sends no request head for so long is closed, idle ones too.
const HEAD_READ_MS: u64 = 60_000;
/// A connection whose client takes nothing of an answer for so long is closed.
const WRITE_STALL_MS: u64 = 30_000;
/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 10_000;
/// Files that are not connections: the database, its readers, outgoing requests.
#[cfg(unix)]
const OTHER_FILES: usize = 64;
/// Bodies of all requests in memory at once; further ones are read later.
const BODIES_BYTES_MAX: usize = 64 * 1024 * 1024;
/// So small a body is read at once, whatever large ones wait: no more than the connection itself
/// takes.
const SMALL_BODY_BYTES: u64 = 8 * 1024;
/// Connections that cannot be accepted are logged this often at most.
const ACCEPT_LOG_MS: u64 = 1_000;
/// After the signal to stop, open requests get so long to finish.
const SHUTDOWN_MS: u64 = 10_000;

#[derive(Clone)]
struct Host {
    engine: Engine,
    bodies: Arc<Semaphore>,
    /// Turns true when the service is about to stop.
    stop: watch::Receiver<bool>,
}

/// A connection's place among all, kept by whatever the connection has become.
#[derive(Clone)]
struct Place(#[expect(dead_code, reason = "it is held, not read")] Arc<OwnedSemaphorePermit>);

/// Serves until `stop` turns true, then finishes the open requests.
pub async fn serve(listener: TcpListener, engine: Engine, mut stop: watch::Receiver<bool>) {
    let bodies = Arc::new(Semaphore::new(BODIES_BYTES_MAX));
    let host = Host { engine, bodies, stop: stop.clone() };
    let app = Router::new().fallback(answer).with_state(host);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(Duration::from_millis(HEAD_READ_MS));
    let places_max = connections_max();
    let places = Arc::new(Semaphore::new(places_max));
    let mut door = Door { listener, places: places.clone(), logged: None };
    while !*stop.borrow() {
        let accepted = tokio::select! {
            accepted = door.accept() => accepted,
            _ = stop.changed() => continue,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let app = app.clone();
        let place = Place(Arc::new(place));
        let held = place.clone();
        let service = service_fn(move |request: http::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            request.extensions_mut().insert(held.clone());
            app.clone().oneshot(request)
        });
        let stream = WriteTimeout::new(stream, Duration::from_millis(WRITE_STALL_MS));
        let connection = http.serve_connection(TokioIo::new(stream), service).with_upgrades();
        let mut stop = stop.clone();
        tokio::spawn(async move {
            tokio::pin!(connection);
            // A connection that breaks is the client's business.
            tokio::select! {
                _ = connection.as_mut() => {}
                () = stopped(&mut stop) => {
                    connection.as_mut().graceful_shutdown();
                    let _ = connection.await;
                }
            }
            drop(place);
        });
    }
    drop(door);
    let grace = Duration::from_millis(SHUTDOWN_MS);
    // Every connection gives its place back, and a conversation the one it came over.
    let all = places.acquire_many(u32::try_from(places_max).unwrap_or(u32::MAX));
    if tokio::time::timeout(grace, all).await.is_err() {
        tracing::warn!("some requests or conversations did not finish in time and were cut off");
    }
}

/// Resolves once the service is to stop, or whoever says so is gone.
async fn stopped(stop: &mut watch::Receiver<bool>) {
    let _ = stop.wait_for(|stop| *stop).await;
}

/// What the open files allow, after asking for as many as we may have.
#[cfg(unix)]
fn connections_max() -> usize {
    use rustix::process::{Resource, Rlimit, getrlimit, setrlimit};
    let limit = getrlimit(Resource::Nofile);
    let raised = Rlimit { current: limit.maximum, maximum: limit.maximum };
    let files = match setrlimit(Resource::Nofile, raised) {
        Ok(()) => limit.maximum,
        Err(_) => limit.current,
    };
    // No limit is `None`.
    let files = files.and_then(|files| usize::try_from(files).ok()).unwrap_or(usize::MAX);
    CONNECTIONS_MAX.min(files.saturating_sub(OTHER_FILES)).max(1)
}

#[cfg(not(unix))]
fn connections_max() -> usize {
    CONNECTIONS_MAX
}

/// Where connections come in.
struct Door {
    listener: TcpListener,
    places: Arc<Semaphore>,
    /// When a failure was last logged.
    logged: Option<Instant>,
}

impl Door {
    async fn accept(&mut self) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
        let place = self.places.clone().acquire_owned().await.ok()?;
        match self.listener.accept().await {
            Ok((stream, peer)) => {
                // Answers are small and whole: waiting to fill a packet only delays them.
                let _ = stream.set_nodelay(true);
                Some((stream, peer, place))
            }
            Err(error) => {
                // Out of file descriptors, most likely: give the open connections time to end.
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

async fn answer(
    State(host): State<Host>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response<Body> {
    let (mut parts, mut body) = request.into_parts();
    if host.engine.wants_socket(&parts)
        && let Some(upgrade) = socket::Upgrade::of(&mut parts)
    {
        return socket::answer(&host, upgrade, parts, peer).await;
    }
    let Host { engine, bodies, .. } = host;
    if let Some(response) = engine.refuse_by_head(&parts.headers) {
        return refused(response, Some(body));
    }
    let reading = match engine.admits_body(&parts) {
        true => read(&mut body, bodies).await,
        false => discard(&mut body).await.map(|()| (Bytes::new(), None)),
    };
    // The permit is given back with the answer.
    let (whole, _permit) = match reading {
        Ok(read) => read,
        Err(Unread::TooLarge) => return refused(engine.body_too_large(), Some(body)),
        Err(Unread::Late) => return refused(engine.request_timeout(), None),
        Err(Unread::Broken) => return refused(engine.broken_body(), None),
    };
    handle(&engine, parts, whole, peer).await
}

/// Answers and logs; a panic on the way is a 500 like other bugs.
async fn handle(
    engine: &Engine,
    parts: http::request::Parts,
    body: Bytes,
    peer: SocketAddr,
) -> Response<Body> {
    let method = parts.method.clone();
    let uri = parts.uri.clone();
    let only_reads = engine.only_reads(&parts);
    let incoming = EngineRequest { request: http::Request::from_parts(parts, body), peer: Some(peer.ip()) };
    let answering = engine.clone();
    let answering = AssertUnwindSafe(async move { answering.handle(incoming).await }).catch_unwind();
    let answered = match only_reads {
        true => answering.await,
        false => match tokio::spawn(answering).await {
            Ok(answered) => answered,
            Err(error) => Err(Box::new(error.to_string()) as Box<_>),
        },
    };
    let response = match answered {
        Ok(response) => response,
        Err(panic) => engine.broken(format!("a panic: {}", said(&*panic))),
    };
    let (response, blob) = match response.extensions().get::<Slice>().cloned() {
        None => (response, None),
        Some(slice) => match blobs::open(engine.ports().blobs.clone(), slice.clone()).await {
            Ok(Some(stream)) => (response, Some(stream)),
            Ok(None) => (engine.lost(&slice), None),
            Err(error) => (engine.unreadable(error), None),
        },
    };
    log(&response, &method, uri.path());
    match blob {
        None => response.map(Body::from),
        // After an error the connection is cut: the client sees that bytes are missing.
        Some(stream) => response.map(|_| {
            Body::from_stream(stream.map(|piece| {
                piece.map_err(|BlobError(detail)| {
                    tracing::error!(detail, "a recording was cut off while it was sent");
                    io::Error::other(detail)
                })
            }))
        }),
    }
}

fn said(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<&str>().copied();
    text.or_else(|| panic.downcast_ref::<String>().map(String::as_str)).unwrap_or("without a word")
}

enum Unread {
    TooLarge,
    /// The whole of it did not come.
    Late,
    /// It cannot be read as its headers say.
    Broken,
}

/// Reads a body, a large one once there is room for it.
async fn read(
    body: &mut Body,
    bodies: Arc<Semaphore>,
) -> Result<(Bytes, Option<OwnedSemaphorePermit>), Unread> {
    if axum::body::HttpBody::is_end_stream(body) {
        return Ok((Bytes::new(), None));
    }
    let bytes = axum::body::HttpBody::size_hint(body).exact().unwrap_or(BODY_BYTES_MAX as u64);
    let reading = async {
        let permit = match u32::try_from(bytes) {
            Ok(bytes) if u64::from(bytes) > SMALL_BODY_BYTES => bodies.acquire_many_owned(bytes).await.ok(),
            _ => None,
        };
        let read = Limited::new(body, BODY_BYTES_MAX).collect().await;
        read.map(|whole| (whole.to_bytes(), permit))
    };
    in_time(reading).await
}

/// Takes a body off the connection and keeps nothing of it.
async fn discard(body: &mut Body) -> Result<(), Unread> {
    if axum::body::HttpBody::is_end_stream(body) {
        return Ok(());
    }
    let mut limited = Limited::new(body, BODY_BYTES_MAX);
    in_time(async move {
        while let Some(frame) = limited.frame().await {
            frame?;
        }
        Ok(())
    })
    .await
}

async fn in_time<T>(reading: impl Future<Output = Result<T, axum::BoxError>>) -> Result<T, Unread> {
    match tokio::time::timeout(Duration::from_millis(REQUEST_READ_MS), reading).await {
        Ok(Ok(read)) => Ok(read),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
        Ok(Err(error)) if is_malformed(&*error) => Err(Unread::Broken),
        Ok(Err(_)) | Err(_) => Err(Unread::Late),
    }
}

/// Whether hyper could not make sense of what came, as against: no more came.
fn is_malformed(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
}

/// An answer after which the connection is closed. The rest of the request's body, if it was not
/// read, is drained within bounds beside it: hyper keeps the connection open for as long as
/// somebody reads the body, and closes it with a reset once nobody does.
fn refused(response: Response<Bytes>, unread: Option<Body>) -> Response<Body> {
    if let Some(rest) = unread {
        tokio::spawn(drain(rest));
    }
    let mut response = response.map(Body::from);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn drain(body: Body) {
    let limited = Limited::new(body, LINGER_BYTES_MAX);
    let mut stream = Box::pin(limited.into_data_stream());
    let all = async { while let Some(Ok(_)) = stream.next().await {} };
    let _ = tokio::time::timeout(Duration::from_millis(LINGER_MS), all).await;
}

/// Our own failures are logged with their private detail; the rest only when asked for. Headers, queries and
/// bodies never are, nor tokens in paths: they are keys and secrets, or hold them.
fn log(response: &Response<Bytes>, method: &http::Method, path: &str) {
    let status = response.status().as_u16();
    let path = &*without_token(path);
    let request_id =
        response.headers().get("x-request-id").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if let Some(Incident(detail)) = response.extensions().get::<Incident>() {
        tracing::error!(request_id, %method, path, status, detail, "a request failed on our side");
    } else {
        tracing::debug!(request_id, %method, path, status, "request");
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
            panic!("as planned")
        }

        fn write(&self, _: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>> {
            panic!("as planned")
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
        assert!(answer.contains("\"internal\"") && !answer.contains("as planned"), "{answer}");
    }

    #[tokio::test]
    async fn without_a_key_a_body_is_thrown_away_and_the_connection_stays() {
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
    async fn a_malformed_body_is_a_400_and_one_that_breaks_off_a_408() {
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
    async fn large_bodies_wait_for_room_and_small_ones_do_not() {
        let bodies = Arc::new(Semaphore::new(20_000));
        let large = |bodies: &Arc<Semaphore>| {
            let bodies = bodies.clone();
            async move { read(&mut Body::from(vec![b' '; 15_000]), bodies).await.ok() }
        };
        let held = large(&bodies).await.expect("there is room");
        assert_eq!(bodies.available_permits(), 5_000);
        let small = read(&mut Body::from("{}"), bodies.clone()).await.ok();
        assert!(small.is_some_and(|(_, permit)| permit.is_none()));
        let waiting = tokio::spawn(large(&bodies));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!waiting.is_finished());
        drop(held);
        assert!(waiting.await.unwrap().is_some());
    }
}
