//! How one carrier speaks, seen from its own side: the mirror of the engine's `Carrier`, written from the carrier's
//! documents and official SDKs, and sharing no code with it.
use serde_json::Value;

/// One carrier's language.
pub trait Wire: Send + Sync + 'static {
    /// `twilio`, …
    fn provider(&self) -> &'static str;

    /// The settings a service needs to have an account here, with this server's address (`http://127.0.0.1:…`).
    fn settings(&self, api_url: &str) -> Vec<(&'static str, String)>;

    /// Reads a request to the carrier's API as strictly as the carrier does: path, credentials, content type, every
    /// field by name. What the carrier would refuse is its own refusal.
    fn read(&self, request: &ApiRequest) -> Result<Command, ApiReply>;

    /// The answer to an order that was taken.
    fn placed(&self, call: &PhoneCall) -> ApiReply;

    /// The answer to an order that gets this treatment; `None` for [`Behaviour::Take`] and for those that are no
    /// answer at all.
    fn refused(&self, behaviour: Behaviour) -> Option<ApiReply>;

    /// The answer to a command about a call ([`Command::Answer`], [`Command::Refuse`], [`Command::HangUp`]).
    fn done(&self, command: &Command) -> ApiReply;

    /// The answer to a command about a call that is over or never was.
    fn gone(&self) -> ApiReply;

    /// What the carrier sends to the service when this happens, signed; `None` when it sends nothing then. `nth`
    /// counts the callbacks of the call from 0.
    fn callback(
        &self,
        public: &Public,
        call: &PhoneCall,
        event: &CallEvent,
        nth: u32,
        now_s: i64,
    ) -> Option<CallbackRequest>;

    /// What the service's answer to an incoming call, or to being asked about an answered one, tells the carrier to
    /// do. An error says what is wrong with the document: an unknown element, a missing attribute, a URL it may not use.
    fn instruction(&self, status: u16, content_type: &str, body: &[u8]) -> Result<Instruction, String>;

    /// Headers of the request for the media socket at `url`, which is the URL as the service gave it.
    fn socket_headers(&self, url: &str) -> Vec<(&'static str, String)>;

    /// The carrier's end of a media socket.
    fn media(&self, call: &PhoneCall) -> Box<dyn MediaWire>;
}

/// The carrier's end of a media socket: samples are mono, 16-bit, 20 ms at [`MediaWire::rate_hz`].
pub trait MediaWire: Send {
    /// Samples a second, both ways.
    fn rate_hz(&self) -> u32;
    /// What comes first.
    fn opening(&mut self) -> Vec<WireMessage>;
    /// One frame of what the person says.
    fn audio(&mut self, samples: &[i16]) -> WireMessage;
    /// A key was pressed.
    fn key(&mut self, key: char) -> WireMessage;
    /// All that came before the mark of this name has been played.
    fn played(&mut self, name: &str) -> WireMessage;
    /// The service has asked to throw away what was not played; these marks were still out.
    fn cleared(&mut self, marks: &[String]) -> Vec<WireMessage>;
    /// What comes last; nothing where closing the socket is all.
    fn closing(&mut self) -> Vec<WireMessage>;
    /// A message of the service, read strictly.
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

/// What the service says over a media socket.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FromService {
    /// Audio to play.
    Audio(Vec<i16>),
    /// Tell when all before it was played.
    Mark(String),
    /// Throw away what was not played.
    Clear,
}

/// A request to the carrier's API.
#[derive(Debug, Clone, PartialEq)]
pub struct ApiRequest {
    /// `POST`, …
    pub method: String,
    /// With its query.
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

/// An answer of the carrier's API.
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
    /// A JSON answer.
    pub fn json(status: u16, body: &Value) -> Self {
        Self { status, content_type: "application/json", body: body.to_string() }
    }

    /// An empty one.
    pub fn empty(status: u16) -> Self {
        Self { status, content_type: "text/plain", body: String::new() }
    }
}

/// What a request asks the carrier to do.
#[derive(Debug, Clone, PartialEq)]
pub enum Command {
    /// Place a call.
    Place {
        /// With a leading `+`, however the carrier spells it.
        from: String,
        /// Likewise.
        to: String,
        /// Where callbacks go.
        status_url: String,
        /// What to do once it is answered; `None`: ask `answer_url`.
        instruction: Option<Instruction>,
        /// Where to ask.
        answer_url: Option<String>,
    },
    /// Answer an incoming call.
    Answer {
        /// The carrier's id.
        carrier_call_id: String,
        /// [`Instruction::Connect`].
        instruction: Instruction,
    },
    /// Decline one.
    Refuse {
        /// The carrier's id.
        carrier_call_id: String,
    },
    /// End a call.
    HangUp {
        /// The carrier's id.
        carrier_call_id: String,
    },
}

/// What the carrier does with a call.
#[derive(Debug, Clone, PartialEq)]
pub enum Instruction {
    /// Connect it to a media socket.
    Connect {
        /// `ws://` or `wss://`
        media_url: String,
        /// Where callbacks about this call go from now on, where the document says so.
        status_url: Option<String>,
    },
    /// Decline it or hang up, after saying something perhaps.
    HangUp,
    /// Nothing yet: a command follows.
    Wait,
}

/// What an order meets with. The tests choose it by the number that is called.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Behaviour {
    /// It is taken.
    Take,
    /// It is taken, which is said only after a while.
    Late,
    /// The number is not one.
    BadNumber,
    /// The credentials are refused (401).
    Unauthorized,
    /// Too many requests (429).
    TooMany,
    /// The carrier breaks (500).
    Broken,
    /// A success that names no call.
    NoId,
    /// The connection is held and nothing comes.
    Hang,
    /// The connection is cut before an answer.
    Cut,
}

