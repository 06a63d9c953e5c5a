//! Telnyx's Call Control from Telnyx's side.
//!
//! Sources: the official SDK for Python 4.189.0 (parameter, response and webhook types) and developers.telnyx.com (API
//! reference of the call commands with their error examples, "Stream call media over WebSocket").
//! `tests/clients/carrier_telnyx.py` validates its messages with that SDK.
mod media;
mod requests;
mod webhooks;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::signature::{Ed25519KeyPair, KeyPair};
use serde_json::json;

use super::wire::{
    ApiReply, ApiRequest, Behaviour, CallEvent, CallbackRequest, Command, Instruction, MediaWire, PhoneCall,
    Public, Wire,
};

/// The account's API key.
pub const API_KEY: &str = "KEY0193A5E1B7C24D6F8091A2B3C4D5E6F7_standInTelnyx";
/// The account's Call Control application.
pub const CONNECTION_ID: &str = "2811212257810187875";
/// The seed of the key that signs webhooks.
const SEED: [u8; 32] = *b"telnyx-fake-signing-key-seed-001";

/// The protocol of Telnyx.
#[derive(Debug, Clone, Copy, Default)]
pub struct TelnyxWire;

impl TelnyxWire {
    /// The public key of the webhooks' signatures, as in the portal.
    pub fn public_key(self) -> String {
        STANDARD.encode(key().public_key().as_ref())
    }
}

impl Wire for TelnyxWire {
    fn provider(&self) -> &'static str {
        "telnyx"
    }

    fn settings(&self, api_url: &str) -> Vec<(&'static str, String)> {
        vec![
            ("SIDETONE_TELNYX_API_KEY", API_KEY.to_owned()),
            ("SIDETONE_TELNYX_PUBLIC_KEY", self.public_key()),
            ("SIDETONE_TELNYX_CONNECTION_ID", CONNECTION_ID.to_owned()),
            ("SIDETONE_TELNYX_BASE_URL", format!("{api_url}/v2")),
        ]
    }

    fn read(&self, request: &ApiRequest) -> Result<Command, ApiReply> {
        requests::read(request)
    }

    fn placed(&self, call: &PhoneCall) -> ApiReply {
        let data = json!({
            "call_control_id": call.carrier_call_id,
            "call_leg_id": leg_id(call),
            "call_session_id": call.other_id,
            "is_alive": false,
            "record_type": "call",
        });
        ApiReply::json(200, &json!({ "data": data }))
    }

    fn refused(&self, behaviour: Behaviour) -> Option<ApiReply> {
        Some(match behaviour {
            Behaviour::Take | Behaviour::Late | Behaviour::Hang | Behaviour::Cut => return None,
            Behaviour::BadNumber => error(
                422,
                "10016",
                "Phone number must be in +E164 format",
                "The 'to' parameter must be in E164 format.",
                Some("/to"),
            ),
            Behaviour::NotOurs => {
                error(403, "10010", "Authorization failed", "Unverified origination number D51", None)
            }
            Behaviour::Unauthorized => unauthorized(),
            Behaviour::TooMany => {
                let detail = "You have exceeded the maximum number of allowed requests.";
                error(429, "10011", "Too many requests", detail, None)
            }
            Behaviour::Broken => {
                error(500, "10007", "Unexpected error", "An unexpected error occured.", None)
            }
            Behaviour::NoId => ApiReply::json(200, &json!({"data": {"record_type": "call"}})),
        })
    }

    fn done(&self, _command: &Command) -> ApiReply {
        ApiReply::json(200, &json!({"data": {"result": "ok"}}))
    }

    fn gone(&self) -> ApiReply {
        let detail = "This call is no longer active and can't receive commands.";
        error(422, "90018", "Call has already ended", detail, None)
    }

    fn callback(
        &self,
        _public: &Public,
        call: &PhoneCall,
        event: &CallEvent,
        nth: u32,
        now_s: i64,
    ) -> Option<CallbackRequest> {
        let announced = matches!(event, CallEvent::Incoming) || call.status_url.is_empty();
        let url = match event {
            CallEvent::OtherAnswered { url, .. } | CallEvent::OtherEnded { url, .. } => url,
            _ if announced => &call.voice_url,
            _ => &call.status_url,
        };
        let body = webhooks::body(call, event, nth, now_s, url)?.to_string().into_bytes();
        Some(CallbackRequest { method: "POST", url: url.clone(), headers: signed(&body, now_s), body })
    }

    /// Telnyx ignores the body of a response to a webhook: commands follow, or nothing.
    fn instruction(&self, status: u16, _content_type: &str, _body: &[u8]) -> Result<Instruction, String> {
        match status {
            200..=299 => Ok(Instruction::Wait),
            _ => Err(format!("a webhook was answered with {status}, so it would be sent again")),
        }
    }

    fn socket_headers(&self, _url: &str) -> Vec<(&'static str, String)> {
        Vec::new()
    }

    fn media(&self, call: &PhoneCall) -> Box<dyn MediaWire> {
        Box::new(media::TelnyxMedia::new(call))
    }
}

fn key() -> Ed25519KeyPair {
    Ed25519KeyPair::from_seed_unchecked(&SEED).expect("32 bytes are a seed")
}

/// The headers of a webhook.
fn signed(body: &[u8], now_s: i64) -> Vec<(&'static str, String)> {
    let message = [format!("{now_s}|").as_bytes(), body].concat();
    vec![
        ("content-type", "application/json".to_owned()),
        ("user-agent", "telnyx-webhooks".to_owned()),
        ("telnyx-timestamp", now_s.to_string()),
        ("telnyx-signature-ed25519", STANDARD.encode(key().sign(&message).as_ref())),
    ]
}

fn error(status: u16, code: &str, title: &str, detail: &str, pointer: Option<&str>) -> ApiReply {
    let mut error = json!({
        "code": code,
        "title": title,
        "detail": detail,
        "meta": {"url": format!("https://developers.telnyx.com/docs/overview/errors/{code}")},
    });
    if let Some(pointer) = pointer {
        error["source"] = json!({ "pointer": pointer });
    }
    ApiReply::json(status, &json!({"errors": [error]}))
}

fn unauthorized() -> ApiReply {
    let detail = "The required authentication headers were either invalid or not included in the request.";
    error(401, "10009", "Authentication failed", detail, None)
}

/// The id of the leg, in addition to the call's and the session's.
fn leg_id(call: &PhoneCall) -> String {
    uuid(&format!("leg {}", call.carrier_call_id))
}

/// A deterministic UUID for a text.
fn uuid(text: &str) -> String {
    let digest = ring::digest::digest(&ring::digest::SHA256, text.as_bytes());
    let hex: String = digest.as_ref().iter().map(|byte| format!("{byte:02x}")).collect();
    format!("{}-{}-4{}-a{}-{}", &hex[..8], &hex[8..12], &hex[13..16], &hex[17..20], &hex[20..32])
}

#[cfg(test)]
mod tests;
