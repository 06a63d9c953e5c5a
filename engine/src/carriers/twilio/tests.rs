use http::HeaderMap;

use super::*;
use crate::base::limits::CARRIER_MESSAGE_BYTES_MAX;
use crate::base::phone::E164;
use crate::carriers::order::RejectionCause;

const SID: &str = "AC0123456789abcdef0123456789abcdef";
const CALL: &str = "CA0123456789abcdef0123456789abcdef";

fn settings<'a>(pairs: &'a [(&'a str, &'a str)]) -> impl Fn(&str) -> Option<String> + 'a {
    |name| pairs.iter().find(|(known, _)| *known == name).map(|(_, value)| (*value).to_owned())
}

fn twilio() -> Twilio {
    let pairs = [("SIDETONE_TWILIO_ACCOUNT_SID", SID), ("SIDETONE_TWILIO_AUTH_TOKEN", "12345")];
    Twilio::from_settings(&settings(&pairs)).unwrap().unwrap()
}

fn reply(status: u16, body: &str) -> HttpReply {
    HttpReply { status, headers: Vec::new(), body: Bytes::from(body.to_owned()) }
}

#[test]
fn an_account_is_complete_or_absent() {
    assert!(Twilio::from_settings(&settings(&[])).unwrap().is_none());
    let base = "SIDETONE_TWILIO_BASE_URL";
    let (sid, token) = ("SIDETONE_TWILIO_ACCOUNT_SID", "SIDETONE_TWILIO_AUTH_TOKEN");
    for (pairs, name) in [
        (vec![(sid, SID)], token),
        (vec![(token, "12345")], sid),
        (vec![(sid, SID), (token, " ")], token),
        (vec![(sid, "AC12"), (token, "12345")], sid),
        (vec![(sid, "SK0123456789abcdef0123456789abcdef"), (token, "12345")], sid),
        (vec![(sid, SID), (token, "12345"), (base, "api.twilio.com")], base),
    ] {
        let error = Twilio::from_settings(&settings(&pairs)).unwrap_err();
        assert_eq!(error.name, name, "{pairs:?}");
        assert!(!error.message.contains("12345"));
    }
    let account = format!("{:?}", Twilio { account_sid: String::new(), ..twilio() });
    assert!(account.contains("auth_token") && !account.contains("12345"), "{account}");
}

