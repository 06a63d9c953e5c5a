//! Telnyx's Call Control API: JSON over REST, JSON webhooks signed with Ed25519, and separate commands instead of documents.
//!
//! Sources: the official SDK for Python 4.189.0 (`calls.dial`, `calls.actions.{answer,reject,hangup,transfer,start_streaming}` and their
//! parameter types, `lib/webhook_verification.py`), and developers.telnyx.com (API reference "Call Commands", "API
//! error codes", "Voice API Webhooks", "Stream call media over WebSocket").
mod causes;
mod events;
mod media;
mod reorder;
mod signature;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use serde_json::{Value, json};

use super::callback::{Callback, Check};
use super::media::MediaCodec;
use super::order::{Authorization, Order, Outgoing, Placed, Rejection};
use super::report::{CarrierEvent, IncomingCall, Refusal};
use super::{Carrier, Connect, Ending, Reply, Transfer, shared};
use crate::base::setting::{Secret, SettingError};
use crate::carriers::CarrierName;
use crate::ports::HttpReply;

const API_KEY: &str = "SIDETONE_TELNYX_API_KEY";
const PUBLIC_KEY: &str = "SIDETONE_TELNYX_PUBLIC_KEY";
const CONNECTION_ID: &str = "SIDETONE_TELNYX_CONNECTION_ID";
const BASE_URL: &str = "SIDETONE_TELNYX_BASE_URL";

/// The SDK's default; it includes the version.
const BASE_URL_DEFAULT: &str = "https://api.telnyx.com/v2";
/// The valid range of `timeout_secs` in a dial.
const RING_SECONDS: std::ops::RangeInclusive<u32> = 5..=600;
/// Upper limit of `time_limit_secs` in a dial: more is rejected with code 10033.
const CALL_SECONDS_MAX: u32 = 14_400;
/// The statuses of a command for a call that has ended: 404, and 422 with one of [`CALL_IS_OVER_CODES`]. As
/// [`Outgoing::expected`] they stand for themselves: a 422 with another code is an error of [`Carrier::hung_up`] alone.
const CALL_IS_OVER: &[u16] = &[404, 422];
/// It has ended recently, or so long ago that its id is no longer valid.
const CALL_IS_OVER_CODES: [&str; 2] = ["90018", "90015"];
/// Characters that a path segment may contain unencoded (RFC 3986, 3.3): the call ids contain a colon.
const SEGMENT: &AsciiSet = &NON_ALPHANUMERIC
    .remove(b'-')
    .remove(b'.')
    .remove(b'_')
    .remove(b'~')
    .remove(b'!')
    .remove(b'$')
    .remove(b'&')
    .remove(b'\'')
    .remove(b'(')
    .remove(b')')
    .remove(b'*')
    .remove(b'+')
    .remove(b',')
    .remove(b';')
    .remove(b'=')
    .remove(b':')
    .remove(b'@');

/// The operator's Telnyx account.
pub struct Telnyx {
    api_key: Secret,
    public_key: [u8; 32],
    /// The Call Control application that places calls.
    connection_id: String,
    base_url: String,
}

impl Telnyx {
    /// Reads the account; `None` when it is not configured. The public key is the base64 of a 32-byte Ed25519 key, as the
    /// portal shows it.
    pub(super) fn from_settings(get: &dyn Fn(&str) -> Option<String>) -> Result<Option<Self>, SettingError> {
        let Some([api_key, public_key, connection_id]) =
            shared::account(get, [API_KEY, PUBLIC_KEY, CONNECTION_ID])?
        else {
            return Ok(None);
        };
        let public_key = STANDARD.decode(public_key).ok().and_then(|bytes| bytes.try_into().ok());
        let public_key = public_key.ok_or_else(|| SettingError {
            name: PUBLIC_KEY,
            message: "must be the base64 of a 32-byte public key".to_owned(),
        })?;
        let base_url = shared::base_url(get, BASE_URL, BASE_URL_DEFAULT)?;
        Ok(Some(Self { api_key: Secret::new(api_key), public_key, connection_id, base_url }))
    }

    fn post(&self, path: &str, body: &Value) -> Outgoing {
        Outgoing {
            carrier: CarrierName::Telnyx,
            method: "POST",
            url: format!("{}{path}", self.base_url),
            authorization: Authorization::Bearer(self.api_key.clone()),
            content_type: Some("application/json"),
            body: Bytes::from(body.to_string()),
            expected: &[],
        }
    }

    fn command(&self, carrier_call_id: &str, action: &str, body: &Value) -> Outgoing {
        let id = utf8_percent_encode(carrier_call_id, SEGMENT);
        self.post(&format!("/calls/{id}/actions/{action}"), body)
    }
}

/// When a webhook is sent again that got no answer: five times at most, within a minute.
#[derive(serde::Serialize)]
struct Repeated {
    retries_ms: [u32; 5],
}

const REPEATED: Repeated = Repeated { retries_ms: [1_000, 2_000, 4_000, 8_000, 16_000] };

impl Carrier for Telnyx {
    fn provider(&self) -> CarrierName {
        CarrierName::Telnyx
    }

    fn place(&self, order: &Order<'_>) -> Outgoing {
        let mut body = json!({
            "connection_id": self.connection_id,
            "to": order.to.as_str(),
            "from": order.from.as_str(),
            "timeout_secs": order.ring_seconds.clamp(*RING_SECONDS.start(), *RING_SECONDS.end()),
            // Otherwise every further route to the same number may ring as long again.
            "retry_on_timeout": false,
            "time_limit_secs": order.max_seconds.min(CALL_SECONDS_MAX),
            "stream_bidirectional_sampling_rate": 8_000,
        });
        if order.voicemail.is_some() {
            // It reports beeps; the connection does not wait for it.
            body["answering_machine_detection"] = json!("premium");
        }
        add(&mut body, stream(order.media_url, order.status_url, order.command_id));
        self.post("/calls", &body)
    }

