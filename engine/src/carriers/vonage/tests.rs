//! Settings, requests and responses.
use bytes::Bytes;
use http::HeaderMap;

use super::*;
use crate::base::phone::E164;
use crate::carriers::callback::Forged;
use crate::carriers::order::RejectionCause;
use crate::carriers::{Carriers, MediaEvent, MediaMessage};
use crate::conversation::VoicemailAction;

const KEY: &str = include_str!("test_key_pkcs8.pem");
const COMMAND: &str = "0198f1a2-7c1e-7a55-8f4e-0123456789ab";
const CALL: &str = "63f61863-4a51-4f6b-86e1-46edebcf9356";
const NOW_MS: i64 = 1_795_000_000_123;

const SETTINGS: [(&str, &str); 4] = [
    ("SIDETONE_VONAGE_APPLICATION_ID", "aaaaaaaa-bbbb-cccc-dddd-0123456789ab"),
    ("SIDETONE_VONAGE_PRIVATE_KEY", KEY),
    ("SIDETONE_VONAGE_API_KEY", "a1b2c3d"),
    ("SIDETONE_VONAGE_SIGNATURE_SECRET", "a secret of the account"),
];

fn read(settings: &[(&str, &str)]) -> Result<Option<Vonage>, SettingError> {
    let get =
        |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    Vonage::from_settings(&get)
}

fn vonage() -> Vonage {
    read(&SETTINGS).unwrap().unwrap()
}

fn body(outgoing: &Outgoing) -> Value {
    serde_json::from_slice(&outgoing.body).unwrap()
}

