//! Admits a request by its head, receives its body and answers it.
use std::net::IpAddr;
use std::sync::Arc;

use bytes::{Bytes, BytesMut};
use http::request::Parts;
use http::{HeaderMap, HeaderValue, header};

use super::bodies::{Memory, Room};
use super::placing;
use super::prepared_response::{FinalResponse, PreparedResponse, RequestTrace};
use crate::base::error::{Code, Error};
use crate::base::ids::CallId;
use crate::base::limits::{BODY_BYTES_FREE, BODY_BYTES_PER_S_MIN, BODY_GRACE_MS, REQUEST_READ_MS};
use crate::interfaces::api::Api;
use crate::interfaces::{mounted, moves, operator_key};
use crate::live::{LiveSocket, handshake, telephony};
use crate::operations::auth::{Credential, client_address, holder};
use crate::ports::Incoming;

/// The host's next action after the head of a request. `U` is the host's value for upgrading the connection.
pub enum Admission<U> {
    /// Send this without reading the body, and close the connection if there is one: it is too large or has no use.
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
    let trace = RequestTrace::new(&api, &head, peer);
    let bytes_max = moves::body_bytes_max(api.services().config(), &head);
    let pending = Pending { api, head, peer, trace, bytes_max };
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

/// Answers a request of a move for the operator on this machine, who needs no key.
pub(crate) async fn answer_operator(api: &Api, request: http::Request<Bytes>) -> FinalResponse {
    let (head, body) = request.into_parts();
    let trace = RequestTrace::new(api, &head, None);
    let request = http::Request::from_parts(head, body);
    let response = moves::answer(api, &request, trace.request_id()).await;
    trace.complete(response)
}

/// The head of a request.
struct Pending {
    api: Arc<Api>,
    head: Parts,
    peer: Option<IpAddr>,
    trace: RequestTrace,
    /// The size that the body may have.
    bytes_max: usize,
}

impl Pending {
    fn read_body(self) -> Result<PendingRequest, Box<FinalResponse>> {
        let declared = self.head.headers.get(header::CONTENT_LENGTH);
        let declared = declared.and_then(|value| value.to_str().ok()?.parse::<u64>().ok());
        if declared.is_some_and(|bytes| bytes > self.bytes_max as u64) {
            return Err(Box::new(self.trace.refuse(&BodyFailure::TooLarge.error(self.bytes_max), None)));
        }
        let refused = telephony::callbacks::refused_by_head(
            self.api.services(),
            &self.head.method,
            self.head.uri.path(),
            self.trace.request_id(),
        );
        if let Some(response) = refused {
            return Err(Box::new(self.trace.complete(response)));
        }
        let keeps_body = needs_body(&self.head);
        Ok(PendingRequest { request: self, keeps_body, body: Body::default(), bytes: 0, memory: None })
    }

    /// Memory for the body. A key that looks like one is looked up: only a valid one has a share of its own.
    async fn memory(&self) -> Memory {
        let (services, bodies) = (self.api.services(), self.api.bodies());
        let address = client_address(&self.head.headers, self.peer, &services.config().trusted_proxies);
        match Credential::from_headers(&self.head.headers) {
            // It opens no workspace.
            Credential::Key { hash } if operator_key::is_sent(services.config(), &self.head.headers) => {
                bodies.open(Some(&hash), address)
            }
            Credential::Key { hash } => bodies.open(holder(services, &hash).await.as_deref(), address),
            _ => bodies.open(None, address),
        }
    }

    fn into_incoming(self, body: Bytes) -> (Arc<Api>, Incoming, RequestTrace) {
        let Self { api, head, peer, trace, bytes_max: _ } = self;
        (api, Incoming { request: http::Request::from_parts(head, body), peer }, trace)
    }
}

/// Whether the body of a request is used. Without a plausible key it is not.
fn needs_body(head: &Parts) -> bool {
    // Carriers sign the bodies of their callbacks.
    head.uri.path().starts_with(telephony::PATH)
        || mounted::uses_body(head)
        || matches!(Credential::from_headers(&head.headers), Credential::Key { .. })
}

/// A request that waits for its body.
pub struct PendingRequest {
    request: Pending,
    keeps_body: bool,
    body: Body,
    bytes: usize,
    /// Held until the request is answered.
    memory: Option<Memory>,
}

/// The body exceeds its limit. The host calls [`PendingRequest::fail`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BodyTooLarge;

/// Why a body was not received.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BodyFailure {
    /// [`PendingRequest::receive`] rejected a piece.
    TooLarge,
    /// It was incomplete after [`PendingRequest::DEADLINE_MS`], or the connection broke.
    Late,
    /// Its framing contradicts its headers.
    Malformed,
    /// [`PendingRequest::room_for`] refused a piece.
    NoRoom,
}

impl BodyFailure {
    fn error(self, bytes_max: usize) -> Error {
        match self {
            Self::TooLarge => {
                let message = format!("The body is larger than {bytes_max} bytes. Send less in one request.");
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
            Self::NoRoom => {
                let message =
                    "Too many large bodies are arriving at once. Send this request again in a second.";
                Error::unavailable(message, 1)
            }
        }
    }
}

impl PendingRequest {
    /// The deadline for receiving the whole body.
    pub const DEADLINE_MS: u64 = REQUEST_READ_MS;

