//! axum with one fallback into the engine: reads a body within the limit, hands the request over,
//! writes the answer and logs what must be logged.
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::{ConnectInfo, Request, State};
use bytes::Bytes;
use futures_util::StreamExt;
use http::{HeaderValue, Response, header};
use http_body_util::{BodyExt, LengthLimitError, Limited};
use hyper::body::Incoming;
use hyper::server::conn::http1;
use hyper::service::service_fn;
use hyper_util::rt::{TokioIo, TokioTimer};
use hyper_util::server::graceful::GracefulShutdown;
use sidetone_engine::engine::{Engine, Incident};
use sidetone_engine::limits::{BODY_BYTES_MAX, REQUEST_READ_MS};
use sidetone_engine::ports::Incoming as EngineRequest;
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};
use tower::ServiceExt;

/// After a 413, so much more is read and thrown away, so that the client gets to read the answer
/// instead of a reset connection.
const LINGER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// And for so long.
const LINGER_MS: u64 = 5_000;

/// A connection that sends no request head for so long is closed, idle ones too.
const HEAD_READ_MS: u64 = 60_000;
/// Connections at once; more wait to be accepted.
const CONNECTIONS_MAX: usize = 10_000;
/// After the signal to stop, open requests get so long to finish.
const SHUTDOWN_MS: u64 = 10_000;

/// Serves until `stop` turns true, then finishes the open requests.
pub async fn serve(listener: TcpListener, engine: Engine, mut stop: watch::Receiver<bool>) {
    let app = Router::new().fallback(answer).with_state(engine);
    let mut http = http1::Builder::new();
    http.timer(TokioTimer::new()).header_read_timeout(Duration::from_millis(HEAD_READ_MS));
    let connections = GracefulShutdown::new();
    let places = Arc::new(Semaphore::new(CONNECTIONS_MAX));
    while !*stop.borrow() {
        let accepted = tokio::select! {
            accepted = accept(&listener, &places) => accepted,
            _ = stop.changed() => continue,
        };
        let Some((stream, peer, place)) = accepted else { continue };
        let app = app.clone();
        let service = service_fn(move |request: http::Request<Incoming>| {
            let mut request = request.map(Body::new);
            request.extensions_mut().insert(ConnectInfo(peer));
            app.clone().oneshot(request)
        });
        let connection = connections.watch(http.serve_connection(TokioIo::new(stream), service));
        tokio::spawn(async move {
            // A connection that breaks is the client's business.
            let _ = connection.await;
            drop(place);
        });
    }
    drop(listener);
    let grace = Duration::from_millis(SHUTDOWN_MS);
    if tokio::time::timeout(grace, connections.shutdown()).await.is_err() {
        tracing::warn!("some requests did not finish in time and were cut off");
    }
}

async fn accept(
    listener: &TcpListener,
    places: &Arc<Semaphore>,
) -> Option<(TcpStream, SocketAddr, OwnedSemaphorePermit)> {
    let place = places.clone().acquire_owned().await.ok()?;
    match listener.accept().await {
        Ok((stream, peer)) => {
            // Answers are small and whole: waiting to fill a packet only delays them.
            let _ = stream.set_nodelay(true);
            Some((stream, peer, place))
        }
        Err(error) => {
            // Out of file descriptors, most likely: give the open connections time to end.
            tracing::warn!(%error, "a connection could not be accepted");
            tokio::time::sleep(Duration::from_millis(100)).await;
            None
        }
    }
}

async fn answer(
    State(engine): State<Engine>,
    ConnectInfo(peer): ConnectInfo<SocketAddr>,
    request: Request,
) -> Response<Body> {
    let (parts, body) = request.into_parts();
    if let Some(response) = engine.refuse_by_head(&parts.headers) {
        return refused(response, Some(body));
    }
    let body = match read(body).await {
        Ok(body) => body,
        Err(Unread::TooLarge) => return refused(engine.body_too_large(), None),
        Err(Unread::Late) => return refused(engine.request_timeout(), None),
    };
    let method = parts.method.clone();
    let path = parts.uri.path().to_owned();
    let incoming = EngineRequest { request: http::Request::from_parts(parts, body), peer: Some(peer.ip()) };
    let response = engine.handle(incoming).await;
    log(&response, &method, &path);
    response.map(Body::from)
}

enum Unread {
    TooLarge,
    Late,
}

async fn read(body: Body) -> Result<Bytes, Unread> {
    if axum::body::HttpBody::is_end_stream(&body) {
        return Ok(Bytes::new());
    }
    let collected = Limited::new(body, BODY_BYTES_MAX).collect();
    match tokio::time::timeout(Duration::from_millis(REQUEST_READ_MS), collected).await {
        Ok(Ok(body)) => Ok(body.to_bytes()),
        Ok(Err(error)) if error.is::<LengthLimitError>() => Err(Unread::TooLarge),
        Ok(Err(_)) | Err(_) => Err(Unread::Late),
    }
}

/// An answer after which the connection is closed. The rest of the request's body, if it was not
/// read, is drained within bounds while the answer is already on its way.
fn refused(response: Response<Bytes>, unread: Option<Body>) -> Response<Body> {
    let (mut parts, bytes) = response.into_parts();
    parts.headers.insert(header::CONNECTION, HeaderValue::from_static("close"));
    parts.headers.insert(header::CONTENT_LENGTH, HeaderValue::from(bytes.len()));
    let body = match unread {
        None => Body::from(bytes),
        Some(rest) => {
            let answer = futures_util::stream::iter([Ok::<Bytes, std::convert::Infallible>(bytes)]);
            let drained = futures_util::stream::once(drain(rest)).filter_map(|()| async { None });
            Body::from_stream(answer.chain(drained))
        }
    };
    Response::from_parts(parts, body)
}

async fn drain(body: Body) {
    let limited = Limited::new(body, LINGER_BYTES_MAX);
    let mut stream = Box::pin(limited.into_data_stream());
    let all = async { while let Some(Ok(_)) = stream.next().await {} };
    let _ = tokio::time::timeout(Duration::from_millis(LINGER_MS), all).await;
}

/// Our own failures are logged with their private detail; the rest only when asked for. Headers and
/// bodies never are: they hold keys and secrets.
fn log(response: &Response<Bytes>, method: &http::Method, path: &str) {
    let status = response.status().as_u16();
    let request_id =
        response.headers().get("x-request-id").and_then(|value| value.to_str().ok()).unwrap_or_default();
    if let Some(Incident(detail)) = response.extensions().get::<Incident>() {
        tracing::error!(request_id, %method, path, status, detail, "a request failed on our side");
    } else {
        tracing::debug!(request_id, %method, path, status, "request");
    }
}
