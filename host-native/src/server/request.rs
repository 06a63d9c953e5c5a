//! One request: passes the body to the engine piece by piece and sends the response.
use std::error::Error;
use std::io;
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use bytes::Bytes;
use futures_util::{FutureExt, StreamExt};
use http::{HeaderValue, Request, Response, header};
use http_body_util::{BodyExt, Either, Full, Limited, StreamBody};
use hyper::body::{Body, Frame, Incoming};
use sidetone_engine::engine::{
    Admission, BodyFailure, FinalResponse, PendingRequest, PreparedResponse, Room,
};
use sidetone_engine::ports::{BlobError, BoxStream};
use tokio::time::Instant;

use super::connections::Connection;
use super::{Host, compressed, panic_message, socket, stopped};

/// After a 413, up to this much of the body is read and discarded: closing earlier would reset the connection before
/// the client reads the response.
const LINGER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The time limit for discarding the body.
const LINGER_MS: u64 = 5_000;
/// How often a body that waits for memory asks for it.
const ROOM_WAIT_MS: u64 = 20;

/// The body of a response: bytes, or a stream of a blob or of events.
pub type ResponseBody = Either<Full<Bytes>, StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>>;

/// Answers a request.
pub async fn answer(
    host: Arc<Host>,
    connection: Connection,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let started = Instant::now();
    let (mut head, mut body) = request.into_parts();
    let upgrade = socket::Upgrade::of(&mut head);
    let takes_gzip = compressed::is_taken(&head.headers);
    let mut pending = match host.engine.begin(head, Some(connection.peer.ip()), upgrade) {
        Admission::ReadBody(pending) => pending,
        Admission::Respond(response) if body.is_end_stream() => return send(response),
        Admission::Respond(response) => return close(response, Some(body)),
        Admission::Socket(pending, upgrade) => {
            return socket::answer(host, connection, pending, upgrade).await;
        }
    };
    match read(&mut pending, &mut body).await {
        Ok(()) => run(host, pending, takes_gzip, started).await,
        Err(failure @ (BodyFailure::TooLarge | BodyFailure::NoRoom)) => {
            close(pending.fail(failure), Some(body))
        }
        Err(failure) => close(pending.fail(failure), None),
    }
}

