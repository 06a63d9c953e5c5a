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
    Admission, BodyFailure, FinalResponse, LogRecord, PendingRequest, PreparedResponse,
};
use sidetone_engine::ports::{BlobError, BoxStream};
use tokio::sync::{OwnedSemaphorePermit, Semaphore};

use super::connections::Connection;
use super::{Host, panic_message, socket};

/// After a 413, up to this much of the body is read and discarded: closing earlier would reset the connection before
/// the client reads the response.
const LINGER_BYTES_MAX: usize = 16 * 1024 * 1024;
/// The time limit for discarding the body.
const LINGER_MS: u64 = 5_000;
/// A body up to this size is read at once, even while large ones wait: it takes no more memory than its connection.
const SMALL_BODY_BYTES: u64 = 8 * 1024;

/// The body of a response: bytes, or a streamed blob.
pub type ResponseBody = Either<Full<Bytes>, StreamBody<BoxStream<'static, io::Result<Frame<Bytes>>>>>;

/// Answers a request.
pub async fn answer(
    host: Host,
    connection: Connection,
    request: Request<Incoming>,
) -> Response<ResponseBody> {
    let (mut head, mut body) = request.into_parts();
    let upgrade = socket::Upgrade::of(&mut head);
    let mut pending = match host.engine.begin(head, Some(connection.peer.ip()), upgrade) {
        Admission::ReadBody(pending) => pending,
        Admission::Respond(response) => return close(response, Some(body)),
        Admission::Socket(pending, upgrade) => {
            return socket::answer(host, connection, pending, upgrade).await;
        }
    };
    // The permit is held until the response is complete.
    match read(&mut pending, &mut body, host.bodies).await {
        Ok(_permit) => run(pending).await,
        Err(BodyFailure::TooLarge) => close(pending.fail(BodyFailure::TooLarge), Some(body)),
        Err(failure) => close(pending.fail(failure), None),
    }
}

/// Runs a request with its complete body. A request that may write runs to its end, even if the client disconnects.
async fn run(pending: PendingRequest) -> Response<ResponseBody> {
    let trace = pending.trace();
    let only_reads = pending.only_reads();
    let answering = AssertUnwindSafe(pending.answer()).catch_unwind();
    let answered = match only_reads {
        true => answering.await,
        false => match tokio::spawn(answering).await {
            Ok(answered) => answered,
            Err(error) => Err(Box::new(error.to_string()) as Box<_>),
        },
    };
    match answered {
        Ok(PreparedResponse::Complete(response)) => send(response),
        Ok(PreparedResponse::Blob(blob)) => match blob.open().await {
            (response, None) => send(response),
            (response, Some(stream)) => {
                logged(response).map(|_| Either::Right(StreamBody::new(frames(stream))))
            }
        },
        Err(panic) => send(trace.broken(format!("a panic: {}", panic_message(&*panic)))),
    }
}

/// Passes a body to the engine. A large body first waits for memory.
async fn read<B>(
    pending: &mut PendingRequest,
    body: &mut B,
    bodies: Arc<Semaphore>,
) -> Result<Option<OwnedSemaphorePermit>, BodyFailure>
where
    B: Body<Data = Bytes, Error: Error + 'static> + Unpin,
{
    if body.is_end_stream() {
        return Ok(None);
    }
    let bytes = pending.memory_bytes(body.size_hint().exact());
    let reading = async {
        let permit = match u32::try_from(bytes) {
            Ok(bytes) if u64::from(bytes) > SMALL_BODY_BYTES => bodies.acquire_many_owned(bytes).await.ok(),
            _ => None,
        };
        while let Some(frame) = body.frame().await {
            let frame = frame.map_err(|error| match is_malformed(&error) {
                true => BodyFailure::Malformed,
                false => BodyFailure::Late,
            })?;
            if let Ok(piece) = frame.into_data() {
                pending.receive(piece).map_err(|_| BodyFailure::TooLarge)?;
            }
        }
        Ok(permit)
    };
    let deadline = Duration::from_millis(PendingRequest::DEADLINE_MS);
    tokio::time::timeout(deadline, reading).await.unwrap_or(Err(BodyFailure::Late))
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

/// Logs a response and converts it for hyper.
pub fn send(response: FinalResponse) -> Response<ResponseBody> {
    logged(response).map(|body| Either::Left(Full::new(body)))
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

/// Logs internal errors as errors, and other responses at debug level.
pub fn logged(response: FinalResponse) -> Response<Bytes> {
    let (response, record) = response.into_parts();
    log(&record);
    response
}

fn log(record: &LogRecord) {
    let (request_id, method, status) = (record.request_id(), record.method(), record.status().as_u16());
    match record.incident() {
        Some(detail) => {
            tracing::error!(request_id, %method, path = &*record.path(), status, detail, "a request failed on our side");
        }
        None => tracing::debug!(request_id, %method, path = &*record.path(), status, "request"),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Sandbox;

    /// A request with a key and an unread body.
    fn pending(sandbox: &Sandbox) -> PendingRequest {
        let request =
            Request::post("/assistants").header("authorization", format!("Bearer {}", sandbox.key()));
        let (head, ()) = request.body(()).unwrap().into_parts();
        match sandbox.engine().begin(head, None, None::<()>) {
            Admission::ReadBody(pending) => pending,
            _ => panic!("expected Admission::ReadBody"),
        }
    }

    #[tokio::test]
    async fn only_large_bodies_wait_for_memory() {
        let sandbox = Sandbox::new();
        let bodies = Arc::new(Semaphore::new(20_000));
        let large = |bodies: &Arc<Semaphore>| {
            let (bodies, mut pending) = (bodies.clone(), pending(&sandbox));
            async move { read(&mut pending, &mut Full::from(vec![b' '; 15_000]), bodies).await.ok() }
        };
        let held = large(&bodies).await.expect("enough memory");
        assert_eq!(bodies.available_permits(), 5_000);
        let small = read(&mut pending(&sandbox), &mut Full::from("{}"), bodies.clone()).await.ok();
        assert!(small.is_some_and(|permit| permit.is_none()));
        let waiting = tokio::spawn(large(&bodies));
        tokio::time::sleep(Duration::from_millis(50)).await;
        assert!(!waiting.is_finished());
        drop(held);
        assert!(waiting.await.unwrap().is_some());
    }
}
