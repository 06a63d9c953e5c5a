//! From the head of a request to its end.
use std::net::IpAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use super::prepared_response::{FinalResponse, PreparedResponse, RequestTrace};
use super::routes;
use crate::base::error::{Code, Error};
use crate::base::limits::{BODY_BYTES_MAX, REQUEST_READ_MS};
use crate::interfaces::api::Api;
use crate::live::{LiveSession, handshake, telephony};
use crate::operations::auth::Credential;
use crate::ports::Incoming;

/// What a host does with a request once it has its head. `U` is what the host needs to upgrade the connection.
pub enum Admission<U> {
    /// Send this without reading the body, and close the connection: too large a body is announced.
    Respond(FinalResponse),
    /// Read the body, then answer.
    ReadBody(PendingRequest),
    /// Accept the socket, then upgrade the connection.
    Socket(PendingSocket, U),
}

pub(crate) fn begin<U>(
    api: Arc<Api>,
    mut head: Parts,
    peer: Option<IpAddr>,
    upgrade: Option<U>,
) -> Admission<U> {
    join_repeated(&mut head.headers);
    let trace = RequestTrace::new(api.services().new_id(), head.method.clone(), head.uri.clone());
    let pending = Pending { api, head, peer, trace };
    match upgrade {
        Some(upgrade) if handshake::wants_socket(&pending.head) => {
            Admission::Socket(PendingSocket(pending), upgrade)
        }
        _ => match pending.read_body() {
            Ok(pending) => Admission::ReadBody(pending),
            Err(response) => Admission::Respond(*response),
        },
    }
}

/// A request of which the head is there.
struct Pending {
    api: Arc<Api>,
    head: Parts,
    peer: Option<IpAddr>,
    trace: RequestTrace,
}

impl Pending {
    fn read_body(self) -> Result<PendingRequest, Box<FinalResponse>> {
        let declared = self.head.headers.get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if declared.is_some_and(|bytes| bytes > BODY_BYTES_MAX as u64) {
            return Err(Box::new(self.trace.refuse(&BodyFailure::TooLarge.error(), None)));
        }
        let keeps_body = needs_body(&self.head);
        Ok(PendingRequest { request: self, keeps_body, body: Body::default(), bytes: 0 })
    }

    fn into_incoming(self, body: Bytes) -> (Arc<Api>, Incoming, RequestTrace) {
        let Self { api, head, peer, trace } = self;
        (api, Incoming { request: http::Request::from_parts(head, body), peer }, trace)
    }
}

/// Whether the body of a request can matter. Without something that may be a key, it cannot.
fn needs_body(head: &Parts) -> bool {
    // Carriers sign the bodies of their callbacks.
    head.uri.path().starts_with(telephony::PATH)
        || matches!(Credential::from_headers(&head.headers), Credential::Key { .. })
}

/// A request that waits for its body.
pub struct PendingRequest {
    request: Pending,
    keeps_body: bool,
    body: Body,
    bytes: usize,
}

/// More of a body came than one request may have. The host calls [`PendingRequest::fail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyTooLarge;

/// Why a body did not arrive.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFailure {
    /// [`PendingRequest::receive`] refused a piece.
    TooLarge,
    /// Not all of it came within [`PendingRequest::DEADLINE_MS`], or the connection broke.
    Late,
    /// It is not framed as its headers say.
    Malformed,
}

impl BodyFailure {
    fn error(self) -> Error {
        match self {
            Self::TooLarge => {
                let message =
                    format!("The body is larger than {BODY_BYTES_MAX} bytes. Send less in one request.");
                Error::new(Code::BodyTooLarge, message)
            }
            Self::Late => {
                let message = "The request did not arrive in time. Send it again.";
                Error::new(Code::RequestTimeout, message)
            }
            Self::Malformed => {
                let message = "The body is not what its headers say: its chunks cannot be read.";
                Error::new(Code::InvalidJson, message)
            }
        }
    }
}

impl PendingRequest {
    /// The whole body has to arrive within this time.
    pub const DEADLINE_MS: u64 = REQUEST_READ_MS;

