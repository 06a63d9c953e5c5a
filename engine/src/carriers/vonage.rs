//! Vonage's Voice API: JSON requests and callbacks, binary audio.
//!
//! Sources: Vonage's Voice API reference (`POST /v1/calls`, `PUT /v1/calls/{uuid}`), its guides named in the files below, and
//! its official server SDKs (`vonage_voice` and `vonage_jwt` for Python, `@vonage/voice` for JavaScript), against which
//! requests, documents and signatures are checked.
mod causes;
mod documents;
mod events;
mod jwt;
mod media;
mod private_key;
#[cfg(test)]
mod tests;

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Map, Value, json};
use url::Url;

use super::callback::{Callback, Check};
use super::media::MediaCodec;
use super::order::{Authorization, Order, Outgoing, Placed, PrivateKey, Rejection};
use super::report::{CarrierEvent, DialEnd, IncomingCall, Refusal};
use super::{Carrier, Connect, Ending, Reply, Transfer, shared};
use crate::base::setting::{Secret, SettingError};
use crate::base::text::truncate;
use crate::carriers::CarrierName;
use crate::ports::HttpReply;

/// Vonage's call ids are UUIDs; this leaves room.
const CALL_ID_BYTES_MAX: usize = 100;

/// Lifetime of a request's token, as in the official SDKs.
const TOKEN_SECONDS: i64 = 15 * 60;

/// The longest valid `ringing_timer`.
const RING_SECONDS_MAX: u32 = 120;

/// The longest valid `length_timer`.
const CALL_SECONDS_MAX: u32 = 86_400;

/// How long a beep is awaited: the shortest valid `beep_timeout`.
const BEEP_SECONDS: u32 = 45;

/// Bytes of an error code that are passed on.
const CODE_BYTES_MAX: usize = 60;

const BASE_URL: &str = "https://api.nexmo.com";
const PRIVATE_KEY: &str = "SIDETONE_VONAGE_PRIVATE_KEY";

/// An account, with the application that owns our numbers and calls.
pub struct Vonage {
    application_id: String,
    private_key: PrivateKey,
    api_key: String,
    signature_secret: Secret,
    base_url: String,
}

impl Vonage {
    /// Reads the account; `None` when it is not configured. An error names the missing or invalid setting.
    pub(super) fn from_settings(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let needed = [
            "SIDETONE_VONAGE_APPLICATION_ID",
            PRIVATE_KEY,
            "SIDETONE_VONAGE_API_KEY",
            "SIDETONE_VONAGE_SIGNATURE_SECRET",
        ];
        let Some([application_id, private_key, api_key, secret]) = shared::account(get, needed)? else {
            return Ok(None);
        };
        let private_key = private_key::read(&private_key)
            .map_err(|wrong| SettingError { name: PRIVATE_KEY, message: wrong.to_owned() })?;
        Ok(Some(Self {
            application_id,
            private_key,
            api_key,
            signature_secret: Secret::new(secret),
            base_url: shared::base_url(get, "SIDETONE_VONAGE_BASE_URL", BASE_URL)?,
        }))
    }

    fn check_token(&self, callback: &Callback<'_>) -> Check {
        let account = jwt::Account {
            secret: self.signature_secret.reveal(),
            api_key: &self.api_key,
            application_id: &self.application_id,
        };
        jwt::check(&account, callback.header("authorization"), callback.body, callback.now_ms)
    }

    fn request(
        &self,
        method: &'static str,
        url: String,
        body: &Value,
        command_id: &str,
        now_ms: i64,
    ) -> Outgoing {
        let iat = now_ms.div_euclid(1_000);
        let claims = json!({
            "application_id": self.application_id,
            "iat": iat,
            "jti": command_id,
            "exp": iat.saturating_add(TOKEN_SECONDS),
        });
        Outgoing {
            carrier: CarrierName::Vonage,
            method,
            url,
            authorization: Authorization::Jwt { claims, key: self.private_key.clone() },
            content_type: Some("application/json"),
            body: body.to_string().into(),
            expected: &[],
        }
    }

    fn call_url(&self, carrier_call_id: &str, region_url: Option<&str>) -> String {
        const ID: &AsciiSet = &NON_ALPHANUMERIC.remove(b'-').remove(b'_');
        let id = utf8_percent_encode(carrier_call_id, ID);
        format!("{}/v1/calls/{id}", self.region(region_url))
    }

    /// The base URL of requests about a call: a call exists only in its region. The region's URL comes from a callback and
    /// receives a token, so it is used only if it is Vonage's.
    fn region(&self, region_url: Option<&str>) -> String {
        let region = region_url.and_then(|url| Url::parse(url).ok()).filter(is_vonage);
        region.map_or_else(|| self.base_url.clone(), |url| url.origin().ascii_serialization())
    }
}

impl Carrier for Vonage {
    fn provider(&self) -> CarrierName {
        CarrierName::Vonage
    }

    fn place(&self, order: &Order<'_>) -> Outgoing {
        let digits = |number: &str| number.trim_start_matches('+').to_owned();
        let document = documents::connect(&documents::Socket {
            our_number: order.from.as_str(),
            media_url: order.media_url,
            status_url: order.status_url,
            carrier_call_id: "",
            max_seconds: order.max_seconds,
        });
        let mut body = json!({
            "to": [{"type": "phone", "number": digits(order.to.as_str())}],
            "from": {"type": "phone", "number": digits(order.from.as_str())},
            "ncco": document,
            "event_url": [order.status_url],
            "event_method": "POST",
            "ringing_timer": order.ring_seconds.clamp(1, RING_SECONDS_MAX),
            "length_timer": order.max_seconds.clamp(1, CALL_SECONDS_MAX),
        });
        if order.voicemail.is_some() {
            // The other modes connect the call only once it is decided.
            body["advanced_machine_detection"] =
                json!({"behavior": "continue", "mode": "default", "beep_timeout": BEEP_SECONDS});
        }
        let url = format!("{}/v1/calls", self.base_url);
        self.request("POST", url, &body, order.command_id, order.now_ms)
    }

