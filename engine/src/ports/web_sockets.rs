//! Outgoing WebSockets.
use super::sockets::Movable;
use super::{BoxFuture, BoxStream, Gone, Port, SocketMessage};

/// A WebSocket to open (RFC 6455), at an address that the operator configured. `Debug` hides the values of its headers.
#[derive(Clone, PartialEq)]
pub struct SocketRequest {
    /// Absolute `wss://` or `ws://` URL.
    pub url: String,
    /// Names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Subprotocols to offer, in order.
    pub subprotocols: Vec<String>,
}

impl std::fmt::Debug for SocketRequest {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let headers: Vec<&str> = self.headers.iter().map(|(name, _)| *name).collect();
        let url = self.url.split('?').next().unwrap_or_default();
        f.debug_struct("SocketRequest").field("url", &url).field("headers", &headers).finish_non_exhaustive()
    }
}

/// Why an exchange failed.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ExchangeFailure {
    /// The deadline passed.
    Timeout,
    /// The server refused to open the socket, with this HTTP status and the beginning of its body.
    Rejected {
        /// The status code.
        status: u16,
        /// At most [`EXCHANGE_ERROR_BYTES_MAX`] bytes, as text.
        body: String,
    },
    /// The response exceeds its size limit.
    TooLarge,
    /// The connection failed; the text is for logs.
    Broken(String),
}

/// The most bytes of a failed exchange's body that a protocol looks at.
pub const EXCHANGE_ERROR_BYTES_MAX: usize = 4 * 1024;

/// Outgoing WebSockets, to addresses that the operator configured ([`Egress::Operator`](super::Egress::Operator)).
///
/// 1. One call opens one socket once: no retry, no redirect. `connect` gives up after
///    [`SOCKET_CONNECT_MS`](crate::base::limits::SOCKET_CONNECT_MS).
/// 2. The host handles pings and pongs. It passes on messages of at most
///    [`CLIENT_MESSAGE_BYTES_MAX`](crate::base::limits::CLIENT_MESSAGE_BYTES_MAX); a larger one closes the socket with 1009.
/// 3. Nothing of a socket outlives its two halves: when both are dropped, the connection ends.
pub trait WebSockets: Port {
    /// Opens a socket.
    fn connect(&self, request: SocketRequest) -> BoxFuture<'_, Result<ClientSocket, ExchangeFailure>>;
}

/// An open socket.
pub struct ClientSocket {
    /// Sends messages.
    pub sender: Box<dyn ClientSender>,
    /// What arrives, in order. It ends after [`ClientReceived::Closed`].
    pub received: BoxStream<'static, ClientReceived>,
}

/// The sending half of a socket.
pub trait ClientSender: Movable {
    /// Queues a message. [`Gone`] when the socket is closed, or when more than
    /// [`CLIENT_QUEUE_BYTES_MAX`](crate::base::limits::CLIENT_QUEUE_BYTES_MAX) wait because the server does not read.
    fn send(&mut self, message: SocketMessage) -> Result<(), Gone>;
}

/// What arrives on a socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ClientReceived {
    /// A message.
    Message(SocketMessage),
    /// The end.
    Closed {
        /// The close code of RFC 6455 (7.4); 1006 without a close frame.
        code: u16,
        /// Its reason; may be empty.
        reason: String,
    },
}

/// A host without outgoing sockets: every attempt fails.
#[derive(Debug, Clone, Copy)]
pub struct NoWebSockets;

impl WebSockets for NoWebSockets {
    fn connect(&self, _: SocketRequest) -> BoxFuture<'_, Result<ClientSocket, ExchangeFailure>> {
        Box::pin(async { Err(ExchangeFailure::Broken("this host opens no sockets".to_owned())) })
    }
}
