//! Messages of the service and of the fake for Plivo, for `tests/clients/carrier_plivo.py`.
use std::sync::Arc;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};
use sidetone_engine::base::phone::E164;
use sidetone_engine::carriers::{
    Authorization, Carrier, CarrierName, Carriers, Connect, Dial, Ending, IncomingCall, Order, Outgoing,
    Refusal, Reply, Transfer,
};
use sidetone_engine::conversation::VoicemailAction;

use crate::fakes::carrier::plivo::{AUTH_ID, AUTH_TOKEN, PlivoWire};
use crate::fakes::carrier::{
    Answerer, CallEvent, CallbackRequest, Detection, EndKind, PhoneCall, Public, Wire,
};

/// Plivo's real API URL, the target of the samples.
const API: &str = "https://api.plivo.com";
const BASE_URL: &str = "https://voice.example.com";
const OTHER_ID: &str = "4c7f1b62-0d3e-4a57-9f0b-2b8d6c1e9a40";
const CALL_ID: &str = "3e82ae9d-2c78-4d85-b1a4-6eae7dbafb36";
/// A URL that XML has to escape.
const MEDIA_URL: &str = "wss://voice.example.com/media/t0k-en_?a=1&b=2";
const BACK_URL: &str = "https://voice.example.com/answer?call=t0ken&back=1";
const NOW_S: i64 = 1_795_000_000;

/// Documents, requests and signed callbacks.
pub fn samples() -> Value {
    json!({
        "auth_id": AUTH_ID,
        "auth_token": AUTH_TOKEN,
        "documents": documents(),
        "requests": requests(),
        "callbacks": callbacks(),
        "socket": socket(),
    })
}

/// The service's account at the fake.
fn service() -> Arc<dyn Carrier> {
    let settings = PlivoWire.settings(API);
    let get = |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let carriers = Carriers::from_settings(get).expect("the settings are good");
    Arc::clone(carriers.get(CarrierName::Plivo).expect("there is an account"))
}

fn documents() -> Value {
    let service = service();
    let connect = Connect {
        carrier_call_id: CALL_ID,
        our_number: "14155550100",
        media_url: MEDIA_URL,
        status_url: "https://voice.example.com/status/t0ken",
        command_id: "5b1f5f0e-7d62-4d4e-9a53-0d6f9e4b8f10",
        now_ms: NOW_S * 1_000,
        max_seconds: 900,
    };
    let call = IncomingCall::default();
    let [from, to] = numbers();
    let (status_url, back_url) = ("https://voice.example.com/status?call=t0ken", BACK_URL);
    let dial =
        |caller_id| Dial { to: &to, caller_id, ring_seconds: 60, max_seconds: 7_200, status_url, back_url };
    json!({
        "connect": {"xml": xml(service.answer(&connect)), "media_url": MEDIA_URL},
        "rejected": {"xml": xml(service.refuse(&call, Refusal::Unbound))},
        "dial": {"xml": xml(service.transferring(&dial(Some(&from))))},
        "dial_as_caller": {"xml": xml(service.transferring(&dial(None)))},
        "end": {"xml": xml(service.end())},
        "busy": {"xml": xml(service.refuse(&call, Refusal::Busy))},
    })
}

/// Ours, and another one.
fn numbers() -> [E164; 2] {
    ["+14155550100", "+442071838750"].map(|text| E164::parse(text).expect("it is a number"))
}

fn requests() -> Value {
    let service = service();
    let [from, to] = numbers();
    let order = Order {
        from: &from,
        to: &to,
        media_url: MEDIA_URL,
        status_url: "https://voice.example.com/status/t0ken",
        answer_url: "https://voice.example.com/answer/t0ken",
        command_id: "5b1f5f0e-7d62-4d4e-9a53-0d6f9e4b8f10",
        ring_seconds: 45,
        voicemail: None,
        max_seconds: 900,
        now_ms: NOW_S * 1_000,
    };
    let ending = |answered| Ending {
        carrier_call_id: CALL_ID,
        answered,
        region_url: None,
        command_id: "9c0d3a52-46a7-4c41-8a0e-8e0fd3a2b1c7",
        now_ms: NOW_S * 1_000,
    };
    let transfer = Transfer {
        carrier_call_id: CALL_ID,
        region_url: None,
        to: &to,
        ring_seconds: 60,
        max_seconds: 7_200,
        our_number: Some(&from),
        shows_caller: false,
        call_id: "",
        document_url: "https://voice.example.com/answer/t0ken?to=442071838750",
        status_url: "",
        back_url: "",
        command_id: "",
        now_ms: NOW_S * 1_000,
    };
    json!({
        "transfer": request(&service.transfer(&transfer)),
        "create": request(&service.place(&order)),
        "create_detecting": request(&service.place(&Order { voicemail: Some(VoicemailAction::HangUp), ..order })),
        "hang_up": request(&service.hang_up(&ending(true))),
        "cancel": request(&service.hang_up(&ending(false))),
        "call_id": CALL_ID,
    })
}

