//! Messages between the engine and the fake for Twilio, validated with Twilio's own SDK
//! (`tests/clients/carrier_twilio.py`).
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::{HeaderMap, HeaderName, HeaderValue};
use serde_json::{Map, Value, json};
use sidetone_engine::base::phone::E164;
use sidetone_engine::carriers::order::Authorization;
use sidetone_engine::carriers::{
    Callback, Carrier, CarrierName, Carriers, Check, Connect, Ending, IncomingCall, Order, Outgoing, Refusal,
    Reply, Transfer,
};
use sidetone_engine::conversation::VoicemailAction;

use crate::fakes::carrier::twilio::{ACCOUNT_SID, AUTH_TOKEN, TwilioWire};
use crate::fakes::carrier::{
    Answerer, ApiReply, ApiRequest, Behaviour, CallEvent, CallbackRequest, Command, Detection, EndKind,
    PhoneCall, Public, Wire,
};

const CALL_SID: &str = "CA0f1e2d3c4b5a69788796a5b4c3d2e1f0";
const FROM: &str = "+14155550123";
const TO: &str = "+442071838750";
const MEDIA_URL: &str = "wss://voice.example.com/media/a-token&more";
const STATUS_URL: &str = "https://voice.example.com/carriers/twilio/a-token";
const VOICE_URL: &str = "https://voice.example.com/carriers/twilio";
const BACK_URL: &str = "https://voice.example.com/carriers/twilio/voice?call=a-token&back=1";
const RING_SECONDS: u32 = 30;
const MAX_SECONDS: u32 = 1_800;

/// Requests, documents, responses, callbacks and media sockets, each with its expected meaning.
///
/// # Panics
///
/// If the engine and the fake are incompatible.
pub fn samples() -> Value {
    let settings = TwilioWire.settings("https://api.twilio.com");
    let get = |name: &str| settings.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    let carriers = Carriers::from_settings(get).expect("the fake's settings are valid");
    let twilio = carriers.get(CarrierName::Twilio).expect("Twilio is configured").as_ref();
    json!({
        "account_sid": ACCOUNT_SID,
        "auth_token": AUTH_TOKEN,
        "call_sid": CALL_SID,
        "requests": requests(twilio),
        "documents": documents(twilio),
        "answers": answers(),
        "callbacks": callbacks(twilio),
        "sockets": sockets(twilio),
    })
}

fn requests(twilio: &dyn Carrier) -> Value {
    let (from, to) = (E164::parse(FROM).expect("a number"), E164::parse(TO).expect("a number"));
    let order = Order {
        from: &from,
        to: &to,
        media_url: MEDIA_URL,
        status_url: STATUS_URL,
        answer_url: VOICE_URL,
        command_id: "",
        ring_seconds: RING_SECONDS,
        voicemail: None,
        max_seconds: MAX_SECONDS,
        now_ms: 0,
    };
    let place = |voicemail| request(&twilio.place(&Order { voicemail, ..order }));
    let end = |answered| {
        let call =
            Ending { carrier_call_id: CALL_SID, answered, region_url: None, command_id: "", now_ms: 0 };
        request(&twilio.hang_up(&call))
    };
    let transfer = |shows_caller| {
        request(&twilio.transfer(&Transfer {
            carrier_call_id: CALL_SID,
            region_url: None,
            to: &to,
            ring_seconds: RING_SECONDS,
            max_seconds: MAX_SECONDS,
            our_number: Some(&from),
            shows_caller,
            call_id: "",
            document_url: "",
            status_url: STATUS_URL,
            back_url: BACK_URL,
            command_id: "",
            now_ms: 0,
        }))
    };
    json!({
        "transfer": transfer(false),
        "transfer_as_caller": transfer(true),
        "place": place(None),
        "place_hanging_up": place(Some(VoicemailAction::HangUp)),
        "place_leaving_message": place(Some(VoicemailAction::LeaveMessage)),
        "order": {
            "from": FROM, "to": TO, "media_url": MEDIA_URL, "status_url": STATUS_URL, "back_url": BACK_URL,
            "ring_seconds": RING_SECONDS, "max_seconds": MAX_SECONDS,
        },
        "complete": end(true),
        "cancel": end(false),
    })
}

