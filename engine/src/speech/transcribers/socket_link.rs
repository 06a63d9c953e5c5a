//! A connection to a provider that is opened again when it breaks.
//!
//! The link knows nothing of what is said over it. Its owner sends again what was not finalised when the link says
//! [`Change::Opened`], and gives up its utterances at [`Change::Over`].
use std::collections::VecDeque;

use super::TranscriberSettings;
use super::report::Reporter;
use crate::base::limits::{
    SPEECH_CLOSE_MS, SPEECH_CONNECT_MS, SPEECH_KEEP_ALIVE_MS, SPEECH_MESSAGE_BYTES_MAX, SPEECH_RETRY_MS,
    SPEECH_STEADY_MS, SPEECH_UNREADABLE_MAX,
};
use crate::ports::{Party, SocketMessage};
use crate::speech::exchange::{Arrival, ExchangeFailure, ExchangeId, SocketRequest, SpeechFailure, Transmit};

/// What happened to the connection.
#[derive(Debug, PartialEq)]
pub(super) enum Change {
    /// It is open: send what is to be sent, from the beginning of what is not finalised.
    Opened,
    /// A message arrived.
    Text(String),
    /// It broke, and is being opened again. What was sent over it and not answered is lost.
    Lost,
    /// It cannot be opened for now, or, if the failure is not temporary, ever.
    Over(SpeechFailure),
    /// It was closed after [`SocketLink::close`]: orderly by the server, or not in time.
    Closed {
        /// Whether the server has said all it had to say.
        is_orderly: bool,
    },
}

enum State {
    /// No attempt was made yet.
    Fresh,
    /// The attempts were in vain; another round may begin.
    Resting,
    Pausing {
        until_ms: i64,
    },
    Connecting {
        id: ExchangeId,
        since_ms: i64,
    },
    Open {
        id: ExchangeId,
        since_ms: i64,
    },
    Closing {
        id: ExchangeId,
        until_ms: i64,
    },
    /// Nothing more is possible.
    Ended(SpeechFailure),
}

pub(super) struct SocketLink {
    request: SocketRequest,
    pub(super) reporter: Reporter,
    /// Sent when nothing else was for a while.
    keep_alive: Option<&'static str>,
    state: State,
    next_id: ExchangeId,
    /// Attempts that failed in a row.
    failures: usize,
    unreadable: u32,
    sent_ms: i64,
    message_bytes_max: usize,
    transmits: VecDeque<Transmit>,
}

impl SocketLink {
    /// `request` is `None` where the base URL is none.
    pub(super) fn new(
        reporter: Reporter,
        request: Option<SocketRequest>,
        keep_alive: Option<&'static str>,
    ) -> Self {
        let state = match &request {
            Some(_) => State::Fresh,
            None => State::Ended(reporter.misconfigured("has an invalid base URL", "")),
        };
        let nowhere = || SocketRequest {
            url: String::new(),
            headers: vec![],
            subprotocols: vec![],
            party: Party::speech(""),
        };
        let request = request.unwrap_or_else(nowhere);
        Self {
            request,
            reporter,
            keep_alive,
            state,
            next_id: 0,
            failures: 0,
            unreadable: 0,
            sent_ms: 0,
            message_bytes_max: SPEECH_MESSAGE_BYTES_MAX,
            transmits: VecDeque::new(),
        }
    }

    /// The same with another limit of a message's size.
    pub(super) const fn with_messages_up_to(mut self, bytes: usize) -> Self {
        self.message_bytes_max = bytes;
        self
    }

    /// Opens another connection in place of this one, which has not failed.
    pub(super) fn renew(&mut self, now_ms: i64) {
        self.drop_connection();
        self.connect(now_ms);
    }

    /// Opens the connection for the first time.
    pub(super) fn begin(&mut self, now_ms: i64) {
        if matches!(self.state, State::Fresh) {
            self.connect(now_ms);
        }
    }

    /// Opens the connection if no attempt is under way: somebody waits for a result.
    pub(super) fn try_again(&mut self, now_ms: i64) {
        if matches!(self.state, State::Fresh | State::Resting) {
            self.failures = 0;
            self.connect(now_ms);
        }
    }

    pub(super) fn is_open(&self) -> bool {
        matches!(self.state, State::Open { .. })
    }

