//! Twilio: its REST API of 2010-04-01, TwiML, Media Streams.
//!
//! Sources: Twilio's OpenAPI document (`twilio_api_v2010`, Calls), its SDKs for Node.js 6.2 and Python 9.13, and its pages
//! "Call resource", "TwiML: Stream", "TwiML: Reject", "TwiML: Dial", "TwiML: Number", "Media Streams: WebSocket messages", "Webhooks security", "Answering machine
//! detection" and "Error and warning dictionary".
//!
//! For an incoming call, Twilio requests the number's voice URL and reports progress to the number's "call status changes"
//! URL, if the operator entered one: TwiML cannot set it. Both may be the same URL; the content of a callback determines its
//! type.
mod causes;
mod media;
mod reports;
mod signature;

use bytes::Bytes;
use http::StatusCode;
use serde::Deserialize;
use serde_json::Value;

use super::callback::{Callback, Check};
use super::media::MediaCodec;
use super::order::{Authorization, Order, Outgoing, Placed, Rejection};
use super::report::{CarrierEvent, DialEnd, IncomingCall, Refusal};
use super::{Carrier, Connect, Dial, Ending, Reply, Transfer, shared};
use crate::base::setting::{Secret, SettingError};
use crate::base::xml;
use crate::carriers::CarrierName;
use crate::conversation::VoicemailAction;
use crate::ports::HttpReply;

/// The default API URL; a region or a fake has its own.
const BASE_URL: &str = "https://api.twilio.com";

/// The longest valid `Timeout`.
const RING_SECONDS_MAX: u32 = 600;

/// The statuses of a request about a call that has ended: 404, and 400 with the code [`causes::CALL_IS_OVER`]. As
/// [`Outgoing::expected`] they stand for themselves: a 400 with another code is an error of [`Carrier::hung_up`] alone.
const CALL_IS_OVER: &[u16] = &[400, 404];

/// Hexadecimal digits of a SID, after the two letters of its type.
const SID_DIGITS: usize = 32;

/// The operator's Twilio account.
#[derive(Debug, Clone)]
pub struct Twilio {
    account_sid: String,
    auth_token: Secret,
    base_url: String,
}

impl Twilio {
    /// Reads `SIDETONE_TWILIO_ACCOUNT_SID`, `_AUTH_TOKEN` and, for a region, `_BASE_URL`. API keys are not supported: callbacks
    /// are signed with the auth token only.
    pub(super) fn from_settings(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        const SID: &str = "SIDETONE_TWILIO_ACCOUNT_SID";
        const TOKEN: &str = "SIDETONE_TWILIO_AUTH_TOKEN";
        let Some([account_sid, auth_token]) = shared::account(get, [SID, TOKEN])? else { return Ok(None) };
        if !is_sid("AC", &account_sid) {
            let message = "must be an account SID: `AC` and 32 hexadecimal digits".to_owned();
            return Err(SettingError { name: SID, message });
        }
        // With an empty token anybody could sign.
        if auth_token.is_empty() {
            return Err(SettingError { name: TOKEN, message: "must not be empty".to_owned() });
        }
        let base_url = shared::base_url(get, "SIDETONE_TWILIO_BASE_URL", BASE_URL)?;
        Ok(Some(Self { account_sid, auth_token: Secret::new(auth_token), base_url }))
    }

    /// A `POST` to a resource of this account.
    fn post(&self, path: &str, form: &[(&str, &str)]) -> Outgoing {
        Outgoing {
            carrier: CarrierName::Twilio,
            method: "POST",
            url: format!("{}/2010-04-01/Accounts/{}/{path}", self.base_url, self.account_sid),
            authorization: Authorization::Basic {
                user: self.account_sid.clone(),
                password: self.auth_token.clone(),
            },
            content_type: Some("application/x-www-form-urlencoded"),
            body: Bytes::from(shared::form(form)),
            expected: &[],
        }
    }
}

impl Carrier for Twilio {
    fn provider(&self) -> CarrierName {
        CarrierName::Twilio
    }

