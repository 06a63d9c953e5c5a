//! The response to a request.
use std::net::IpAddr;
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::future::ready;
use http::request::Parts;
use http::{Method, Response, StatusCode, Uri};

use crate::base::error::{Code, Error};
use crate::base::fair_pool::Share;
use crate::base::ids::{Id, Ids, RequestId};
use crate::base::limits::{BLOB_PIECE_BYTES, HEAD_BYTES_MAX};
use crate::base::response::{Incident, Note, error_response, finish, with_incident};
use crate::interfaces::api::Api;
use crate::interfaces::host::log_record::{Answered, LogRecord};
use crate::interfaces::host::response_budget::{self, BodyMemory, Recipient, ResponseBudget};
use crate::interfaces::host::routes;
use crate::operations::auth;
use crate::operations::following::Follower;
use crate::ports::blobs::{self, BlobError, Slice};
use crate::ports::{Blobs, BoxStream, Clock, Incoming, Random};
use crate::storage::fault::Fault;
use crate::storage::recordings::NotServed;

/// The result of a request.
pub enum PreparedResponse {
    /// Send this response.
    Complete(FinalResponse),
    /// Open the blob, then send head and blob.
    Blob(BlobResponse),
    /// Send head and events, piece by piece as they come.
    Events(EventsResponse),
}

/// A response that is ready to be sent and logged.
pub struct FinalResponse {
    response: Response<Bytes>,
    record: LogRecord,
}

impl FinalResponse {
    /// The response to send, and its log record.
    pub fn into_parts(self) -> (Response<Bytes>, LogRecord) {
        (self.response, self.record)
    }

    /// The response to a head that was not read to its end, so that its method and path are unknown.
    pub(crate) fn large_head(request_id: RequestId) -> Self {
        let trace = RequestTrace::unread(request_id, Method::default(), Uri::from_static("*"));
        let message =
            format!("The head of the request has more than {HEAD_BYTES_MAX} bytes or 100 fields. Send less.");
        trace.refuse(&Error::new(Code::HeadTooLarge, message), None)
    }

    /// The response of a service that cannot start because of the setting or binding `name`. `detail` is for the log.
    pub fn unconfigured(
        head: (Method, Uri),
        name: &str,
        detail: String,
        clock: &dyn Clock,
        random: &dyn Random,
    ) -> Self {
        let request_id =
            Ids::default().generate(RequestId::PREFIX, clock.now_ms(), |bytes| random.fill(bytes));
        let trace = RequestTrace::unread(RequestId::from_stored(request_id), head.0, head.1);
        let message = format!("This service is not set up yet ({name}). Its log says what is missing.");
        trace.refuse(&Error::new(Code::Unavailable, message), Some(detail))
    }
}

/// A response whose body is a part of a blob. The blob must be opened before the head is sent.
pub struct BlobResponse {
    response: Response<Bytes>,
    slice: Slice,
    trace: RequestTrace,
    blobs: Arc<dyn Blobs>,
    /// The memory for its pieces.
    share: Option<Share<Recipient>>,
}

/// The memory of a streamed blob: the piece that is being sent and the next one.
const STREAMED_BYTES: u64 = 2 * BLOB_PIECE_BYTES;

impl BlobResponse {
    /// The part of the blob to open, for hosts with their own way of streaming blobs.
    pub fn slice(&self) -> &Slice {
        &self.slice
    }

    /// Opens the blob through the port. The stream has pieces of bounded size.
    pub async fn open(mut self) -> (FinalResponse, Option<BoxStream<'static, Result<Bytes, BlobError>>>) {
        let share = self.share.take();
        let opened = blobs::open(self.blobs.clone(), self.slice.clone()).await;
        let (response, stream) = self.resolve(opened);
        // The share is returned with the stream.
        let held = stream.map(|stream| -> BoxStream<'static, _> {
            Box::pin(stream.inspect(move |_| {
                let _ = &share;
            }))
        });
        (response, held)
    }

    /// The response after opening the blob: its head and the stream, or an error response without a stream. `Ok(None)`:
    /// the blob does not exist.
    pub fn resolve<S>(self, opened: Result<Option<S>, BlobError>) -> (FinalResponse, Option<S>) {
        let Self { response, slice, trace, blobs: _, share: _ } = self;
        match opened {
            Ok(Some(stream)) => (trace.complete(response), Some(stream)),
            Ok(None) => {
                let detail =
                    format!("{} is not in storage; was it deleted just now?", slice.file.key.as_str());
                (trace.refuse(&NotServed::None.into(), Some(detail)), None)
            }
            Err(error) => (trace.fault(error.into()), None),
        }
    }
}

/// A response whose body is a stream of events. The client reads it for minutes; a host that stops ends it.
pub struct EventsResponse {
    response: FinalResponse,
    pieces: BoxStream<'static, Bytes>,
}

