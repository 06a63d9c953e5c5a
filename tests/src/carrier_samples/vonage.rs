//! Messages between the service and Vonage, for validation with Vonage's own SDK (`clients/carrier_vonage.py`).
use std::sync::Arc;

use serde_json::{Value, json};
use sidetone_engine::base::phone::E164;
use sidetone_engine::carriers::{
    Authorization, Carrier, CarrierName, Carriers, Connect, Ending, IncomingCall, Order, Outgoing, Refusal,
    Reply, Transfer,
};
use sidetone_engine::conversation::VoicemailAction;

use crate::fakes::carrier::vonage::{API_KEY, APPLICATION_ID, SIGNATURE_SECRET, VonageWire, token};
use crate::fakes::carrier::{
    Answerer, CallEvent, CallbackRequest, Detection, EndKind, PhoneCall, Public, Wire,
};

const FROM: &str = "+14155550123";
const TO: &str = "+447700900000";
const CALL: &str = "63f61863-4a51-4f6b-86e1-46edebcf9356";
const MEDIA: &str = "wss://voice.example.com/carriers/vonage/media/token";
const STATUS: &str = "https://voice.example.com/carriers/vonage/status/token";
const RING_SECONDS: u32 = 30;
const MAX_SECONDS: u32 = 600;
/// In the past, so that a verifier with a real clock accepts it.
const NOW_S: i64 = 1_760_000_000;

/// Requests, documents and signed webhooks, with their inputs.
pub fn samples() -> Value {
    let wire = VonageWire::default();
    let settings = wire.settings("https://api.nexmo.com");
    let get = |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let carriers = Carriers::from_settings(get).expect("the fake's settings are good");
    let carrier = carriers.get(CarrierName::Vonage).expect("the account is configured");
    let answer = document(carrier.answer(&Connect {
        carrier_call_id: CALL,
        our_number: TO,
        media_url: MEDIA,
        status_url: STATUS,
        command_id: "0198f1a2-7c1e-7a55-8f4e-0123456789ad",
        now_ms: NOW_S * 1_000,
        max_seconds: MAX_SECONDS,
    }));
    wire.instruction(200, "application/json", answer.to_string().as_bytes()).expect("a valid document");
    let refuse = |why| document(carrier.refuse(&IncomingCall::default(), why));
    let refusals = [Refusal::Unbound, Refusal::Busy].map(refuse);
    json!({
        "application_id": APPLICATION_ID,
        "api_key": API_KEY,
        "signature_secret": SIGNATURE_SECRET,
        "private_key": token::PRIVATE_KEY,
        "from": FROM,
        "to": TO,
        "call_id": CALL,
        "media_url": MEDIA,
        "back_url": BACK_URL,
        "status_url": STATUS,
        "ring_seconds": RING_SECONDS,
        "max_seconds": MAX_SECONDS,
        "place": request(&order(carrier, None)),
        "place_detecting": request(&order(carrier, Some(VoicemailAction::LeaveMessage))),
        "transfer": request(&transfer(carrier)),
        "hang_up": request(&hang_up(carrier)),
        "answer": answer,
        "refusals": refusals,
        "webhooks": webhooks(&wire),
    })
}

fn order(carrier: &Arc<dyn Carrier>, voicemail: Option<VoicemailAction>) -> Outgoing {
    carrier.place(&Order {
        from: &E164::parse(FROM).expect("a number"),
        to: &E164::parse(TO).expect("a number"),
        media_url: MEDIA,
        status_url: STATUS,
        answer_url: STATUS,
        command_id: "0198f1a2-7c1e-7a55-8f4e-0123456789ab",
        ring_seconds: RING_SECONDS,
        voicemail,
        max_seconds: MAX_SECONDS,
        now_ms: NOW_S * 1_000,
    })
}

fn hang_up(carrier: &Arc<dyn Carrier>) -> Outgoing {
    carrier.hang_up(&Ending {
        carrier_call_id: CALL,
        answered: true,
        region_url: None,
        command_id: "0198f1a2-7c1e-7a55-8f4e-0123456789ac",
        now_ms: NOW_S * 1_000,
    })
}

const BACK_URL: &str = "https://voice.example.com/carriers/vonage/voice?call=t0ken&back=1";

fn transfer(carrier: &Arc<dyn Carrier>) -> Outgoing {
    carrier.transfer(&Transfer {
        carrier_call_id: CALL,
        region_url: None,
        to: &E164::parse(TO).expect("a number"),
        ring_seconds: RING_SECONDS,
        max_seconds: MAX_SECONDS,
        our_number: Some(&E164::parse(FROM).expect("a number")),
        shows_caller: true,
        call_id: "",
        document_url: "",
        status_url: "",
        back_url: BACK_URL,
        command_id: "0198f1a2-7c1e-7a55-8f4e-0123456789ae",
        now_ms: NOW_S * 1_000,
    })
}

/// A request with its token, signed as a host does.
fn request(outgoing: &Outgoing) -> Value {
    let Authorization::Jwt { claims, key } = &outgoing.authorization else {
        panic!("Vonage requires a token: {outgoing:?}");
    };
    json!({
        "method": outgoing.method,
        "url": outgoing.url,
        "content_type": outgoing.content_type,
        "token": token::signed_rs256(claims, key.pkcs8()),
        "body": serde_json::from_slice::<Value>(&outgoing.body).expect("a body of JSON"),
    })
}

fn document(reply: Reply) -> Value {
    match reply {
        Reply::Document { body, .. } => serde_json::from_str(&body).expect("a document of JSON"),
        Reply::Command(command) => panic!("Vonage expects documents: {command:?}"),
    }
}

fn webhooks(wire: &VonageWire) -> Vec<Value> {
    let public = Public { base_url: "https://voice.example.com".to_owned() };
    let call = PhoneCall {
        carrier_call_id: CALL.to_owned(),
        other_id: "CON-f972836a-550f-45fa-956c-12a2ab5b7d22".to_owned(),
        from: FROM.to_owned(),
        to: TO.to_owned(),
        outbound: false,
        status_url: STATUS.to_owned(),
        voice_url: "https://voice.example.com/carriers/vonage/voice".to_owned(),
        format: String::new(),
        detection: Some(Detection { reports_greeting: true, url: STATUS.to_owned() }),
    };
    let ended = CallEvent::Ended { how: EndKind::HungUp, seconds: 42 };
    let detected = CallEvent::Detected(Answerer::GreetedMachine);
    let own = [CallEvent::Incoming, CallEvent::Ringing, CallEvent::Answered, detected, ended]
        .map(|event| wire.callback(&public, &call, &event, 0, NOW_S).expect("Vonage reports this event"));
    let second = wire.socket_leg(&call, "answered", NOW_S).expect("the answer created a second leg");
    own.iter().chain([&second]).map(webhook).collect()
}

fn webhook(request: &CallbackRequest) -> Value {
    let header =
        |wanted: &str| request.headers.iter().find(|(name, _)| *name == wanted).map(|(_, value)| value);
    json!({
        "method": request.method,
        "url": request.url,
        "token": header("authorization").and_then(|value| value.strip_prefix("Bearer ")),
        "body": String::from_utf8_lossy(&request.body),
    })
}
