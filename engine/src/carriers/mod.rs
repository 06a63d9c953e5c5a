//! Telephone carriers: their wire formats and signatures, and nothing else.
//!
//! One file per carrier behind [`Carrier`]. All of it is pure: a carrier builds requests, parses responses, checks the
//! signatures of callbacks, and translates media messages. The decisions and the sending are in `live::telephony`.
//!
//! Each carrier's file names the sources of its wire formats.
pub(crate) mod callback;
pub(crate) mod grants;
pub(crate) mod media;
mod name;
pub mod order;
mod plivo;
pub(crate) mod rates;
pub(crate) mod report;
mod shared;
mod telnyx;
mod twilio;
mod vonage;

use std::collections::BTreeMap;
use std::fmt;
use std::sync::Arc;

pub use callback::{Callback, Check, Forged};
pub use grants::Grants;
pub use media::{MediaCodec, MediaError, MediaEvent, MediaFormat, MediaMessage};
pub use name::CarrierName;
pub use order::{Authorization, Order, Outgoing, Placed, PrivateKey, Rejection, RejectionCause};
pub use rates::Rates;
pub use report::{
    Billed, CarrierEvent, DialEnd, End, IncomingCall, Progress, Refusal, Report, Side, Untaken,
};

use crate::base::ordered::Ordered as _;
use crate::base::phone::E164;
use crate::base::setting::SettingError;
use crate::ports::{HttpReply, Port};

/// A carrier's protocol, with the operator's account at that carrier.
pub trait Carrier: Port {
    /// The carrier's name.
    fn provider(&self) -> CarrierName;

