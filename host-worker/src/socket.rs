//! The engine's [`Socket`] over the platform's `WebSocketPair`. The platform answers pings, and keeps the Worker
//! running while the socket is open. It does not report what the client has received, and offers no backpressure: only
//! the engine limits the rate of messages.
use std::time::Duration;

use futures_util::StreamExt;
use futures_util::future::{Either, select};
use sidetone_engine::ports::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};
use worker::js_sys::Reflect;
use worker::wasm_bindgen::JsValue;
use worker::{Delay, EventStream, WebSocket, WebsocketEvent};

use crate::system::PlatformClock;

/// The service's end of a pair.
pub struct EdgeSocket<'a> {
    socket: &'a WebSocket,
    events: EventStream<'a>,
    gone: bool,
    /// Whether a send failed. What had arrived is still received.
    refuses: bool,
}

impl<'a> EdgeSocket<'a> {
    /// Accepts the socket, which starts the delivery of messages.
    pub fn accept(socket: &'a WebSocket) -> worker::Result<Self> {
        let events = socket.events()?;
        // Otherwise the platform delivers binary messages as blobs, which can only be read asynchronously.
        let platform: &JsValue = socket.as_ref().as_ref();
        Reflect::set(platform, &"binaryType".into(), &"arraybuffer".into())?;
        socket.accept()?;
        Ok(Self { socket, events, gone: false, refuses: false })
    }

    async fn next(&mut self, until_ms: i64) -> Received {
        if self.gone {
            return Received::Gone;
        }
        let wait_ms = u64::try_from(until_ms.saturating_sub(PlatformClock.now_ms())).unwrap_or(0);
        let late = Delay::from(Duration::from_millis(wait_ms));
        let message = match select(self.events.next(), late).await {
            Either::Left((Some(Ok(WebsocketEvent::Message(message))), _)) => message,
            Either::Left(_) => {
                self.gone = true;
                return Received::Gone;
            }
            Either::Right(_) => return Received::Nothing,
        };
        Received::message(match message.text() {
            Some(text) => SocketMessage::Text(text),
            None => SocketMessage::Binary(message.bytes().unwrap_or_default().into()),
        })
    }
}

impl Socket for EdgeSocket<'_> {
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
        Box::pin(self.next(until_ms))
    }

    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        let sent = match (self.gone || self.refuses, message) {
            (true, _) => Ok(()),
            (false, SocketMessage::Text(text)) => self.socket.send_with_str(text),
            (false, SocketMessage::Binary(bytes)) => self.socket.send_with_bytes(bytes),
        };
        self.refuses = self.refuses || sent.is_err();
        let outcome = if self.gone || self.refuses { Err(Gone) } else { Ok(()) };
        Box::pin(async move { outcome })
    }

    fn close(&mut self, code: u16, reason: &'static str) -> BoxFuture<'_, ()> {
        // Also after the client's close frame, which requires a reply. An error means that the client has
        // disconnected, so it is ignored.
        let _ = self.socket.close(Some(code), Some(reason));
        self.gone = true;
        Box::pin(async {})
    }
}