    /// An upper bound of what [`PendingRequest::receive`] will keep, for hosts that reserve memory: `declared` bytes
    /// if the head or the connection says how many come.
    pub fn memory_bytes(&self, declared: Option<u64>) -> u64 {
        let bytes_max = BODY_BYTES_MAX as u64;
        if self.keeps_body { declared.unwrap_or(bytes_max).min(bytes_max) } else { 0 }
    }

    /// Takes the next piece of the body, in order. A body that cannot matter is counted and not kept.
    pub fn receive(&mut self, piece: Bytes) -> Result<(), BodyTooLarge> {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > BODY_BYTES_MAX {
            return Err(BodyTooLarge);
        }
        if self.keeps_body {
            self.body.push(piece);
        }
        Ok(())
    }

    /// Names the request for [`RequestTrace::broken`]; a host that can lose a running request takes it first.
    pub fn trace(&self) -> RequestTrace {
        self.request.trace.clone()
    }

    /// Whether the request changes nothing, so that a host may drop its answer half-way once the client is gone. Other
    /// requests run to their end. Carriers report on calls by `GET`, too.
    pub fn only_reads(&self) -> bool {
        let head = &self.request.head;
        head.method.is_safe() && !head.uri.path().starts_with(telephony::PATH)
    }

    /// Answers the request, once the body has been received to its end.
    pub async fn answer(self) -> PreparedResponse {
        let (api, incoming, trace) = self.request.into_incoming(self.body.whole());
        let response = routes::respond(&api, &incoming, trace.request_id()).await;
        trace.prepare(&api, response)
    }

    /// The response to a request whose body did not arrive. The host closes the connection after it.
    pub fn fail(self, failure: BodyFailure) -> FinalResponse {
        self.request.trace.refuse(&failure.error(), None)
    }
}

/// A request for a WebSocket. Its token is not used up before it is accepted.
pub struct PendingSocket(Pending);

/// What a host does with a request for a WebSocket.
pub enum SocketAdmission {
    /// Send this and upgrade nothing.
    Refused(Box<FinalResponse>),
    /// Upgrade, then [`LiveSession::run`]; [`LiveSession::abandon`] when the upgrade fails. The call is open.
    Accepted(Box<LiveSession>),
}

impl PendingSocket {
    /// Names the request for [`RequestTrace::broken`].
    pub fn trace(&self) -> RequestTrace {
        self.0.trace.clone()
    }

    /// Opens the call, for a host that can upgrade the connection.
    pub async fn accept(self) -> SocketAdmission {
        let (api, incoming, trace) = self.0.into_incoming(Bytes::new());
        match handshake::accept(api.services(), &incoming).await {
            Ok(session) => SocketAdmission::Accepted(Box::new(session)),
            Err(fault) => SocketAdmission::Refused(Box::new(trace.fault(fault))),
        }
    }
}

/// The pieces of a body; one that came in one piece is not copied.
#[derive(Default)]
enum Body {
    #[default]
    Empty,
    One(Bytes),
    Several(BytesMut),
}

impl Body {
    fn push(&mut self, piece: Bytes) {
        *self = match std::mem::take(self) {
            Self::Empty => Self::One(piece),
            Self::One(first) => {
                let mut all = BytesMut::from(&*first);
                all.extend_from_slice(&piece);
                Self::Several(all)
            }
            Self::Several(mut all) => {
                all.extend_from_slice(&piece);
                Self::Several(all)
            }
        };
    }

    fn whole(self) -> Bytes {
        match self {
            Self::Empty => Bytes::new(),
            Self::One(whole) => whole,
            Self::Several(all) => all.freeze(),
        }
    }
}

/// A header given twice means both values, joined by a comma (RFC 9110, 5.3). Some hosts get them joined already, so
/// all are: a header that takes one value is refused rather than read from the first of two.
fn join_repeated(headers: &mut HeaderMap) {
    if headers.len() == headers.keys_len() {
        return;
    }
    let names: Vec<_> = headers.keys().cloned().collect();
    for name in names {
        let values: Vec<&[u8]> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
        if values.len() > 1
            && let Ok(joined) = HeaderValue::from_bytes(&values.join(&b", "[..]))
        {
            headers.insert(name, joined);
        }
    }
}
