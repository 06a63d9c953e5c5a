//! Settings, requests and signatures.
use http::HeaderMap;
use ring::signature::{ED25519, Ed25519KeyPair, KeyPair, UnparsedPublicKey};

use super::super::order::RejectionCause;
use super::*;
use crate::base::phone::E164;
use crate::carriers::Forged;
use crate::conversation::VoicemailAction;

/// The key of the bytes 0 to 31, with a signature that the official SDK's verifier accepted.
const KEY: &str = "A6EHv/POEL4dcN0Y50vAmWfk1jCbpQ1fHdyGZBJVMbg=";
const SIGNED_S: i64 = 1_700_000_000;
const BODY: &str = r#"{"data":{"event_type":"call.initiated","id":"0ccc7b54-4df3-4bca-a65a-3da1ecc777f0","payload":{"call_control_id":"v3:test"},"record_type":"event"}}"#;
const SIGNATURE: &str =
    "VG9kteaVk+ak05Xn7QqvAAVwwVZ6tvW0RDPNaTlGiD69arp2wbE4xlxupKFi7MloiyB0FCwvE+rwBDsqPEiRCA==";

fn settings(changed: &[(&str, Option<&str>)]) -> Result<Option<Telnyx>, SettingError> {
    let all = [(API_KEY, "KEY0123"), (PUBLIC_KEY, KEY), (CONNECTION_ID, "7267")];
    Telnyx::from_settings(&|name| {
        let changed =
            changed.iter().find(|(known, _)| *known == name).map(|(_, value)| value.map(str::to_owned));
        let usual = || all.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned());
        changed.unwrap_or_else(usual)
    })
}

fn telnyx() -> Telnyx {
    settings(&[]).unwrap().unwrap()
}

fn reply(status: u16, body: &Value) -> HttpReply {
    HttpReply { status, headers: Vec::new(), body: Bytes::from(body.to_string()) }
}

#[test]
fn an_account_is_complete_or_absent() {
    let none = [(API_KEY, None), (PUBLIC_KEY, None), (CONNECTION_ID, None)];
    assert!(settings(&none).unwrap().is_none());
    for name in [API_KEY, PUBLIC_KEY, CONNECTION_ID] {
        assert_eq!(settings(&[(name, None)]).err().map(|error| error.name), Some(name));
    }
    let short = STANDARD.encode([7; 31]);
    let hex = "03a107bff3ce10be1d70dd18e74bc09967e4d6309ba50d5f1ddc8664125531b8";
    for key in ["", "?", &short, hex] {
        let error = settings(&[(PUBLIC_KEY, Some(key))]).err().unwrap();
        assert_eq!(error.name, PUBLIC_KEY);
        assert!(key.is_empty() || !error.message.contains(key));
    }
    assert_eq!(settings(&[(BASE_URL, Some("api.telnyx.com"))]).err().map(|error| error.name), Some(BASE_URL));
    assert!(settings(&[(PUBLIC_KEY, Some(&format!(" {KEY}\n")))]).unwrap().is_some());
}

fn body(outgoing: &Outgoing) -> Value {
    assert_eq!((outgoing.method, outgoing.content_type), ("POST", Some("application/json")));
    assert_eq!(outgoing.authorization, Authorization::Bearer(Secret::new("KEY0123")));
    assert!(!format!("{outgoing:?}").contains("KEY0123"), "the key is never logged");
    serde_json::from_slice(&outgoing.body).unwrap()
}

#[test]
fn an_order_is_a_dial() {
    let (from, to) = (E164::parse("+13125550001").unwrap(), E164::parse("+436601234567").unwrap());
    let mut order = Order {
        from: &from,
        to: &to,
        media_url: "wss://voice.example/media/telnyx/t",
        status_url: "https://voice.example/carriers/telnyx/t",
        answer_url: "https://voice.example/answer",
        command_id: "891510ac-f3e4-11e8-af5b-de00688a4901",
        ring_seconds: 40,
        voicemail: None,
        max_seconds: 900,
        now_ms: 0,
    };
    let dial = telnyx().place(&order);
    assert_eq!(dial.url, "https://api.telnyx.com/v2/calls");
    assert_eq!(
        body(&dial),
        json!({
            "connection_id": "7267",
            "to": "+436601234567",
            "from": "+13125550001",
            "timeout_secs": 40,
            "retry_on_timeout": false,
            "time_limit_secs": 900,
            "command_id": "891510ac-f3e4-11e8-af5b-de00688a4901",
            "webhook_url": "https://voice.example/carriers/telnyx/t",
            "webhook_url_method": "POST",
            "stream_url": "wss://voice.example/media/telnyx/t",
            "stream_track": "inbound_track",
            "stream_codec": "PCMU",
            "stream_bidirectional_mode": "rtp",
            "stream_bidirectional_codec": "PCMU",
            "stream_bidirectional_sampling_rate": 8000,
            "send_silence_when_idle": true,
        })
    );
    order = Order {
        ring_seconds: 1,
        max_seconds: 90_000,
        voicemail: Some(VoicemailAction::LeaveMessage),
        ..order
    };
    let body = body(&telnyx().place(&order));
    assert_eq!((&body["timeout_secs"], &body["time_limit_secs"]), (&json!(5), &json!(14_400)));
    assert_eq!(body["answering_machine_detection"], "premium");
}

