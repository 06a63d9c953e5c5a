//! WebSockets: the upgrade, and the implementation of the engine's [`Socket`].
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::{FutureExt, SinkExt, StreamExt};
use http::request::Parts;
use http::{HeaderValue, Response, StatusCode, Version, header};
use http_body_util::{Either, Full};
use hyper::upgrade::{OnUpgrade, Upgraded};
use hyper_util::rt::TokioIo;
use sidetone_engine::base::limits::{SOCKET_CLOSE_MS, SOCKET_MESSAGE_BYTES_MAX, SOCKET_SEND_MS};
use sidetone_engine::engine::{PendingSocket, SocketAdmission};
use sidetone_engine::live::LiveSocket;
use sidetone_engine::ports::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};
use tokio::sync::watch;
use tokio_tungstenite::WebSocketStream;
use tokio_tungstenite::tungstenite::handshake::derive_accept_key;
use tokio_tungstenite::tungstenite::protocol::frame::coding::CloseCode;
use tokio_tungstenite::tungstenite::protocol::{CloseFrame, Role, WebSocketConfig};
use tokio_tungstenite::tungstenite::{Error, Message};

use super::connections::Connection;
use super::one_message::OneMessage;
use super::request::{ResponseBody, send};
use super::{Host, panic_message, stopped};
use crate::system::SystemClock;
use crate::web_socket_client::READ_BYTES;

/// A message up to this size is read even if the engine rejects it, so that the socket closes with a close frame. A
/// larger one breaks the connection.
const MESSAGE_BYTES_MAX: usize = 8 * SOCKET_MESSAGE_BYTES_MAX;

/// Bytes of the frames of one message. Empty frames are part of no message that is too large, and could go on for ever.
const FRAMES_BYTES_MAX: usize = 2 * MESSAGE_BYTES_MAX;

/// Messages that are sent together are written together up to this size.
const WRITE_BYTES: usize = 16 * 1024;

/// A well-formed handshake (RFC 6455, 4.2.1).
pub struct Upgrade {
    connection: OnUpgrade,
    accept: HeaderValue,
}

impl Upgrade {
    /// The handshake of a request; `None` without a valid one. Such a request does not use up a token.
    pub fn of(parts: &mut Parts) -> Option<Self> {
        let headers = &parts.headers;
        let text = |name| headers.get(name).and_then(|value: &HeaderValue| value.to_str().ok());
        let connection = text(header::CONNECTION)?;
        let upgrades = connection.split(',').any(|one| one.trim().eq_ignore_ascii_case("upgrade"));
        let key = headers.get(header::SEC_WEBSOCKET_KEY)?;
        if parts.version != Version::HTTP_11 || !upgrades || text(header::SEC_WEBSOCKET_VERSION)? != "13" {
            return None;
        }
        let accept = HeaderValue::from_str(&derive_accept_key(key.as_bytes())).ok()?;
        Some(Self { connection: parts.extensions.remove::<OnUpgrade>()?, accept })
    }
}

/// Opens the call, upgrades the connection, and runs the conversation in a separate task.
pub async fn answer(
    host: Arc<Host>,
    connection: Connection,
    pending: PendingSocket,
    upgrade: Upgrade,
) -> Response<ResponseBody> {
    let trace = pending.trace();
    let record = trace.clone().upgraded();
    let session = match AssertUnwindSafe(pending.accept()).catch_unwind().await {
        Ok(SocketAdmission::Accepted(session)) => session,
        Ok(SocketAdmission::Refused(response)) => return send(*response),
        Err(panic) => return send(trace.broken(format!("a panic: {}", panic_message(&*panic)))),
    };
    connection.floor.turn_off();
    let Upgrade { connection: upgrading, accept } = upgrade;
    tokio::spawn(async move {
        let call_id = session.call_id().clone();
        // Speech comes in frames, so such a conversation computes often and for a moment; one of text, seldom and for longer.
        let lane = (!session.is_spoken()).then(|| session.workspace().to_owned());
        let conversation = AssertUnwindSafe(converse(session, upgrading, host.stop.clone())).catch_unwind();
        let ended = match lane {
            Some(lane) => host.lanes.run(&lane, conversation).await.unwrap_or(Ok(None)),
            None => conversation.await,
        };
        let incident = match ended {
            Ok(incident) => incident,
            // The call's job ends the call when the lease expires.
            Err(panic) => Some(format!("{call_id}: a panic: {}", panic_message(&*panic))),
        };
        if let Some(incident) = incident {
            tracing::error!(incident, "a conversation failed on our side");
        }
        drop(connection);
    });
    let mut response = Response::new(Either::Left(Full::default()));
    *response.status_mut() = StatusCode::SWITCHING_PROTOCOLS;
    let headers = response.headers_mut();
    headers.insert(header::CONNECTION, HeaderValue::from_static("upgrade"));
    headers.insert(header::UPGRADE, HeaderValue::from_static("websocket"));
    headers.insert(header::SEC_WEBSOCKET_ACCEPT, accept);
    response.extensions_mut().insert(record);
    response
}

