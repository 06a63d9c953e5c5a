//! Plivo: Voice API v1, Plivo XML, audio streams.
//!
//! Sources: the official server SDKs (`plivo` 4.63.0 for Python, 4.79.0 for Node) for requests, documents and
//! signatures; plivo.com/docs/voice: `api/calls`, `xml/overview`, `concepts/callbacks`,
//! `concepts/signature-validation`, `troubleshooting/hangup-causes`; plivo.com/docs/voice-agents/audio-streaming.
//!
//! One call has two names here. What takes an order answers with a request's UUID; callbacks carry the call's
//! (`CallUUID`) beside it. In every published sample the two are the same, and nowhere is that promised: an order
//! is known by the request's until a callback tells the call's.
//!
//! For numbers of ours, the operator sets the answer URL and the hangup URL of a Plivo application; an answer
//! document cannot say where the end of an incoming call is told.
mod callbacks;
mod causes;
mod media;
mod signature;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::callback::{Callback, Check};
use super::media::MediaCodec;
use super::order::{Authorization, Order, Outgoing, Placed, Rejection};
use super::report::{CarrierEvent, IncomingCall, Refusal};
use super::{Carrier, Connect, Ending, Reply, shared};
use crate::base::phone::E164;
use crate::base::setting::{Secret, SettingError};
use crate::carriers::CarrierName;
use crate::ports::HttpReply;

const AUTH_ID: &str = "SIDETONE_PLIVO_AUTH_ID";
const AUTH_TOKEN: &str = "SIDETONE_PLIVO_AUTH_TOKEN";
const BASE_URL: &str = "SIDETONE_PLIVO_BASE_URL";
const DEFAULT_BASE_URL: &str = "https://api.plivo.com";
/// A UUID has 36; nothing that Plivo calls a call is longer than this.
const ID_BYTES_MAX: usize = 64;
/// What stands for itself in a path beside letters and digits (RFC 3986, unreserved).
const IN_PATH: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_').remove(b'.').remove(b'~');
const XML: &str = "text/xml; charset=utf-8";

/// An account with Plivo, or a subaccount: requests are made in its name and callbacks signed with its token.
#[derive(Debug)]
pub struct Plivo {
    auth_id: String,
    auth_token: Secret,
    base_url: String,
}

impl Plivo {
    /// Reads the account; `None` when none is set.
    pub(super) fn from_settings(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let Some([auth_id, auth_token]) = shared::account(get, [AUTH_ID, AUTH_TOKEN])? else {
            return Ok(None);
        };
        // It stands in the path of every request.
        if auth_id.is_empty() || !auth_id.bytes().all(|b| b.is_ascii_alphanumeric()) {
            let message = "is letters and digits, such as MAXXXXXXXXXXXXXXXXXX".to_owned();
            return Err(SettingError { name: AUTH_ID, message });
        }
        let base_url = shared::base_url(get, BASE_URL, DEFAULT_BASE_URL)?;
        Ok(Some(Self { auth_id, auth_token: Secret::new(auth_token), base_url }))
    }

    fn request(&self, method: &'static str, path: &str, body: Option<&Value>) -> Outgoing {
        Outgoing {
            method,
            url: format!("{}/v1/Account/{}/{path}", self.base_url, self.auth_id),
            authorization: Authorization::Basic {
                user: self.auth_id.clone(),
                password: self.auth_token.clone(),
            },
            content_type: body.map(|_| "application/json"),
            body: body.map(Value::to_string).unwrap_or_default().into(),
        }
    }

    fn rejection(&self, reply: &HttpReply) -> Rejection {
        shared::rejection(reply.status, None, &self.complaint(reply))
    }

    /// Plivo's words for what is wrong: `error`, a text or an object that names fields. There are no codes.
    fn complaint(&self, reply: &HttpReply) -> String {
        let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
        let text = match &body["error"] {
            Value::String(text) => text.clone(),
            Value::Null => return format!("Plivo answered with status {}", reply.status),
            other => other.to_string(),
        };
        // Plivo may repeat what it dislikes, and the URLs of an order carry tokens.
        let words = text.split_whitespace().map(|word| if word.contains("://") { "(a URL)" } else { word });
        words.collect::<Vec<_>>().join(" ").replace(self.auth_token.reveal(), "…")
    }
}

impl Carrier for Plivo {
    fn provider(&self) -> CarrierName {
        CarrierName::Plivo
    }

    /// `POST /v1/Account/{auth_id}/Call/`. Plivo takes no document with an order: it asks `answer_url`.
    fn place(&self, order: &Order<'_>) -> Outgoing {
        let body = json!({
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
        self.request("POST", "Call/", Some(&body))
    }

    fn placed(&self, reply: &HttpReply) -> Placed {
        match reply.status {
            200..=299 => match request_uuid(&reply.body) {
                Some(carrier_call_id) => Placed::Accepted { carrier_call_id },
                None => Placed::Unknown("Plivo took the order and named no call".to_owned()),
            },
            // A request that timed out over there may have been carried out.
            400..=499 if reply.status != 408 => Placed::Rejected(self.rejection(reply)),
            _ => Placed::Unknown(shared::words(&self.complaint(reply))),
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

    /// `keepCallAlive` makes the stream all there is: the call is over once the socket is closed.
    fn answer(&self, call: &Connect<'_>) -> Reply {
        document(&format!(
            r#"<Stream bidirectional="true" keepCallAlive="true" contentType="audio/x-mulaw;rate=8000">{}</Stream>"#,
            shared::xml(call.media_url)
        ))
    }

    fn refuse(&self, _: &IncomingCall, why: Refusal) -> Reply {
        refusal(why)
    }

    /// A call that was answered is a `Call`; before that it is a `Request`, which is all there is of one that
    /// still waits in Plivo's queue, and which is the name an order has until a callback came. Should a call that
    /// rings have another name than its request, Plivo answers 404 and the call rings until its `ring_timeout`.
    fn hang_up(&self, call: &Ending<'_>) -> Outgoing {
        let kind = if call.answered { "Call" } else { "Request" };
        let id = utf8_percent_encode(call.carrier_call_id, IN_PATH);
        self.request("DELETE", &format!("{kind}/{id}/"), None)
    }

    fn hung_up(&self, reply: &HttpReply) -> Result<(), Rejection> {
        match reply.status {
            200..=299 | 404 => Ok(()),
            _ => Err(self.rejection(reply)),
        }
    }

    fn media_codec(&self) -> Box<dyn MediaCodec> {
        Box::new(media::PlivoLine::default())
    }
}

/// A number as Plivo spells it.
fn digits(number: &E164) -> &str {
    number.as_str().trim_start_matches('+')
}

/// The id in the answer to an order: one text, or a list where several numbers are called at once.
fn request_uuid(body: &[u8]) -> Option<String> {
    let body: Value = serde_json::from_slice(body).ok()?;
    let id = match &body["request_uuid"] {
        Value::Array(ids) if ids.len() == 1 => ids[0].as_str()?,
        id => id.as_str()?,
    };
    is_id(id).then(|| id.to_owned())
}

/// Whether a text may be what Plivo calls a call: a UUID, or something of that kind.
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
