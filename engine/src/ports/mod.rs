//! Everything a host lends the engine. Nothing else of the outside world reaches it, so a recorded
//! or seeded set of ports replays to the same bytes.
use std::future::Future;
use std::net::IpAddr;
use std::pin::Pin;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream::{self, Stream};

pub use blobs::{BlobError, BlobKey, ByteRange};
use statement::{Rows, Statement};

pub mod blobs;
mod database_error;
mod job_queue;
mod keys;
pub mod sockets;
pub mod statement;

pub use database_error::DatabaseError;
pub use job_queue::JobQueue;
pub use keys::Keys;
pub use sockets::{Gone, Received, Socket, SocketMessage};

/// A boxed future: `Send` wherever the host has threads.
#[cfg(not(target_arch = "wasm32"))]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A boxed future: a Worker has one thread and its platform's futures are not `Send`.
#[cfg(target_arch = "wasm32")]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A boxed stream: `Send` wherever the host has threads.
#[cfg(not(target_arch = "wasm32"))]
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;
/// A boxed stream, as [`BoxFuture`] is on a Worker.
#[cfg(target_arch = "wasm32")]
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + 'a>>;

/// What every port is: shareable between threads where there are threads.
#[cfg(not(target_arch = "wasm32"))]
pub trait Port: Send + Sync {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + Sync + ?Sized> Port for T {}
/// What every port is: on a Worker there is one thread and nothing to ask for.
#[cfg(target_arch = "wasm32")]
pub trait Port {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> Port for T {}

/// SQLite behind either host: D1 at the edge, a file on a box.
///
/// 1. A batch runs in order and is all or nothing; a later statement sees what an earlier one wrote.
/// 2. A batch is never empty, binds at most 100 parameters a statement, and binds every number as a
///    float: what passes on one host passes on the other.
/// 3. `write` returns only when the batch is durable. When it fails with
///    [`DatabaseError::Unavailable`] the batch may still have been committed: guards and ids make
///    a second try safe.
/// 4. `read` sees every write that was acknowledged before it was called, and sees one moment.
pub trait Database: Port {
    /// Runs statements that change nothing.
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>>;
    /// Runs statements of which at least one may write.
    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>>;
}

/// What no row can hold: recordings. Files on a box, R2 at the edge.
///
/// 1. `put` makes a blob whole or not at all, and returns only when it is durable. One that failed or was cut off
///    may have made it all the same. The engine writes a key once, or again with nobody else at it.
/// 2. `size` and `get` see every put and delete that was acknowledged before they were called.
/// 3. `get` gives exactly the bytes asked for; fewer only where the blob ends, for which at least its first byte
///    has to be within it. `None`: there is no such blob.
/// 4. `delete` succeeds also when there is nothing, takes what a `put` that was cut off left behind along, and
///    returns only when that is durable.
/// 5. A blob belongs to its key alone: keys that look alike share nothing.
pub trait Blobs: Port {
    /// Keeps `bytes` under `key`, in place of what is there.
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>>;
    /// How many bytes there are; `None` when there is no such blob.
    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>>;
    /// Reads some of them.
    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>>;
    /// Removes a blob for good.
    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>>;
}

/// The time. It may stand still or jump; the engine only compares and adds.
pub trait Clock: Port {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> i64;
    /// Is over when `ms` have passed. Dropping it ends the wait. Where time is moved by hand, the
    /// pause moves it on and is over at once.
    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()>;
}

/// Unpredictable bytes (a seeded stream in tests).
pub trait Random: Port {
    /// Fills all of `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// Carries hints to the job runner. One may be lost, doubled or late: the job's row is the truth.
pub trait Queue: Port {
    /// Asks for a look at the jobs of `wake`'s queue, once it is due or soon after.
    fn wake(&self, wake: &Wake);
}

/// A hint that a job is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// Where the job runs.
    pub queue: JobQueue,
    /// The job.
    pub job_id: String,
    /// When it is due, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Where a request may go.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Egress {
    /// An address a user gave us: the host connects to no private address, whatever the name
    /// resolves to at that moment (see [`crate::base::targets::is_public_address`]).
    Public,
    /// An address the operator configured, or a user's where the operator allows private targets.
    Operator,
}

/// One outgoing request.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: &'static str,
    /// Absolute `https://` URL (`http://` only for [`Egress::Operator`]).
    pub url: String,
    /// Names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Empty for none.
    pub body: Bytes,
    /// The whole exchange, from the look-up of the name to the last byte.
    pub deadline_ms: u64,
    /// More bytes than this in the answer are [`HttpError::TooLarge`].
    pub response_bytes_max: usize,
    /// Where it may go.
    pub egress: Egress,
}

/// The answer to an outgoing request. Redirects are not followed: a 3xx is an answer.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpReply {
    /// The status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// At most `response_bytes_max` bytes.
    pub body: Bytes,
}

/// Why there is no answer.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpError {
    /// The deadline passed.
    Timeout,
    /// The address is private and the egress class forbids that.
    Refused,
    /// The answer was larger than allowed; this is how it began.
    TooLarge(HttpReply),
    /// The connection failed; the text is for logs.
    Failed(String),
}

/// An answer whose body is still on its way. Dropping it aborts the exchange.
pub struct HttpStream {
    /// The status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it comes in, in pieces of any size.
    pub body: BoxStream<'static, Result<Bytes, HttpError>>,
}

impl HttpStream {
    /// The next piece of the body; `None` at its end.
    pub async fn next(&mut self) -> Option<Result<Bytes, HttpError>> {
        self.body.next().await
    }

    /// The first value of a header.
    #[must_use]
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// Outgoing HTTP.
///
/// 1. One call sends one request once: no retry, no redirect, no cookie.
/// 2. `deadline_ms` counts for the whole exchange, the reading of the body included, and
///    `response_bytes_max` for all pieces of the body together. The host sees to both.
/// 3. Nothing of an exchange outlives its future, or the stream that came of it.
pub trait Http: Port {
    /// Sends a request and reads the whole answer.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>>;

    /// Sends a request and returns as soon as the answer has begun. After the first error the body
    /// has ended. A body that is cut off ends in [`HttpError::Failed`] wherever the protocol tells.
    ///
    /// A host that cannot stream gives the whole answer as one piece, which is what is done here.
    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpStream, HttpError>> {
        Box::pin(async move {
            let HttpReply { status, headers, body } = self.send(request).await?;
            Ok(HttpStream { status, headers, body: Box::pin(stream::iter([Ok(body)])) })
        })
    }
}

/// The set of ports a host lends.
#[derive(Clone)]
pub struct Ports {
    /// Durable state.
    pub database: Arc<dyn Database>,
    /// Durable state that is too large for it.
    pub blobs: Arc<dyn Blobs>,
    /// The time.
    pub clock: Arc<dyn Clock>,
    /// Unpredictable bytes.
    pub random: Arc<dyn Random>,
    /// Hints to the job runner.
    pub queue: Arc<dyn Queue>,
    /// Outgoing requests.
    pub http: Arc<dyn Http>,
    /// Signatures with key pairs.
    pub keys: Arc<dyn Keys>,
}

/// One incoming request, its body whole and within [`crate::base::limits::BODY_BYTES_MAX`].
pub struct Incoming {
    /// Method, URI, headers and body.
    pub request: http::Request<Bytes>,
    /// The address of the peer as the platform reports it; `None` where there is none.
    pub peer: Option<IpAddr>,
}
