//! A carrier's protocol from the carrier's side: the counterpart of the engine's `Carrier`, written from the carrier's
//! documents and official SDKs, without shared code.
use serde_json::Value;

/// One carrier's protocol.
pub trait Wire: Send + Sync + 'static {
    /// The carrier's name: `twilio`, …
    fn provider(&self) -> &'static str;

    /// Settings of a service with an account here, with this API's address (`http://127.0.0.1:…`).
    fn settings(&self, api_url: &str) -> Vec<(&'static str, String)>;

    /// Parses a request to the carrier's API as strictly as the carrier: path, credentials, content type, every field by name. The
    /// error is the carrier's own rejection.
    fn read(&self, request: &ApiRequest) -> Result<Command, ApiReply>;

    /// The response to an accepted order.
    fn placed(&self, call: &PhoneCall) -> ApiReply;

    /// The response to an order with this behaviour; `None` for [`Behaviour::Take`] and for those without a response.
    fn refused(&self, behaviour: Behaviour) -> Option<ApiReply>;

    /// The response to a command for a call ([`Command::Answer`], [`Command::Refuse`], [`Command::HangUp`], [`Command::Transfer`]).
    fn done(&self, command: &Command) -> ApiReply;

    /// The response to a command for a call that has ended or never existed.
    fn gone(&self) -> ApiReply;

    /// The signed callback for an event; `None` when the carrier sends none. `nth` counts the callbacks of the call from 0.
    fn callback(
        &self,
        public: &Public,
        call: &PhoneCall,
        event: &CallEvent,
        nth: u32,
        now_s: i64,
    ) -> Option<CallbackRequest>;

    /// The instruction in the service's response to an incoming call, or to a request for instructions. The error describes the
    /// problem of the document: an unknown element, a missing attribute, an invalid URL.
    fn instruction(&self, status: u16, content_type: &str, body: &[u8]) -> Result<Instruction, String>;

    /// Headers of the request for the media socket at `url`, the URL as the service gave it.
    fn socket_headers(&self, url: &str) -> Vec<(&'static str, String)>;

    /// The carrier's end of a media socket.
    fn media(&self, call: &PhoneCall) -> Box<dyn MediaWire>;
}

/// The carrier's end of a media socket: samples are mono, 16-bit, in frames of 20 ms at [`MediaWire::rate_hz`].
pub trait MediaWire: Send {
    /// Samples per second, in both directions.
    fn rate_hz(&self) -> u32;
    /// The first messages.
    fn opening(&mut self) -> Vec<WireMessage>;
    /// A message with one frame of the person's audio.
    fn audio(&mut self, samples: &[i16]) -> WireMessage;
    /// A message for a pressed key.
    fn key(&mut self, key: char) -> WireMessage;
    /// A message that confirms a mark: all audio before it has been played.
    fn played(&mut self, name: &str) -> WireMessage;
    /// The messages after a clear; these marks were outstanding.
    fn cleared(&mut self, marks: &[String]) -> Vec<WireMessage>;
    /// The last messages; empty if only the socket is closed.
    fn closing(&mut self) -> Vec<WireMessage>;
    /// Parses a message of the service strictly.
    fn read(&mut self, message: &WireMessage) -> Result<FromService, String>;
}

/// A WebSocket message.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum WireMessage {
    /// Text.
    Text(String),
    /// Binary.
    Binary(Vec<u8>),
}

/// A message of the service on a media socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromService {
    /// Audio to play.
    Audio(Vec<i16>),
    /// Requests a confirmation when the audio before it has been played.
    Mark(String),
    /// Discards unplayed audio.
    Clear,
}

/// A request to the carrier's API.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiRequest {
    /// HTTP method.
    pub method: String,
    /// Path with query.
    pub path: String,
    /// Names in lower case.
    pub headers: Vec<(String, String)>,
    /// The body.
    pub body: Vec<u8>,
}

impl ApiRequest {
    /// The value of a header.
    pub fn header(&self, name: &str) -> Option<&str> {
        self.headers.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str())
    }
}

/// A response of the carrier's API.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiReply {
    /// The status.
    pub status: u16,
    /// The type of the body.
    pub content_type: &'static str,
    /// The body.
    pub body: String,
}

impl ApiReply {
    /// A JSON response.
    pub fn json(status: u16, body: &Value) -> Self {
        Self { status, content_type: "application/json", body: body.to_string() }
    }

    /// A response without a body.
    pub fn empty(status: u16) -> Self {
        Self { status, content_type: "text/plain", body: String::new() }
    }
}

/// The meaning of a request to the carrier.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Places a call.
    Place {
        /// The calling number with a leading `+`, whatever the carrier's spelling.
        from: String,
        /// The called number, likewise.
        to: String,
        /// The URL for callbacks.
        status_url: String,
        /// The instruction for the answered call; `None` if it is to be fetched from `answer_url`.
        instruction: Option<Instruction>,
        /// The URL for instructions.
        answer_url: Option<String>,
        /// Whether a machine is to be detected, and where that is reported.
        detection: Option<Detection>,
    },
    /// Answers an incoming call.
    Answer {
        /// The carrier's id.
        carrier_call_id: String,
        /// [`Instruction::Connect`].
        instruction: Instruction,
    },
    /// Declines an incoming call.
    Refuse {
        /// The carrier's id.
        carrier_call_id: String,
    },
    /// Ends a call.
    HangUp {
        /// The carrier's id.
        carrier_call_id: String,
    },
    /// Connects a call that comes back to another media socket.
    Reconnect {
        /// The carrier's id.
        carrier_call_id: String,
        /// [`Instruction::Connect`].
        instruction: Instruction,
    },
    /// Connects a call to somebody else.
    Transfer {
        /// The carrier's id.
        carrier_call_id: String,
        /// [`Instruction::Dial`], or the URL where it is fetched.
        instruction: Result<Instruction, String>,
    },
}

