//! What every client of a test token keeps to, whether it writes or speaks: valid messages, not too many of them, not too
//! large ones.
use super::message::{self, ClientMessage, ServerMessage};
use super::message_rate::RateLimit;
use crate::base::ids::CallId;
use crate::base::limits::{LIVE_WRONG_MESSAGES_MAX, SOCKET_MESSAGE_BYTES_MAX};
use crate::conversation::{CallFault, EndedReason};
use crate::live::line::Farewell;
use crate::live::peer::PeerEvent;
use crate::ports::SocketMessage;

/// Counts a client's messages, and decides how its socket is closed.
pub(super) struct ClientRules {
    rate_limit: RateLimit,
    wrong_messages: u32,
    close: Close,
}

/// What follows a message that is refused.
pub(super) struct Refusal {
    /// What the client is told.
    pub(super) answer: SocketMessage,
    /// The end, if this was one message too many.
    pub(super) end: Option<PeerEvent>,
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

impl ClientRules {
    /// For a new client.
    pub(super) const fn new(now_ms: i64) -> Self {
        Self { rate_limit: RateLimit::new(now_ms), wrong_messages: 0, close: Close::Normal }
    }

    /// Reads a text message. A mark that was played is the answer to one of ours, so it is not counted.
    pub(super) fn read(&mut self, now_ms: i64, text: &str) -> Result<ClientMessage, Refusal> {
        let read = message::read(text);
        if !matches!(read, Ok(ClientMessage::Played(_)))
            && let Some(refusal) = self.control(now_ms)
        {
            return Err(refusal);
        }
        read.map_err(|message| self.refuse("invalid_message", message))
    }

    /// Counts a ping or pong, or another message; refuses it when it comes too fast.
    pub(super) fn control(&mut self, now_ms: i64) -> Option<Refusal> {
        let message = "Messages arrive too fast. Wait for an answer first.";
        (!self.rate_limit.allows(now_ms)).then(|| self.refuse("too_fast", message.to_owned()))
    }

    /// Refuses a message; ends the conversation after too many of them.
    pub(super) fn refuse(&mut self, code: &'static str, message: String) -> Refusal {
        self.wrong_messages += 1;
        let answer = error(code, message);
        let is_over = self.wrong_messages >= LIVE_WRONG_MESSAGES_MAX;
        Refusal { answer, end: is_over.then(|| self.stop(Close::Policy, CallFault::Caller)) }
    }

    /// Ends the conversation because of a message that is too large.
    pub(super) fn too_large(&mut self) -> Refusal {
        let message = format!("A message has at most {SOCKET_MESSAGE_BYTES_MAX} bytes.");
        let end = self.stop(Close::TooLarge, CallFault::Caller);
        Refusal { answer: error("message_too_large", message), end: Some(end) }
    }

    /// Ends the conversation because the service is stopping.
    pub(super) fn stopping(&mut self) -> PeerEvent {
        self.stop(Close::GoingAway, CallFault::Platform)
    }

    /// The last messages of a conversation that is stored.
    pub(super) fn ended(&mut self, call_id: &CallId, reason: EndedReason, duration_ms: i64) -> Farewell {
        let mut messages = Vec::new();
        match reason {
            EndedReason::ModelFailed => {
                // The details are for the operator only.
                let message =
                    "The assistant's model did not answer, so the conversation ends here.".to_owned();
                messages.push(error("model_failed", message));
            }
            EndedReason::SpeechFailed => {
                let message =
                    "The assistant could not hear or speak any more, so the conversation ends here."
                        .to_owned();
                messages.push(error("speech_failed", message));
            }
            EndedReason::MediaLost => {
                let message =
                    "Audio arrived faster than in real time, so the conversation ends here.".to_owned();
                messages.push(error("too_fast", message));
                self.close = Close::Policy;
            }
            _ => {}
        }
        messages.push(as_message(&ServerMessage::CallEnded { call_id, ended_reason: reason, duration_ms }));
        let (code, reason) = self.close.code_and_reason();
        Farewell { messages, code, reason, ..Farewell::ended() }
    }

    /// The last messages of one that is not.
    pub(super) fn failed(&mut self) -> Farewell {
        self.close = Close::Internal;
        let message = "An internal error occurred, so the conversation ends here.".to_owned();
        let (code, reason) = self.close.code_and_reason();
        Farewell { messages: vec![error("internal", message)], code, reason, ..Farewell::ended() }
    }

    fn stop(&mut self, close: Close, fault: CallFault) -> PeerEvent {
        self.close = close;
        PeerEvent::Stop { reason: EndedReason::Aborted, fault }
    }
}

/// A message to the client.
pub(super) fn as_message(message: &ServerMessage<'_>) -> SocketMessage {
    SocketMessage::Text(message.text())
}

fn error(code: &'static str, message: String) -> SocketMessage {
    as_message(&ServerMessage::Error { code, message })
}