/// A request of the engine with its headers, checked by the fake.
fn request(outgoing: &Outgoing) -> Value {
    let Authorization::Basic { user, password } = &outgoing.authorization else {
        panic!("Twilio requires Basic authentication")
    };
    let basic = format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal())));
    let content_type = outgoing.content_type.expect("a form has a content type");
    let headers = [("authorization", basic.as_str()), ("content-type", content_type)];
    let read = TwilioWire.read(&ApiRequest {
        method: outgoing.method.to_owned(),
        path: outgoing.url.strip_prefix("https://api.twilio.com").expect("the API's address").to_owned(),
        headers: headers.map(|(name, value)| (name.to_owned(), value.to_owned())).into(),
        body: outgoing.body.to_vec(),
    });
    read.unwrap_or_else(|refusal| panic!("the fake rejects: {}", refusal.body));
    let body = std::str::from_utf8(&outgoing.body).expect("a form is text");
    json!({"method": outgoing.method, "url": outgoing.url, "headers": object(headers), "body": body})
}

fn documents(twilio: &dyn Carrier) -> Value {
    let connect = twilio.answer(&Connect {
        carrier_call_id: CALL_SID,
        our_number: TO,
        media_url: MEDIA_URL,
        status_url: STATUS_URL,
        command_id: "",
        now_ms: 0,
        max_seconds: MAX_SECONDS,
    });
    let incoming = IncomingCall { carrier_call_id: CALL_SID.to_owned(), ..IncomingCall::default() };
    let document = |reply| {
        let Reply::Document { content_type, body } = reply else { panic!("Twilio expects documents") };
        let read = TwilioWire.instruction(200, content_type, body.as_bytes());
        read.unwrap_or_else(|problem| panic!("the fake rejects: {problem}"));
        json!({"content_type": content_type, "body": body})
    };
    json!({
        "connect": document(connect),
        "rejected": document(twilio.refuse(&incoming, Refusal::Unbound)),
        "busy": document(twilio.refuse(&incoming, Refusal::Busy)),
        "nothing": document(twilio.acknowledge()),
        "end": document(twilio.end()),
    })
}

/// The fake's responses to orders.
fn answers() -> Value {
    let refused = |behaviour| answer(&TwilioWire.refused(behaviour).expect("it answers"));
    let hang_up = Command::HangUp { carrier_call_id: CALL_SID.to_owned() };
    json!({
        "placed": answer(&TwilioWire.placed(&call(true))),
        "ended": answer(&TwilioWire.done(&hang_up)),
        "gone": answer(&TwilioWire.gone()),
        "bad_number": refused(Behaviour::BadNumber),
        "unauthorized": refused(Behaviour::Unauthorized),
        "too_many": refused(Behaviour::TooMany),
        "broken": refused(Behaviour::Broken),
    })
}

fn answer(reply: &ApiReply) -> Value {
    json!({"status": reply.status, "body": reply.body})
}

fn other_answered() -> CallEvent {
    CallEvent::OtherAnswered { url: STATUS_URL.to_owned(), other_call_id: CALL_SID.replace("0f", "2f") }
}

fn other_ended(how: EndKind) -> CallEvent {
    let other_call_id = CALL_SID.replace("0f", "2f");
    CallEvent::OtherEnded { url: BACK_URL.to_owned(), other_call_id, how, is_over: false }
}