fn callbacks() -> Value {
    let calls = [call(true), call(false)];
    let ended = |how| CallEvent::Ended { how, seconds: 66 };
    let events = [
        ("asked", &calls[0], CallEvent::Asked),
        ("ringing", &calls[0], CallEvent::Ringing),
        ("ended", &calls[0], ended(EndKind::HungUp)),
        ("other answered", &calls[0], other_answered()),
        ("other ended", &calls[1], other_ended()),
        ("detected", &calls[0], CallEvent::Detected(Answerer::Machine)),
        ("incoming", &calls[1], CallEvent::Incoming),
        ("ended inbound", &calls[1], ended(EndKind::HungUp)),
    ];
    let mut all = Vec::new();
    for (nth, (name, call, event)) in (0..).zip(events) {
        let callback = callback(call, &event, nth);
        all.push(signed(name, &callback));
        all.push(signed(
            &format!("{name}, with GET"),
            &PlivoWire.with_get(&callback, "31627761595286130198"),
        ));
    }
    all.into()
}

fn other_answered() -> CallEvent {
    CallEvent::OtherAnswered { url: BACK_URL.replace("answer", "status"), other_call_id: OTHER_ID.to_owned() }
}

fn other_ended() -> CallEvent {
    let (url, other_call_id) = (BACK_URL.to_owned(), OTHER_ID.to_owned());
    CallEvent::OtherEnded { url, other_call_id, how: EndKind::NoAnswer, is_over: false }
}

/// The media URL in a document, and as Plivo signs it, because Plivo's library does not accept WebSocket URLs.
fn socket() -> Value {
    let url = "wss://voice.example.com/media/t0k-en_";
    let headers: Map<String, Value> = named(PlivoWire.socket_headers(url));
    json!({"url": url, "signed_url": url.replace("wss://", "http://"), "headers": headers})
}

fn call(outbound: bool) -> PhoneCall {
    let numbers = ["+14155550100".to_owned(), "+442071838750".to_owned()];
    let [ours, theirs] = numbers;
    let (from, to) = if outbound { (ours, theirs) } else { (theirs, ours) };
    PhoneCall {
        carrier_call_id: CALL_ID.to_owned(),
        other_id: CALL_ID.to_owned(),
        from,
        to,
        outbound,
        // With and without a query, because the signature differs.
        status_url: format!("{BASE_URL}/status/t0ken?b=2&a=%20x&b=1"),
        voice_url: format!("{BASE_URL}/answer/t0ken"),
        format: String::new(),
        detection: outbound.then(|| Detection {
            reports_greeting: false,
            url: format!("{BASE_URL}/status/t0ken?b=2&a=%20x&b=1"),
        }),
    }
}

fn callback(call: &PhoneCall, event: &CallEvent, nth: u32) -> CallbackRequest {
    let public = Public { base_url: BASE_URL.to_owned() };
    PlivoWire.callback(&public, call, event, nth, NOW_S).expect("Plivo reports this event")
}

fn signed(name: &str, callback: &CallbackRequest) -> Value {
    let parameters: Map<String, Value> = form_urlencoded::parse(&callback.body)
        .map(|(name, value)| (name.into_owned(), value.into_owned().into()))
        .collect();
    let headers = named(callback.headers.clone());
    json!({"name": name, "method": callback.method, "url": callback.url, "params": parameters, "headers": headers})
}

fn named(headers: Vec<(&'static str, String)>) -> Map<String, Value> {
    headers.into_iter().map(|(name, value)| (name.to_owned(), value.into())).collect()
}

fn request(request: &Outgoing) -> Value {
    let Authorization::Basic { user, password } = &request.authorization else {
        panic!("Plivo requires user and password")
    };
    let basic = STANDARD.encode(format!("{user}:{}", password.reveal()));
    let body: Value = serde_json::from_slice(&request.body).unwrap_or_default();
    json!({
        "method": request.method,
        "url": request.url,
        "headers": {"authorization": format!("Basic {basic}"), "content-type": request.content_type},
        "body": body,
    })
}

fn xml(reply: Reply) -> String {
    match reply {
        Reply::Document { body, .. } => body,
        Reply::Command(_) => panic!("Plivo expects documents"),
    }
}

#[cfg(test)]
mod tests;