fn reply(status: u16, body: &str) -> HttpReply {
    HttpReply { status, headers: Vec::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
}

#[test]
fn an_account_is_complete_or_absent() {
    assert!(read(&[]).unwrap().is_none());
    assert!(read(&[("SIDETONE_VONAGE_BASE_URL", "http://127.0.0.1:9")]).unwrap().is_none());
    for (lacking, _) in SETTINGS {
        let rest: Vec<_> = SETTINGS.into_iter().filter(|(name, _)| *name != lacking).collect();
        assert_eq!(read(&rest).err().unwrap().name, lacking);
    }
    let mut wrong = SETTINGS;
    wrong[1].1 = "/etc/sidetone/private.key";
    let error = read(&wrong).err().unwrap();
    assert_eq!(error.name, "SIDETONE_VONAGE_PRIVATE_KEY");
    assert!(!error.message.contains("/etc"), "{error}");
    let with_url = [&SETTINGS[..], &[("SIDETONE_VONAGE_BASE_URL", "ftp://x")]].concat();
    assert_eq!(read(&with_url).err().unwrap().name, "SIDETONE_VONAGE_BASE_URL");
}

#[test]
fn a_configured_account_is_available() {
    let get =
        |name: &str| SETTINGS.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
    let carriers = Carriers::from_settings(get).unwrap();
    assert_eq!(carriers.get(CarrierName::Vonage).unwrap().provider(), CarrierName::Vonage);
    assert!(!format!("{carriers:?}").contains("secret"));
}

#[test]
fn an_order_is_one_request() {
    let order = Order {
        from: &E164::parse("+14155550123").unwrap(),
        to: &E164::parse("+447700900000").unwrap(),
        media_url: "wss://voice.example.com/carriers/vonage/media/token",
        status_url: "https://voice.example.com/carriers/vonage/status/token",
        answer_url: "https://voice.example.com/carriers/vonage/voice/token",
        command_id: COMMAND,
        ring_seconds: 30,
        voicemail: None,
        max_seconds: 600,
        now_ms: NOW_MS,
    };
    let sent = vonage().place(&order);
    assert_eq!((sent.method, sent.url.as_str()), ("POST", "https://api.nexmo.com/v1/calls"));
    assert_eq!(sent.content_type, Some("application/json"));
    let expected = json!({
        "to": [{"type": "phone", "number": "447700900000"}],
        "from": {"type": "phone", "number": "14155550123"},
        "ncco": [{
            "action": "connect",
            "from": "14155550123",
            "limit": 600,
            "eventUrl": ["https://voice.example.com/carriers/vonage/status/token"],
            "eventMethod": "POST",
            "endpoint": [{
                "type": "websocket",
                "uri": "wss://voice.example.com/carriers/vonage/media/token",
                "content-type": "audio/l16;rate=16000",
                "headers": {"sidetone_leg": "media"},
                "authorization": {"type": "vonage"},
            }],
        }],
        "event_url": ["https://voice.example.com/carriers/vonage/status/token"],
        "event_method": "POST",
        "ringing_timer": 30,
        "length_timer": 600,
    });
    assert_eq!(body(&sent), expected);
    let Authorization::Jwt { claims, key } = &sent.authorization else { panic!("{:?}", sent.authorization) };
    let expected = json!({"application_id": "aaaaaaaa-bbbb-cccc-dddd-0123456789ab", "iat": 1_795_000_000,
                          "jti": COMMAND, "exp": 1_795_000_900});
    assert_eq!(*claims, expected);
    assert_eq!(*key, private_key::read(KEY).unwrap());
    // The same order gives the same request.
    assert_eq!(vonage().place(&order), sent);
    let long = vonage().place(&Order { ring_seconds: 900, max_seconds: 100_000, ..order });
    assert_eq!((&body(&long)["ringing_timer"], &body(&long)["length_timer"]), (&json!(120), &json!(86_400)));
    let detecting = vonage().place(&Order { voicemail: Some(VoicemailAction::HangUp), ..order });
    let detection = json!({"behavior": "continue", "mode": "default", "beep_timeout": 45});
    assert_eq!(body(&detecting)["advanced_machine_detection"], detection);
    let short = vonage().place(&Order { ring_seconds: 0, max_seconds: 0, ..order });
    assert_eq!((&body(&short)["ringing_timer"], &body(&short)["length_timer"]), (&json!(1), &json!(1)));
}

#[test]
fn secrets_are_not_logged() {
    let ending = Ending {
        carrier_call_id: CALL,
        answered: true,
        region_url: None,
        command_id: COMMAND,
        now_ms: NOW_MS,
    };
    let shown = format!("{:?}", vonage().hang_up(&ending));
    assert!(shown.contains("PrivateKey(…)"));
    assert!(!shown.contains("PRIVATE KEY") && !shown.contains("a secret"));
}

#[test]
fn interprets_the_response_to_an_order() {
    let placed = |status, body: &str| vonage().placed(&reply(status, body));
    let taken = format!(
        r#"{{"uuid":"{CALL}","status":"started","direction":"outbound","conversation_uuid":"CON-aaaa"}}"#
    );
    for status in [200, 201, 202] {
        assert_eq!(placed(status, &taken), Placed::Accepted { carrier_call_id: CALL.to_owned() });
    }
    for body in ["", "{}", "[]", r#"{"uuid":""}"#, r#"{"uuid":7}"#, r#"{"uuid":"a/b"}"#, "<html>"] {
        assert!(matches!(placed(201, body), Placed::Unknown(_)), "{body}");
    }
    for status in [408, 500, 502, 503, 504] {
        assert!(matches!(placed(status, &taken), Placed::Unknown(_)), "{status}");
    }
}

#[test]
fn rejections_have_code_message_and_cause() {
    let rejected = |status, body: &str| match vonage().placed(&reply(status, body)) {
        Placed::Rejected(rejection) => rejection,
        other => panic!("{other:?}"),
    };
    let low = r#"{"type":"https://developer.vonage.com/api-errors#low-balance","title":"Low balance",
        "detail":"This request could not be performed due to your account balance being low.","instance":"x"}"#;
    let low = rejected(402, low);
    assert_eq!((low.code.as_str(), low.cause), ("low-balance", RejectionCause::Account));
    assert!(low.message.starts_with("Low balance: This request"), "{}", low.message);
    let older = rejected(401, r#"{"type":"UNAUTHORIZED","error_title":"Unauthorized"}"#);
    assert_eq!((older.code.as_str(), older.cause), ("UNAUTHORIZED", RejectionCause::Account));
    assert_eq!(older.message, "Unauthorized");
    let field = r#"{"type":"https://developer.nexmo.com/api/voice","title":"Bad Request",
        "invalid_parameters":[{"name":"to[0].number","reason":"must be a number"}]}"#;
    let field = rejected(400, field);
    assert_eq!((field.code.as_str(), field.cause), ("400", RejectionCause::Request));
    assert_eq!(field.message, "Bad Request: to[0].number: must be a number");
    let ours =
        r#"{"title":"Bad Request","invalid_parameters":[{"name":"from.number","reason":"is not yours"}]}"#;
    assert_eq!(rejected(400, ours).cause, RejectionCause::Account);
    let busy = rejected(429, "slow down");
    assert_eq!((busy.code.as_str(), busy.message.as_str()), ("429", "HTTP 429"));
    assert_eq!(busy.cause, RejectionCause::Busy);
    assert_eq!(rejected(302, "").cause, RejectionCause::Carrier);
    let long = rejected(400, &json!({"title": "x".repeat(5_000), "type": "y".repeat(5_000)}).to_string());
    assert!(long.message.len() <= 500 && long.code.len() <= CODE_BYTES_MAX);
}

