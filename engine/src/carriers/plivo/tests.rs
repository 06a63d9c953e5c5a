use bytes::Bytes;
use proptest::prelude::*;

use super::super::order::RejectionCause;
use super::*;
use crate::base::limits::CARRIER_MESSAGE_BYTES_MAX;
use crate::conversation::VoicemailAction;

const ID: &str = "MA0123456789ABCDEFGH";
const TOKEN: &str = "NTY3ODkwMTIzNDU2Nzg5MDEyMzQ1";

fn plivo() -> Plivo {
    let get = |name: &str| match name {
        AUTH_ID => Some(ID.to_owned()),
        AUTH_TOKEN => Some(TOKEN.to_owned()),
        _ => None,
    };
    Plivo::from_settings(&get).unwrap().unwrap()
}

fn reply(status: u16, body: &str) -> HttpReply {
    HttpReply { status, headers: Vec::new(), body: Bytes::copy_from_slice(body.as_bytes()) }
}

fn connect(media_url: &str) -> Connect<'_> {
    Connect {
        carrier_call_id: "c-1",
        our_number: "+14155550100",
        media_url,
        status_url: "https://voice.example.com/s",
        command_id: "k",
        now_ms: 0,
        max_seconds: 60,
    }
}

fn body(reply: Reply) -> (&'static str, String) {
    match reply {
        Reply::Document { content_type, body } => (content_type, body),
        Reply::Command(_) => panic!("Plivo takes documents"),
    }
}

#[test]
fn reads_the_settings() {
    let with = |id: Option<&str>, token: Option<&str>, url: Option<&str>| {
        let get = |name: &str| match name {
            AUTH_ID => id.map(str::to_owned),
            AUTH_TOKEN => token.map(str::to_owned),
            BASE_URL => url.map(str::to_owned),
            _ => None,
        };
        Plivo::from_settings(&get).map_err(|error| error.name)
    };
    assert!(with(None, None, None).unwrap().is_none());
    assert_eq!(with(Some(ID), None, None).unwrap_err(), AUTH_TOKEN);
    assert_eq!(with(None, Some(TOKEN), None).unwrap_err(), AUTH_ID);
    assert_eq!(with(Some("MA/../x"), Some(TOKEN), None).unwrap_err(), AUTH_ID);
    assert_eq!(with(Some(ID), Some(TOKEN), Some("api.plivo.com")).unwrap_err(), BASE_URL);
    let plivo = with(Some(ID), Some(TOKEN), Some("http://127.0.0.1:9/")).unwrap().unwrap();
    assert_eq!(plivo.base_url, "http://127.0.0.1:9");
    assert!(!format!("{plivo:?}").contains(TOKEN));
}

#[test]
fn an_order_follows_the_api() {
    let (from, to) = (E164::parse("+14155550100").unwrap(), E164::parse("+442071838750").unwrap());
    let order = Order {
        from: &from,
        to: &to,
        media_url: "wss://voice.example.com/m",
        status_url: "https://voice.example.com/s",
        answer_url: "https://voice.example.com/a",
        command_id: "k",
        ring_seconds: 45,
        voicemail: None,
        max_seconds: 900,
        now_ms: 0,
    };
    let request = plivo().place(&order);
    assert_eq!((request.method, request.content_type), ("POST", Some("application/json")));
    assert_eq!(request.url, format!("https://api.plivo.com/v1/Account/{ID}/Call/"));
    let basic = Authorization::Basic { user: ID.to_owned(), password: Secret::new(TOKEN) };
    assert_eq!(request.authorization, basic);
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    let expected = json!({
        "from": "14155550100", "to": "442071838750",
        "answer_url": "https://voice.example.com/a", "answer_method": "POST",
        "ring_url": "https://voice.example.com/s", "ring_method": "POST",
        "hangup_url": "https://voice.example.com/s", "hangup_method": "POST",
        "time_limit": 900, "ring_timeout": 45,
    });
    assert_eq!(body, expected);
    let detecting = plivo().place(&Order { voicemail: Some(VoicemailAction::HangUp), ..order });
    let mut expected = expected;
    expected["machine_detection"] = json!("true");
    expected["machine_detection_url"] = json!("https://voice.example.com/s");
    expected["machine_detection_method"] = json!("POST");
    assert_eq!(serde_json::from_slice::<Value>(&detecting.body).unwrap(), expected);
}

