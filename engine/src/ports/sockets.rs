//! Accepted WebSockets, as a host lends them to a live conversation.
use bytes::Bytes;

use super::BoxFuture;

/// What a socket is: able to change threads where there are threads.
#[cfg(not(target_arch = "wasm32"))]
pub trait Movable: Send {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + ?Sized> Movable for T {}
/// What a socket is: on a Worker there is one thread and nothing to ask for.
#[cfg(target_arch = "wasm32")]
pub trait Movable {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> Movable for T {}

/// What goes over a socket, either way.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketMessage {
    /// A text message.
    Text(String),
    /// A binary one.
    Binary(Bytes),
}

/// What came over a socket, or did not.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message of at most [`crate::base::limits::SOCKET_MESSAGE_BYTES_MAX`] bytes.
    Message(SocketMessage),
    /// A message of more than [`crate::base::limits::SOCKET_MESSAGE_BYTES_MAX`] bytes.
    TooLarge,
    /// Nothing, until the time given.
    Nothing,
    /// The host is about to stop: come to an end within its grace period.
    Stopping,
    /// The client has closed, or the connection broke. Nothing follows.
    Gone,
}

/// The other side takes nothing any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// One accepted WebSocket. Pings and pongs are the host's business.
///
/// 1. Messages come whole, in order, each once. The host buffers as few of them as the platform lets
///    it, and reads on only when asked: a client that sends faster than it is listened to is slowed
///    down by its own connection wherever the platform can do that.
/// 2. A message larger than [`crate::base::limits::SOCKET_MESSAGE_BYTES_MAX`] is told as
///    [`Received::TooLarge`]; the host keeps none of it, and the engine closes with 1009.
/// 3. Dropping the future of `receive` loses no message.
/// 4. `send` returns when the host has handed the message on, and not before the one before it was
///    taken, so at most one message waits in the host. When the client takes nothing for
///    [`crate::base::limits::SOCKET_SEND_MS`] it is gone. A platform that does not tell what was taken
///    answers at once.
/// 5. After [`Received::Gone`], [`Gone`] or `close`, nothing is sent; `send` and `close` may still be
///    called and do nothing. Dropping the socket ends the connection.
pub trait Socket: Movable {
    /// The next message; [`Received::Nothing`] when none has come by `until_ms` on the host's clock.
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received>;

    /// Sends a message.
    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>>;

    /// Closes with a code of RFC 6455 (7.4) and a reason of at most 123 bytes, and waits a moment
    /// ([`crate::base::limits::SOCKET_CLOSE_MS`]) for the client to do the same.
    fn close(&mut self, code: u16, reason: &'static str) -> BoxFuture<'_, ()>;
}