async fn converse(session: LiveSocket, connection: OnUpgrade, stop: watch::Receiver<bool>) -> Option<String> {
    let Ok(upgraded) = connection.await else {
        return session.abandon().await;
    };
    let config = WebSocketConfig::default()
        .max_message_size(Some(MESSAGE_BYTES_MAX))
        .max_frame_size(Some(MESSAGE_BYTES_MAX))
        .read_buffer_size(READ_BYTES)
        .write_buffer_size(WRITE_BYTES);
    let upgraded = OneMessage::new(TokioIo::new(upgraded), FRAMES_BYTES_MAX);
    let stream = WebSocketStream::from_raw_socket(upgraded, Role::Server, Some(config)).await;
    let mut socket = TcpSocket { stream, stop, stop_reported: false, gone: false, refuses: false };
    session.run(&mut socket).await
}

struct TcpSocket {
    stream: WebSocketStream<OneMessage<TokioIo<Upgraded>>>,
    stop: watch::Receiver<bool>,
    stop_reported: bool,
    gone: bool,
    /// Whether a send failed. What had arrived is still received.
    refuses: bool,
}

impl TcpSocket {
    async fn next(&mut self, until_ms: i64) -> Received {
        let wait_ms = u64::try_from(until_ms.saturating_sub(SystemClock.now_ms())).unwrap_or(0);
        let late = tokio::time::sleep(Duration::from_millis(wait_ms));
        tokio::pin!(late);
        while !self.gone {
            let message = tokio::select! {
                biased;
                () = stopped(&mut self.stop), if !self.stop_reported => {
                    self.stop_reported = true;
                    return Received::Stopping;
                }
                message = self.stream.next() => message,
                () = &mut late => return Received::Nothing,
            };
            self.stream.get_mut().message_is_read();
            match message {
                Some(Ok(Message::Text(text))) => {
                    return Received::message(SocketMessage::Text(text.as_str().to_owned()));
                }
                Some(Ok(Message::Binary(bytes))) => {
                    return Received::message(SocketMessage::Binary(bytes));
                }
                // The library answers pings.
                Some(Ok(Message::Ping(_) | Message::Pong(_))) => return Received::Control,
                Some(Ok(Message::Frame(_))) => {}
                Some(Err(Error::Capacity(_))) => return Received::TooLarge,
                Some(Err(_)) if self.stream.get_ref().is_over() => return Received::TooLarge,
                Some(Ok(Message::Close(_)) | Err(_)) | None => self.gone = true,
            }
        }
        Received::Gone
    }

    async fn send_messages(&mut self, messages: Vec<SocketMessage>) -> Result<(), Gone> {
        if self.gone || self.refuses {
            return Err(Gone);
        }
        let sending = async {
            for message in messages {
                let message = match message {
                    SocketMessage::Text(text) => Message::text(text),
                    SocketMessage::Binary(bytes) => Message::Binary(bytes),
                };
                self.stream.feed(message).await?;
            }
            self.stream.flush().await
        };
        match tokio::time::timeout(Duration::from_millis(SOCKET_SEND_MS), sending).await {
            Ok(Ok(())) => Ok(()),
            Ok(Err(_)) | Err(_) => {
                self.refuses = true;
                Err(Gone)
            }
        }
    }

    async fn close_socket(&mut self, code: u16, reason: &'static str) {
        if self.gone || self.refuses {
            // After the client's close frame, the library's reply may still be buffered.
            let _ = tokio::time::timeout(Duration::from_millis(SOCKET_CLOSE_MS), self.stream.flush()).await;
            return;
        }
        self.gone = true;
        let frame = CloseFrame { code: CloseCode::from(code), reason: reason.into() };
        let closing = async {
            if self.stream.close(Some(frame)).await.is_ok() {
                while let Some(Ok(_)) = self.stream.next().await {}
            }
        };
        let _ = tokio::time::timeout(Duration::from_millis(SOCKET_CLOSE_MS), closing).await;
    }
}

impl Socket for TcpSocket {
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
        Box::pin(self.next(until_ms))
    }

    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        self.send_all(vec![message])
    }

    fn send_all(&mut self, messages: Vec<SocketMessage>) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(self.send_messages(messages))
    }

    fn close(&mut self, code: u16, reason: &'static str) -> BoxFuture<'_, ()> {
        Box::pin(self.close_socket(code, reason))
    }
}