#[test]
fn commands_name_their_call() {
    let local = settings(&[(BASE_URL, Some("http://127.0.0.1:7/v2/"))]).unwrap().unwrap();
    let connect = Connect {
        carrier_call_id: "v3:MdI91X4lWFEs7IgbBEOT9M4AigoY08M0WWZFISt1Yw2axZ_IiE4pqg",
        our_number: "+13125550001",
        media_url: "wss://voice.example/m",
        status_url: "https://voice.example/s",
        command_id: "c",
        now_ms: 0,
        max_seconds: 60,
    };
    let Reply::Command(answer) = local.answer(&connect) else { panic!("a command") };
    let path =
        "http://127.0.0.1:7/v2/calls/v3:MdI91X4lWFEs7IgbBEOT9M4AigoY08M0WWZFISt1Yw2axZ_IiE4pqg/actions";
    assert_eq!(answer.url, format!("{path}/answer"));
    assert_eq!(
        body(&answer),
        json!({
            "command_id": "c",
            "webhook_url": "https://voice.example/s",
            "webhook_url_method": "POST",
            "stream_url": "wss://voice.example/m",
            "stream_track": "inbound_track",
            "stream_codec": "PCMU",
            "stream_bidirectional_mode": "rtp",
            "stream_bidirectional_codec": "PCMU",
            "send_silence_when_idle": true,
        })
    );
    let call = IncomingCall { carrier_call_id: "../v3?#/%".to_owned(), ..IncomingCall::default() };
    for (why, cause) in [(Refusal::Unbound, "CALL_REJECTED"), (Refusal::Busy, "USER_BUSY")] {
        let Reply::Command(reject) = local.refuse(&call, why) else { panic!("a command") };
        assert_eq!(reject.url, "http://127.0.0.1:7/v2/calls/..%2Fv3%3F%23%2F%25/actions/reject");
        assert_eq!(body(&reject), json!({"cause": cause}));
    }
    let ending = Ending {
        carrier_call_id: connect.carrier_call_id,
        answered: true,
        region_url: None,
        command_id: "c",
        now_ms: 0,
    };
    let hangup = local.hang_up(&ending);
    assert_eq!(hangup.url, format!("{path}/hangup"));
    assert_eq!(body(&hangup), json!({"command_id": "c"}));
}

#[test]
fn interprets_the_response_to_an_order() {
    let data = json!({"data": {"call_control_id": "v3:a", "call_leg_id": "l", "call_session_id": "s",
        "is_alive": false, "record_type": "call"}});
    let telnyx = telnyx();
    for status in [200, 201] {
        let accepted = Placed::Accepted { carrier_call_id: "v3:a".to_owned() };
        assert_eq!(telnyx.placed(&reply(status, &data)), accepted);
    }
    for nameless in
        [json!({}), json!({"data": {"call_control_id": ""}}), json!({"data": {"call_control_id": 7}})]
    {
        assert!(matches!(telnyx.placed(&reply(200, &nameless)), Placed::Unknown(_)), "{nameless}");
    }
    for status in [302, 408, 500, 502, 503, 504] {
        assert!(matches!(telnyx.placed(&reply(status, &json!({}))), Placed::Unknown(_)), "{status}");
    }
    let error = json!({"errors": [{"code": "10009", "title": "Authentication failed"}]});
    let Placed::Rejected(no) = telnyx.placed(&reply(401, &error)) else { panic!("a no") };
    assert_eq!((no.code.as_str(), no.cause), ("10009", RejectionCause::Account));
    // A 5xx with an explanation is still no rejection.
    assert_eq!(
        telnyx.placed(&reply(500, &error)),
        Placed::Unknown("HTTP 500: Authentication failed".to_owned())
    );
}

#[test]
fn hanging_up_an_ended_call_succeeds() {
    let telnyx = telnyx();
    let error = |code: &str| json!({"errors": [{"code": code, "title": "x"}]});
    assert_eq!(telnyx.hung_up(&reply(200, &json!({"data": {"result": "ok"}}))), Ok(()));
    assert_eq!(telnyx.hung_up(&reply(404, &error("10005"))), Ok(()));
    for code in ["90018", "90015"] {
        assert_eq!(telnyx.hung_up(&reply(422, &error(code))), Ok(()), "{code}");
    }
    for (status, code) in [(400, "90015"), (422, "10015"), (401, "10009"), (500, "90018")] {
        assert_eq!(telnyx.hung_up(&reply(status, &error(code))).map_err(|no| no.code), Err(code.to_owned()));
    }
}

