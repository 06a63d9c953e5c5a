use super::super::mulaw;
use super::*;
use crate::fakes::carrier::wire::{EndKind, FromService, WireMessage};

const STREAM: &str = r#"<?xml version="1.0" encoding="UTF-8"?>
    <Response><Connect><Stream url="wss://a.example/media/t"/></Connect></Response>"#;

fn call(outbound: bool) -> PhoneCall {
    PhoneCall {
        carrier_call_id: "CA0123456789abcdef0123456789abcdef".to_owned(),
        other_id: String::new(),
        from: "+14155550123".to_owned(),
        to: "+442071838750".to_owned(),
        outbound,
        status_url: "https://a.example/status".to_owned(),
        voice_url: "https://a.example/voice".to_owned(),
        format: String::new(),
        detection: None,
    }
}

fn order(pairs: &[(&str, &str)]) -> ApiRequest {
    let mut body = form_urlencoded::Serializer::new(String::new());
    body.extend_pairs([("To", "+442071838750"), ("From", "+14155550123")]);
    body.extend_pairs(pairs);
    ApiRequest {
        method: "POST".to_owned(),
        path: format!("/2010-04-01/Accounts/{ACCOUNT_SID}/Calls.json"),
        headers: vec![
            (
                "authorization".to_owned(),
                format!("Basic {}", STANDARD.encode(format!("{ACCOUNT_SID}:{AUTH_TOKEN}"))),
            ),
            ("content-type".to_owned(), "application/x-www-form-urlencoded".to_owned()),
        ],
        body: body.finish().into_bytes(),
    }
}

#[test]
fn orders_are_parsed_strictly() {
    let good = order(&[("Twiml", STREAM), ("Timeout", "30")]);
    let connect = Instruction::Connect { media_url: "wss://a.example/media/t".to_owned(), status_url: None };
    let Ok(Command::Place { instruction, to, .. }) = TwilioWire.read(&good) else { panic!() };
    assert_eq!((instruction, to.as_str()), (Some(connect), "+442071838750"));
    let code = |request: &ApiRequest| {
        let reply = TwilioWire.read(request).unwrap_err();
        serde_json::from_str::<serde_json::Value>(&reply.body).unwrap()["code"].as_u64().unwrap()
    };
    assert_eq!(code(&order(&[])), 21_205);
    assert_eq!(code(&order(&[("Twiml", STREAM), ("Url", "https://a.example")])), 21_205);
    assert_eq!(code(&order(&[("Twiml", "<Response>")])), 12_100);
    assert_eq!(code(&order(&[("Twiml", STREAM), ("Timeout", "601")])), 21_200);
    assert_eq!(code(&order(&[("Twiml", STREAM), ("Timeout", "6"), ("Timeout", "7")])), 20_001);
    assert_eq!(code(&order(&[("Twiml", STREAM), ("StatusCallback", "https://a_b.example")])), 21_609);
    assert_eq!(code(&order(&[("Twiml", STREAM), ("RingTime", "6")])), 20_001);
    assert_eq!(code(&ApiRequest { headers: Vec::new(), ..good.clone() }), 20_003);
    assert_eq!(code(&ApiRequest { path: "/2010-04-01/Calls.json".to_owned(), ..good }), 20_404);
}

