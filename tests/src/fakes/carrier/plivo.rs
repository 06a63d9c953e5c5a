//! Plivo's protocol from Plivo's side: strict parsing, signed callbacks.
//!
//! Sources: plivo.com/docs/voice (`api/calls`, `concepts/callbacks`, `concepts/signature-validation`, `xml/routing`,
//! `troubleshooting/hangup-causes`), plivo.com/docs/voice-agents/audio-streaming, and the SDKs for Python and Go. Unsupported
//! features are rejected even where Plivo would ignore them: a field that Plivo does not know is an error of the service.
mod api;
mod callbacks;
mod document;
mod media;
mod signature;

use super::wire::{
    ApiReply, ApiRequest, Behaviour, CallEvent, CallbackRequest, Command, Instruction, MediaWire, PhoneCall,
    Public, Wire,
};

/// The id of the main account: twenty characters.
pub const AUTH_ID: &str = "MASTANDIN0PLIVO00001";
/// The account's token.
pub const AUTH_TOKEN: &str = "c3RhbmQtaW4tcGxpdm8tYXV0aC10b2tlbi0wMDAx";
/// The previous token, which still signs callbacks.
pub const OLD_AUTH_TOKEN: &str = "b2xkLXN0YW5kLWluLXBsaXZvLWF1dGgtdG9rZW4w";

/// The protocol of Plivo.
#[derive(Debug, Clone, Copy, Default)]
pub struct PlivoWire;

impl PlivoWire {
    /// The same callback for a URL that is configured for GET: its parameters are in the query.
    pub fn with_get(&self, callback: &CallbackRequest, nonce: &str) -> CallbackRequest {
        let form = String::from_utf8(callback.body.clone()).expect("a form is text");
        let mark = if callback.url.contains('?') { '&' } else { '?' };
        let url = format!("{}{mark}{form}", callback.url);
        let text = signature::of_get(&url);
        CallbackRequest { method: "GET", url, headers: signature::headers(&text, nonce), body: Vec::new() }
    }
}

impl Wire for PlivoWire {
    fn provider(&self) -> &'static str {
        "plivo"
    }

    fn settings(&self, api_url: &str) -> Vec<(&'static str, String)> {
        vec![
            ("SIDETONE_PLIVO_AUTH_ID", AUTH_ID.to_owned()),
            ("SIDETONE_PLIVO_AUTH_TOKEN", AUTH_TOKEN.to_owned()),
            ("SIDETONE_PLIVO_BASE_URL", api_url.to_owned()),
        ]
    }

    fn read(&self, request: &ApiRequest) -> Result<Command, ApiReply> {
        api::read(request)
    }

    fn placed(&self, call: &PhoneCall) -> ApiReply {
        api::placed(request_uuid(call))
    }

    fn refused(&self, behaviour: Behaviour) -> Option<ApiReply> {
        api::refused(behaviour)
    }

    fn done(&self, command: &Command) -> ApiReply {
        match command {
            Command::HangUp { .. } => ApiReply::empty(204),
            Command::Transfer { carrier_call_id, .. } => api::transferred(carrier_call_id),
            // An incoming call is answered with a document only.
            _ => api::error(405, "HTTP method not allowed"),
        }
    }

    fn gone(&self) -> ApiReply {
        api::error(404, "not found")
    }

    fn callback(
        &self,
        _public: &Public,
        call: &PhoneCall,
        event: &CallEvent,
        nth: u32,
        now_s: i64,
    ) -> Option<CallbackRequest> {
        let (url, fields) = callbacks::fields(call, event, now_s)?;
        let nonce = signature::nonce(&format!("{} {nth} {now_s}", call.carrier_call_id));
        let mut headers = signature::headers(&signature::of_post(url, &fields), &nonce);
        headers.push(("content-type", "application/x-www-form-urlencoded".to_owned()));
        headers.push(("user-agent", "Plivo".to_owned()));
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(&fields).finish();
        Some(CallbackRequest { method: "POST", url: url.to_owned(), headers, body: body.into_bytes() })
    }

    fn instruction(&self, status: u16, content_type: &str, body: &[u8]) -> Result<Instruction, String> {
        document::read(status, content_type, body)
    }

    /// As observed: Plivo signs `http://`, whatever the URL's scheme, without the query.
    fn socket_headers(&self, url: &str) -> Vec<(&'static str, String)> {
        signature::headers(&signature::of_socket(url), &signature::nonce(url))
    }

    fn media(&self, call: &PhoneCall) -> Box<dyn MediaWire> {
        Box::new(media::Stream::of(call))
    }
}

/// The id in the response to an order: the request's, which has been observed to equal the call's UUID.
fn request_uuid(call: &PhoneCall) -> &str {
    if call.other_id.is_empty() { &call.carrier_call_id } else { &call.other_id }
}
