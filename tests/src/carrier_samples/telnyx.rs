//! Telnyx: our requests with the fake's responses, its rejections, and its webhooks.
use serde_json::{Value, json};
use sidetone_engine::base::phone::E164;
use sidetone_engine::carriers::{
    Authorization, CarrierName, Carriers, Connect, Ending, IncomingCall, Order, Outgoing, Refusal, Reply,
    Transfer,
};
use sidetone_engine::conversation::VoicemailAction;

use crate::fakes::carrier::clock_s;
use crate::fakes::carrier::telnyx::{API_KEY, TelnyxWire};
use crate::fakes::carrier::{
    Answerer, ApiReply, ApiRequest, Behaviour, CallEvent, Command, Detection, EndKind, PhoneCall, Public,
    Wire,
};

const STATUS_URL: &str = "https://voice.example/carriers/telnyx/Grüße";
const MEDIA_URL: &str = "wss://voice.example/media/telnyx/token";
const COMMAND_ID: &str = "891510ac-f3e4-11e8-af5b-de00688a4901";

/// All samples; webhooks are signed with the current time.
pub fn samples() -> Value {
    let wire = TelnyxWire;
    json!({
        "api_key": API_KEY,
        "public_key": wire.public_key(),
        "requests": requests(wire),
        "refusals": refusals(wire),
        "webhooks": webhooks(wire),
    })
}

/// Each request of the service with the fake's response.
fn requests(wire: TelnyxWire) -> Vec<Value> {
    let settings = wire.settings("https://api.telnyx.com");
    let setting =
        |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let carriers = Carriers::from_settings(setting).expect("the fake's settings are valid");
    let telnyx = carriers.get(CarrierName::Telnyx).expect("there is an account");
    let (from, to) = (E164::parse("+13125550001"), E164::parse("+436601234567"));
    let order = Order {
        from: from.as_ref().expect("a number"),
        to: to.as_ref().expect("a number"),
        media_url: MEDIA_URL,
        status_url: STATUS_URL,
        answer_url: STATUS_URL,
        command_id: COMMAND_ID,
        ring_seconds: 40,
        voicemail: None,
        max_seconds: 900,
        now_ms: 0,
    };
    let detecting = Order { voicemail: Some(VoicemailAction::LeaveMessage), ..order };
    let call = call(true);
    let carrier_call_id = call.carrier_call_id.as_str();
    let connect = Connect {
        carrier_call_id,
        our_number: &call.to,
        media_url: MEDIA_URL,
        status_url: STATUS_URL,
        command_id: COMMAND_ID,
        now_ms: 0,
        max_seconds: 900,
    };
    let incoming = IncomingCall { carrier_call_id: carrier_call_id.to_owned(), ..IncomingCall::default() };
    let ending =
        Ending { carrier_call_id, answered: true, region_url: None, command_id: COMMAND_ID, now_ms: 0 };
    let transfer = Transfer {
        carrier_call_id,
        region_url: None,
        to: order.to,
        ring_seconds: 60,
        max_seconds: 7_200,
        our_number: Some(order.from),
        shows_caller: true,
        call_id: "call_01jd0000000000000000000000",
        document_url: STATUS_URL,
        status_url: STATUS_URL,
        back_url: "",
        command_id: COMMAND_ID,
        now_ms: 0,
    };
    vec![
        request(wire, "dial", &telnyx.place(&order)),
        request(wire, "dial", &telnyx.place(&detecting)),
        request(wire, "answer", &command(telnyx.answer(&connect))),
        request(wire, "reject", &command(telnyx.refuse(&incoming, Refusal::Unbound))),
        request(wire, "reject", &command(telnyx.refuse(&incoming, Refusal::Busy))),
        request(wire, "hangup", &telnyx.hang_up(&ending)),
        request(wire, "transfer", &telnyx.transfer(&transfer)),
        request(wire, "start_streaming", &telnyx.reconnect(&connect).expect("a command")),
    ]
}

fn command(reply: Reply) -> Outgoing {
    match reply {
        Reply::Command(outgoing) => outgoing,
        Reply::Document { .. } => panic!("Telnyx does not use documents"),
    }
}