    fn place(&self, order: &Order<'_>) -> Outgoing {
        let twiml = connect(order.media_url);
        let ring_seconds = order.ring_seconds.clamp(1, RING_SECONDS_MAX).to_string();
        let max_seconds = order.max_seconds.max(1).to_string();
        let mut form = vec![
            ("To", order.to.as_str()),
            ("From", order.from.as_str()),
            ("Twiml", &twiml),
            ("StatusCallback", order.status_url),
            ("StatusCallbackMethod", "POST"),
            // A list repeats the name. The default contains only `completed`.
            ("StatusCallbackEvent", "initiated"),
            ("StatusCallbackEvent", "ringing"),
            ("StatusCallbackEvent", "answered"),
            ("StatusCallbackEvent", "completed"),
            ("Timeout", &ring_seconds),
            ("TimeLimit", &max_seconds),
        ];
        if let Some(action) = order.voicemail {
            let detection = match action {
                VoicemailAction::HangUp => "Enable",
                // One callback, once the greeting is over.
                VoicemailAction::LeaveMessage => "DetectMessageEnd",
            };
            form.extend([
                ("MachineDetection", detection),
                // Otherwise the person hears nothing until it is decided.
                ("AsyncAmd", "true"),
                ("AsyncAmdStatusCallback", order.status_url),
                ("AsyncAmdStatusCallbackMethod", "POST"),
            ]);
        }
        self.post("Calls.json", &form)
    }

    fn placed(&self, reply: &HttpReply) -> Placed {
        match reply.status {
            200..=299 => match sid(&reply.body) {
                Some(carrier_call_id) => Placed::Accepted { carrier_call_id },
                None => Placed::Unknown(format!("HTTP {} without a call SID", reply.status)),
            },
            408 | 500.. => Placed::Unknown(Problem::of(reply).words(reply.status)),
            _ => Placed::Rejected(self.rejection(reply)),
        }
    }

    fn check(&self, callback: &Callback<'_>) -> Check {
        signature::check(&self.auth_token, callback)
    }

    fn check_media(&self, callback: &Callback<'_>) -> Check {
        signature::check_media(&self.auth_token, callback)
    }

