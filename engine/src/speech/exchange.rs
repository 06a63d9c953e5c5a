//! What a provider's protocol exchanges with its server: HTTP requests and WebSockets, as values.
//!
//! A protocol ([`super::transcriber::Transcriber`], [`super::synthesizer::Synthesizer`]) is a pure state machine. It asks
//! for exchanges with [`Transmit`]; its driver performs them over the ports and reports with [`Arrival`].
use bytes::Bytes;

pub use crate::ports::{EXCHANGE_ERROR_BYTES_MAX, ExchangeFailure, SocketRequest};
use crate::ports::{HttpRequest, SocketMessage};

/// What an exchange serves.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum SpeechService {
    /// The transcriber.
    Transcriber,
    /// The synthesizer.
    Synthesizer,
}

/// Identifies an exchange within one protocol; never used twice.
pub type ExchangeId = u32;

/// What the driver must do, in order.
#[derive(Debug, Clone, PartialEq)]
pub enum Transmit {
    /// Send a request. [`Arrival::Head`], [`Arrival::Body`]… and [`Arrival::End`] follow, or [`Arrival::Failed`].
    Request {
        /// The exchange.
        id: ExchangeId,
        /// The request.
        request: HttpRequest,
    },
    /// Open a socket. [`Arrival::Opened`], [`Arrival::Message`]… and [`Arrival::Closed`] follow, or
    /// [`Arrival::Failed`].
    Connect {
        /// The exchange.
        id: ExchangeId,
        /// The socket.
        request: SocketRequest,
    },
    /// Send a message on an open socket.
    Send {
        /// The exchange.
        id: ExchangeId,
        /// The message.
        message: SocketMessage,
    },
    /// End an exchange at once. No further arrival of it is passed on.
    Drop {
        /// The exchange.
        id: ExchangeId,
    },
}

/// What arrived from the server.
#[derive(Debug, Clone, PartialEq)]
pub enum Arrival {
    /// The head of a response.
    Head {
        /// The status code.
        status: u16,
        /// Names in lower case.
        headers: Vec<(String, String)>,
    },
    /// A piece of a response's body, of any size.
    Body(Bytes),
    /// The end of a response's body.
    End,
    /// The socket is open.
    Opened,
    /// A message of the socket.
    Message(SocketMessage),
    /// The socket was closed by the server.
    Closed {
        /// The close code of RFC 6455 (7.4); 1006 without a close frame.
        code: u16,
        /// Its reason; may be empty.
        reason: String,
    },
    /// There is no connection, or it broke.
    Failed(ExchangeFailure),
}

/// A provider's failure, as the operator reads it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct SpeechFailure {
    /// What happened, for the log and the call's record; without keys and addresses.
    pub message: String,
    /// Who can resolve it.
    pub fault: SpeechFault,
    /// Whether another attempt can succeed.
    pub is_temporary: bool,
}

/// The party that can resolve a failure.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SpeechFault {
    /// The operator: the key, the account, the model's or voice's name.
    Operator,
    /// The provider.
    Provider,
}