/// The detection of machines that an order asks for. The call is connected without waiting for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Detection {
    /// Whether the end of a greeting is reported.
    pub reports_greeting: bool,
    /// The URL for its results.
    pub url: String,
}

/// An instruction for a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Instruction {
    /// Connects it to a media socket.
    Connect {
        /// `ws://` or `wss://`
        media_url: String,
        /// The new URL for callbacks of this call, if the document sets one.
        status_url: Option<String>,
    },
    /// Connects it to another number.
    Dial {
        /// The called number with a leading `+`.
        to: String,
        /// The number that is shown, if one is given.
        caller_id: Option<String>,
        /// How long both may talk.
        seconds: u32,
        /// Where the carrier tells what comes of it.
        told: Option<Told>,
    },
    /// Declines it or hangs up, possibly after a spoken text.
    HangUp,
    /// None yet: a command follows.
    Wait,
}

/// The URLs of a `<Dial>`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Told {
    /// For the answer of the other number.
    pub status_url: String,
    /// For the end of the connection, whether there was one or not.
    pub back_url: String,
}

/// The reaction to an order, selected by the called number.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// The order is accepted.
    Take,
    /// The order is accepted, with a late response.
    Late,
    /// The number is invalid.
    BadNumber,
    /// Rejected: the account does not own the calling number.
    NotOurs,
    /// The credentials are rejected (401).
    Unauthorized,
    /// Too many requests (429).
    TooMany,
    /// A server error (500).
    Broken,
    /// A success without a call id.
    NoId,
    /// No response; the connection stays open.
    Hang,
    /// No response; the connection is closed.
    Cut,
}

/// A call from the carrier's side.
#[derive(Debug, Clone, PartialEq)]
pub struct PhoneCall {
    /// The carrier's id, in its own form.
    pub carrier_call_id: String,
    /// A second id, if the carrier has two (a request, a conversation, a session).
    pub other_id: String,
    /// The calling number with a leading `+`.
    pub from: String,
    /// The called number with a leading `+`.
    pub to: String,
    /// Whether the service placed it.
    pub outbound: bool,
    /// The URL for callbacks: as the service gave it, or as configured for the number.
    pub status_url: String,
    /// The URL for incoming calls and requests for instructions.
    pub voice_url: String,
    /// The audio format that the service requested; empty if there is no choice.
    pub format: String,
    /// The detection that was ordered.
    pub detection: Option<Detection>,
}

/// An event of a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// An incoming call to a number of the service.
    Incoming,
    /// The other side rings.
    Ringing,
    /// The other side has answered.
    Answered,
    /// The carrier asks for instructions for an answered call.
    Asked,
    /// The carrier asks for the instructions of a transfer.
    Transferring {
        /// The URL that the service named.
        url: String,
    },
    /// The number to which the call is transferred has answered.
    OtherAnswered {
        /// The URL of the document.
        url: String,
        /// The carrier's id of the call to it.
        other_call_id: String,
    },
    /// That call has ended; the carrier asks for instructions for the first one.
    OtherEnded {
        /// The URL of the document.
        url: String,
        /// The carrier's id of that call.
        other_call_id: String,
        /// How it ended.
        how: EndKind,
        /// Whether the first call is over, too.
        is_over: bool,
    },
    /// The carrier has detected who answered, or more about it.
    Detected(Answerer),
    /// The call ended.
    Ended {
        /// The kind of end.
        how: EndKind,
        /// Connected time in seconds.
        seconds: u32,
    },
    /// The price, if it has its own callback.
    Priced {
        /// Billed time in seconds.
        seconds: u32,
    },
}

/// Who has answered, as a carrier reports it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Answerer {
    /// A person.
    Person,
    /// A machine.
    Machine,
    /// A machine whose greeting is over.
    GreetedMachine,
    /// A fax.
    Fax,
    /// The carrier cannot tell.
    Unsure,
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// The person hung up.
    HungUp,
    /// The service hung up.
    HungUpByService,
    /// Nobody answered.
    NoAnswer,
    /// Busy.
    Busy,
    /// Declined.
    Declined,
    /// The number cannot be reached.
    Failed,
    /// Cancelled before the answer.
    Canceled,
}

/// A request from the carrier to the service.
#[derive(Debug, Clone, PartialEq)]
pub struct CallbackRequest {
    /// `POST`, `GET`.
    pub method: &'static str,
    /// The whole public URL.
    pub url: String,
    /// The headers, including the signature.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The service as the carrier knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Public {
    /// Its public URL without a trailing slash, over which signatures are made.
    pub base_url: String,
}