fn checked(headers: &[(&'static str, &str)], body: &str, now_s: i64) -> Check {
    let mut map = HeaderMap::new();
    for (name, value) in headers {
        map.append(*name, value.parse().unwrap());
    }
    let url = "https://voice.example/carriers/telnyx/t";
    telnyx().check(&Callback {
        method: "POST",
        url,
        headers: &map,
        body: body.as_bytes(),
        now_ms: now_s * 1_000,
    })
}

/// Verifies as a host does.
fn genuine(check: &Check) -> bool {
    let Check::Ed25519 { public_key, message, signature } = check else { return false };
    UnparsedPublicKey::new(&ED25519, public_key).verify(message, signature).is_ok()
}

const TIME: (&str, &str) = ("telnyx-timestamp", "1700000000");
const SIGNED: (&str, &str) = ("telnyx-signature-ed25519", SIGNATURE);

#[test]
fn only_the_unmodified_vector_is_genuine() {
    assert!(genuine(&checked(&[TIME, SIGNED], BODY, SIGNED_S)));
    let seed: Vec<u8> = (0..32).collect();
    let pair = Ed25519KeyPair::from_seed_unchecked(&seed).unwrap();
    assert_eq!(STANDARD.encode(pair.public_key().as_ref()), KEY);
    assert_eq!(STANDARD.encode(pair.sign(format!("1700000000|{BODY}").as_bytes()).as_ref()), SIGNATURE);

    let later = ("telnyx-timestamp", "1700000001");
    let padded = ("telnyx-timestamp", "01700000000");
    let mut bytes = STANDARD.decode(SIGNATURE).unwrap();
    bytes[63] ^= 1;
    let other = STANDARD.encode(&bytes);
    for (headers, body) in [
        ([TIME, SIGNED], &BODY.replace("test", "tess")),
        ([TIME, SIGNED], &format!("{BODY} ")),
        ([later, SIGNED], &BODY.to_owned()),
        ([padded, SIGNED], &BODY.to_owned()),
        ([TIME, (SIGNED.0, &other)], &BODY.to_owned()),
    ] {
        let check = checked(&headers, body, SIGNED_S);
        assert!(matches!(check, Check::Ed25519 { .. }) && !genuine(&check), "{headers:?}");
    }
    let another =
        STANDARD.encode(Ed25519KeyPair::from_seed_unchecked(&[7; 32]).unwrap().public_key().as_ref());
    let stranger = settings(&[(PUBLIC_KEY, Some(&another))]).unwrap().unwrap();
    let mut headers = HeaderMap::new();
    for (name, value) in [TIME, SIGNED] {
        headers.insert(name, value.parse().unwrap());
    }
    let callback = Callback {
        method: "POST",
        url: "",
        headers: &headers,
        body: BODY.as_bytes(),
        now_ms: SIGNED_S * 1_000,
    };
    assert!(!genuine(&stranger.check(&callback)));
    assert_eq!(stranger.check_media(&callback), Check::Unsigned);
}

#[test]
fn missing_malformed_and_stale_signatures_are_rejected() {
    let forged = |headers: &[(&'static str, &str)]| checked(headers, BODY, SIGNED_S);
    assert_eq!(forged(&[]), Check::Forged(Forged::Missing));
    assert_eq!(forged(&[TIME]), Check::Forged(Forged::Missing));
    assert_eq!(forged(&[SIGNED]), Check::Forged(Forged::Missing));
    let hex = "0".repeat(128);
    let short = STANDARD.encode([0; 63]);
    for signature in ["", "x", &hex, &short] {
        assert_eq!(forged(&[TIME, (SIGNED.0, signature)]), Check::Forged(Forged::Malformed), "{signature}");
    }
    for time in ["", "now", "-1700000000", "+1700000000", "1700000000.0", "99999999999999999999"] {
        assert_eq!(forged(&[(TIME.0, time), SIGNED]), Check::Forged(Forged::Malformed), "{time}");
    }
    for (seconds, check) in [(299, true), (300, true), (301, false), (-300, true), (-301, false)] {
        let check_now = checked(&[TIME, SIGNED], BODY, SIGNED_S + seconds);
        assert_eq!(genuine(&check_now), check, "{seconds}");
        assert!(check || check_now == Check::Forged(Forged::Stale));
    }
    let far = ("telnyx-timestamp", "9223372036854775807");
    assert_eq!(forged(&[far, SIGNED]), Check::Forged(Forged::Stale));
}