#[test]
fn a_hang_up_goes_to_the_calls_region() {
    let sent = |region_url, call| {
        let ending =
            Ending { carrier_call_id: call, answered: true, region_url, command_id: COMMAND, now_ms: NOW_MS };
        vonage().hang_up(&ending)
    };
    let plain = sent(None, CALL);
    assert_eq!((plain.method, body(&plain)), ("PUT", json!({"action": "hangup"})));
    assert_eq!(plain.url, format!("https://api.nexmo.com/v1/calls/{CALL}"));
    for (region, host) in [
        ("https://api-us-1.nexmo.com", "https://api-us-1.nexmo.com"),
        ("https://api-eu-1.vonage.com/", "https://api-eu-1.vonage.com"),
        ("https://API-SG-1.nexmo.com/v9?x=1", "https://api-sg-1.nexmo.com"),
    ] {
        assert_eq!(sent(Some(region), CALL).url, format!("{host}/v1/calls/{CALL}"));
    }
    for foreign in [
        "",
        "api-us-1.nexmo.com",
        "http://api-us-1.nexmo.com",
        "https://api-us-1.nexmo.com:8443",
        "https://nexmo.com.example.com",
        "https://evilnexmo.com",
        "https://example.com/.nexmo.com",
        "https://example.com#.nexmo.com",
        "https://api-us-1.nexmo.com@example.com",
        "file:///etc/passwd",
    ] {
        assert_eq!(sent(Some(foreign), CALL).url, plain.url, "{foreign}");
    }
    assert_eq!(sent(None, "../x?y").url, "https://api.nexmo.com/v1/calls/%2E%2E%2Fx%3Fy");
}

#[test]
fn hanging_up_an_ended_call_succeeds() {
    for status in [200, 202, 204, 404] {
        assert_eq!(vonage().hung_up(&reply(status, "")), Ok(()), "{status}");
    }
    for status in [400, 401, 429, 500] {
        assert_eq!(vonage().hung_up(&reply(status, "")).unwrap_err().code, status.to_string());
    }
}

#[test]
fn answers_and_refusals_are_documents() {
    let call = Connect {
        carrier_call_id: CALL,
        our_number: "442079460000",
        media_url: "wss://voice.example.com/m",
        status_url: "https://voice.example.com/s",
        command_id: COMMAND,
        now_ms: NOW_MS,
        max_seconds: 600,
    };
    let text = |reply| match reply {
        Reply::Document { content_type: "application/json", body } => {
            serde_json::from_str::<Value>(&body).unwrap()
        }
        other => panic!("{other:?}"),
    };
    let answer = text(vonage().answer(&call));
    assert_eq!(answer[0]["endpoint"][0]["uri"], "wss://voice.example.com/m");
    assert_eq!(answer[0]["endpoint"][0]["headers"]["sidetone_call"], CALL);
    assert_eq!(answer[0]["eventUrl"], json!(["https://voice.example.com/s"]));
    let refusal = text(vonage().refuse(&IncomingCall::default(), Refusal::Unbound));
    assert_eq!(refusal[0]["action"], "talk");
}

#[test]
fn callbacks_and_sockets_are_both_checked() {
    let headers = HeaderMap::new();
    let callback =
        Callback { method: "POST", url: "https://x/y", headers: &headers, body: b"{}", now_ms: NOW_MS };
    assert_eq!(vonage().check(&callback), Check::Forged(Forged::Missing));
    assert_eq!(vonage().check_media(&Callback { body: b"", ..callback }), Check::Forged(Forged::Missing));
}

#[test]
fn the_stream_starts_with_vonages_first_message() {
    let first = MediaMessage::Text(
        r#"{"event":"websocket:connected","content-type":"audio/l16;rate=16000","sidetone_leg":"media"}"#
            .to_owned(),
    );
    assert_eq!(vonage().media_codec().read(first), Ok(vec![MediaEvent::Started { carrier_call_id: None }]));
}
