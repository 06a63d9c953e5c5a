//! The ports: everything that a host provides to the engine. The engine has no other access to the outside world, so a
//! recorded or seeded set of ports replays to the same bytes.
use crate::base::ids::JobId;
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
mod live;
mod mailer;
mod metrics;
mod party;
mod relay;
mod shards;
pub(crate) mod sockets;
pub mod statement;
mod traces;
mod web_sockets;

pub use database_error::DatabaseError;
pub use job_queue::JobQueue;
pub use keys::Keys;
pub use live::{Home, Homes, Live, Told};
pub use mailer::{Mailer, OutgoingMail};
pub use metrics::{JobsOfKind, Metrics, MetricsForm, MovesInState, Readings};
pub use party::{Party, PartyKind};
pub use relay::{RelayedSocket, SocketHolder};
pub(crate) use shards::ShardQueue;
pub use shards::{Shard, Shards};
pub use sockets::{Gone, Received, Socket, SocketMessage};
pub use traces::{Attribute, Step, Traces, otlp};
pub use web_sockets::{
    ClientReceived, ClientSender, ClientSocket, EXCHANGE_ERROR_BYTES_MAX, ExchangeFailure, NoWebSockets,
    NotSent, SocketRequest, TOO_LARGE_CODE, WebSockets,
};

/// A boxed future: `Send` on hosts with threads.
#[cfg(not(target_arch = "wasm32"))]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + Send + 'a>>;
/// A boxed future: not `Send`, because a Worker has one thread and its platform's futures are not `Send`.
#[cfg(target_arch = "wasm32")]
pub type BoxFuture<'a, T> = Pin<Box<dyn Future<Output = T> + 'a>>;

/// A boxed stream: `Send` on hosts with threads.
#[cfg(not(target_arch = "wasm32"))]
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + Send + 'a>>;
/// A boxed stream; not `Send`, like [`BoxFuture`] on a Worker.
#[cfg(target_arch = "wasm32")]
pub type BoxStream<'a, T> = Pin<Box<dyn Stream<Item = T> + 'a>>;

/// Supertrait of every port: `Send + Sync` on hosts with threads.
#[cfg(not(target_arch = "wasm32"))]
pub trait Port: Send + Sync {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + Sync + ?Sized> Port for T {}
/// Supertrait of every port: no requirement on a Worker, which has one thread.
#[cfg(target_arch = "wasm32")]
pub trait Port {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> Port for T {}

/// SQLite: D1 at the edge, a file on a native host.
///
/// 1. A batch runs in order and is atomic; a later statement sees the writes of an earlier one.
/// 2. A batch is never empty, binds at most 100 parameters per statement, and binds every number as a float: what works on
///    one host works on the other.
/// 3. `write` returns only when the batch is durable. When it fails with [`DatabaseError::Unavailable`] the batch may still
///    have been committed: guards and ids make a retry safe.
/// 4. `read` sees every write that was acknowledged before the call, in one consistent snapshot.
pub trait Database: Port {
    /// Runs statements that only read.
    fn read(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>>;
    /// Runs statements of which at least one may write. A host without room for data writes those that
    /// [only remove](statement::only_removes) as long as it can.
    fn write(&self, batch: Vec<Statement>) -> BoxFuture<'_, Result<Vec<Rows>, DatabaseError>>;
    /// Whether batches that add data can be written at present. The default implementation writes one without effect.
    fn takes_writes(&self) -> BoxFuture<'_, Result<(), NotWritable>> {
        Box::pin(async {
            let nothing = crate::sql!("DELETE FROM batch_guard");
            self.write(vec![nothing]).await.map(drop).map_err(|error| NotWritable {
                reason: "the database does not answer",
                detail: format!("{error:?}"),
            })
        })
    }
    /// Whether those for whom batches are ([`statement::asker`]) take turns. Then the workspace of a key that is not known yet is
    /// looked up before its first batch.
    fn takes_turns(&self) -> bool {
        false
    }
    /// How large it is. Asked only where there are several, before a new workspace is given one.
    fn bytes(&self) -> BoxFuture<'_, Result<u64, DatabaseError>> {
        Box::pin(async {
            let ask = crate::sql!(
                "SELECT p.page_count * s.page_size AS bytes FROM pragma_page_count AS p, pragma_page_size AS s"
            );
            let answers = self.read(vec![ask]).await?;
            let bytes = answers.first().and_then(|rows| rows.first()).map(|row| row.integer("bytes"));
            bytes.transpose().map(|bytes| bytes.unwrap_or(0).unsigned_abs())
        })
    }
}

/// Why nothing can be written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NotWritable {
    /// For everybody.
    pub reason: &'static str,
    /// For the log.
    pub detail: String,
}