#[test]
fn interprets_the_response_to_an_order() {
    let placed = |status, body: &str| plivo().placed(&reply(status, body));
    let accepted = |id: &str| Placed::Accepted { carrier_call_id: id.to_owned() };
    let id = "9834029e-58b6-11e1-b8b7-a5bd0e4e126f";
    for status in [200, 201, 202] {
        let body = json!({"message": "call fired", "request_uuid": id, "api_id": "97ceeb52"}).to_string();
        assert_eq!(placed(status, &body), accepted(id));
    }
    assert_eq!(placed(201, &json!({"request_uuid": [id]}).to_string()), accepted(id));
    let nameless = [
        "",
        "{}",
        "[]",
        "<html>",
        r#"{"request_uuid":[]}"#,
        r#"{"request_uuid":["a","b"]}"#,
        r#"{"request_uuid":7}"#,
    ];
    for body in nameless {
        assert!(matches!(placed(201, body), Placed::Unknown(_)), "{body}");
    }
    for bad in ["", "a/b", "a b", "ä", &"a".repeat(65)] {
        let body = json!({ "request_uuid": bad }).to_string();
        assert!(matches!(placed(201, &body), Placed::Unknown(_)), "{bad}");
    }
    for status in [408, 500, 502, 503, 302] {
        assert!(matches!(placed(status, r#"{"error":"down"}"#), Placed::Unknown(_)), "{status}");
    }
}

#[test]
fn rejections_have_a_cause() {
    let no = |status, body: &str| match plivo().placed(&reply(status, body)) {
        Placed::Rejected(no) => no,
        other => panic!("{other:?}"),
    };
    let rows = [
        (400, RejectionCause::Request),
        (401, RejectionCause::Account),
        (402, RejectionCause::Account),
        (403, RejectionCause::Account),
        (404, RejectionCause::Request),
        (422, RejectionCause::Request),
        (429, RejectionCause::Busy),
    ];
    for (status, cause) in rows {
        let found = no(status, r#"{"api_id":"x","error":"to parameter is invalid"}"#);
        assert_eq!((found.code, found.cause), (status.to_string(), cause));
        assert_eq!(found.message, "to parameter is invalid");
    }
    for ours in [r#"{"error":"from parameter is not owned"}"#, r#"{"error":{"from":["is not yours"]}}"#] {
        assert_eq!(no(400, ours).cause, RejectionCause::Account, "{ours}");
    }
    assert_eq!(no(400, r#"{"error":{"to":["is missing"]}}"#).message, r#"{"to":["is missing"]}"#);
    assert_eq!(no(401, "Could not verify").message, "Plivo answered with status 401");
    let secrets = json!({"error": format!("answer_url https://v.example.com/t/secret of {TOKEN} is bad")});
    assert_eq!(no(400, &secrets.to_string()).message, "answer_url (a URL) of … is bad");
    assert!(
        no(400, &json!({"error": "é".repeat(9_999)}).to_string()).message.len() <= CARRIER_MESSAGE_BYTES_MAX
    );
}

#[test]
fn answers_are_plivo_xml() {
    let (content_type, xml) = body(plivo().answer(&connect("wss://voice.example.com/m/t?a=1&b=<2>")));
    assert_eq!(content_type, "text/xml; charset=utf-8");
    let expected = concat!(
        r#"<Response><Stream bidirectional="true" keepCallAlive="true" contentType="audio/x-mulaw;rate=8000">"#,
        "wss://voice.example.com/m/t?a=1&amp;b=&lt;2&gt;</Stream></Response>"
    );
    assert_eq!(xml, expected);
    let call = IncomingCall::default();
    let refused = |why| body(plivo().refuse(&call, why)).1;
    assert_eq!(refused(Refusal::Unbound), r#"<Response><Hangup reason="rejected"/></Response>"#);
    assert_eq!(refused(Refusal::Busy), r#"<Response><Hangup reason="busy"/></Response>"#);
}

#[test]
fn a_hang_up_uses_the_right_resource() {
    let url = |id, answered| {
        let ending = Ending { carrier_call_id: id, answered, region_url: None, command_id: "k", now_ms: 0 };
        let request = plivo().hang_up(&ending);
        assert_eq!((request.method, request.content_type, request.body.len()), ("DELETE", None, 0));
        request.url
    };
    let account = format!("https://api.plivo.com/v1/Account/{ID}");
    assert_eq!(url("3e82ae9d-2c78", true), format!("{account}/Call/3e82ae9d-2c78/"));
    assert_eq!(url("3e82ae9d-2c78", false), format!("{account}/Request/3e82ae9d-2c78/"));
    assert_eq!(url("../x?y#z", true), format!("{account}/Call/..%2Fx%3Fy%23z/"));
    for status in [200, 202, 204, 404] {
        assert_eq!(plivo().hung_up(&reply(status, "")), Ok(()));
    }
    let causes =
        [(401, RejectionCause::Account), (429, RejectionCause::Busy), (500, RejectionCause::Carrier)];
    for (status, cause) in causes {
        assert_eq!(plivo().hung_up(&reply(status, "")).unwrap_err().cause, cause);
    }
}

proptest! {
    #[test]
    fn arbitrary_responses_are_never_accepted(status in 100_u16..600, body in proptest::collection::vec(any::<u8>(), 0..200)) {
        let reply = HttpReply { status, headers: Vec::new(), body: body.into() };
        let taken = matches!(plivo().placed(&reply), Placed::Accepted { .. });
        prop_assert!(!taken);
        prop_assert_eq!(plivo().hung_up(&reply).is_ok(), (200..300).contains(&status) || status == 404);
    }

    #[test]
    fn the_media_url_is_escaped(url in "\\PC{0,80}") {
        let xml = body(plivo().answer(&connect(&url))).1;
        prop_assert_eq!(xml.matches('<').count(), 4);
        prop_assert_eq!(xml.matches('>').count(), 4);
    }
}