#[test]
fn an_order_is_a_form_with_twiml() {
    let from = E164::parse("+14155550123").unwrap();
    let to = E164::parse("+442071838750").unwrap();
    let order = Order {
        from: &from,
        to: &to,
        media_url: "wss://voice.example.com/media/a&b",
        status_url: "https://voice.example.com/carriers/twilio/token",
        answer_url: "https://voice.example.com/answer",
        command_id: "2f0a3c1e-0000-4000-8000-000000000000",
        ring_seconds: 900,
        voicemail: None,
        max_seconds: 1800,
        now_ms: 0,
    };
    let outgoing = twilio().place(&order);
    assert_eq!(outgoing.method, "POST");
    assert_eq!(outgoing.url, format!("https://api.twilio.com/2010-04-01/Accounts/{SID}/Calls.json"));
    assert_eq!(outgoing.content_type, Some("application/x-www-form-urlencoded"));
    let password = Secret::new("12345");
    assert_eq!(outgoing.authorization, Authorization::Basic { user: SID.to_owned(), password });
    let pairs: Vec<(String, String)> = form_urlencoded::parse(&outgoing.body).into_owned().collect();
    let expected = [
        ("To", "+442071838750"),
        ("From", "+14155550123"),
        (
            "Twiml",
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response><Connect>\
             <Stream url=\"wss://voice.example.com/media/a&amp;b\"/></Connect></Response>",
        ),
        ("StatusCallback", "https://voice.example.com/carriers/twilio/token"),
        ("StatusCallbackMethod", "POST"),
        ("StatusCallbackEvent", "initiated"),
        ("StatusCallbackEvent", "ringing"),
        ("StatusCallbackEvent", "answered"),
        ("StatusCallbackEvent", "completed"),
        ("Timeout", "600"),
        ("TimeLimit", "1800"),
    ];
    assert_eq!(pairs, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    for (action, detection) in
        [(VoicemailAction::HangUp, "Enable"), (VoicemailAction::LeaveMessage, "DetectMessageEnd")]
    {
        let outgoing = twilio().place(&Order { voicemail: Some(action), ..order });
        let more = form_urlencoded::parse(&outgoing.body).into_owned().skip(expected.len());
        let url = "https://voice.example.com/carriers/twilio/token";
        let expected = [
            ("MachineDetection", detection),
            ("AsyncAmd", "true"),
            ("AsyncAmdStatusCallback", url),
            ("AsyncAmdStatusCallbackMethod", "POST"),
        ];
        let expected = expected.map(|(name, value)| (name.to_owned(), value.to_owned()));
        assert_eq!(more.collect::<Vec<_>>(), expected);
    }
}

#[test]
fn interprets_the_response_to_an_order() {
    let placed = |status, body: &str| twilio().placed(&reply(status, body));
    let taken = format!(r#"{{"sid":"{CALL}","status":"queued"}}"#);
    assert_eq!(placed(201, &taken), Placed::Accepted { carrier_call_id: CALL.to_owned() });
    for body in ["", "{}", r#"{"sid":null}"#, r#"{"sid":"../Calls"}"#, "[", r#"{"sid":7}"#] {
        assert!(matches!(placed(201, body), Placed::Unknown(_)), "{body}");
    }
    for status in [408, 500, 502, 503, 599] {
        assert!(matches!(placed(status, &taken), Placed::Unknown(_)), "{status}");
    }
    let words = placed(503, r#"{"code":20503,"message":"Service unavailable"}"#);
    assert_eq!(words, Placed::Unknown("HTTP 503 (20503) Service unavailable".to_owned()));
}

#[test]
fn rejections_have_a_cause() {
    let rejection = |status, body: &str| match twilio().placed(&reply(status, body)) {
        Placed::Rejected(rejection) => rejection,
        other => panic!("{other:?}"),
    };
    for (status, code, cause) in [
        (400, 21211, RejectionCause::Request),
        (400, 21217, RejectionCause::Request),
        (400, 21200, RejectionCause::Request),
        (400, 21201, RejectionCause::Request),
        (400, 21210, RejectionCause::Account),
        (400, 21212, RejectionCause::Account),
        (403, 21212, RejectionCause::Account),
        (400, 21215, RejectionCause::Account),
        (400, 21216, RejectionCause::Account),
        (400, 21219, RejectionCause::Account),
        (403, 573005, RejectionCause::Account),
        (400, 10001, RejectionCause::Account),
        (400, 10004, RejectionCause::Busy),
        (401, 20003, RejectionCause::Account),
        (401, 20005, RejectionCause::Account),
        (404, 20404, RejectionCause::Account),
        (429, 20429, RejectionCause::Busy),
        // Unknown codes: the status decides.
        (400, 99999, RejectionCause::Request),
        (401, 99999, RejectionCause::Account),
        (429, 99999, RejectionCause::Busy),
    ] {
        let found = rejection(status, &format!(r#"{{"code":{code},"message":"No.","status":{status}}}"#));
        assert_eq!((found.code, found.cause), (code.to_string(), cause), "{status} {code}");
        assert_eq!(found.message, "No.");
    }
    let bare = rejection(403, "<html>");
    assert_eq!((bare.code.as_str(), bare.message.as_str()), ("403", "Forbidden"));
    assert_eq!(bare.cause, RejectionCause::Account);
    let long = rejection(400, &format!(r#"{{"code":21211,"message":"{}"}}"#, "é".repeat(5_000)));
    assert!(long.message.len() <= CARRIER_MESSAGE_BYTES_MAX);
}

#[test]
fn documents_connect_or_decline_a_call() {
    let call = Connect {
        carrier_call_id: CALL,
        our_number: "+14155550123",
        media_url: "wss://voice.example.com/media/token",
        status_url: "https://voice.example.com/carriers/twilio/token",
        command_id: "",
        now_ms: 0,
        max_seconds: 60,
    };
    let xml = |verbs: &str| Reply::Document {
        content_type: "text/xml",
        body: format!("<?xml version=\"1.0\" encoding=\"UTF-8\"?><Response>{verbs}</Response>"),
    };
    let stream = r#"<Connect><Stream url="wss://voice.example.com/media/token"/></Connect>"#;
    assert_eq!(twilio().answer(&call), xml(stream));
    let incoming = IncomingCall::default();
    assert_eq!(twilio().refuse(&incoming, Refusal::Unbound), xml(r#"<Reject reason="rejected"/>"#));
    assert_eq!(twilio().refuse(&incoming, Refusal::Busy), xml(r#"<Reject reason="busy"/>"#));
    assert_eq!(twilio().acknowledge(), xml(""));
}

#[test]
fn hangs_up_before_and_after_the_answer() {
    let end = |answered, id| {
        twilio().hang_up(&Ending {
            carrier_call_id: id,
            answered,
            region_url: None,
            command_id: "",
            now_ms: 0,
        })
    };
    let url = format!("https://api.twilio.com/2010-04-01/Accounts/{SID}/Calls/{CALL}.json");
    assert_eq!((end(true, CALL).url, end(true, CALL).body), (url.clone(), Bytes::from("Status=completed")));
    assert_eq!((end(false, CALL).url, end(false, CALL).body), (url, Bytes::from("Status=canceled")));
    assert!(end(true, "../x?y").url.ends_with("/Calls/%2E%2E%2Fx%3Fy.json"));

    let hung_up = |status, body: &str| twilio().hung_up(&reply(status, body)).map_err(|no| no.cause);
    assert_eq!(hung_up(200, "{}"), Ok(()));
    assert_eq!(hung_up(404, r#"{"code":20404}"#), Ok(()));
    assert_eq!(hung_up(400, r#"{"code":21220,"message":"Call is not in-progress."}"#), Ok(()));
    assert_eq!(hung_up(400, r#"{"code":21218}"#), Err(RejectionCause::Request));
    assert_eq!(hung_up(401, ""), Err(RejectionCause::Account));
    assert_eq!(hung_up(429, ""), Err(RejectionCause::Busy));
    assert_eq!(hung_up(500, ""), Err(RejectionCause::Carrier));
}

#[test]
fn a_configured_account_is_available() {
    let pairs = [("SIDETONE_TWILIO_ACCOUNT_SID", SID), ("SIDETONE_TWILIO_AUTH_TOKEN", "12345")];
    let carriers = crate::carriers::Carriers::from_settings(settings(&pairs)).unwrap();
    let carrier = carriers.get(CarrierName::Twilio).unwrap();
    assert_eq!(carrier.provider().as_str(), "twilio");
    let headers = HeaderMap::new();
    let url = "https://voice.example.com/";
    let callback = Callback { method: "POST", url, headers: &headers, body: b"", now_ms: 0 };
    assert_eq!(carrier.check(&callback), Check::Forged(crate::carriers::Forged::Missing));
    assert_eq!(carrier.check_media(&callback), Check::Forged(crate::carriers::Forged::Missing));
    assert!(carriers.get(CarrierName::Vonage).is_none());
}
