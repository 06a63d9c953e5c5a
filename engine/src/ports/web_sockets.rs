//! Outgoing WebSockets.
use super::sockets::Movable;
use super::{BoxFuture, BoxStream, Party, Port, SocketMessage};
use crate::base::limits::CLIENT_MESSAGE_BYTES_MAX;

/// A WebSocket to open (RFC 6455), at an address that the operator configured. `Debug` hides the values of its headers.
#[derive(Clone, PartialEq)]
pub struct SocketRequest {
    /// Absolute `wss://` or `ws://` URL.
    pub url: String,
    /// Names in lower case.
    pub headers: Vec<(&'static str, String)>,
    /// Subprotocols to offer, in order.
    pub subprotocols: Vec<String>,
    /// Whom it is for.
    pub party: Party,
}

impl SocketRequest {
    /// The address of the request that asks for the upgrade: `https` for `wss`, `http` for `ws`.
    #[must_use]
    pub fn http_url(&self) -> String {
        self.url.replacen("ws", "http", 1)
    }

    /// The request's headers: that it asks for a WebSocket, the subprotocols if there are any, and its own.
    pub fn http_headers(&self) -> impl Iterator<Item = (&'static str, String)> + '_ {
        let subprotocols =
            (!self.subprotocols.is_empty()).then(|| ("sec-websocket-protocol", self.subprotocols.join(", ")));
        [("upgrade", "websocket".to_owned())]
            .into_iter()
            .chain(subprotocols)
            .chain(self.headers.iter().cloned())
    }
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

impl ExchangeFailure {
    /// The server answered with this status and a body that begins like this.
    #[must_use]
    pub fn rejected(status: u16, body: &[u8]) -> Self {
        let body = body.get(..EXCHANGE_ERROR_BYTES_MAX).unwrap_or(body);
        Self::Rejected { status, body: String::from_utf8_lossy(body).into_owned() }
    }
}

/// The most bytes of a failed exchange's body that a protocol looks at.
pub const EXCHANGE_ERROR_BYTES_MAX: usize = 4 * 1024;

/// Outgoing WebSockets, to addresses that the operator configured ([`Egress::Operator`](super::Egress::Operator)).
///
/// 1. One call opens one socket once: no retry, no redirect. `connect` gives up after
///    [`SOCKET_CONNECT_MS`](crate::base::limits::SOCKET_CONNECT_MS).
/// 2. The host handles pings and pongs, and passes each message through [`ClientReceived::message`]: one that is too large
///    is the end of the socket. A host that need not read the whole of it reports [`ClientReceived::TOO_LARGE`] itself.
/// 3. A host that cannot slow the server down stops to receive when it sends far more than is read.
/// 4. Nothing of a socket outlives its two halves: when both are dropped, the connection ends.
pub trait WebSockets: Port {
    /// Opens a socket.
    fn connect(&self, request: SocketRequest) -> BoxFuture<'_, Result<ClientSocket, ExchangeFailure>>;
}

/// An open socket.
pub struct ClientSocket {
    /// Sends messages.
    pub sender: Box<dyn ClientSender>,
    /// What arrives, in order. It ends after [`ClientReceived::Closed`], and without it where the host stopped to receive.
    pub received: BoxStream<'static, ClientReceived>,
}

/// The sending half of a socket.
pub trait ClientSender: Movable {
    /// Queues a message.
    fn send(&mut self, message: SocketMessage) -> Result<(), NotSent>;
}

/// Why a message was not sent. Nothing further can be.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotSent {
    /// The socket is closed. What arrived before, and why it is closed, is in [`ClientSocket::received`].
    Closed,
    /// More than [`CLIENT_QUEUE_BYTES_MAX`](crate::base::limits::CLIENT_QUEUE_BYTES_MAX) wait because the server does not
    /// read. The platform's sockets at the edge do not tell how many wait.
    QueueFull,
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

/// A message was too large for who received it (RFC 6455, 7.4.1).
pub const TOO_LARGE_CODE: u16 = 1009;

impl ClientReceived {
    /// A message of more than [`CLIENT_MESSAGE_BYTES_MAX`] ends the socket (RFC 6455, 7.4.1).
    pub const TOO_LARGE: Self = Self::Closed { code: TOO_LARGE_CODE, reason: String::new() };

    /// A complete message: [`TOO_LARGE`](Self::TOO_LARGE) if it exceeds the limit.
    #[must_use]
    pub fn message(message: SocketMessage) -> Self {
        if message.bytes() > CLIENT_MESSAGE_BYTES_MAX { Self::TOO_LARGE } else { Self::Message(message) }
    }

    /// The end without a close frame (RFC 6455, 7.1.5).
    #[must_use]
    pub const fn lost() -> Self {
        Self::Closed { code: 1006, reason: String::new() }
    }
}

/// A host without outgoing sockets: every attempt fails.
#[derive(Debug, Clone, Copy)]
pub struct NoWebSockets;

impl WebSockets for NoWebSockets {
    fn connect(&self, _: SocketRequest) -> BoxFuture<'_, Result<ClientSocket, ExchangeFailure>> {
        Box::pin(async { Err(ExchangeFailure::Broken("this host opens no sockets".to_owned())) })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_request_of_a_socket() {
        let request = SocketRequest {
            url: "wss://voice.example/v1/listen?ws=1".to_owned(),
            headers: vec![("authorization", "Token k".to_owned())],
            subprotocols: vec!["a".to_owned(), "b".to_owned()],
            party: Party::speech("voice"),
        };
        assert_eq!(request.http_url(), "https://voice.example/v1/listen?ws=1");
        let headers: Vec<_> =
            request.http_headers().map(|(name, value)| format!("{name}: {value}")).collect();
        assert_eq!(headers, ["upgrade: websocket", "sec-websocket-protocol: a, b", "authorization: Token k"]);
    }

    #[test]
    fn a_message_that_is_too_large_is_the_end() {
        let message = |bytes| SocketMessage::Text("x".repeat(bytes));
        let largest = message(CLIENT_MESSAGE_BYTES_MAX);
        assert_eq!(ClientReceived::message(largest.clone()), ClientReceived::Message(largest));
        let ended = ClientReceived::message(message(CLIENT_MESSAGE_BYTES_MAX + 1));
        assert_eq!(ended, ClientReceived::Closed { code: 1009, reason: String::new() });
    }

    #[test]
    fn of_a_refusal_the_beginning_is_kept() {
        let long = vec![b'x'; 2 * EXCHANGE_ERROR_BYTES_MAX];
        let ExchangeFailure::Rejected { status: 403, body } = ExchangeFailure::rejected(403, &long) else {
            panic!("a rejection")
        };
        assert_eq!(body.len(), EXCHANGE_ERROR_BYTES_MAX);
        let short = ExchangeFailure::Rejected { status: 401, body: "no".to_owned() };
        assert_eq!(ExchangeFailure::rejected(401, b"no"), short);
    }
}
