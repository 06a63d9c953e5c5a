//! Telephone carriers: what each of them says and wants to hear, and nothing else.
//!
//! One file a carrier behind [`Carrier`]. All of it is pure: a carrier builds requests and reads answers, tells
//! how a callback's signature is checked, and translates its media messages. Who sends and decides is `telephony`.
//!
//! Sources of the wire formats are named in each carrier's file.
pub mod callback;
pub mod media;
mod name;
pub mod order;
mod plivo;
pub mod rates;
pub mod report;
mod shared;
mod telnyx;
mod twilio;
mod vonage;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use callback::{Callback, Check, Forged};
pub use media::{MediaCodec, MediaError, MediaEvent, MediaFormat, MediaMessage};
pub use name::CarrierName;
pub use order::{Authorization, Order, Outgoing, Placed, PrivateKey, Rejection, RejectionCause};
pub use rates::Rates;
pub use report::{Billed, CarrierEvent, End, IncomingCall, Progress, Refusal, Report, Side};

use crate::base::setting::SettingError;
use crate::ports::{HttpReply, Port};

/// What a carrier is to the rest of the engine. It holds the operator's account at that carrier.
pub trait Carrier: Port {
    /// Which one it is.
    fn provider(&self) -> CarrierName;

    /// The request that places a call.
    fn place(&self, order: &Order<'_>) -> Outgoing;

    /// What the answer to [`Carrier::place`] means.
    fn placed(&self, reply: &HttpReply) -> Placed;

    /// How it is found out whether a callback comes from the carrier. Nothing else of it is believed before.
    fn check(&self, callback: &Callback<'_>) -> Check;

    /// How it is found out whether a media socket is opened by the carrier, where the carrier signs that;
    /// [`Check::Unsigned`] where it does not (the token in the path then is all there is).
    fn check_media(&self, callback: &Callback<'_>) -> Check;

    /// What a genuine callback says, in the order it says it. An error names what cannot be read, for the log;
    /// what is readable and of no interest is an empty list.
    fn read(&self, callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String>;

    /// Connects a call that came in, or one that was placed and is asked about again ([`CarrierEvent::Asked`]),
    /// to the media socket.
    fn answer(&self, call: &Connect<'_>) -> Reply;

    /// Declines an incoming call politely.
    fn refuse(&self, call: &IncomingCall, why: Refusal) -> Reply;

    /// What a callback that needs no words is answered with.
    fn acknowledge(&self) -> Reply {
        Reply::Document { content_type: "text/plain; charset=utf-8", body: String::new() }
    }

    /// The request that ends a call.
    fn hang_up(&self, call: &Ending<'_>) -> Outgoing;

    /// What the answer to [`Carrier::hang_up`] means: a call that is over already is no error.
    fn hung_up(&self, reply: &HttpReply) -> Result<(), Rejection>;

    /// The carrier's side of a media socket that was just opened.
    fn media_codec(&self) -> Box<dyn MediaCodec>;
}

/// What an answer document or command is made of.
#[derive(Debug, Clone, Copy)]
pub struct Connect<'a> {
    /// The carrier's id of the call; `""` where the document needs none.
    pub carrier_call_id: &'a str,
    /// Our number of the two, as the carrier spelled it.
    pub our_number: &'a str,
    /// `wss://…`, with the token in its path: the carrier opens it.
    pub media_url: &'a str,
    /// Where the carrier tells what becomes of the call, with a token that says which call it is.
    pub status_url: &'a str,
    /// The same for the same call however often it is said: carriers drop what they have seen. A UUID.
    pub command_id: &'a str,
    /// The time of it.
    pub now_ms: i64,
    /// How long the call may last.
    pub max_seconds: u32,
}

/// What ends a call.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// The carrier's id of the call.
    pub carrier_call_id: &'a str,
    /// Whether anybody has answered it; some carriers cancel and end in two ways.
    pub answered: bool,
    /// What [`IncomingCall::region_url`] said, for calls that came in.
    pub region_url: Option<&'a str>,
    /// As in [`Connect::command_id`].
    pub command_id: &'a str,
    /// The time of it.
    pub now_ms: i64,
}

/// What is said to a carrier's callback.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// The body of a 200.
    Document {
        /// Its type.
        content_type: &'static str,
        /// Itself.
        body: String,
    },
    /// An empty 200, once this request of ours has been taken.
    Command(Outgoing),
}

/// Declines a call at a carrier with which there is no account, so that its signature cannot be checked: a document that
/// tells nothing and causes nothing. `None` for Telnyx, where only a command with an API key declines.
pub fn refusal_without_account(provider: CarrierName) -> Option<Reply> {
    match provider {
        CarrierName::Twilio => Some(twilio::refusal(Refusal::Unbound)),
        CarrierName::Plivo => Some(plivo::refusal(Refusal::Unbound)),
        CarrierName::Vonage => Some(vonage::refusal(Refusal::Unbound)),
        CarrierName::Telnyx => None,
    }
}

/// The carriers the operator has an account with, and what they cost.
#[derive(Clone, Default)]
pub struct Carriers {
    accounts: BTreeMap<&'static str, Arc<dyn Carrier>>,
    rates: Rates,
}

/// The settings of all carriers, under the same names on a box and at the edge.
pub const SETTINGS: &[&str] = &[
    "SIDETONE_TWILIO_ACCOUNT_SID",
    "SIDETONE_TWILIO_AUTH_TOKEN",
    "SIDETONE_TWILIO_BASE_URL",
    "SIDETONE_TELNYX_API_KEY",
    "SIDETONE_TELNYX_PUBLIC_KEY",
    "SIDETONE_TELNYX_CONNECTION_ID",
    "SIDETONE_TELNYX_BASE_URL",
    "SIDETONE_PLIVO_AUTH_ID",
    "SIDETONE_PLIVO_AUTH_TOKEN",
    "SIDETONE_PLIVO_BASE_URL",
    "SIDETONE_VONAGE_APPLICATION_ID",
    "SIDETONE_VONAGE_PRIVATE_KEY",
    "SIDETONE_VONAGE_API_KEY",
    "SIDETONE_VONAGE_SIGNATURE_SECRET",
    "SIDETONE_VONAGE_BASE_URL",
    rates::SETTING,
];

impl Carriers {
    /// Reads the accounts. A carrier of which nothing is set is not there; one of which something lacks is an
    /// error that names it.
    pub fn from_settings(get: impl Fn(&str) -> Option<String>) -> Result<Self, SettingError> {
        let get: &dyn Fn(&str) -> Option<String> = &get;
        let found: Vec<Option<Arc<dyn Carrier>>> = vec![
            twilio::Twilio::from_settings(get)?.map(|carrier| Arc::new(carrier) as Arc<dyn Carrier>),
            telnyx::Telnyx::from_settings(get)?.map(|carrier| Arc::new(carrier) as Arc<dyn Carrier>),
            plivo::Plivo::from_settings(get)?.map(|carrier| Arc::new(carrier) as Arc<dyn Carrier>),
            vonage::Vonage::from_settings(get)?.map(|carrier| Arc::new(carrier) as Arc<dyn Carrier>),
        ];
        let found = found.into_iter().flatten();
        Ok(Self {
            accounts: found.map(|carrier| (carrier.provider().as_str(), carrier)).collect(),
            rates: Rates::read(get(rates::SETTING))?,
        })
    }

    /// What they cost.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// The account with a carrier, if there is one.
    pub fn get(&self, provider: CarrierName) -> Option<&Arc<dyn Carrier>> {
        self.accounts.get(provider.as_str())
    }
}

impl fmt::Debug for Carriers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.accounts.keys()).finish()
    }
}