#[test]
fn documents_are_parsed_strictly() {
    let read = |body: &str| TwilioWire.instruction(200, "text/xml", body.as_bytes());
    assert!(matches!(read(STREAM), Ok(Instruction::Connect { .. })));
    assert_eq!(read("<Response/>"), Ok(Instruction::HangUp));
    assert_eq!(read(r#"<Response><Reject reason="busy"/></Response>"#), Ok(Instruction::HangUp));
    for (from, to) in [
        ("wss:", "https:"),
        ("/media/t", "/media?t=1"),
        ("url=", "uri="),
        ("<Stream", "<stream"),
        ("<Connect>", "<Connect>text"),
        ("<Response>", r#"<Response version="1">"#),
        ("</Response>", "<Hangup/></Response>"),
        ("</Response>", ""),
        ("Response", "response"),
    ] {
        assert!(read(&STREAM.replace(from, to)).is_err(), "{from} {to}");
    }
    assert!(read(r#"<Response><Reject reason="tired"/></Response>"#).is_err());
    assert!(TwilioWire.instruction(200, "text/plain", STREAM.as_bytes()).is_err());
    assert!(TwilioWire.instruction(403, "text/xml", STREAM.as_bytes()).is_err());
}

#[test]
fn callbacks_go_to_the_right_url() {
    let public = Public { base_url: "https://a.example".to_owned() };
    let sent = |outbound, event| TwilioWire.callback(&public, &call(outbound), &event, 2, 1_651_933_814);
    let ended = CallEvent::Ended { how: EndKind::Busy, seconds: 0 };
    assert_eq!(sent(false, CallEvent::Incoming).unwrap().url, "https://a.example/voice");
    assert_eq!(sent(false, ended.clone()).unwrap().url, "https://a.example/status");
    assert_eq!(sent(false, CallEvent::Answered), None);
    assert_eq!(sent(true, CallEvent::Asked), None);
    assert_eq!(sent(true, CallEvent::Ringing).unwrap().url, "https://a.example/status");
    let body = String::from_utf8(sent(true, ended).unwrap().body).unwrap();
    let expected = "CallbackSource=call-progress-events&SequenceNumber=2\
        &Timestamp=Sat%2C+07+May+2022+14%3A30%3A14+%2B0000&CallDuration=0&Duration=0&SipResponseCode=486";
    assert!(body.ends_with(expected), "{body}");
}

#[test]
fn mu_law_matches_the_engine() {
    use sidetone_engine::speech::g711;
    for code in 0..=u8::MAX {
        assert_eq!([mulaw::decode(code)], g711::decode(&[code])[..]);
    }
    // Codecs differ for negative samples on a decision boundary. This one mirrors the positive side.
    for sample in 0..=i16::MAX {
        assert_eq!([mulaw::encode(sample)], g711::encode(&[sample])[..], "{sample}");
        let below = if sample == 0 { 0xff } else { mulaw::encode(sample) & 0x7f };
        assert_eq!(mulaw::encode(-sample), below, "-{sample}");
    }
}

#[test]
fn media_messages_are_parsed_strictly() {
    let mut media = TwilioWire.media(&call(true));
    assert_eq!((media.opening().len(), media.closing().len()), (2, 1));
    let sid = "MZ0123456789abcdef0123456789abcdef";
    let mut read = |text: &str| media.read(&WireMessage::Text(text.replace("SID", sid)));
    assert_eq!(read(r#"{"event":"clear","streamSid":"SID"}"#), Ok(FromService::Clear));
    assert_eq!(
        read(r#"{"event":"mark","streamSid":"SID","mark":{"name":"7"}}"#),
        Ok(FromService::Mark("7".into()))
    );
    let audio = read(r#"{"event":"media","streamSid":"SID","media":{"payload":"//8A"}}"#);
    assert_eq!(audio, Ok(FromService::Audio(vec![0, 0, -32_124])));
    for text in [
        r#"{"event":"clear"}"#,
        r#"{"event":"clear","streamSid":"SID","mark":{}}"#,
        r#"{"event":"media","streamSid":"SID","media":{"payload":""}}"#,
        r#"{"event":"media","streamSid":"SID","media":{"payload":"UklGRg=="}}"#,
        r#"{"event":"media","streamSid":"MZ1","media":{"payload":"//8A"}}"#,
        r#"{"event":"dtmf","streamSid":"SID","dtmf":{"digit":"1"}}"#,
    ] {
        assert!(read(text).is_err(), "{text}");
    }
}
