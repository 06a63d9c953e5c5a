//! Plivo: Voice API v1, Plivo XML, audio streams.
//!
//! Sources: the official server SDKs (`plivo` 4.63.0 for Python, 4.79.0 for Node) for requests, documents and
//! signatures; plivo.com/docs/voice: `api/calls`, `api/calls/transfer`, `xml/overview`, `xml/dial`, `concepts/callbacks`,
//! `concepts/signature-validation`, `troubleshooting/hangup-causes`; plivo.com/docs/voice-agents/audio-streaming.
//!
//! A call has two ids. The response to an order has a request UUID; callbacks have the call's (`CallUUID`) as well. In every
//! published sample the two are equal, but that is not guaranteed: an order is known by the request UUID until a callback
//! gives the call's.
//!
//! For our own numbers, the operator sets the answer URL and the hangup URL in a Plivo application; an answer document cannot
//! set the URL that receives the end of an incoming call.
mod callbacks;
mod causes;
mod media;
mod signature;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::callback::{Callback, Check};
use super::media::MediaCodec;
use super::order::{Authorization, Order, Outgoing, Placed, Rejection};
use super::report::{CarrierEvent, DialEnd, IncomingCall, Refusal};
use super::{Carrier, Connect, Dial, Ending, Reply, Transfer, shared};
use crate::base::phone::E164;
use crate::base::setting::{Secret, SettingError};
use crate::base::xml;
use crate::carriers::CarrierName;
use crate::ports::HttpReply;

const AUTH_ID: &str = "SIDETONE_PLIVO_AUTH_ID";
const AUTH_TOKEN: &str = "SIDETONE_PLIVO_AUTH_TOKEN";
const BASE_URL: &str = "SIDETONE_PLIVO_BASE_URL";
const DEFAULT_BASE_URL: &str = "https://api.plivo.com";
/// A UUID has 36 bytes; no call id of Plivo is longer than this.
const ID_BYTES_MAX: usize = 64;
/// Characters that need no percent-encoding in a path, besides letters and digits (RFC 3986, unreserved).
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const XML: &str = "text/xml; charset=utf-8";

/// A Plivo account or subaccount: it makes requests, and its token signs callbacks.
#[derive(Debug)]
pub struct Plivo {
    auth_id: String,
    auth_token: Secret,
    base_url: String,
}

impl Plivo {
    /// Reads the account; `None` when it is not configured.
    pub(super) fn from_settings(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let Some([auth_id, auth_token]) = shared::account(get, [AUTH_ID, AUTH_TOKEN])? else {
            return Ok(None);
        };
        // It is part of the path of every request.
        if auth_id.is_empty() || !auth_id.bytes().all(|b| b.is_ascii_alphanumeric()) {
            let message = "must consist of letters and digits, such as MAXXXXXXXXXXXXXXXXXX".to_owned();
            return Err(SettingError { name: AUTH_ID, message });
        }
        let base_url = shared::base_url(get, BASE_URL, DEFAULT_BASE_URL)?;
        Ok(Some(Self { auth_id, auth_token: Secret::new(auth_token), base_url }))
    }

    fn request(&self, method: &'static str, path: &str, body: Option<&Value>) -> Outgoing {
        Outgoing {
            carrier: CarrierName::Plivo,
            method,
            url: format!("{}/v1/Account/{}/{path}", self.base_url, self.auth_id),
            authorization: Authorization::Basic {
                user: self.auth_id.clone(),
                password: self.auth_token.clone(),
            },
            content_type: body.map(|_| "application/json"),
            body: body.map(Value::to_string).unwrap_or_default().into(),
            expected: &[],
        }
    }

    /// Plivo's error message: `error` is a text or an object that names fields. There are no codes.
    fn complaint(&self, reply: &HttpReply) -> String {
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let text = match &body["error"] {
            Value::String(text) => text.clone(),
            Value::Null => return format!("Plivo answered with status {}", reply.status),
            other => other.to_string(),
        };
        // Plivo may quote our request, and the URLs of an order contain tokens.
        let words = text.split_whitespace().map(|word| if word.contains("://") { "(a URL)" } else { word });
        words.collect::<Vec<_>>().join(" ").replace(self.auth_token.reveal(), "…")
    }
}

impl Carrier for Plivo {
    fn provider(&self) -> CarrierName {
        CarrierName::Plivo
    }

    /// `POST /v1/Account/{auth_id}/Call/`. Plivo takes no document with an order: it fetches it from `answer_url`.
    fn place(&self, order: &Order<'_>) -> Outgoing {
        let mut body = json!({
            "from": digits(order.from),
            "to": digits(order.to),
            "answer_url": order.answer_url,
            "answer_method": "POST",
            "ring_url": order.status_url,
            "ring_method": "POST",
            "hangup_url": order.status_url,
            "hangup_method": "POST",
            "time_limit": order.max_seconds,
            "ring_timeout": order.ring_seconds,
        });
        if order.voicemail.is_some() {
            // With a URL, it goes on beside the call. Plivo says that it is a machine, and not when its greeting is over.
            body["machine_detection"] = json!("true");
            body["machine_detection_url"] = json!(order.status_url);
            body["machine_detection_method"] = json!("POST");
        }
        self.request("POST", "Call/", Some(&body))
    }

