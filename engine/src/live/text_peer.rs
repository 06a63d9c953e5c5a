//! A text client: the conversation as JSON messages.
use super::client_rules::ClientRules;
use super::line::Farewell;
use super::message::{self, ClientMessage, Introduction, ServerMessage};
use super::peer::{Peer, PeerEvent};
use crate::base::ids::CallId;
use crate::conversation::EndedReason;
use crate::conversation::transcript::TranscriptRow;
use crate::ports::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};
use crate::storage::calls::Call;

/// Audio in a written conversation is refused.
const WRITTEN: &str =
    "This conversation is written. Send text; for audio, add audio=speech to the address of the socket.";

/// The client with a test token that writes.
pub struct TextPeer<'a> {
    socket: &'a mut dyn Socket,
    clock: &'a dyn Clock,
    introduction: Introduction,
    rules: ClientRules,
    /// Answers that were not sent yet.
    answers: Vec<SocketMessage>,
    is_gone: bool,
}

impl<'a> TextPeer<'a> {
    /// The client of `socket`.
    pub fn new(socket: &'a mut dyn Socket, clock: &'a dyn Clock, introduction: Introduction) -> Self {
        let rules = ClientRules::new(clock.now_ms());
        Self { socket, clock, introduction, rules, answers: Vec::new(), is_gone: false }
    }

    async fn send(&mut self, message: ServerMessage<'_>) -> Result<(), Gone> {
        self.socket.send(SocketMessage::Text(message.text())).await
    }

    fn received(&mut self, received: Received) -> PeerEvent {
        let refusal = match received {
            Received::Message(SocketMessage::Text(text)) => {
                match self.rules.read(self.clock.now_ms(), &text) {
                    Ok(ClientMessage::UserText(text)) => {
                        return PeerEvent::Said { text, duration_ms: 0, silence_ms: 0 };
                    }
                    Ok(ClientMessage::Heard { index, chars }) => {
                        return PeerEvent::Heard { row: index, chars };
                    }
                    Ok(ClientMessage::HangUp) => return PeerEvent::Gone,
                    Ok(ClientMessage::Played(_)) => self.rules.refuse("invalid_message", WRITTEN.to_owned()),
                    Err(refusal) => refusal,
                }
            }
            Received::Message(SocketMessage::Binary(_)) => {
                self.rules.refuse("invalid_message", WRITTEN.to_owned())
            }
            Received::TooLarge => self.rules.too_large(),
            Received::Control => match self.rules.control(self.clock.now_ms()) {
                Some(refusal) => refusal,
                None => return PeerEvent::Noise,
            },
            Received::Nothing => return PeerEvent::Nothing,
            Received::Stopping => return self.rules.stopping(),
            Received::Gone => return PeerEvent::Gone,
        };
        self.answers.push(refusal.answer);
        refusal.end.unwrap_or(PeerEvent::Noise)
    }

    async fn send_answers(&mut self) {
        let answers = std::mem::take(&mut self.answers);
        if !answers.is_empty() && self.socket.send_all(answers).await.is_err() {
            self.is_gone = true;
        }
    }

    async fn leave(&mut self, farewell: Farewell) {
        self.send_answers().await;
        for message in farewell.messages {
            // An error means that the client has disconnected, so it is ignored.
            let _ = self.socket.send(message).await;
        }
        self.socket.close(farewell.code, farewell.reason).await;
    }
}

impl Peer for TextPeer<'_> {
    fn open<'a>(&'a mut self, call: &'a Call) -> BoxFuture<'a, Result<(), PeerEvent>> {
        Box::pin(async move {
            let introduction = self.introduction.clone();
            self.send(introduction.call_started(call, None)).await.map_err(|Gone| PeerEvent::Gone)
        })
    }

    fn send_due(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(self.send_answers())
    }

    fn next_event(&mut self, until_ms: i64) -> BoxFuture<'_, Option<PeerEvent>> {
        Box::pin(async move {
            if self.is_gone {
                return Some(PeerEvent::Gone);
            }
            let received = self.socket.receive(until_ms).await;
            Some(self.received(received))
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
        let farewell = self.rules.ended(call_id, reason, duration_ms);
        Box::pin(self.leave(farewell))
    }

    fn fail(&mut self) -> BoxFuture<'_, ()> {
        let farewell = self.rules.failed();
        Box::pin(self.leave(farewell))
    }
}
