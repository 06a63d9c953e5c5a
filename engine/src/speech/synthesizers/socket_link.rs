//! A WebSocket that is opened again when it breaks.
use std::collections::VecDeque;

use super::failure::{broken, closed, temporary};
use crate::ports::SocketMessage;
use crate::speech::exchange::{Arrival, ExchangeId, SocketRequest, SpeechFailure, Transmit};

/// How long opening may take.
const CONNECT_MS: i64 = 10_000;
/// The pauses before the attempts; when the last one fails, the link has failed.
const PAUSES_MS: [i64; 3] = [0, 500, 2_000];
/// The largest message that a provider may send.
const MESSAGE_BYTES_MAX: usize = 4 * 1024 * 1024;

#[derive(Debug, Clone, Copy, PartialEq)]
enum State {
    Idle,
    Waiting { until_ms: i64 },
    Connecting { id: ExchangeId, until_ms: i64 },
    Open { id: ExchangeId, since_ms: i64 },
}

/// What happened to the link.
#[derive(Debug, PartialEq)]
pub(super) enum LinkEvent {
    /// It is open, and knows nothing of what was sent before.
    Opened,
    /// A message arrived.
    Message(SocketMessage),
    /// The connection was lost.
    Lost(SpeechFailure),
    /// It cannot be opened. The next [`SocketLink::connect`] tries again.
    Failed(SpeechFailure),
}

/// A link to a provider.
#[derive(Debug)]
pub(super) struct SocketLink {
    provider: &'static str,
    request: SocketRequest,
    state: State,
    next_id: ExchangeId,
    /// Attempts since the connection last worked.
    strikes: usize,
    /// Whether the open connection has worked.
    has_worked: bool,
    transmits: VecDeque<Transmit>,
}

impl SocketLink {
    /// A link that is not open.
    pub(super) fn new(provider: &'static str, request: SocketRequest) -> Self {
        let transmits = VecDeque::new();
        Self { provider, request, state: State::Idle, next_id: 0, strikes: 0, has_worked: false, transmits }
    }

    /// Opens the link, after a pause if the last attempt failed.
    pub(super) fn connect(&mut self, now_ms: i64) {
        if self.state != State::Idle {
            return;
        }
        let pause_ms = PAUSES_MS.get(self.strikes).copied().unwrap_or_default();
        if pause_ms > 0 {
            self.state = State::Waiting { until_ms: now_ms.saturating_add(pause_ms) };
            return;
        }
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        self.has_worked = false;
        self.state = State::Connecting { id, until_ms: now_ms.saturating_add(CONNECT_MS) };
        self.transmits.push_back(Transmit::Connect { id, request: self.request.clone() });
    }

    /// Replaces the connection.
    pub(super) fn replace(&mut self, now_ms: i64) {
        self.close();
        self.connect(now_ms);
    }

    /// Ends the connection. What was sent before is sent.
    pub(super) fn close(&mut self) {
        if let State::Connecting { id, .. } | State::Open { id, .. } = self.state {
            self.transmits.push_back(Transmit::Drop { id });
        }
        self.state = State::Idle;
    }

    /// Sends a message; one for a link that is not open is lost.
    pub(super) fn send(&mut self, message: SocketMessage) {
        if let State::Open { id, .. } = self.state {
            self.transmits.push_back(Transmit::Send { id, message });
        }
    }

    /// Since when it is open.
    pub(super) fn open_since_ms(&self) -> Option<i64> {
        match self.state {
            State::Open { since_ms, .. } => Some(since_ms),
            _ => None,
        }
    }

    /// The connection does what it is for: earlier attempts do not count any more.
    pub(super) fn worked(&mut self) {
        self.strikes = 0;
        self.has_worked = true;
    }

    /// Something arrived. `is_busy`: the loss of the connection would be a failure.
    pub(super) fn arrived(
        &mut self,
        now_ms: i64,
        id: ExchangeId,
        arrival: Arrival,
        is_busy: bool,
    ) -> Option<LinkEvent> {
        let (own, is_open) = match self.state {
            State::Connecting { id, .. } => (id, false),
            State::Open { id, .. } => (id, true),
            _ => return None,
        };
        if own != id {
            return None;
        }
        let provider = self.provider;
        let failure = match arrival {
            Arrival::Opened if !is_open => {
                self.state = State::Open { id, since_ms: now_ms };
                return Some(LinkEvent::Opened);
            }
            Arrival::Message(message) if is_open => {
                let bytes = match &message {
                    SocketMessage::Text(text) => text.len(),
                    SocketMessage::Binary(bytes) => bytes.len(),
                };
                if bytes <= MESSAGE_BYTES_MAX {
                    return Some(LinkEvent::Message(message));
                }
                self.close();
                temporary(format!("{provider} sent a message of more than 4 MiB"))
            }
            Arrival::Closed { code, reason } => closed(provider, code, &reason),
            Arrival::Failed(failure) => broken(provider, &failure),
            _ => return None,
        };
        Some(self.lost(now_ms, failure, is_open, is_busy))
    }

    /// Time has passed.
    pub(super) fn tick(&mut self, now_ms: i64) -> Option<LinkEvent> {
        match self.state {
            State::Waiting { until_ms } if now_ms >= until_ms => {
                self.state = State::Idle;
                let strikes = std::mem::take(&mut self.strikes);
                self.connect(now_ms);
                self.strikes = strikes;
                None
            }
            State::Connecting { until_ms, .. } if now_ms >= until_ms => {
                self.close();
                let failure = temporary(format!("{} did not open the connection in time", self.provider));
                Some(self.lost(now_ms, failure, false, true))
            }
            _ => None,
        }
    }

    /// When [`tick`](Self::tick) is due.
    pub(super) fn timeout(&self) -> Option<i64> {
        match self.state {
            State::Waiting { until_ms } | State::Connecting { until_ms, .. } => Some(until_ms),
            State::Idle | State::Open { .. } => None,
        }
    }

    /// The next thing to transmit.
    pub(super) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    /// Decides what follows the end of a connection. One that worked, and one that ends between two lines, are opened again at
    /// once; an attempt that failed counts.
    fn lost(&mut self, now_ms: i64, failure: SpeechFailure, is_open: bool, is_busy: bool) -> LinkEvent {
        self.state = State::Idle;
        if is_open && (self.has_worked || !is_busy) && failure.is_temporary {
            // One that was not used is not opened again before it is needed: it would be closed again.
            if self.has_worked {
                self.connect(now_ms);
            }
            return LinkEvent::Lost(failure);
        }
        self.strikes += 1;
        if !failure.is_temporary || self.strikes >= PAUSES_MS.len() {
            self.strikes = 0;
            return LinkEvent::Failed(failure);
        }
        self.connect(now_ms);
        LinkEvent::Lost(failure)
    }
}