    fn placed(&self, reply: &HttpReply) -> Placed {
        match reply.status {
            200..=299 => match request_uuid(&reply.body) {
                Some(carrier_call_id) => Placed::Accepted { carrier_call_id },
                None => Placed::Unknown("Plivo accepted the order without a call id".to_owned()),
            },
            // A request that timed out on Plivo's side may have been executed.
            400..=499 if reply.status != 408 => Placed::Rejected(self.rejection(reply)),
            _ => Placed::Unknown(shared::sanitized(&self.complaint(reply))),
        }
    }

    fn check(&self, callback: &Callback<'_>) -> Check {
        signature::check(self.auth_token.reveal(), callback)
    }

    fn check_media(&self, callback: &Callback<'_>) -> Check {
        signature::check_media(self.auth_token.reveal(), callback)
    }

    fn read(&self, callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String> {
        callbacks::read(callback)
    }

    /// With `keepCallAlive` the stream is the whole call: the call ends when the socket is closed.
    fn answer(&self, call: &Connect<'_>) -> Reply {
        document(&format!(
            r#"<Stream bidirectional="true" keepCallAlive="true" contentType="audio/x-mulaw;rate=8000">{}</Stream>"#,
            xml::escaped(call.media_url)
        ))
    }

    fn refuse(&self, _: &IncomingCall, why: Refusal) -> Reply {
        refusal(why)
    }

    /// An answered call is a `Call`. Before that it is a `Request`, the only handle for a call in Plivo's queue, and the id of an
    /// order until a callback arrives. If a ringing call had an id other than its request's, Plivo would answer 404 and the call
    /// would ring until its `ring_timeout`.
    fn hang_up(&self, call: &Ending<'_>) -> Outgoing {
        let kind = if call.answered { "Call" } else { "Request" };
        let id = utf8_percent_encode(call.carrier_call_id, IN_PATH);
        let request = self.request("DELETE", &format!("{kind}/{id}/"), None);
        Outgoing { expected: shared::CALL_IS_OVER, ..request }
    }

    fn hung_up(&self, reply: &HttpReply) -> Result<(), Rejection> {
        match reply.status {
            200..=299 => Ok(()),
            status if shared::CALL_IS_OVER.contains(&status) => Ok(()),
            _ => Err(self.rejection(reply)),
        }
    }

    /// Plivo takes no document with the request: it fetches it, and then leaves the stream.
    fn transfer(&self, call: &Transfer<'_>) -> Outgoing {
        let id = utf8_percent_encode(call.carrier_call_id, IN_PATH);
        let body = json!({"legs": "aleg", "aleg_url": call.document_url, "aleg_method": "POST"});
        self.request("POST", &format!("Call/{id}/"), Some(&body))
    }

    fn transferring(&self, dial: &Dial<'_>) -> Reply {
        let Dial { to, caller_id, ring_seconds, max_seconds, status_url, back_url } = dial;
        let [status_url, back_url] = [*status_url, *back_url].map(xml::escaped);
        let caller_id =
            caller_id.map(|number| format!(r#" callerId="{}""#, digits(number))).unwrap_or_default();
        document(&format!(
            r#"<Dial action="{back_url}" callbackMethod="POST" callbackUrl="{status_url}"{caller_id} method="POST" redirect="true" timeLimit="{max_seconds}" timeout="{ring_seconds}"><Number>{}</Number></Dial>"#,
            digits(to)
        ))
    }

    fn tells_of_transfer(&self) -> bool {
        true
    }

    fn dial_ended(&self, callback: &Callback<'_>) -> Result<Option<DialEnd>, String> {
        callbacks::dial_ended(callback).map(Some)
    }

    fn end(&self) -> Reply {
        document("<Hangup/>")
    }

    /// `GET /v1/Account/{auth_id}/`
    fn ask(&self, _id: &str, _now_ms: i64) -> Outgoing {
        self.request("GET", "", None)
    }

    fn rejection(&self, reply: &HttpReply) -> Rejection {
        shared::rejection(reply.status, None, &self.complaint(reply))
    }

    fn media_codec(&self) -> Box<dyn MediaCodec> {
        Box::new(media::PlivoCodec::default())
    }
}

/// A number in Plivo's spelling, without `+`.
fn digits(number: &E164) -> &str {
    number.as_str().trim_start_matches('+')
}

/// The id in the response to an order: a text, or a list when several numbers are called at once.
fn request_uuid(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let id = match &body["request_uuid"] {
        Value::Array(ids) if ids.len() == 1 => ids[0].as_str()?,
        id => id.as_str()?,
    };
    is_id(id).then(|| id.to_owned())
}

/// Whether a text can be a call id of Plivo: a UUID or something similar.
fn is_id(text: &str) -> bool {
    let fits = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'-' | b'_');
    !text.is_empty() && text.len() <= ID_BYTES_MAX && text.bytes().all(fits)
}

/// Declines a call before it is answered.
pub fn refusal(why: Refusal) -> Reply {
    document(match why {
        Refusal::Unbound => r#"<Hangup reason="rejected"/>"#,
        Refusal::Busy => r#"<Hangup reason="busy"/>"#,
    })
}

fn document(inside: &str) -> Reply {
    Reply::Document { content_type: XML, body: format!("<Response>{inside}</Response>") }
}

#[cfg(test)]
mod tests;