    fn read(&self, callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String> {
        reports::read(callback)
    }

    fn answer(&self, call: &Connect<'_>) -> Reply {
        document(connect(call.media_url))
    }

    fn refuse(&self, _: &IncomingCall, why: Refusal) -> Reply {
        refusal(why)
    }

    /// An empty document: when Twilio asks for instructions, it would read plain text to the caller.
    fn acknowledge(&self) -> Reply {
        document(response(""))
    }

    fn hang_up(&self, call: &Ending<'_>) -> Outgoing {
        let status = if call.answered { "completed" } else { "canceled" };
        let path = format!("Calls/{}.json", path_segment(call.carrier_call_id));
        Outgoing { expected: CALL_IS_OVER, ..self.post(&path, &[("Status", status)]) }
    }

    fn hung_up(&self, reply: &HttpReply) -> Result<(), Rejection> {
        let problem = Problem::of(reply);
        let says_so = reply.status == 404 || problem.code == Some(causes::CALL_IS_OVER);
        match reply.status {
            200..=299 => Ok(()),
            status if says_so && CALL_IS_OVER.contains(&status) => Ok(()),
            status => Err(problem.rejection(status)),
        }
    }

    /// The new document takes the place of the one that connects the media socket, which Twilio closes.
    fn transfer(&self, call: &Transfer<'_>) -> Outgoing {
        let Dial { to, caller_id, ring_seconds, max_seconds, status_url, back_url } = call.dial();
        let caller_id = caller_id.map(|number| format!(r#" callerId="{number}""#)).unwrap_or_default();
        let [status_url, back_url] = [status_url, back_url].map(xml::escaped);
        let number = format!(
            r#"<Number statusCallback="{status_url}" statusCallbackEvent="answered" statusCallbackMethod="POST">{to}</Number>"#
        );
        let twiml = response(&format!(
            r#"<Dial action="{back_url}"{caller_id} method="POST" timeLimit="{max_seconds}" timeout="{ring_seconds}">{number}</Dial>"#
        ));
        self.post(&format!("Calls/{}.json", path_segment(call.carrier_call_id)), &[("Twiml", &twiml)])
    }

    fn tells_of_transfer(&self) -> bool {
        true
    }

    fn dial_ended(&self, callback: &Callback<'_>) -> Result<Option<DialEnd>, String> {
        reports::dial_ended(callback).map(Some)
    }

    fn end(&self) -> Reply {
        document(response("<Hangup/>"))
    }

    /// `GET /2010-04-01/Accounts/{sid}.json`
    fn ask(&self, _id: &str, _now_ms: i64) -> Outgoing {
        Outgoing {
            method: "GET",
            url: format!("{}/2010-04-01/Accounts/{}.json", self.base_url, self.account_sid),
            content_type: None,
            body: Bytes::new(),
            ..self.post("", &[])
        }
    }

    fn rejection(&self, reply: &HttpReply) -> Rejection {
        Problem::of(reply).rejection(reply.status)
    }

    fn media_codec(&self) -> Box<dyn MediaCodec> {
        Box::new(media::TwilioCodec::default())
    }
}

/// TwiML that connects a call to a media socket in both directions until either side closes it.
///
/// The URL must not have a query: Twilio removes it.
fn connect(media_url: &str) -> String {
    response(&format!(r#"<Connect><Stream url="{}"/></Connect>"#, xml::escaped(media_url)))
}

fn response(verbs: &str) -> String {
    format!(r#"<?xml version="1.0" encoding="UTF-8"?><Response>{verbs}</Response>"#)
}

/// Declines a call before it is answered, at no cost.
pub fn refusal(why: Refusal) -> Reply {
    let reason = match why {
        Refusal::Unbound => "rejected",
        Refusal::Busy => "busy",
    };
    document(response(&format!(r#"<Reject reason="{reason}"/>"#)))
}

fn document(body: String) -> Reply {
    Reply::Document { content_type: "text/xml", body }
}

/// Whether a text is a SID of this type: two letters and 32 hexadecimal digits.
fn is_sid(kind: &str, text: &str) -> bool {
    let digits = text.strip_prefix(kind).unwrap_or_default();
    digits.len() == SID_DIGITS && digits.bytes().all(|b| b.is_ascii_hexdigit())
}

/// The call SID in a response.
fn sid(body: &[u8]) -> Option<String> {
    let answer: Value = serde_json::from_slice(body).ok()?;
    answer["sid"].as_str().filter(|sid| is_sid("CA", sid)).map(str::to_owned)
}

/// Percent-encodes an id as one path segment.
fn path_segment(text: &str) -> String {
    percent_encoding::utf8_percent_encode(text, percent_encoding::NON_ALPHANUMERIC).to_string()
}

/// The error in a response; empty when it cannot be read.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
struct Problem {
    code: Option<u32>,
    message: Option<String>,
}

impl Problem {
    fn of(reply: &HttpReply) -> Self {
        serde_json::from_slice(&reply.body).unwrap_or_default()
    }

    fn rejection(&self, status: u16) -> Rejection {
        let reason = StatusCode::from_u16(status).ok().and_then(|status| status.canonical_reason());
        let message = self.message.as_deref().or(reason).unwrap_or_default();
        let mut rejection = shared::rejection(status, self.code.map(|code| code.to_string()), message);
        if let Some(cause) = self.code.and_then(causes::rejection) {
            rejection.cause = cause;
        }
        rejection
    }

    fn words(&self, status: u16) -> String {
        let message = self.message.as_deref().unwrap_or_default();
        let code = self.code.map(|code| format!(" ({code})")).unwrap_or_default();
        shared::sanitized(format!("HTTP {status}{code} {message}").trim_end())
    }
}

#[cfg(test)]
mod tests;
