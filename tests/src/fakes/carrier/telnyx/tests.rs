//! The fake and the service are compatible, and the fake is strict.
use serde_json::Value;
use sidetone_engine::carriers::CarrierName;
use sidetone_engine::carriers::{
    Callback, CarrierEvent, Carriers, Check, MediaEvent, MediaMessage, Progress, Report,
};
use sidetone_engine::conversation::EndedReason;

use super::super::mulaw;
use super::super::wire::{EndKind, FromService, WireMessage};
use super::*;
use crate::carrier_samples::telnyx::samples;

const NOW_S: i64 = 1_795_219_199;

fn engine() -> Carriers {
    let settings = TelnyxWire.settings("http://127.0.0.1:7");
    let setting =
        |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    Carriers::from_settings(setting).unwrap()
}

fn call(outbound: bool) -> PhoneCall {
    PhoneCall {
        carrier_call_id: "v3:abc_-9".to_owned(),
        other_id: uuid("session"),
        from: "+13125550001".to_owned(),
        to: "+436601234567".to_owned(),
        outbound,
        status_url: "https://voice.example/status".to_owned(),
        voice_url: "https://voice.example/voice".to_owned(),
        format: String::new(),
        detection: None,
    }
}

fn told(call: &PhoneCall, event: &CallEvent) -> Option<(String, CarrierEvent)> {
    let public = Public { base_url: "https://voice.example".to_owned() };
    let webhook = TelnyxWire.callback(&public, call, event, 3, NOW_S)?;
    let mut headers = http::HeaderMap::new();
    for (name, value) in &webhook.headers {
        headers.insert(*name, value.parse().unwrap());
    }
    let now_ms = NOW_S * 1_000;
    let callback = Callback {
        method: webhook.method,
        url: &webhook.url,
        headers: &headers,
        body: &webhook.body,
        now_ms,
    };
    let engine = engine();
    let telnyx = engine.get(CarrierName::Telnyx).unwrap();
    let Check::Ed25519 { public_key, message, signature } = telnyx.check(&callback) else {
        panic!("a signature")
    };
    let key = ring::signature::UnparsedPublicKey::new(&ring::signature::ED25519, public_key);
    key.verify(&message, &signature).unwrap();
    let [event] = telnyx.read(&callback).unwrap().try_into().unwrap();
    Some((webhook.url, event))
}

#[test]
fn webhooks_are_genuine_and_report_the_right_event() {
    let ended = |how| {
        let event = told(&call(true), &CallEvent::Ended { how, seconds: 30 });
        match event.map(|(_, event)| event) {
            Some(CarrierEvent::Report(Report { progress: Some(Progress::Ended(end)), .. })) => end.reason,
            other => panic!("{other:?}"),
        }
    };
    assert_eq!(ended(EndKind::HungUp), EndedReason::UserHungUp);
    assert_eq!(ended(EndKind::HungUpByService), EndedReason::UserHungUp);
    assert_eq!(ended(EndKind::NoAnswer), EndedReason::NoAnswer);
    assert_eq!(ended(EndKind::Busy), EndedReason::Busy);
    assert_eq!(ended(EndKind::Declined), EndedReason::Declined);
    assert_eq!(ended(EndKind::Failed), EndedReason::Unreachable);
    assert_eq!(ended(EndKind::Canceled), EndedReason::Canceled);
    let Some((url, CarrierEvent::Incoming(incoming))) = told(&call(false), &CallEvent::Incoming) else {
        panic!("expected an incoming call");
    };
    assert_eq!(url, "https://voice.example/voice");
    assert_eq!((incoming.from.as_deref(), incoming.to.as_str()), (Some("+13125550001"), "+436601234567"));
    let Some((url, CarrierEvent::Report(report))) = told(&call(true), &CallEvent::Priced { seconds: 61 })
    else {
        panic!("it costs");
    };
    assert_eq!(url, "https://voice.example/status");
    let billed = report.billed.unwrap();
    assert_eq!((billed.duration_ms, billed.cost_microusd), (Some(120_000), Some(14_000)));
    assert_eq!(told(&call(true), &CallEvent::Incoming), None);
    assert_eq!(told(&call(true), &CallEvent::Asked), None);
}