    fn placed(&self, reply: &HttpReply) -> Placed {
        match reply.status {
            200..=299 => {
                let body: Value = serde_json::from_slice(&reply.body).unwrap_or_default();
                match body.get("uuid").and_then(Value::as_str).filter(|id| events::is_call_id(id)) {
                    Some(id) => Placed::Accepted { carrier_call_id: id.to_owned() },
                    None => Placed::Unknown(format!("HTTP {} without a call id", reply.status)),
                }
            }
            // A request that timed out on Vonage's side may have been executed.
            408 | 500.. => Placed::Unknown(format!("HTTP {}", reply.status)),
            _ => Placed::Rejected(rejection(reply)),
        }
    }

    fn check(&self, callback: &Callback<'_>) -> Check {
        self.check_token(callback)
    }

    /// Signed because the document requests it with `authorization` of the endpoint.
    fn check_media(&self, callback: &Callback<'_>) -> Check {
        self.check_token(callback)
    }

    fn read(&self, callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String> {
        events::read(callback)
    }

    fn answer(&self, call: &Connect<'_>) -> Reply {
        document(&documents::connect(&documents::Socket {
            our_number: call.our_number,
            media_url: call.media_url,
            status_url: call.status_url,
            carrier_call_id: call.carrier_call_id,
            max_seconds: call.max_seconds,
        }))
    }

    fn refuse(&self, _: &IncomingCall, why: Refusal) -> Reply {
        refusal(why)
    }

    fn hang_up(&self, call: &Ending<'_>) -> Outgoing {
        let url = self.call_url(call.carrier_call_id, call.region_url);
        let request = self.request("PUT", url, &json!({"action": "hangup"}), call.command_id, call.now_ms);
        Outgoing { expected: shared::CALL_IS_OVER, ..request }
    }

    fn hung_up(&self, reply: &HttpReply) -> Result<(), Rejection> {
        match reply.status {
            200..=299 => Ok(()),
            status if shared::CALL_IS_OVER.contains(&status) => Ok(()),
            _ => Err(rejection(reply)),
        }
    }

    fn transfer(&self, call: &Transfer<'_>) -> Outgoing {
        let document = documents::dial(call);
        let body = json!({"action": "transfer", "destination": {"type": "ncco", "ncco": document}});
        let url = self.call_url(call.carrier_call_id, call.region_url);
        self.request("PUT", url, &body, call.command_id, call.now_ms)
    }

    fn tells_of_transfer(&self) -> bool {
        true
    }

    fn dial_ended(&self, callback: &Callback<'_>) -> Result<Option<DialEnd>, String> {
        events::dial_ended(callback)
    }

    /// `GET /v1/calls?page_size=1`: it needs the application's key, as placing a call does.
    fn ask(&self, id: &str, now_ms: i64) -> Outgoing {
        let url = format!("{}/v1/calls?page_size=1", self.base_url);
        let signed = self.request("GET", url, &Value::Null, id, now_ms);
        Outgoing { content_type: None, body: bytes::Bytes::new(), ..signed }
    }

    fn rejection(&self, reply: &HttpReply) -> Rejection {
        rejection(reply)
    }

    fn media_codec(&self) -> Box<dyn MediaCodec> {
        Box::new(media::VonageCodec::default())
    }
}

/// Says why the call is declined, and hangs up.
pub fn refusal(why: Refusal) -> Reply {
    document(&documents::refuse(why))
}

fn document(actions: &Value) -> Reply {
    Reply::Document { content_type: "application/json", body: actions.to_string() }
}

/// Reads an error response. Most are problem details (RFC 9457) whose `type` ends in a code, `…/api-errors#low-balance`; some
/// have an older form: `{"type": "UNAUTHORIZED", "error_title": "Unauthorized"}`. The status determines the cause.
fn rejection(reply: &HttpReply) -> Rejection {
    let body: Map<String, Value> = serde_json::from_slice(&reply.body).unwrap_or_default();
    let text = |name: &str| body.get(name).and_then(Value::as_str).filter(|text| !text.trim().is_empty());
    let code = text("type").and_then(|kind| match kind.rsplit_once('#') {
        Some((_, code)) => Some(code),
        None => (!kind.contains('/')).then_some(kind),
    });
    let code = code.filter(|code| !code.is_empty()).map(|code| truncate(code.to_owned(), CODE_BYTES_MAX));
    let wrong = body.get("invalid_parameters").and_then(Value::as_array).and_then(|list| list.first());
    let wrong = wrong.and_then(|wrong| {
        let part = |name: &str| wrong.get(name).and_then(Value::as_str);
        Some(format!("{}: {}", part("name").or_else(|| part("parameter"))?, part("reason")?))
    });
    let parts = [text("title").or(text("error_title")), text("detail"), wrong.as_deref()];
    let message = parts.into_iter().flatten().collect::<Vec<_>>().join(": ");
    let message = if message.is_empty() { format!("HTTP {}", reply.status) } else { message };
    shared::rejection(reply.status, code, &message)
}

/// Whether this is a URL of Vonage's API, such as `https://api-us-1.nexmo.com`.
fn is_vonage(url: &Url) -> bool {
    let is_theirs = |host: &str| host.ends_with(".nexmo.com") || host.ends_with(".vonage.com");
    url.scheme() == "https" && url.port().is_none() && url.host_str().is_some_and(is_theirs)
}