    /// Why nothing more is possible.
    pub(super) fn ended(&self) -> Option<&SpeechFailure> {
        match &self.state {
            State::Ended(failure) => Some(failure),
            _ => None,
        }
    }

    /// Whether [`SocketLink::close`] was called and the server has not answered yet.
    pub(super) fn is_closing(&self) -> bool {
        matches!(self.state, State::Closing { .. })
    }

    /// Sends a message if the connection is open.
    pub(super) fn send(&mut self, now_ms: i64, message: SocketMessage) {
        if let State::Open { id, .. } = self.state {
            self.sent_ms = now_ms;
            self.transmits.push_back(Transmit::Send { id, message });
        }
    }

    pub(super) fn send_text(&mut self, now_ms: i64, text: impl Into<String>) {
        self.send(now_ms, SocketMessage::Text(text.into()));
    }

    /// A message could be read.
    pub(super) fn worked(&mut self) {
        self.unreadable = 0;
    }

    /// A message could not be read.
    pub(super) fn unreadable(&mut self, now_ms: i64) -> Option<Change> {
        self.unreadable += 1;
        (self.unreadable > SPEECH_UNREADABLE_MAX).then(|| {
            let failure = self.reporter.disturbed("sent messages that cannot be read", "");
            self.broke(now_ms, failure)
        })
    }

    /// Gives the connection up and opens another one, unless the failure is for good or the attempts are used up.
    pub(super) fn broke(&mut self, now_ms: i64, failure: SpeechFailure) -> Change {
        self.drop_connection();
        self.lost(now_ms, failure)
    }

    /// The connection is gone.
    fn lost(&mut self, now_ms: i64, failure: SpeechFailure) -> Change {
        let since_ms = match self.state {
            State::Open { since_ms, .. } => since_ms,
            _ => now_ms,
        };
        self.forget_unsent();
        self.unreadable = 0;
        if self.is_closing() {
            self.state = State::Ended(self.over());
            return Change::Closed { is_orderly: false };
        }
        if !failure.is_temporary {
            self.state = State::Ended(failure.clone());
            return Change::Over(failure);
        }
        // Results do not count: a connection that always breaks after the first one would be opened without end.
        if now_ms - since_ms >= SPEECH_STEADY_MS {
            self.failures = 0;
        }
        self.failures += 1;
        match SPEECH_RETRY_MS.get(self.failures - 1) {
            Some(0) => self.connect(now_ms),
            Some(pause_ms) => self.state = State::Pausing { until_ms: now_ms + pause_ms },
            None => {
                self.state = State::Resting;
                return Change::Over(failure);
            }
        }
        Change::Lost
    }

