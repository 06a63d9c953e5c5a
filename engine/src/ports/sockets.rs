//! Accepted WebSockets, as a host provides them to a live conversation.
use bytes::Bytes;

use super::BoxFuture;
use crate::base::limits::SOCKET_MESSAGE_BYTES_MAX;

/// Supertrait of [`Socket`]: `Send` on hosts with threads.
#[cfg(not(target_arch = "wasm32"))]
pub trait Movable: Send {}
#[cfg(not(target_arch = "wasm32"))]
impl<T: Send + ?Sized> Movable for T {}
/// Supertrait of [`Socket`]: no requirement on a Worker, which has one thread.
#[cfg(target_arch = "wasm32")]
pub trait Movable {}
#[cfg(target_arch = "wasm32")]
impl<T: ?Sized> Movable for T {}

/// A WebSocket message in either direction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SocketMessage {
    /// A text message.
    Text(String),
    /// A binary message.
    Binary(Bytes),
}

impl SocketMessage {
    /// Its size.
    pub fn bytes(&self) -> usize {
        match self {
            Self::Text(text) => text.len(),
            Self::Binary(bytes) => bytes.len(),
        }
    }
}

/// The result of [`Socket::receive`].
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Received {
    /// A message of at most [`SOCKET_MESSAGE_BYTES_MAX`] bytes.
    Message(SocketMessage),
    /// A message of more than [`SOCKET_MESSAGE_BYTES_MAX`] bytes.
    TooLarge,
    /// A ping or pong. It counts as a message, because a ping is answered.
    Control,
    /// No message arrived in time.
    Nothing,
    /// The host is shutting down: end the conversation within its grace period.
    Stopping,
    /// The client closed the socket, or the connection broke. Nothing follows.
    Gone,
}

impl Received {
    /// The result for a complete message: [`Received::TooLarge`] if it exceeds the limit.
    pub fn message(message: SocketMessage) -> Self {
        if message.bytes() > SOCKET_MESSAGE_BYTES_MAX { Self::TooLarge } else { Self::Message(message) }
    }
}

/// The peer accepts no more messages.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Gone;

/// An accepted WebSocket. The host, or its platform, answers pings; the host reports those that it sees.
///
/// 1. Messages arrive whole, in order, each once. The host buffers as few of them as the platform allows and reads
///    more only when asked: where the platform supports it, backpressure slows down a client that sends too fast.
/// 2. The host passes each message through [`Received::message`], which decides whether it is too large. A host that
///    need not read the whole of such a message reports [`Received::TooLarge`] itself. The engine closes with 1009.
/// 3. Dropping the future of `receive` loses no message.
/// 4. `send` returns when the host has accepted the message, and not before the previous one was sent, so at most one message
///    waits in the host. A client that accepts nothing for [`crate::base::limits::SOCKET_SEND_MS`] counts as disconnected. A
///    platform that does not report progress returns at once.
/// 5. After [`Received::Gone`], [`Gone`] or `close`, nothing is sent; `send` and `close` may still be called and do nothing.
///    After [`Gone`], `receive` still gives what had arrived. Dropping the socket ends the connection.
pub trait Socket: Movable {
    /// The next message; [`Received::Nothing`] when none arrives before `until_ms` on the host's clock.
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received>;

    /// Sends a message.
    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>>;

    /// Sends several messages in order, as one to rule 4: a host that can writes them to the connection together.
    fn send_all(&mut self, messages: Vec<SocketMessage>) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async move {
            for message in messages {
                self.send(message).await?;
            }
            Ok(())
        })
    }

    /// Closes with a code of RFC 6455 (7.4) and a reason of at most 123 bytes, and waits up to
    /// [`crate::base::limits::SOCKET_CLOSE_MS`] for the client's close frame.
    fn close(&mut self, code: u16, reason: &'static str) -> BoxFuture<'_, ()>;
}

/// A borrowed socket.
impl<S: Socket + ?Sized> Socket for &mut S {
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
        (**self).receive(until_ms)
    }

    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        (**self).send(message)
    }

    fn send_all(&mut self, messages: Vec<SocketMessage>) -> BoxFuture<'_, Result<(), Gone>> {
        (**self).send_all(messages)
    }

    fn close(&mut self, code: u16, reason: &'static str) -> BoxFuture<'_, ()> {
        (**self).close(code, reason)
    }
}