/// Runs a request with its complete body. A request that may write runs to its end, even if the client disconnects, and has its
/// line in the log.
async fn run(
    host: Arc<Host>,
    pending: PendingRequest,
    takes_gzip: bool,
    started: Instant,
) -> Response<ResponseBody> {
    let mut stop = host.stop.clone();
    let trace = pending.trace();
    let of_task = trace.clone();
    let only_reads = pending.only_reads();
    let answering = AssertUnwindSafe(pending.answer()).catch_unwind();
    let answering = async move {
        answering.await.unwrap_or_else(|panic| {
            let detail = format!("a panic: {}", panic_message(&*panic));
            PreparedResponse::Complete(trace.broken(detail))
        })
    };
    let answered = match only_reads {
        // It is logged when it is known what is sent.
        true => Either::Right(answering.await),
        false => {
            let to_its_end = tokio::spawn(async move {
                match answering.await {
                    PreparedResponse::Complete(response) => {
                        let (response, record) = response.into_parts();
                        host.note(&record, started.elapsed());
                        Either::Left(response)
                    }
                    other => Either::Right(other),
                }
            });
            to_its_end.await.unwrap_or_else(|error| {
                Either::Right(PreparedResponse::Complete(of_task.broken(error.to_string())))
            })
        }
    };
    let compressed = |response| whole(if takes_gzip { compressed::compressed(response) } else { response });
    match answered {
        Either::Left(response) => compressed(response),
        Either::Right(PreparedResponse::Complete(response)) => compressed(logged(response)),
        Either::Right(PreparedResponse::Blob(blob)) => match blob.open().await {
            (response, None) => send(response),
            (response, Some(stream)) => {
                logged(response).map(|_| Either::Right(StreamBody::new(frames(stream))))
            }
        },
        Either::Right(PreparedResponse::Events(events)) => {
            let (response, pieces) = events.into_parts();
            // A service that stops does not wait for those who follow.
            let until_stop = pieces.take_until(Box::pin(async move { stopped(&mut stop).await }));
            let frames = until_stop.map(|piece| Ok(Frame::data(piece)));
            logged(response)
                .map(|_| Either::Right(StreamBody::new(Box::pin(frames) as BoxStream<'static, _>)))
        }
    }
}

/// Passes a body to the engine, which has memory for it, lets it wait, or refuses it.
async fn read<B>(pending: &mut PendingRequest, body: &mut B) -> Result<(), BodyFailure>
where
    B: Body<Data = Bytes, Error: Error + 'static> + Unpin,
{
    if body.is_end_stream() {
        return Ok(());
    }
    let started = Instant::now();
    let until = |ms: u64| started + Duration::from_millis(ms);
    // Waiting for room is not the client's fault.
    let mut waited = Duration::ZERO;
    loop {
        let late = (until(pending.next_piece_within_ms()) + waited).min(until(PendingRequest::DEADLINE_MS));
        let frame = match tokio::time::timeout_at(late, body.frame()).await {
            Ok(Some(frame)) => frame,
            Ok(None) => return Ok(()),
            Err(_) => return Err(BodyFailure::Late),
        };
        let frame = frame.map_err(|error| match is_malformed(&error) {
            true => BodyFailure::Malformed,
            false => BodyFailure::Late,
        })?;
        let Ok(piece) = frame.into_data() else { continue };
        let asked = Instant::now();
        loop {
            match pending.room_for(piece.len()).await {
                Room::Taken => break,
                Room::Refused => return Err(BodyFailure::NoRoom),
                Room::Wait if Instant::now() >= until(PendingRequest::DEADLINE_MS) => {
                    return Err(BodyFailure::NoRoom);
                }
                Room::Wait => tokio::time::sleep(Duration::from_millis(ROOM_WAIT_MS)).await,
            }
        }
        waited += asked.elapsed();
        pending.receive(piece).map_err(|_| BodyFailure::TooLarge)?;
    }
}

/// Whether the body is malformed; otherwise it is incomplete.
fn is_malformed(error: &(dyn Error + 'static)) -> bool {
    std::iter::successors(Some(error), |error: &&(dyn Error + 'static)| (*error).source())
        .filter_map(|error| error.downcast_ref::<io::Error>())
        .any(|error| matches!(error.kind(), io::ErrorKind::InvalidInput | io::ErrorKind::InvalidData))
}

/// Converts a blob to frames. An error closes the connection, so the client detects the truncation.
fn frames(
    stream: BoxStream<'static, Result<Bytes, BlobError>>,
) -> BoxStream<'static, io::Result<Frame<Bytes>>> {
    Box::pin(stream.map(|piece| {
        piece.map(Frame::data).map_err(|BlobError(detail)| {
            tracing::error!(detail, "a recording was cut off while it was sent");
            io::Error::other(detail)
        })
    }))
}

/// Converts a response for hyper.
pub fn send(response: FinalResponse) -> Response<ResponseBody> {
    whole(logged(response))
}

fn whole(response: Response<Bytes>) -> Response<ResponseBody> {
    response.map(|body| Either::Left(Full::new(body)))
}

/// A response after which the connection is closed. An unread rest of the request's body is drained concurrently,
/// within limits: hyper keeps the connection open while the body is being read, and resets it when the body is dropped.
fn close(response: FinalResponse, unread: Option<Incoming>) -> Response<ResponseBody> {
    if let Some(rest) = unread {
        tokio::spawn(drain(rest));
    }
    let mut response = send(response);
    response.headers_mut().insert(header::CONNECTION, HeaderValue::from_static("close"));
    response
}

async fn drain(body: Incoming) {
    let mut limited = Limited::new(body, LINGER_BYTES_MAX);
    let all = async { while let Some(Ok(_)) = limited.frame().await {} };
    let _ = tokio::time::timeout(Duration::from_millis(LINGER_MS), all).await;
}

/// A response with its record, which is logged when it is known how long answering took.
pub fn logged(response: FinalResponse) -> Response<Bytes> {
    let (mut response, record) = response.into_parts();
    response.extensions_mut().insert(record);
    response
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sandbox;

    fn begin(sandbox: &Sandbox, head: http::request::Builder) -> PendingRequest {
        let (head, ()) = head.body(()).unwrap().into_parts();
        match sandbox.engine().begin(head, None, None::<()>) {
            Admission::ReadBody(pending) => pending,
            _ => panic!("expected Admission::ReadBody"),
        }
    }

    /// A request with a key and an unread body.
    fn pending(sandbox: &Sandbox, key: &str) -> PendingRequest {
        begin(sandbox, Request::post("/assistants").header("authorization", format!("Bearer {key}")))
    }

    /// A body that announces a mebibyte, sends `first` and then nothing.
    fn stalled(first: usize) -> impl Body<Data = Bytes, Error = io::Error> + Unpin {
        let piece =
            futures_util::stream::once(async move { Ok(Frame::data(Bytes::from(vec![b' '; first]))) });
        StreamBody::new(Box::pin(piece.chain(futures_util::stream::pending())))
    }

    #[test]
    fn a_service_that_stops_is_not_ready() {
        let sandbox = Sandbox::new();
        assert_eq!(sandbox.get("/readyz").status, 200);
        sandbox.engine().services().begin_to_stop();
        let reply = sandbox.get("/readyz");
        assert_eq!((reply.status, reply["reason"].as_str()), (503, Some("the service stops")));
        assert_eq!(sandbox.get("/healthz").status, 200, "the process lives");
        assert_eq!(sandbox.get("/metrics").status, 404, "a host that measures nothing has no page");
    }

    #[tokio::test(start_paused = true)]
    async fn bodies_that_are_announced_and_not_sent_block_nobody() {
        let sandbox = Sandbox::new();
        let wrong = sidetone_engine::base::api_key::ApiKey::from_bytes([3; 32]);
        let mut slow = Vec::new();
        // The keys look valid. Each body arrives up to its last half.
        for _ in 0..64 {
            let mut pending = pending(&sandbox, wrong.as_str());
            slow.push(tokio::spawn(async move { read(&mut pending, &mut stalled(500_000)).await }));
        }
        tokio::time::sleep(Duration::from_millis(100)).await;
        let started = Instant::now();
        let mut good = pending(&sandbox, sandbox.key());
        assert_eq!(read(&mut good, &mut Full::from(vec![b' '; 1_000_000])).await, Ok(()));
        assert!(started.elapsed() < Duration::from_secs(1));
    }

    #[tokio::test(start_paused = true)]
    async fn a_slow_sender_is_cut_off_before_the_deadline() {
        let sandbox = Sandbox::new();
        let started = Instant::now();
        let mut pending = pending(&sandbox, sandbox.key());
        assert_eq!(read(&mut pending, &mut stalled(1)).await, Err(BodyFailure::Late));
        assert!(started.elapsed() < Duration::from_secs(6), "{:?}", started.elapsed());
    }
}