    /// The request that places a call.
    fn place(&self, order: &Order<'_>) -> Outgoing;

    /// Interprets the response to [`Carrier::place`].
    fn placed(&self, reply: &HttpReply) -> Placed;

    /// Checks whether a callback comes from the carrier. Nothing else in it is used before that.
    fn check(&self, callback: &Callback<'_>) -> Check;

    /// Checks whether the carrier opens a media socket; [`Check::Unsigned`] for a carrier that does not sign these requests,
    /// so that the token in the path is the only protection.
    fn check_media(&self, callback: &Callback<'_>) -> Check;

    /// The events of a genuine callback, in order. The error describes unreadable content, for the log; readable content
    /// without interest gives an empty list.
    fn read(&self, callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String>;

    /// Connects an incoming call, or an outgoing call that the carrier asks about ([`CarrierEvent::Asked`]), to the media
    /// socket.
    fn answer(&self, call: &Connect<'_>) -> Reply;

    /// Declines an incoming call.
    fn refuse(&self, call: &IncomingCall, why: Refusal) -> Reply;

    /// The response to a callback that needs no instructions.
    fn acknowledge(&self) -> Reply {
        Reply::Document { content_type: "text/plain; charset=utf-8", body: String::new() }
    }

    /// The request that ends a call. It expects the statuses with which [`Carrier::hung_up`] accepts that the call has already
    /// ended: whoever hung up, it is often asked for a line that is gone.
    fn hang_up(&self, call: &Ending<'_>) -> Outgoing;

    /// Interprets the response to [`Carrier::hang_up`]: a call that has already ended is not an error.
    fn hung_up(&self, reply: &HttpReply) -> Result<(), Rejection>;

    /// The request that connects an answered call to another number instead of the media socket.
    fn transfer(&self, call: &Transfer<'_>) -> Outgoing;

    /// The document that a carrier fetches from [`Transfer::document_url`] after that request.
    fn transferring(&self, _dial: &Dial<'_>) -> Reply {
        self.acknowledge()
    }

    /// Whether the carrier says that somebody has taken a transferred call, at [`Dial::status_url`], and that nobody has: it asks
    /// how to go on, at [`Dial::back_url`], or reports the end of the other line where ours
    /// [stays open](Self::keeps_transferred_line). Then who is not reached comes back.
    fn tells_of_transfer(&self) -> bool {
        false
    }

    /// The command that connects a call that nobody has taken to another media socket; `None` where the carrier
    /// [asks](Self::dial_ended) for a document.
    fn reconnect(&self, _call: &Connect<'_>) -> Option<Outgoing> {
        None
    }

    /// What a genuine request for [`Dial::back_url`] says; `None` if nothing is known yet. The error is as in [`Carrier::read`].
    fn dial_ended(&self, _callback: &Callback<'_>) -> Result<Option<DialEnd>, String> {
        Err("the carrier does not ask this".to_owned())
    }

    /// The response to a carrier that asks how to go on with a call that is over.
    fn end(&self) -> Reply {
        self.acknowledge()
    }

    /// Whether the line of a transferred call stays open, with nobody at its other end, once the other number is not reached
    /// or hangs up.
    fn keeps_transferred_line(&self) -> bool {
        false
    }

    /// A request that changes and costs nothing, and that only these credentials permit. `id` is unique.
    fn ask(&self, id: &str, now_ms: i64) -> Outgoing;

    /// The rejection in a response.
    fn rejection(&self, reply: &HttpReply) -> Rejection;

    /// The codec for a new media socket.
    fn media_codec(&self) -> Box<dyn MediaCodec>;
}

/// The content of an answer document or command. Not printable: its URLs contain tokens.
#[derive(Clone, Copy)]
pub struct Connect<'a> {
    /// The carrier's call id; `""` where the document needs none.
    pub carrier_call_id: &'a str,
    /// Our number, as the carrier spelled it.
    pub our_number: &'a str,
    /// The URL that the carrier opens: `wss://…` with the token in its path.
    pub media_url: &'a str,
    /// The URL for status callbacks, with a token that identifies the call.
    pub status_url: &'a str,
    /// A UUID, identical for repetitions of the same command: carriers ignore duplicates.
    pub command_id: &'a str,
    /// The current time.
    pub now_ms: i64,
    /// The maximum duration of the call.
    pub max_seconds: u32,
}

/// The parameters of a hang-up.
#[derive(Debug, Clone, Copy)]
pub struct Ending<'a> {
    /// The carrier's call id.
    pub carrier_call_id: &'a str,
    /// Whether the call was answered; some carriers distinguish cancelling from ending.
    pub answered: bool,
    /// The value of [`IncomingCall::region_url`], for incoming calls.
    pub region_url: Option<&'a str>,
    /// As in [`Connect::command_id`].
    pub command_id: &'a str,
    /// The current time.
    pub now_ms: i64,
}

/// The parameters of a transfer. Not printable: its URLs contain tokens.
#[derive(Clone, Copy)]
pub struct Transfer<'a> {
    /// The carrier's call id.
    pub carrier_call_id: &'a str,
    /// As in [`Ending::region_url`].
    pub region_url: Option<&'a str>,
    /// The number to call.
    pub to: &'a E164,
    /// How long it rings.
    pub ring_seconds: u32,
    /// How long both may talk.
    pub max_seconds: u32,
    /// Our number in the call; `None` if what the carrier called it is no number.
    pub our_number: Option<&'a E164>,
    /// Whether the called person may see the number of the person on the line: they have called, and show it.
    pub shows_caller: bool,
    /// Our id of the call.
    pub call_id: &'a str,
    /// The URL where a carrier that takes no document with the request fetches it.
    pub document_url: &'a str,
    /// The URL for status callbacks.
    pub status_url: &'a str,
    /// As in [`Dial::back_url`].
    pub back_url: &'a str,
    /// As in [`Connect::command_id`].
    pub command_id: &'a str,
    /// The current time.
    pub now_ms: i64,
}

impl<'a> Transfer<'a> {
    /// For carriers that dial by a document, and show the caller's number unless it names another.
    pub fn dial(&self) -> Dial<'a> {
        Dial {
            to: self.to,
            caller_id: self.our_number.filter(|_| !self.shows_caller),
            ring_seconds: self.ring_seconds,
            max_seconds: self.max_seconds,
            status_url: self.status_url,
            back_url: self.back_url,
        }
    }
}

/// A document that dials. Not printable: its URLs contain tokens.
#[derive(Clone, Copy)]
pub struct Dial<'a> {
    /// As in [`Transfer::to`].
    pub to: &'a E164,
    /// The number to show; `None` for the caller's.
    pub caller_id: Option<&'a E164>,
    /// As in [`Transfer::ring_seconds`].
    pub ring_seconds: u32,
    /// As in [`Transfer::max_seconds`].
    pub max_seconds: u32,
    /// Where a carrier of [`Carrier::tells_of_transfer`] reports that somebody has answered.
    pub status_url: &'a str,
    /// Where it asks how to go on once nobody has, or they have talked.
    pub back_url: &'a str,
}

/// The response to a carrier's callback.
#[derive(Debug, Clone, PartialEq)]
pub enum Reply {
    /// A 200 with this body.
    Document {
        /// The content type.
        content_type: &'static str,
        /// The body.
        body: String,
    },
    /// An empty 200, after this request to the carrier has succeeded.
    Command(Outgoing),
}

/// Declines a call from a carrier without a configured account, whose signature cannot be checked: the document reveals
/// nothing and has no side effects. `None` for Telnyx, where declining takes a command with an API key.
pub fn refusal_without_account(provider: CarrierName) -> Option<Reply> {
    match provider {
        CarrierName::Twilio => Some(twilio::refusal(Refusal::Unbound)),
        CarrierName::Plivo => Some(plivo::refusal(Refusal::Unbound)),
        CarrierName::Vonage => Some(vonage::refusal(Refusal::Unbound)),
        CarrierName::Telnyx => None,
    }
}

/// The configured carriers, their rates, and whose their numbers are.
#[derive(Clone, Default)]
pub struct Carriers {
    accounts: BTreeMap<&'static str, Arc<dyn Carrier>>,
    rates: Rates,
    grants: Grants,
}

/// The settings of all carriers; every host uses the same names.
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
    grants::SETTING,
];

impl Carriers {
    /// Reads the accounts. A carrier without any setting is left out; for an incomplete one the error names the missing
    /// setting.
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
            accounts: found.map(|carrier| (carrier.provider().as_str(), carrier)).into_map(),
            rates: Rates::read(get(rates::SETTING))?,
            grants: Grants::read(get(grants::SETTING))?,
        })
    }

    /// The rates of carriers that do not report costs.
    pub fn rates(&self) -> &Rates {
        &self.rates
    }

    /// Which workspace may use which number.
    pub fn grants(&self) -> &Grants {
        &self.grants
    }

    /// Whether a number of a configured account goes to the workspace that binds it first.
    pub fn has_ungranted_numbers(&self) -> bool {
        !self.accounts.is_empty() && !self.grants.are_set()
    }

    /// A warning that names the configured carriers without a rate; `None` when all have one. A spending limit cannot hold
    /// for their calls.
    pub fn without_rates_warning(&self) -> Option<String> {
        let names: Vec<&str> = self.accounts.keys().copied().filter(|name| !self.rates.has(name)).collect();
        (!names.is_empty()).then(|| {
            format!(
                "The spending limit does not hold for telephone calls with {}: {} has no rate for it, so nothing is \
                 reserved for the carrier, and its price counts only once the carrier reports it.",
                names.join(", "),
                rates::SETTING
            )
        })
    }

    /// The carriers with an account.
    pub fn names(&self) -> impl Iterator<Item = &'static str> {
        self.accounts.keys().copied()
    }

    /// The account with a carrier, if configured.
    pub fn get(&self, provider: CarrierName) -> Option<&Arc<dyn Carrier>> {
        self.accounts.get(provider.as_str())
    }
}