fn request(wire: TelnyxWire, what: &str, outgoing: &Outgoing) -> Value {
    let Authorization::Bearer(secret) = &outgoing.authorization else {
        panic!("Telnyx requires a bearer token")
    };
    let headers = vec![
        ("authorization".to_owned(), format!("Bearer {}", secret.reveal())),
        ("content-type".to_owned(), outgoing.content_type.unwrap_or_default().to_owned()),
    ];
    let path = outgoing.url.strip_prefix("https://api.telnyx.com").expect("the real address");
    let received = ApiRequest {
        method: outgoing.method.to_owned(),
        path: path.to_owned(),
        headers: headers.clone(),
        body: outgoing.body.to_vec(),
    };
    let reply = match wire.read(&received) {
        Ok(Command::Place { .. }) => wire.placed(&call(true)),
        Ok(command) => wire.done(&command),
        Err(refusal) => panic!("the fake rejects {what}: {}", refusal.body),
    };
    let headers: serde_json::Map<_, _> =
        headers.into_iter().map(|(name, value)| (name, json!(value))).collect();
    json!({
        "what": what,
        "method": outgoing.method,
        "path": path,
        "headers": headers,
        "body": String::from_utf8_lossy(&outgoing.body),
        "reply": said(&reply),
    })
}

fn said(reply: &ApiReply) -> Value {
    json!({"status": reply.status, "content_type": reply.content_type, "body": reply.body})
}

fn refusals(wire: TelnyxWire) -> Vec<Value> {
    let behaviours = [Behaviour::BadNumber, Behaviour::Unauthorized, Behaviour::TooMany, Behaviour::Broken];
    let refused = behaviours.into_iter().filter_map(|behaviour| wire.refused(behaviour));
    refused.chain([wire.gone()]).map(|reply| said(&reply)).collect()
}

fn webhooks(wire: TelnyxWire) -> Vec<Value> {
    let ended = |how, seconds| CallEvent::Ended { how, seconds };
    let outbound = [
        CallEvent::Ringing,
        CallEvent::Answered,
        ended(EndKind::HungUp, 63),
        ended(EndKind::HungUpByService, 5),
        ended(EndKind::NoAnswer, 0),
        ended(EndKind::Busy, 0),
        ended(EndKind::Declined, 0),
        ended(EndKind::Failed, 0),
        ended(EndKind::Canceled, 0),
        CallEvent::Priced { seconds: 63 },
        CallEvent::Detected(Answerer::Person),
        CallEvent::Detected(Answerer::Machine),
        CallEvent::Detected(Answerer::GreetedMachine),
        CallEvent::Detected(Answerer::Fax),
        CallEvent::Detected(Answerer::Unsure),
    ];
    let inbound = [CallEvent::Incoming, CallEvent::Answered, ended(EndKind::HungUp, 9)];
    let now_s = clock_s();
    let public = Public { base_url: "https://voice.example".to_owned() };
    let events = outbound
        .iter()
        .map(|event| (call(true), event))
        .chain(inbound.iter().map(|event| (call(false), event)));
    (0_u32..)
        .zip(events)
        .map(|(nth, (call, event))| {
            let webhook =
                wire.callback(&public, &call, event, nth, now_s).expect("Telnyx reports this event");
            let headers: serde_json::Map<_, _> =
                webhook.headers.iter().map(|(name, value)| ((*name).to_owned(), json!(value))).collect();
            json!({
                "call_control_id": call.carrier_call_id,
                "method": webhook.method,
                "url": webhook.url,
                "headers": headers,
                "body": String::from_utf8(webhook.body).expect("JSON is text"),
            })
        })
        .collect()
}

fn call(outbound: bool) -> PhoneCall {
    PhoneCall {
        carrier_call_id: "v3:MdI91X4lWFEs7IgbBEOT9M4AigoY08M0WWZFISt1Yw2axZ_IiE4pqg".to_owned(),
        other_id: "428c31b6-abf3-4bc1-b7f4-5013ef9657c1".to_owned(),
        from: "+13125550001".to_owned(),
        to: "+436601234567".to_owned(),
        outbound,
        status_url: STATUS_URL.to_owned(),
        voice_url: "https://voice.example/carriers/telnyx".to_owned(),
        format: String::new(),
        detection: outbound.then(|| Detection { reports_greeting: true, url: STATUS_URL.to_owned() }),
    }
}
