//! The fake and the engine's carrier for Vonage, tested against each other.
use std::sync::Arc;

use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue};
use sidetone_engine::base::phone::E164;
use sidetone_engine::carriers::CarrierName;
use sidetone_engine::carriers::{
    Authorization, Callback, Carrier, CarrierEvent, Carriers, Check, Connect, Ending, Forged, IncomingCall,
    MediaEvent, MediaMessage, Order, Outgoing, Placed, Progress, Refusal, Reply,
};
use sidetone_engine::conversation::EndedReason;
use sidetone_engine::ports::HttpReply;

use super::*;
use crate::fakes::carrier::wire::{FromService, WireMessage};

const NOW_S: i64 = 1_795_000_000;
const API: &str = "http://127.0.0.1:4010";
const STATUS: &str = "https://voice.example.com/carriers/vonage/status/token";
const MEDIA: &str = "wss://voice.example.com/carriers/vonage/media/token";

fn pair() -> (VonageWire, Arc<dyn Carrier>) {
    let wire = VonageWire::default();
    let settings = wire.settings(API);
    let get = |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let carrier = Carriers::from_settings(get).unwrap().get(CarrierName::Vonage).unwrap().clone();
    (wire, carrier)
}

fn call(outbound: bool) -> PhoneCall {
    PhoneCall {
        carrier_call_id: "63f61863-4a51-4f6b-86e1-46edebcf9356".to_owned(),
        other_id: "CON-f972836a-550f-45fa-956c-12a2ab5b7d22".to_owned(),
        from: "+14155550123".to_owned(),
        to: "+447700900000".to_owned(),
        outbound,
        status_url: STATUS.to_owned(),
        voice_url: "https://voice.example.com/carriers/vonage/voice".to_owned(),
        format: String::new(),
        detection: None,
    }
}

fn order(carrier: &Arc<dyn Carrier>) -> Outgoing {
    carrier.place(&Order {
        from: &E164::parse("+14155550123").unwrap(),
        to: &E164::parse("+447700900000").unwrap(),
        media_url: MEDIA,
        status_url: STATUS,
        answer_url: "https://voice.example.com/carriers/vonage/voice/token",
        command_id: "0198f1a2-7c1e-7a55-8f4e-0123456789ab",
        ring_seconds: 30,
        voicemail: None,
        max_seconds: 600,
        now_ms: NOW_S * 1_000,
    })
}

/// The request as a host sends it.
fn sent(outgoing: &Outgoing) -> ApiRequest {
    let Authorization::Jwt { claims, key } = &outgoing.authorization else { panic!("{outgoing:?}") };
    let token = token::signed_rs256(claims, key.pkcs8());
    ApiRequest {
        method: outgoing.method.to_owned(),
        path: outgoing.url.strip_prefix(API).unwrap().to_owned(),
        headers: vec![
            ("authorization".to_owned(), format!("Bearer {token}")),
            ("content-type".to_owned(), outgoing.content_type.unwrap().to_owned()),
        ],
        body: outgoing.body.to_vec(),
    }
}

fn reply(reply: ApiReply) -> HttpReply {
    HttpReply { status: reply.status, headers: Vec::new(), body: Bytes::from(reply.body) }
}