impl fmt::Debug for Carriers {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_list().entries(self.accounts.keys()).finish()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::{Value, json};

    use super::*;

    const KEY: &str = include_str!("vonage/test_key_pkcs8.pem");

    fn carriers() -> Carriers {
        let get = |name: &str| {
            let value = match name {
                "SIDETONE_TWILIO_ACCOUNT_SID" => "AC0123456789abcdef0123456789abcdef",
                "SIDETONE_TELNYX_PUBLIC_KEY" => "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=",
                "SIDETONE_VONAGE_PRIVATE_KEY" => KEY,
                name if name.ends_with("_BASE_URL") || name == rates::SETTING || name == grants::SETTING => {
                    return None;
                }
                _ => "a1b2c3",
            };
            Some(value.to_owned())
        };
        Carriers::from_settings(get).unwrap()
    }

    /// What each carrier is told to do: how long it rings, and how long both may talk.
    fn dialed(max_seconds: u32, shows_caller: bool) -> [String; 4] {
        let [to, ours] = ["+4930123456", "+14155550100"].map(|number| E164::parse(number).unwrap());
        let request = Transfer {
            carrier_call_id: "c-1",
            region_url: None,
            to: &to,
            ring_seconds: 60,
            max_seconds,
            our_number: Some(&ours),
            shows_caller,
            call_id: "call_1",
            document_url: "https://voice.example.com/document",
            status_url: "https://voice.example.com/status?call=t",
            back_url: "https://voice.example.com/voice?call=t&back=1",
            command_id: "k",
            now_ms: 0,
        };
        let carriers = carriers();
        [CarrierName::Twilio, CarrierName::Telnyx, CarrierName::Plivo, CarrierName::Vonage].map(|name| {
            let carrier = carriers.get(name).unwrap();
            let body = carrier.transfer(&request).body;
            let text = String::from_utf8(body.to_vec()).unwrap();
            match name {
                CarrierName::Twilio => {
                    let (_, twiml) = form_urlencoded::parse(text.as_bytes()).next().unwrap();
                    twiml.into_owned()
                }
                CarrierName::Telnyx => {
                    let body: Value = serde_json::from_str(&text).unwrap();
                    ["timeout_secs", "time_limit_secs", "from"].map(|name| body[name].to_string()).join(" ")
                }
                CarrierName::Plivo => match carrier.transferring(&request.dial()) {
                    Reply::Document { body, .. } => body,
                    Reply::Command(_) => panic!("a command"),
                },
                CarrierName::Vonage => {
                    let body: Value = serde_json::from_str(&text).unwrap();
                    body["destination"]["ncco"].to_string()
                }
            }
        })
    }