#[test]
fn only_valid_requests_are_accepted() {
    let samples = samples();
    for request in samples["requests"].as_array().unwrap() {
        let header = |name: &str| (name.to_owned(), request["headers"][name].as_str().unwrap().to_owned());
        let good = ApiRequest {
            method: "POST".to_owned(),
            path: request["path"].as_str().unwrap().to_owned(),
            headers: vec![header("authorization"), header("content-type")],
            body: request["body"].as_str().unwrap().into(),
        };
        assert!(TelnyxWire.read(&good).is_ok());
        let status = |request: ApiRequest| TelnyxWire.read(&request).err().map(|reply| reply.status);
        assert_eq!(status(ApiRequest { headers: vec![header("content-type")], ..good.clone() }), Some(401));
        assert_eq!(status(ApiRequest { headers: vec![header("authorization")], ..good.clone() }), Some(415));
        assert_eq!(status(ApiRequest { method: "PUT".to_owned(), ..good.clone() }), Some(404));
        assert_eq!(status(ApiRequest { path: format!("{}/", good.path), ..good.clone() }), Some(404));
        assert_eq!(status(ApiRequest { body: b"[]".to_vec(), ..good.clone() }), Some(400));
        let body: Value = serde_json::from_slice(&good.body).unwrap();
        for name in body.as_object().unwrap().keys() {
            let mut odd = body.clone();
            odd[name] = json!(["odd"]);
            let odd = ApiRequest { body: odd.to_string().into(), ..good.clone() };
            assert_eq!(status(odd), Some(422), "{name}");
        }
        let mut more = body;
        more["surprise"] = json!(1);
        assert_eq!(status(ApiRequest { body: more.to_string().into(), ..good }), Some(422));
    }
}

#[test]
fn media_messages_match_in_both_directions() {
    let engine = engine();
    let mut line = engine.get(CarrierName::Telnyx).unwrap().media_codec();
    let mut wire = TelnyxWire.media(&call(true));
    let mut hear = |message: WireMessage| match message {
        WireMessage::Text(text) => line.read(MediaMessage::Text(text)).unwrap(),
        WireMessage::Binary(_) => panic!("text"),
    };
    let opening: Vec<_> = wire.opening().into_iter().flat_map(&mut hear).collect();
    assert_eq!(opening, [MediaEvent::Started { carrier_call_id: Some("v3:abc_-9".to_owned()) }]);
    for sample in [0, 1_000, -1_000] {
        let heard = hear(wire.audio(&[sample; 160]));
        let coded = mulaw::decode(mulaw::encode(sample));
        assert_eq!(heard, [MediaEvent::Audio(vec![coded; 160])]);
    }
    assert_eq!(hear(wire.key('#')), [MediaEvent::Dtmf('#')]);
    assert_eq!(hear(wire.played("7")), [MediaEvent::Played("7".to_owned())]);
    assert_eq!(wire.closing().into_iter().flat_map(&mut hear).collect::<Vec<_>>(), [MediaEvent::Stopped]);
    let text = |message: MediaMessage| match message {
        MediaMessage::Text(text) => WireMessage::Text(text),
        MediaMessage::Binary(_) => panic!("text"),
    };
    assert_eq!(wire.read(&text(line.audio(&[0; 160]))), Ok(FromService::Audio(vec![0; 160])));
    assert_eq!(wire.read(&text(line.mark("m"))), Ok(FromService::Mark("m".to_owned())));
    assert_eq!(wire.read(&text(line.clear())), Ok(FromService::Clear));
    for odd in [
        r#"{"event":"media","media":{"payload":"/w=="}}"#,
        r#"{"event":"media","stream_id":"x","media":{"payload":""}}"#,
        r#"{"event":"mark","mark":{"name":""}}"#,
        r#"{"event":"clear","x":1}"#,
        r#"{"event":"stop"}"#,
        "",
    ] {
        assert!(wire.read(&WireMessage::Text(odd.to_owned())).is_err(), "{odd}");
    }
}
