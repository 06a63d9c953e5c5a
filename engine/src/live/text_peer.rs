//! A text client: the conversation as JSON messages.
use super::message::{self, ClientMessage, ServerMessage};
use super::message_rate::RateLimit;
use super::peer::{Peer, PeerEvent};
use crate::base::ids::CallId;
use crate::base::limits::{LIVE_WRONG_MESSAGES_MAX, SOCKET_MESSAGE_BYTES_MAX};
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason};
use crate::ports::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};
use crate::storage::calls::Call;

/// The client with a test token.
pub struct TextPeer<'a> {
    socket: &'a mut dyn Socket,
    clock: &'a dyn Clock,
    max_duration_seconds: u16,
    language: String,
    rate_limit: RateLimit,
    wrong_messages: u32,
    close: Close,
}

/// The close code of the socket after the conversation (RFC 6455, 7.4).
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Close {
    Normal,
    GoingAway,
    Policy,
    TooLarge,
    Internal,
}

impl Close {
    const fn code_and_reason(self) -> (u16, &'static str) {
        match self {
            Self::Normal => (1000, "the conversation has ended"),
            Self::GoingAway => (1001, "the service is stopping"),
            Self::Policy => (1008, "too many invalid messages, or messages too fast"),
            Self::TooLarge => (1009, "the message is too large"),
            Self::Internal => (1011, "internal error"),
        }
    }
}

impl<'a> TextPeer<'a> {
    /// The client of `socket`.
    pub fn new(
        socket: &'a mut dyn Socket,
        clock: &'a dyn Clock,
        max_duration_seconds: u16,
        language: String,
    ) -> Self {
        let rate_limit = RateLimit::new(clock.now_ms());
        Self {
            socket,
            clock,
            max_duration_seconds,
            language,
            rate_limit,
            wrong_messages: 0,
            close: Close::Normal,
        }
    }

    async fn send(&mut self, message: ServerMessage<'_>) -> Result<(), Gone> {
        self.socket.send(SocketMessage::Text(message.text())).await
    }

    async fn received(&mut self, received: Received) -> PeerEvent {
        match received {
            Received::Message(SocketMessage::Text(text)) => {
                let read = match self.rate_limit.allows(self.clock.now_ms()) {
                    true => message::read(&text).map_err(|message| ("invalid_message", message)),
                    false => {
                        Err(("too_fast", "Messages arrive too fast. Wait for an answer first.".to_owned()))
                    }
                };
                match read {
                    Ok(ClientMessage::UserText(text)) => {
                        PeerEvent::Said { text, duration_ms: 0, silence_ms: 0 }
                    }
                    Ok(ClientMessage::Heard { index, chars }) => PeerEvent::Heard { row: index, chars },
                    Ok(ClientMessage::HangUp) => PeerEvent::Gone,
                    Err((code, message)) => self.reject(code, message).await,
                }
            }
            Received::Message(SocketMessage::Binary(_)) => {
                let message = "Binary messages are reserved for speech, which this version does not support. Send text.";
                self.reject("invalid_message", message.to_owned()).await
            }
            Received::TooLarge => {
                let message = format!("A message has at most {SOCKET_MESSAGE_BYTES_MAX} bytes.");
                let _ = self.send(ServerMessage::Error { code: "message_too_large", message }).await;
                self.stop(Close::TooLarge, CallFault::Caller)
            }
            Received::Nothing => PeerEvent::Nothing,
            Received::Stopping => self.stop(Close::GoingAway, CallFault::Platform),
            Received::Gone => PeerEvent::Gone,
        }
    }

    /// Reports a wrong message to the client; ends the conversation after too many of them.
    async fn reject(&mut self, code: &'static str, message: String) -> PeerEvent {
        self.wrong_messages += 1;
        let sent = self.send(ServerMessage::Error { code, message }).await;
        if sent.is_err() {
            PeerEvent::Gone
        } else if self.wrong_messages >= LIVE_WRONG_MESSAGES_MAX {
            self.stop(Close::Policy, CallFault::Caller)
        } else {
            PeerEvent::Noise
        }
    }

    fn stop(&mut self, close: Close, fault: CallFault) -> PeerEvent {
        self.close = close;
        PeerEvent::Stop { reason: EndedReason::Aborted, fault }
    }

    async fn close_socket(&mut self) {
        let (code, reason) = self.close.code_and_reason();
        self.socket.close(code, reason).await;
    }
}

impl Peer for TextPeer<'_> {
    fn open<'a>(&'a mut self, call: &'a Call) -> BoxFuture<'a, Result<(), PeerEvent>> {
        Box::pin(async move {
            let (max_duration_seconds, language) = (self.max_duration_seconds, self.language.clone());
            let started = ServerMessage::CallStarted { call, max_duration_seconds, language: &language };
            self.send(started).await.map_err(|Gone| PeerEvent::Gone)
        })
    }

    fn next_event(&mut self, until_ms: i64) -> BoxFuture<'_, PeerEvent> {
        Box::pin(async move {
            let received = self.socket.receive(until_ms).await;
            self.received(received).await
        })
    }

    fn send_row<'a>(&'a mut self, row: &'a TranscriptRow) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move {
            match message::of_row(row) {
                Some(message) => self.send(message).await,
                None => Ok(()),
            }
        })
    }

    fn heard_permille(&self, _: i64) -> Vec<u32> {
        Vec::new()
    }

    fn ended_at_ms(&self) -> Option<i64> {
        None
    }

    fn finish(&mut self) -> BoxFuture<'_, Vec<(i64, PeerEvent)>> {
        Box::pin(async { Vec::new() })
    }

    fn end<'a>(
        &'a mut self,
        call_id: &'a CallId,
        reason: EndedReason,
        duration_ms: i64,
    ) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            if reason == EndedReason::ModelFailed {
                // The details are for the operator only.
                let message =
                    "The assistant's model did not answer, so the conversation ends here.".to_owned();
                let _ = self.send(ServerMessage::Error { code: "model_failed", message }).await;
            }
            // An error means that the client has disconnected, so it is ignored.
            let _ = self.send(ServerMessage::CallEnded { call_id, ended_reason: reason, duration_ms }).await;
            self.close_socket().await;
        })
    }

    fn fail(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            let message = "An internal error occurred, so the conversation ends here.".to_owned();
            let _ = self.send(ServerMessage::Error { code: "internal", message }).await;
            self.close = Close::Internal;
            self.close_socket().await;
        })
    }
}