    fn placed(&self, reply: &HttpReply) -> Placed {
        match reply.status {
            200..=299 => match causes::call_control_id(&reply.body) {
                Some(carrier_call_id) => Placed::Accepted { carrier_call_id },
                None => Placed::Unknown(format!("HTTP {} without a call id", reply.status)),
            },
            // A request that timed out on Telnyx's side may have been executed.
            400..=499 if reply.status != 408 => Placed::Rejected(causes::rejection(reply)),
            status => Placed::Unknown(format!("HTTP {status}: {}", causes::rejection(reply).message)),
        }
    }

    fn check(&self, callback: &Callback<'_>) -> Check {
        signature::check(callback, self.public_key).unwrap_or_else(Check::Forged)
    }

    fn check_media(&self, _callback: &Callback<'_>) -> Check {
        Check::Unsigned
    }

    fn read(&self, callback: &Callback<'_>) -> Result<Vec<CarrierEvent>, String> {
        events::read(callback.body)
    }

    fn answer(&self, call: &Connect<'_>) -> Reply {
        // The answer command has no time limit, so the conversation limits the duration of an incoming call.
        let body = stream(call.media_url, call.status_url, call.command_id);
        Reply::Command(self.command(call.carrier_call_id, "answer", &body))
    }

    fn refuse(&self, call: &IncomingCall, why: Refusal) -> Reply {
        // SIP 603 and 486.
        let cause = match why {
            Refusal::Unbound => "CALL_REJECTED",
            Refusal::Busy => "USER_BUSY",
        };
        Reply::Command(self.command(&call.carrier_call_id, "reject", &json!({ "cause": cause })))
    }

    fn hang_up(&self, call: &Ending<'_>) -> Outgoing {
        let command = self.command(call.carrier_call_id, "hangup", &json!({ "command_id": call.command_id }));
        Outgoing { expected: CALL_IS_OVER, ..command }
    }

    fn hung_up(&self, reply: &HttpReply) -> Result<(), Rejection> {
        let rejection = causes::rejection(reply);
        let says_so = reply.status == 404 || CALL_IS_OVER_CODES.contains(&rejection.code.as_str());
        match reply.status {
            200..=299 => Ok(()),
            status if says_so && CALL_IS_OVER.contains(&status) => Ok(()),
            _ => Err(rejection),
        }
    }

    fn transfer(&self, call: &Transfer<'_>) -> Outgoing {
        let mut body = json!({
            "to": call.to,
            "timeout_secs": call.ring_seconds.clamp(*RING_SECONDS.start(), *RING_SECONDS.end()),
            // Of the other leg; when that ends, ours is hung up.
            "time_limit_secs": call.max_seconds.min(CALL_SECONDS_MAX),
            "command_id": call.command_id,
            // Of the other leg, too: nobody else says that it was not reached.
            "webhook_url": call.status_url,
            "webhook_url_method": "POST",
            // For as long as a service takes to start anew.
            "webhook_retries_policies": {"call.answered": REPEATED, "call.hangup": REPEATED},
            "custom_headers": [{"name": "X-Sidetone-Call-Id", "value": call.call_id}],
        });
        if let Some(number) = call.our_number {
            body["from"] = json!(number);
        }
        self.command(call.carrier_call_id, "transfer", &body)
    }

    fn tells_of_transfer(&self) -> bool {
        true
    }

    fn reconnect(&self, call: &Connect<'_>) -> Option<Outgoing> {
        let body = media(call.media_url, call.command_id);
        Some(self.command(call.carrier_call_id, "streaming_start", &body))
    }

    fn keeps_transferred_line(&self) -> bool {
        true
    }

    /// `GET /v2/balance`
    fn ask(&self, _id: &str, _now_ms: i64) -> Outgoing {
        Outgoing {
            method: "GET",
            content_type: None,
            body: Bytes::new(),
            ..self.post("/balance", &Value::Null)
        }
    }

    fn rejection(&self, reply: &HttpReply) -> Rejection {
        causes::rejection(reply)
    }

    fn media_codec(&self) -> Box<dyn MediaCodec> {
        Box::new(media::TelnyxCodec::default())
    }
}

/// The common part of a dial and an answer: the media socket, and the webhook URL.
fn stream(media_url: &str, status_url: &str, command_id: &str) -> Value {
    let mut body = media(media_url, command_id);
    let more = json!({
        "webhook_url": status_url,
        "webhook_url_method": "POST",
        // Calls without outgoing audio before the first words have been observed to be disconnected as dead.
        "send_silence_when_idle": true,
    });
    add(&mut body, more);
    body
}

/// The media socket, in both directions in mu-law.
fn media(media_url: &str, command_id: &str) -> Value {
    json!({
        "command_id": command_id,
        "stream_url": media_url,
        "stream_track": "inbound_track",
        // Otherwise audio arrives in the codec of the other end.
        "stream_codec": "PCMU",
        // With the default, `mp3`, our frames are dropped silently.
        "stream_bidirectional_mode": "rtp",
        "stream_bidirectional_codec": "PCMU",
    })
}

fn add(body: &mut Value, more: Value) {
    if let (Value::Object(body), Value::Object(more)) = (body, more) {
        body.extend(more);
    }
}

#[cfg(test)]
mod tests;
