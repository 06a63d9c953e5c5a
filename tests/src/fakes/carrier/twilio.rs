//! Twilio's protocol from Twilio's side.
//!
//! Sources: Twilio's OpenAPI document (`twilio_api_v2010`, Calls), its pages on TwiML, Media Streams, webhooks and errors, its
//! SDK for Python 9.13, and published logs of its requests. It is stricter than Twilio in one point: unknown parameters and
//! attributes are rejected, where Twilio ignores them.
mod api;
mod callbacks;
mod document;
mod media;

use std::collections::BTreeMap;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use hmac::{Hmac, KeyInit, Mac};
use serde_json::json;
use sha1::Sha1;

use super::wire::{
    ApiReply, ApiRequest, Behaviour, CallEvent, CallbackRequest, Command, Instruction, MediaWire, PhoneCall,
    Public, Wire,
};

/// The account of the service under test.
pub const ACCOUNT_SID: &str = "AC7d1f4a9be2c84b6f9a35d0c1e7f82b64";
/// The account's auth token.
pub const AUTH_TOKEN: &str = "b41c97d2f6a84e0f8d35c2a6e9b07f13";

/// The protocol of Twilio.
#[derive(Debug, Clone, Copy, Default)]
pub struct TwilioWire;

impl Wire for TwilioWire {
    fn provider(&self) -> &'static str {
        "twilio"
    }

    fn settings(&self, api_url: &str) -> Vec<(&'static str, String)> {
        vec![
            ("SIDETONE_TWILIO_ACCOUNT_SID", ACCOUNT_SID.to_owned()),
            ("SIDETONE_TWILIO_AUTH_TOKEN", AUTH_TOKEN.to_owned()),
            ("SIDETONE_TWILIO_BASE_URL", api_url.to_owned()),
        ]
    }

    fn read(&self, request: &ApiRequest) -> Result<Command, ApiReply> {
        api::read(request)
    }

    fn placed(&self, call: &PhoneCall) -> ApiReply {
        ApiReply::json(201, &api::call(&call.carrier_call_id, "queued", &call.from, &call.to))
    }

    fn refused(&self, behaviour: Behaviour) -> Option<ApiReply> {
        Some(match behaviour {
            Behaviour::Take | Behaviour::Late | Behaviour::Hang | Behaviour::Cut => return None,
            Behaviour::BadNumber => api::error(
                400,
                21_211,
                "The phone number you are attempting to call, 5551234567, is not valid.",
            ),
            Behaviour::NotOurs => api::error(
                400,
                21_210,
                "The source phone number provided, 5551234567, is not yet verified for your account.",
            ),
            Behaviour::Unauthorized => api::error(401, 20_003, "Authenticate"),
            Behaviour::TooMany => api::error(429, 20_429, "Too Many Requests"),
            Behaviour::Broken => api::error(500, 20_500, "An internal server error has occurred"),
            Behaviour::NoId => ApiReply::json(201, &json!({"sid": null, "status": "queued"})),
        })
    }

    fn done(&self, command: &Command) -> ApiReply {
        match command {
            Command::HangUp { carrier_call_id } => {
                ApiReply::json(200, &api::call(carrier_call_id, "completed", "", ""))
            }
            Command::Transfer { carrier_call_id, .. } => {
                ApiReply::json(200, &api::call(carrier_call_id, "in-progress", "", ""))
            }
            // Twilio has no such commands; it uses documents.
            _ => self.gone(),
        }
    }

    fn gone(&self) -> ApiReply {
        api::error(404, 20_404, "The requested resource was not found")
    }

    fn callback(
        &self,
        _: &Public,
        call: &PhoneCall,
        event: &CallEvent,
        nth: u32,
        now_s: i64,
    ) -> Option<CallbackRequest> {
        callbacks::callback(call, event, nth, now_s)
    }

    fn instruction(&self, status: u16, content_type: &str, body: &[u8]) -> Result<Instruction, String> {
        document::instruction(status, content_type, body)
    }

    fn socket_headers(&self, url: &str) -> Vec<(&'static str, String)> {
        vec![("x-twilio-signature", sign(url, &[])), ("user-agent", "Twilio.TmeWs/1.0".to_owned())]
    }

    fn media(&self, call: &PhoneCall) -> Box<dyn MediaWire> {
        Box::new(media::Stream::of(call))
    }
}

/// The signed text: the URL, then the name and value of each parameter, sorted by name.
pub(crate) fn sign(url: &str, parameters: &[(&str, String)]) -> String {
    // Voice callbacks have no repeated parameters.
    let sorted: BTreeMap<&str, &str> =
        parameters.iter().map(|(name, value)| (*name, value.as_str())).collect();
    assert_eq!(sorted.len(), parameters.len(), "no repeated parameters");
    let mut mac =
        Hmac::<Sha1>::new_from_slice(AUTH_TOKEN.as_bytes()).expect("HMAC accepts keys of any length");
    mac.update(url.as_bytes());
    for (name, value) in sorted {
        mac.update(name.as_bytes());
        mac.update(value.as_bytes());
    }
    STANDARD.encode(mac.finalize().into_bytes())
}

#[cfg(test)]
mod tests;