/// The callback as the service receives it, with its events.
fn received<T>(request: &CallbackRequest, now_s: i64, then: impl FnOnce(&Callback<'_>) -> T) -> T {
    let header = |(name, value): &(&'static str, String)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap())
    };
    let headers = request.headers.iter().map(header).collect::<HeaderMap>();
    let (url, body) = (&request.url, &request.body);
    then(&Callback { method: request.method, url, headers: &headers, body, now_ms: now_s * 1_000 })
}

fn told(carrier: &Arc<dyn Carrier>, request: &CallbackRequest) -> Vec<CarrierEvent> {
    received(request, NOW_S, |callback| {
        assert!(is_genuine(&carrier.check(callback)));
        carrier.read(callback).unwrap()
    })
}

fn is_genuine(check: &Check) -> bool {
    matches!(check, Check::GenuineToken { .. })
}

fn happens(wire: &VonageWire, call: &PhoneCall, event: &CallEvent) -> CallbackRequest {
    let public = Public { base_url: "https://voice.example.com".to_owned() };
    wire.callback(&public, call, event, 0, NOW_S).unwrap()
}

#[test]
fn a_valid_order_is_accepted() {
    let (wire, carrier) = pair();
    let expected = Command::Place {
        from: "+14155550123".to_owned(),
        to: "+447700900000".to_owned(),
        status_url: STATUS.to_owned(),
        instruction: Some(Instruction::Connect { media_url: MEDIA.to_owned(), status_url: None }),
        answer_url: None,
        detection: None,
    };
    assert_eq!(wire.read(&sent(&order(&carrier))), Ok(expected));
    let placed = carrier.placed(&reply(wire.placed(&call(true))));
    assert_eq!(placed, Placed::Accepted { carrier_call_id: call(true).carrier_call_id });
    for behaviour in [Behaviour::BadNumber, Behaviour::Unauthorized, Behaviour::TooMany] {
        let placed = carrier.placed(&reply(wire.refused(behaviour).unwrap()));
        assert!(matches!(placed, Placed::Rejected(_)), "{placed:?}");
    }
    for behaviour in [Behaviour::Broken, Behaviour::NoId] {
        let placed = carrier.placed(&reply(wire.refused(behaviour).unwrap()));
        assert!(matches!(placed, Placed::Unknown(_)), "{placed:?}");
    }
}

#[test]
fn invalid_orders_are_rejected() {
    let (wire, carrier) = pair();
    let good = sent(&order(&carrier));
    let status = |request: &ApiRequest| wire.read(request).unwrap_err().status;
    let mut unsigned = good.clone();
    unsigned.headers.remove(0);
    assert_eq!(status(&unsigned), 401);
    let mut tampered = good.clone();
    tampered.headers[0].1 = tampered.headers[0].1.replacen("Bearer eyJ", "Bearer eyK", 1);
    assert_eq!(status(&tampered), 401);
    let mut form = good.clone();
    form.headers[1].1 = "application/x-www-form-urlencoded".to_owned();
    assert_eq!(status(&form), 415);
    let body: Value = serde_json::from_slice(&good.body).unwrap();
    for (pointer, wrong) in [
        ("/to/0/number", json!("+447700900000")),
        ("/to", json!([])),
        ("/from/type", json!("sip")),
        ("/ncco", json!([{"action": "dance"}])),
        ("/ncco/0/endpoint/0/uri", json!("https://voice.example.com")),
        ("/ncco/0/endpoint/0/content-type", json!("audio/l16;rate=48000")),
        ("/ncco/0/endpoint/0/headers", json!({"long": "x".repeat(512)})),
        ("/ncco/0/endpoint/0/authorization/type", json!("basic")),
        ("/ncco/0/limit", json!(7_201)),
        ("/event_url", json!(STATUS)),
        ("/event_method", json!("PUT")),
        ("/ringing_timer", json!(121)),
        ("/length_timer", json!(0)),
    ] {
        let mut changed = body.clone();
        *changed.pointer_mut(pointer).unwrap() = wrong;
        let request = ApiRequest { body: changed.to_string().into_bytes(), ..good.clone() };
        assert_eq!(status(&request), 400, "{pointer}");
    }
    for name in ["answer_url", "ring_timer"] {
        let mut changed = body.clone();
        changed[name] = json!(["https://voice.example.com"]);
        let request = ApiRequest { body: changed.to_string().into_bytes(), ..good.clone() };
        assert_eq!(status(&request), 400, "{name}");
    }
}

#[test]
fn a_call_is_hung_up() {
    let (wire, carrier) = pair();
    let id = call(true).carrier_call_id;
    // The fake reports its own address as the call's region.
    for region_url in [None, Some(API)] {
        let ending = Ending {
            carrier_call_id: &id,
            answered: true,
            region_url,
            command_id: "0198f1a2-7c1e-7a55-8f4e-0123456789ac",
            now_ms: NOW_S * 1_000,
        };
        let command = Command::HangUp { carrier_call_id: id.clone() };
        assert_eq!(wire.read(&sent(&carrier.hang_up(&ending))), Ok(command.clone()));
        assert_eq!(carrier.hung_up(&reply(wire.done(&command))), Ok(()));
    }
    assert_eq!(carrier.hung_up(&reply(wire.gone())), Ok(()));
}

#[test]
fn an_incoming_call_is_answered_or_declined() {
    let (wire, carrier) = pair();
    let call = call(false);
    let events = told(&carrier, &happens(&wire, &call, &CallEvent::Incoming));
    let expected = IncomingCall {
        carrier_call_id: call.carrier_call_id.clone(),
        from: Some(call.from.clone()),
        to: call.to.clone(),
        region_url: Some(API.to_owned()),
    };
    assert_eq!(events, [CarrierEvent::Incoming(expected.clone())]);
    let connect = Connect {
        carrier_call_id: &call.carrier_call_id,
        our_number: &call.to,
        media_url: MEDIA,
        status_url: STATUS,
        command_id: "0198f1a2-7c1e-7a55-8f4e-0123456789ad",
        now_ms: NOW_S * 1_000,
        max_seconds: 600,
    };
    let instruction = |reply| match reply {
        Reply::Document { content_type, body } => wire.instruction(200, content_type, body.as_bytes()),
        other => panic!("{other:?}"),
    };
    let media_url = MEDIA.to_owned();
    assert_eq!(
        instruction(carrier.answer(&connect)),
        Ok(Instruction::Connect { media_url, status_url: None })
    );
    for why in [Refusal::Unbound, Refusal::Busy] {
        assert_eq!(instruction(carrier.refuse(&expected, why)), Ok(Instruction::HangUp));
    }
    assert!(wire.instruction(200, "text/xml", b"[]").is_err());
    let mut line = carrier.media_codec();
    let opening = wire.media(&call).opening();
    let [WireMessage::Text(first)] = &opening[..] else { panic!("{opening:?}") };
    let started = MediaEvent::Started { carrier_call_id: Some(call.carrier_call_id) };
    assert_eq!(line.read(MediaMessage::Text(first.clone())), Ok(vec![started]));
}

#[test]
fn every_event_is_genuine_and_parsed() {
    let (wire, carrier) = pair();
    let ended = |how| CallEvent::Ended { how, seconds: 42 };
    for (event, reason) in [
        (ended(EndKind::HungUp), EndedReason::UserHungUp),
        (ended(EndKind::HungUpByService), EndedReason::UserHungUp),
        (ended(EndKind::NoAnswer), EndedReason::NoAnswer),
        (ended(EndKind::Busy), EndedReason::Busy),
        (ended(EndKind::Declined), EndedReason::Declined),
        (ended(EndKind::Failed), EndedReason::Unreachable),
        (ended(EndKind::Canceled), EndedReason::Canceled),
    ] {
        let events = told(&carrier, &happens(&wire, &call(true), &event));
        let [CarrierEvent::Report(report)] = &events[..] else { panic!("{events:?}") };
        assert_eq!(report.carrier_call_id, call(true).carrier_call_id);
        let Some(Progress::Ended(end)) = &report.progress else { panic!("{report:?}") };
        assert_eq!(end.reason, reason, "{event:?}");
        let was_connected = reason == EndedReason::UserHungUp;
        assert_eq!(end.duration_ms, was_connected.then_some(42_000));
        assert_eq!(report.billed.is_some(), was_connected);
    }
    for (event, progress) in
        [(CallEvent::Ringing, Progress::Ringing), (CallEvent::Answered, Progress::Answered)]
    {
        let events = told(&carrier, &happens(&wire, &call(true), &event));
        assert!(matches!(&events[..], [CarrierEvent::Report(report)] if report.progress == Some(progress)));
    }
}

#[test]
fn events_of_the_second_leg_are_genuine_and_ignored() {
    let (wire, carrier) = pair();
    assert_eq!(wire.socket_leg(&call(true), "answered", NOW_S), None);
    wire.read(&sent(&order(&carrier))).unwrap();
    for status in ["started", "ringing", "answered", "disconnected", "completed"] {
        let event = wire.socket_leg(&call(true), status, NOW_S).unwrap();
        assert_eq!(told(&carrier, &event), [], "{status}");
    }
}

#[test]
fn forgeries_are_detected() {
    let (wire, carrier) = pair();
    let genuine = happens(&wire, &call(true), &CallEvent::Answered);
    let check =
        |request: &CallbackRequest, now_s| received(request, now_s, |callback| carrier.check(callback));
    assert!(is_genuine(&check(&genuine, NOW_S)));
    assert_eq!(check(&genuine, NOW_S + 301), Check::Forged(Forged::Stale));
    let mut changed = genuine.clone();
    changed.body = String::from_utf8(changed.body).unwrap().replace("answered", "completed").into_bytes();
    assert_eq!(check(&changed, NOW_S), Check::Forged(Forged::Wrong));
    let mut unsigned = genuine.clone();
    unsigned.headers.retain(|(name, _)| *name != "authorization");
    assert_eq!(check(&unsigned, NOW_S), Check::Forged(Forged::Missing));
}

#[test]
fn the_socket_has_a_token_if_the_document_requests_it() {
    let (wire, carrier) = pair();
    assert!(wire.socket_headers(MEDIA).is_empty());
    wire.read(&sent(&order(&carrier))).unwrap();
    happens(&wire, &call(true), &CallEvent::Answered);
    let headers = wire.socket_headers(MEDIA);
    let request = CallbackRequest { method: "GET", url: MEDIA.to_owned(), headers, body: Vec::new() };
    let now_s = clock_s();
    let check =
        |request: &CallbackRequest| received(request, now_s, |callback| carrier.check_media(callback));
    assert!(is_genuine(&check(&request)));
    let again = CallbackRequest { headers: wire.socket_headers(MEDIA), ..request.clone() };
    assert_ne!(check(&again), check(&request), "each token has an id of its own");
    assert_eq!(check(&CallbackRequest { headers: Vec::new(), ..request }), Check::Forged(Forged::Missing));
}

#[test]
fn audio_marks_and_clears_match_in_both_directions() {
    let (wire, carrier) = pair();
    wire.read(&sent(&order(&carrier))).unwrap();
    let mut media = wire.media(&call(true));
    let mut line = carrier.media_codec();
    let ours = |message| match message {
        WireMessage::Text(text) => MediaMessage::Text(text),
        WireMessage::Binary(bytes) => MediaMessage::Binary(Bytes::from(bytes)),
    };
    let theirs = |message| match message {
        MediaMessage::Text(text) => WireMessage::Text(text),
        MediaMessage::Binary(bytes) => WireMessage::Binary(bytes.to_vec()),
    };
    for message in media.opening() {
        assert_eq!(line.read(ours(message)), Ok(vec![MediaEvent::Started { carrier_call_id: None }]));
    }
    assert_eq!((media.rate_hz(), line.format().rate.hz()), (16_000, 16_000));
    let frame: Vec<i16> = (0..320).map(|n| n * 7 - 900).collect();
    assert_eq!(line.read(ours(media.audio(&frame))), Ok(vec![MediaEvent::Audio(frame.clone())]));
    assert_eq!(media.read(&theirs(line.audio(&frame))), Ok(FromService::Audio(frame)));
    assert_eq!(line.read(ours(media.key('#'))), Ok(vec![MediaEvent::Dtmf('#')]));
    assert_eq!(media.read(&theirs(line.mark("m-7"))), Ok(FromService::Mark("m-7".to_owned())));
    assert_eq!(line.read(ours(media.played("m-7"))), Ok(vec![MediaEvent::Played("m-7".to_owned())]));
    assert_eq!(media.read(&theirs(line.clear())), Ok(FromService::Clear));
    let cleared =
        media.cleared(&["m-8".to_owned()]).into_iter().map(|message| line.read(ours(message)).unwrap());
    assert_eq!(cleared.collect::<Vec<_>>(), [[MediaEvent::Cleared]]);
    for wrong in ["", "{}", r#"{"action":"stop"}"#, r#"{"action":"notify"}"#, r#"{"action":"clear","x":1}"#] {
        assert!(media.read(&WireMessage::Text(wrong.to_owned())).is_err(), "{wrong}");
    }
    for bytes in [0, 320, 639, 641, 960] {
        assert!(media.read(&WireMessage::Binary(vec![0; bytes])).is_err(), "{bytes}");
    }
}