/// Storage for data too large for a row: recordings. Files on a native host, R2 at the edge.
///
/// 1. `put` is atomic and returns only when the blob is durable. A `put` that failed or was cancelled may still have
///    created the blob. The engine never writes a key concurrently.
/// 2. `size` and `get` see every `put` and `delete` that was acknowledged before the call.
/// 3. `get` returns exactly the requested bytes, or fewer at the end of the blob; the first requested byte must exist.
///    `None`: the blob does not exist.
/// 4. `delete` succeeds when the blob does not exist, also removes what a cancelled `put` left behind, and returns only when
///    the removal is durable.
/// 5. Blobs with different keys are independent, however similar the keys.
pub trait Blobs: Port {
    /// Stores `bytes` under `key` and replaces an existing blob.
    fn put(&self, key: &BlobKey, bytes: Bytes) -> BoxFuture<'_, Result<(), BlobError>>;
    /// The size in bytes; `None` when the blob does not exist.
    fn size(&self, key: &BlobKey) -> BoxFuture<'_, Result<Option<u64>, BlobError>>;
    /// Reads a range of bytes.
    fn get(&self, key: &BlobKey, range: ByteRange) -> BoxFuture<'_, Result<Option<Bytes>, BlobError>>;
    /// Removes a blob permanently.
    fn delete(&self, key: &BlobKey) -> BoxFuture<'_, Result<(), BlobError>>;
    /// The same for several. Storage that can do it in one request does. When it fails, any of them may have been removed.
    fn delete_all(&self, keys: Vec<BlobKey>) -> BoxFuture<'_, Result<(), BlobError>> {
        Box::pin(async move {
            let mut outcome = Ok(());
            for key in keys {
                // One is in no other's way.
                outcome = outcome.and(self.delete(&key).await);
            }
            outcome
        })
    }
    /// Whether each request is counted and limited, so that few large blobs are better than many small ones.
    fn is_metered(&self) -> bool {
        false
    }
}

/// The clock. It may stop or jump; the engine only compares and adds times.
pub trait Clock: Port {
    /// Milliseconds since 1970-01-01T00:00:00Z.
    fn now_ms(&self) -> i64;
    /// Completes after `ms`. Dropping the future cancels the wait. A manual clock advances by `ms` and completes at once.
    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()>;

    /// Waits until this time, for whatever happens first. A manual clock does not advance by it.
    fn sleep_until(&self, at_ms: i64) -> BoxFuture<'_, ()> {
        self.sleep(at_ms.saturating_sub(self.now_ms()).max(0).unsigned_abs())
    }
}

/// Unpredictable bytes (a seeded stream in tests).
pub trait Random: Port {
    /// Fills all of `bytes`.
    fn fill(&self, bytes: &mut [u8]);
}

/// Sends hints to the job runner. A hint may be lost, duplicated or late: the job's row is authoritative.
pub trait Queue: Port {
    /// Asks the host to check the jobs of `wake`'s queue when `wake` is due, or soon after.
    fn wake(&self, wake: &Wake);
    /// The same for a job in the database with this name, where there are several ([`Shards`]).
    fn wake_on(&self, _shard: &str, wake: &Wake) {
        self.wake(wake);
    }
}

/// A hint that a job is due.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Wake {
    /// The queue that the job waits in.
    pub queue: JobQueue,
    /// The job's id.
    pub job_id: JobId,
    /// When it is due, in milliseconds since 1970.
    pub at_ms: i64,
}

/// Which addresses a request may connect to.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Egress {
    /// For a URL from a user: the host connects to no private address, whatever the name resolves to at that moment (see
    /// [`crate::base::targets::is_public_address`]).
    Public,
    /// For a URL from the operator, or from a user where the operator allows private targets.
    Operator,
}