    /// When the next piece of the body must arrive, from its beginning. A body that arrives slowly has less time than
    /// [`PendingRequest::DEADLINE_MS`].
    pub fn next_piece_within_ms(&self) -> u64 {
        let in_time_ms = self.bytes as u64 * 1000 / BODY_BYTES_PER_S_MIN;
        BODY_GRACE_MS.saturating_add(in_time_ms).min(Self::DEADLINE_MS)
    }

    /// Takes memory for the next `bytes` of the body, for hosts that receive many bodies in one process. Memory is taken
    /// as a body arrives: its announced length costs nothing.
    pub async fn room_for(&mut self, bytes: usize) -> Room {
        let bytes = self.bytes.saturating_add(bytes) as u64;
        if !self.keeps_body || bytes <= BODY_BYTES_FREE || bytes > self.request.bytes_max as u64 {
            return Room::Taken;
        }
        let memory = match &mut self.memory {
            Some(memory) => memory,
            none => none.insert(self.request.memory().await),
        };
        memory.room_for(bytes)
    }

    /// Receives the next piece of the body, in order. An unused body is counted but not kept.
    pub fn receive(&mut self, piece: Bytes) -> Result<(), BodyTooLarge> {
        self.bytes = self.bytes.saturating_add(piece.len());
        if self.bytes > self.request.bytes_max {
            return Err(BodyTooLarge);
        }
        if self.keeps_body {
            self.body.push(piece);
        }
        Ok(())
    }

    /// Identifies the request for [`RequestTrace::broken`]. A host whose running requests can be lost gets it
    /// beforehand.
    pub fn trace(&self) -> RequestTrace {
        self.request.trace.clone()
    }

    /// Whether the request only reads, so that a host may drop it when the client disconnects. Other requests run to
    /// their end. Callbacks of carriers can write with `GET`, too.
    pub fn only_reads(&self) -> bool {
        let head = &self.request.head;
        head.method.is_safe() && !head.uri.path().starts_with(telephony::PATH)
    }

    /// Answers the request after the whole body was received.
    pub async fn answer(self) -> PreparedResponse {
        let _memory = self.memory;
        let (api, incoming, trace) = self.request.into_incoming(self.body.whole());
        let (api, response) = placing::respond(&api, &incoming, trace.request_id()).await;
        trace.prepare(&api, &incoming, response)
    }

    /// The response to a request whose body was not received. The host closes the connection after it.
    pub fn fail(self, failure: BodyFailure) -> FinalResponse {
        self.request.trace.refuse(&failure.error(self.request.bytes_max), None)
    }
}

/// A request for a WebSocket. Accepting it uses up its token.
pub struct PendingSocket(Pending);

/// The host's next action for a request for a WebSocket.
pub enum SocketAdmission {
    /// Send this without an upgrade.
    Refused(Box<FinalResponse>),
    /// Upgrade, then [`LiveSocket::run`]; [`LiveSocket::abandon`] when the upgrade fails. The call is open.
    Accepted(LiveSocket),
}

impl PendingSocket {
    /// Identifies the request for [`RequestTrace::broken`].
    pub fn trace(&self) -> RequestTrace {
        self.0.trace.clone()
    }

    /// The call that the socket opens, for a host whose calls have homes of their own: there, another engine is given the
    /// same request and accepts it. A socket without a valid token is refused here, so that nobody else makes a home.
    pub async fn find_home(self) -> Result<CallId, Box<FinalResponse>> {
        match handshake::call_of(self.0.api.services(), &self.0.head) {
            Some(call_id) => Ok(call_id),
            None => match self.accept().await {
                SocketAdmission::Refused(response) => Err(response),
                SocketAdmission::Accepted(socket) => Ok(socket.call_id().clone()),
            },
        }
    }

    /// Opens the call, for a host that can upgrade the connection.
    pub async fn accept(self) -> SocketAdmission {
        let (api, incoming, trace) = self.0.into_incoming(Bytes::new());
        let accepted = match placing::of_socket(&api, &incoming).await {
            // On the heap, because the caller's future would contain it.
            Ok(services) => Box::pin(handshake::accept(&services, &incoming)).await,
            Err(fault) => Err(fault),
        };
        match accepted {
            Ok(socket) => SocketAdmission::Accepted(socket),
            Err(fault) => SocketAdmission::Refused(Box::new(trace.fault(fault))),
        }
    }
}

/// The pieces of a body. A single piece is not copied.
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

/// Joins the values of repeated headers with commas (RFC 9110, 5.3), and cookies with semicolons, because a comma may be part
/// of one (RFC 9113, 8.2.3). Some hosts receive them joined, so this makes all
/// hosts behave alike: repeating a header that allows one value is an error everywhere.
fn join_repeated(headers: &mut HeaderMap) {
    if headers.len() == headers.keys_len() {
        return;
    }
    let names: Vec<_> = headers.keys().cloned().collect();
    for name in names {
        let values: Vec<&[u8]> = headers.get_all(&name).iter().map(HeaderValue::as_bytes).collect();
        if values.len() > 1
            && let Ok(joined) =
                HeaderValue::from_bytes(&values.join(if name == header::COOKIE { &b"; "[..] } else { b", " }))
        {
            headers.insert(name, joined);
        }
    }
}