    /// Something arrived; only the present connection counts.
    pub(super) fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival) -> Option<Change> {
        if self.id() != Some(id) {
            return None;
        }
        match arrival {
            Arrival::Opened => {
                let State::Connecting { .. } = self.state else { return None };
                self.state = State::Open { id, since_ms: now_ms };
                self.sent_ms = now_ms;
                Some(Change::Opened)
            }
            Arrival::Message(message) => {
                if matches!(self.state, State::Connecting { .. }) {
                    return None;
                }
                let text = match message {
                    SocketMessage::Text(text) => text,
                    SocketMessage::Binary(bytes) if bytes.len() > self.message_bytes_max => {
                        return Some(self.too_large(now_ms));
                    }
                    SocketMessage::Binary(bytes) => match String::from_utf8(bytes.into()) {
                        Ok(text) => text,
                        Err(_) => return self.unreadable(now_ms),
                    },
                };
                if text.len() > self.message_bytes_max {
                    Some(self.too_large(now_ms))
                } else {
                    Some(Change::Text(text))
                }
            }
            Arrival::Closed { code, reason } => {
                if self.is_closing() {
                    self.state = State::Ended(self.over());
                    return Some(Change::Closed { is_orderly: matches!(code, 1000 | 1001 | 1005) });
                }
                let failure = self.reporter.closed(code, &reason);
                Some(self.lost(now_ms, failure))
            }
            Arrival::Failed(failure) => {
                let failure = self.reporter.exchange(&failure);
                Some(self.lost(now_ms, failure))
            }
            // These belong to requests.
            Arrival::Head { .. } | Arrival::Body(_) | Arrival::End => None,
        }
    }

    pub(super) fn tick(&mut self, now_ms: i64) -> Option<Change> {
        if self.timeout().is_none_or(|due_ms| now_ms < due_ms) {
            return None;
        }
        match self.state {
            State::Pausing { .. } => {
                self.connect(now_ms);
                None
            }
            State::Connecting { .. } => {
                let failure = self.reporter.exchange(&ExchangeFailure::Timeout);
                Some(self.broke(now_ms, failure))
            }
            State::Open { .. } => {
                if let Some(text) = self.keep_alive {
                    self.send_text(now_ms, text);
                }
                None
            }
            State::Closing { .. } => {
                self.drop_connection();
                self.state = State::Ended(self.over());
                Some(Change::Closed { is_orderly: false })
            }
            State::Fresh | State::Resting | State::Ended(_) => None,
        }
    }

    pub(super) fn timeout(&self) -> Option<i64> {
        match self.state {
            State::Pausing { until_ms } | State::Closing { until_ms, .. } => Some(until_ms),
            State::Connecting { since_ms, .. } => Some(since_ms + SPEECH_CONNECT_MS),
            State::Open { .. } => self.keep_alive.map(|_| self.sent_ms + SPEECH_KEEP_ALIVE_MS),
            State::Fresh | State::Resting | State::Ended(_) => None,
        }
    }

    /// Says goodbye and waits for the server's last words; [`Change::Closed`] follows at once where it is not connected.
    pub(super) fn close(&mut self, now_ms: i64, goodbye: Option<&'static str>) -> Option<Change> {
        match self.state {
            State::Open { id, .. } => {
                if let Some(text) = goodbye {
                    self.send_text(now_ms, text);
                }
                self.state = State::Closing { id, until_ms: now_ms + SPEECH_CLOSE_MS };
                None
            }
            State::Closing { .. } | State::Ended(_) => None,
            _ => Some(self.end()),
        }
    }

    /// Ends the connection: nothing is expected any more.
    pub(super) fn end(&mut self) -> Change {
        self.drop_connection();
        self.state = State::Ended(self.over());
        Change::Closed { is_orderly: false }
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    fn over(&self) -> SpeechFailure {
        self.reporter.disturbed("had not answered when the call was over", "")
    }

    fn too_large(&mut self, now_ms: i64) -> Change {
        let failure = self.reporter.exchange(&ExchangeFailure::TooLarge);
        self.broke(now_ms, failure)
    }

    fn id(&self) -> Option<ExchangeId> {
        match self.state {
            State::Connecting { id, .. } | State::Open { id, .. } | State::Closing { id, .. } => Some(id),
            _ => None,
        }
    }

    fn connect(&mut self, now_ms: i64) {
        let id = self.next_id;
        self.next_id += 1;
        self.state = State::Connecting { id, since_ms: now_ms };
        self.transmits.push_back(Transmit::Connect { id, request: self.request.clone() });
    }

    fn drop_connection(&mut self) {
        self.forget_unsent();
        if let Some(id) = self.id() {
            self.transmits.push_back(Transmit::Drop { id });
        }
    }

    /// Nothing more is sent over this connection.
    fn forget_unsent(&mut self) {
        let gone = self.id();
        self.transmits.retain(|transmit| !matches!(transmit, Transmit::Send { id, .. } if Some(*id) == gone));
    }
}

/// The socket at `path` below the base URL; `None` where that is not one.
pub(super) fn socket_request(
    settings: &TranscriberSettings,
    path: &str,
    query: &[(&str, String)],
    scheme: &str,
) -> Option<SocketRequest> {
    let base = settings.base_url.trim_end_matches('/');
    let address = if base.ends_with(path) { base.to_owned() } else { format!("{base}{path}") };
    let mut url = url::Url::parse(&address).ok()?;
    let secured = match url.scheme() {
        "https" | "wss" => "wss",
        "http" | "ws" => "ws",
        _ => return None,
    };
    url.set_scheme(secured).ok()?;
    if !query.is_empty() {
        url.query_pairs_mut().extend_pairs(query);
    }
    let key = settings.api_key.reveal();
    let headers = if key.is_empty() { vec![] } else { vec![("authorization", format!("{scheme} {key}"))] };
    Some(SocketRequest { url: url.into(), headers, subprotocols: vec![], party: settings.party.clone() })
}

#[cfg(test)]
mod tests;