    #[test]
    fn a_hang_up_expects_what_it_accepts_of_a_call_that_has_ended() {
        let over = json!({"code": 21_220, "errors": [{"code": "90018", "title": "x"}]}).to_string();
        let call =
            Ending { carrier_call_id: "c-1", answered: true, region_url: None, command_id: "k", now_ms: 0 };
        let carriers = carriers();
        for name in [CarrierName::Twilio, CarrierName::Telnyx, CarrierName::Plivo, CarrierName::Vonage] {
            let carrier = carriers.get(name).unwrap();
            let is_accepted = |status: &u16| {
                let reply = HttpReply { status: *status, headers: Vec::new(), body: over.clone().into() };
                carrier.hung_up(&reply).is_ok()
            };
            let accepted: Vec<u16> = (300..600).filter(is_accepted).collect();
            assert_eq!(carrier.hang_up(&call).expected, accepted, "{name:?}");
            assert!(accepted.contains(&404), "{name:?}");
            let is_harmless = |status: &u16| [400, 404, 422].contains(status);
            assert!(accepted.iter().all(is_harmless), "{name:?}: {accepted:?}");
            assert!(carrier.ask("k", 0).expected.is_empty(), "{name:?}");
        }
    }

    #[test]
    fn a_transfer_rings_and_lasts_for_a_limited_time() {
        let [twilio, telnyx, plivo, vonage] = dialed(7_200, false);
        let [status, back] = ["status?call=t", "voice?call=t&amp;back=1"]
            .map(|path| format!("https://voice.example.com/{path}"));
        let twiml = |caller_id: &str, limit: &str| {
            let number = format!(
                r#"<Number statusCallback="{status}" statusCallbackEvent="answered" statusCallbackMethod="POST">+4930123456</Number>"#
            );
            format!(
                r#"<?xml version="1.0" encoding="UTF-8"?><Response><Dial action="{back}"{caller_id} method="POST" timeLimit="{limit}" timeout="60">{number}</Dial></Response>"#
            )
        };
        assert_eq!(twilio, twiml(r#" callerId="+14155550100""#, "7200"));
        assert_eq!(telnyx, r#"60 7200 "+14155550100""#);
        let dialing = |caller_id: &str, limit: &str| {
            format!(
                r#"<Response><Dial action="{back}" callbackMethod="POST" callbackUrl="{status}"{caller_id} method="POST" redirect="true" timeLimit="{limit}" timeout="60"><Number>4930123456</Number></Dial></Response>"#
            )
        };
        assert_eq!(plivo, dialing(r#" callerId="14155550100""#, "7200"));
        let ncco = json!([{
            "action": "connect", "endpoint": [{"type": "phone", "number": "4930123456"}],
            "timeout": 60, "limit": 7_200, "from": "14155550100", "eventType": "synchronous",
            "eventUrl": ["https://voice.example.com/voice?call=t&back=1"], "eventMethod": "POST",
        }]);
        assert_eq!(serde_json::from_str::<Value>(&vonage).unwrap(), ncco);
        let [twilio, telnyx, plivo, vonage] = dialed(180, true);
        assert_eq!(twilio, twiml("", "180"));
        assert_eq!(telnyx, r#"60 180 "+14155550100""#);
        assert_eq!(plivo, dialing("", "180"));
        assert_eq!(serde_json::from_str::<Value>(&vonage).unwrap()[0]["limit"], 180);
    }
}