/// The fake's callbacks, unmodified and with one modification each, and whether the engine accepts them.
fn callbacks(twilio: &dyn Carrier) -> Value {
    let public = Public { base_url: "https://voice.example.com".to_owned() };
    let ended = |how| CallEvent::Ended { how, seconds: 61 };
    let events = [
        (false, CallEvent::Incoming),
        (false, ended(EndKind::HungUp)),
        (true, CallEvent::Ringing),
        (true, CallEvent::Answered),
        (true, ended(EndKind::HungUpByService)),
        (true, ended(EndKind::NoAnswer)),
        (true, ended(EndKind::Busy)),
        (true, ended(EndKind::Declined)),
        (true, ended(EndKind::Failed)),
        (true, ended(EndKind::Canceled)),
        (true, other_answered()),
        (true, other_ended(EndKind::Busy)),
        (false, other_ended(EndKind::HungUp)),
        (true, CallEvent::Detected(Answerer::Person)),
        (true, CallEvent::Detected(Answerer::GreetedMachine)),
        (true, CallEvent::Detected(Answerer::Fax)),
    ];
    let mut all = Vec::new();
    for (nth, (outbound, event)) in (0..).zip(events) {
        let sent = TwilioWire
            .callback(&public, &call(outbound), &event, nth, 1_795_000_000)
            .expect("Twilio reports this event");
        let name = format!("{event:?}");
        all.push(judged(twilio, &name, None, &sent));
        let body = String::from_utf8_lossy(&sent.body).into_owned();
        let otherwise = |change: &str, url: &str, body: &str| {
            let changed =
                CallbackRequest { url: url.to_owned(), body: body.as_bytes().to_vec(), ..sent.clone() };
            judged(twilio, &name, Some(change), &changed)
        };
        all.push(otherwise("another call", &sent.url, &body.replace("CA0f", "CA1f")));
        all.push(otherwise("one parameter more", &sent.url, &format!("{body}&Digits=1")));
        all.push(otherwise("another token", &format!("{}x", sent.url), &body));
        all.push(otherwise("with the port", &sent.url.replace(".com/", ".com:443/"), &body));
        all.push(otherwise("another scheme", &sent.url.replace("https:", "http:"), &body));
    }
    Value::Array(all)
}

fn judged(twilio: &dyn Carrier, name: &str, change: Option<&str>, sent: &CallbackRequest) -> Value {
    let headers = headers(&sent.headers);
    let callback =
        Callback { method: sent.method, url: &sent.url, headers: &headers, body: &sent.body, now_ms: 0 };
    let genuine = twilio.check(&callback) == Check::Genuine;
    if genuine {
        let events = twilio.read(&callback).unwrap_or_else(|problem| panic!("{name}: {problem}"));
        assert_eq!(events.len(), 1, "{name}");
    }
    json!({
        "name": name, "change": change, "method": sent.method, "url": sent.url, "genuine": genuine,
        "headers": object(sent.headers.iter().map(|(name, value)| (*name, value.as_str()))),
        "body": String::from_utf8_lossy(&sent.body),
    })
}

/// Requests for the media socket: the signed URL, and another one with the same signature.
fn sockets(twilio: &dyn Carrier) -> Value {
    let sent = TwilioWire.socket_headers(MEDIA_URL);
    let headers = headers(&sent);
    let socket = |url: String| {
        let callback = Callback { method: "GET", url: &url, headers: &headers, body: b"", now_ms: 0 };
        let genuine = twilio.check_media(&callback) == Check::Genuine;
        let headers = object(sent.iter().map(|(name, value)| (*name, value.as_str())));
        json!({"url": url, "headers": headers, "genuine": genuine})
    };
    json!([socket(MEDIA_URL.to_owned()), socket(format!("{MEDIA_URL}x"))])
}

fn call(outbound: bool) -> PhoneCall {
    PhoneCall {
        carrier_call_id: CALL_SID.to_owned(),
        other_id: String::new(),
        from: FROM.to_owned(),
        to: TO.to_owned(),
        outbound,
        status_url: STATUS_URL.to_owned(),
        voice_url: VOICE_URL.to_owned(),
        format: String::new(),
        detection: outbound.then(|| Detection { reports_greeting: true, url: STATUS_URL.to_owned() }),
    }
}

fn object<'a>(pairs: impl IntoIterator<Item = (&'a str, &'a str)>) -> Map<String, Value> {
    pairs.into_iter().map(|(name, value)| (name.to_owned(), json!(value))).collect()
}

fn headers(pairs: &[(&'static str, String)]) -> HeaderMap {
    let header = |(name, value): &(&'static str, String)| {
        (HeaderName::from_static(name), HeaderValue::from_str(value).expect("a header's value"))
    };
    pairs.iter().map(header).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_engine_accepts_exactly_what_the_fake_signs() {
        let samples = samples();
        let believed = |value: &Value| value["genuine"] == true;
        for callback in samples["callbacks"].as_array().unwrap() {
            let harmless = matches!(callback["change"].as_str(), None | Some("with the port"));
            assert_eq!(believed(callback), harmless, "{callback}");
        }
        let sockets = samples["sockets"].as_array().unwrap();
        assert_eq!(sockets.iter().map(believed).collect::<Vec<_>>(), [true, false]);
    }
}