/// A call as the carrier has it.
#[derive(Debug, Clone, PartialEq)]
pub struct PhoneCall {
    /// The carrier's id, in its own form.
    pub carrier_call_id: String,
    /// A further id, where the carrier has two (a request, a conversation, a session).
    pub other_id: String,
    /// With a leading `+`.
    pub from: String,
    /// With a leading `+`.
    pub to: String,
    /// Whether the service placed it.
    pub outbound: bool,
    /// Where callbacks about it go: the URL as the service gave it, or what was set for the number.
    pub status_url: String,
    /// Where an incoming call is announced, or an answered one asked about.
    pub voice_url: String,
    /// The format the service asked for, where it may choose; else empty.
    pub format: String,
}

/// What happens to a call.
#[derive(Debug, Clone, PartialEq)]
pub enum CallEvent {
    /// Somebody calls a number of the service.
    Incoming,
    /// The other side rings.
    Ringing,
    /// The other side has answered.
    Answered,
    /// The carrier asks what to do with an answered call.
    Asked,
    /// It is over.
    Ended {
        /// How.
        how: EndKind,
        /// How long it was connected.
        seconds: u32,
    },
    /// The carrier tells what it costs, where that is a callback of its own.
    Priced {
        /// How long it counts.
        seconds: u32,
    },
}

/// How a call ends.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum EndKind {
    /// The person hung up.
    HungUp,
    /// The service did.
    HungUpByService,
    /// Nobody answered.
    NoAnswer,
    /// Busy.
    Busy,
    /// Declined.
    Declined,
    /// The number cannot be reached.
    Failed,
    /// Called off before it was answered.
    Canceled,
}

/// A request of the carrier to the service.
#[derive(Debug, Clone, PartialEq)]
pub struct CallbackRequest {
    /// `POST`, `GET`.
    pub method: &'static str,
    /// The whole URL, as the service knows it.
    pub url: String,
    /// With the signature.
    pub headers: Vec<(&'static str, String)>,
    /// The body.
    pub body: Vec<u8>,
}

/// The service as the carrier knows it.
#[derive(Debug, Clone, PartialEq)]
pub struct Public {
    /// Its public URL, without a trailing slash. Signatures are over it.
    pub base_url: String,
}