/// An outgoing request. `Debug` hides the values of its headers, keys among them.
#[derive(Clone, PartialEq)]
pub struct HttpRequest {
    /// `GET`, `POST`, …
    pub method: &'static str,
    /// Absolute `https://` URL (`http://` only for [`Egress::Operator`]).
    pub url: String,
    /// Names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Empty for no body.
    pub body: Bytes,
    /// Deadline of the whole exchange, from name resolution to the last byte.
    pub deadline_ms: u64,
    /// A larger response body is [`HttpError::TooLarge`].
    pub response_bytes_max: usize,
    /// Which addresses the host may connect to.
    pub egress: Egress,
    /// Whom it is for.
    pub party: Party,
    /// Statuses beyond 2xx that whoever asks can live with: they do not count as failures.
    pub expected: &'static [u16],
}

impl std::fmt::Debug for HttpRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        f.debug_struct("HttpRequest")
            .field("method", &self.method)
            .field("url", &self.url)
            .field("headers", &headers)
            .field("body", &self.body)
            .finish_non_exhaustive()
    }
}

/// The response to an outgoing request. Redirects are not followed: a 3xx is a response.
#[derive(Debug, Clone, PartialEq)]
pub struct HttpReply {
    /// The status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// At most `response_bytes_max` bytes.
    pub body: Bytes,
}

/// Why there is no response.
#[derive(Debug, Clone, PartialEq)]
pub enum HttpError {
    /// The deadline passed.
    Timeout,
    /// The address is private and the egress class forbids that.
    Refused,
    /// The body exceeded the limit; the reply contains its beginning.
    TooLarge(HttpReply),
    /// The connection failed; the text is for logs.
    Failed(String),
}

/// A response whose body is still arriving. Dropping it aborts the exchange.
pub struct HttpStream {
    /// The status code.
    pub status: u16,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body as it arrives, in pieces of any size.
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
/// 2. `deadline_ms` applies to the whole exchange, including reading the body, and `response_bytes_max` to all pieces of the
///    body together. The host enforces both.
/// 3. Nothing of an exchange outlives its future or its stream.
pub trait Http: Port {
    /// Sends a request and reads the whole response.
    fn send(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpReply, HttpError>>;

    /// Sends a request and returns when the head of the response has arrived. The first error ends the body. A truncated body
    /// ends with [`HttpError::Failed`] where the protocol detects it.
    ///
    /// The default implementation, for hosts that cannot stream, returns the whole body as one piece.
    fn open(&self, request: HttpRequest) -> BoxFuture<'_, Result<HttpStream, HttpError>> {
        Box::pin(async move {
            let HttpReply { status, headers, body } = self.send(request).await?;
            Ok(HttpStream { status, headers, body: Box::pin(stream::iter([Ok(body)])) })
        })
    }
}

/// The ports of one host.
#[derive(Clone)]
pub struct Ports {
    /// Relational storage.
    pub database: Arc<dyn Database>,
    /// Several databases; `None`: there is one.
    pub shards: Option<Shards>,
    /// Storage for large objects.
    pub blobs: Arc<dyn Blobs>,
    /// The clock.
    pub clock: Arc<dyn Clock>,
    /// Unpredictable bytes.
    pub random: Arc<dyn Random>,
    /// Hints to the job runner.
    pub queue: Arc<dyn Queue>,
    /// Outgoing requests.
    pub http: Arc<dyn Http>,
    /// Outgoing WebSockets.
    pub web_sockets: Arc<dyn WebSockets>,
    /// Signatures with key pairs.
    pub keys: Arc<dyn Keys>,
    /// The homes of live calls.
    pub live: Arc<dyn Live>,
    /// Outgoing mail; `None`: the host has no way of its own.
    pub mailer: Option<Arc<dyn Mailer>>,
    /// The page with metrics; `None`: the host measures nothing.
    pub metrics: Option<Arc<dyn Metrics>>,
    /// Who makes traces of calls; `None`: nobody.
    pub traces: Option<Arc<dyn Traces>>,
}

/// An incoming request. The host has read its body, at most as large as its head allows.
pub struct Incoming {
    /// Method, URI, headers and body.
    pub request: http::Request<Bytes>,
    /// The peer's address as the platform reports it; `None` where there is none.
    pub peer: Option<IpAddr>,
}