impl EventsResponse {
    /// The head, and the pieces of the body.
    pub fn into_parts(self) -> (FinalResponse, BoxStream<'static, Bytes>) {
        (self.response, self.pieces)
    }
}

/// Identifies a request in responses and in the log. Cheap to clone.
#[derive(Debug, Clone)]
pub struct RequestTrace {
    pub(super) request_id: RequestId,
    pub(super) method: Method,
    pub(super) uri: Uri,
    pub(super) route: &'static str,
    pub(super) key_last_four: Option<[u8; 4]>,
    pub(super) address: Option<IpAddr>,
}

impl RequestTrace {
    /// Of a request of which nothing else is known.
    fn unread(request_id: RequestId, method: Method, uri: Uri) -> Self {
        Self { request_id, method, uri, route: routes::OTHER, key_last_four: None, address: None }
    }

    /// Of a request with this head.
    pub(super) fn new(api: &Api, head: &Parts, peer: Option<IpAddr>) -> Self {
        let trusted = &api.services().config().trusted_proxies;
        Self {
            request_id: api.services().new_id(),
            method: head.method.clone(),
            uri: head.uri.clone(),
            route: routes::route(api, head.uri.path()),
            key_last_four: auth::key_last_four(&head.headers),
            address: Some(auth::client_address(&head.headers, peer, trusted)),
        }
    }

    /// The log record of a request that became a WebSocket.
    pub fn upgraded(self) -> LogRecord {
        LogRecord::new(self, StatusCode::SWITCHING_PROTOCOLS, Answered::default(), None, None)
    }

    pub(crate) fn request_id(&self) -> &RequestId {
        &self.request_id
    }

    /// The response when the request did not finish: it panicked, or the platform stopped it. `detail` is for the log.
    pub fn broken(self, detail: String) -> FinalResponse {
        self.fault(Fault::Bug(detail))
    }

    pub(crate) fn refuse(self, error: &Error, incident: Option<String>) -> FinalResponse {
        let response = with_incident(error_response(error, &self.request_id), incident);
        self.complete(response)
    }

    pub(crate) fn fault(self, fault: Fault) -> FinalResponse {
        let response = fault.into_response(&self.request_id);
        self.complete(response)
    }

    /// Adds the headers of every response.
    pub(crate) fn complete(self, mut response: Response<Bytes>) -> FinalResponse {
        finish(&mut response, &self.request_id);
        let extensions = response.extensions_mut();
        let incident = extensions.remove::<Incident>().map(|Incident(detail)| detail);
        let note = extensions.remove::<Note>().map(|Note(note)| note);
        let answered = extensions.remove::<Answered>().unwrap_or_default();
        let record = LogRecord::new(self, response.status(), answered, incident, note);
        FinalResponse { response, record }
    }

    /// The result of a response whose body may be a blob. Its memory comes from the budget for responses.
    pub(crate) fn prepare(
        self,
        api: &Api,
        incoming: &Incoming,
        mut response: Response<Bytes>,
    ) -> PreparedResponse {
        if let Some(follower) = response.extensions_mut().remove::<Follower>() {
            let recipient = ResponseBudget::recipient(&mut response, || api.client_address(incoming));
            let budget = api.responses().clone();
            let pieces = follower.stream(api.services().clone());
            // Without memory for the next piece the stream ends, and the client connects again.
            let pieces = pieces.map(move |piece| budget.piece(&recipient, piece));
            let pieces = Box::pin(pieces.take_while(|piece| ready(piece.is_some())).filter_map(ready));
            return PreparedResponse::Events(EventsResponse { response: self.complete(response), pieces });
        }
        let slice = response.extensions_mut().remove::<Slice>();
        let bytes = match &slice {
            Some(slice) => slice.range.bytes.min(STREAMED_BYTES),
            None => response_budget::memory_of(response.body()),
        };
        let address = || api.client_address(incoming);
        let share = match api.responses().take(&mut response, bytes, address) {
            Ok(share) => share,
            Err(error) => {
                let mut refusal = error_response(&error, &self.request_id);
                std::mem::swap(refusal.extensions_mut(), response.extensions_mut());
                return PreparedResponse::Complete(self.complete(refusal));
            }
        };
        match slice {
            None => {
                if let Some(memory) = share.map(BodyMemory::of) {
                    response.extensions_mut().insert(memory.clone());
                    response = response.map(|body| memory.hold(body));
                }
                PreparedResponse::Complete(self.complete(response))
            }
            Some(slice) => {
                let blobs = api.services().ports().blobs.clone();
                PreparedResponse::Blob(BlobResponse { response, slice, trace: self, blobs, share })
            }
        }
    }
}
