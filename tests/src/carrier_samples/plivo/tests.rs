//! The service and the fake, which share no code, are compatible.
use http::{HeaderMap, HeaderName, HeaderValue};
use sidetone_engine::carriers::{
    Billed, Callback, CarrierEvent, Check, Forged, MediaEvent, MediaMessage, Placed, Progress,
};
use sidetone_engine::conversation::EndedReason;
use sidetone_engine::conversation::Outcome;
use sidetone_engine::ports::HttpReply;

use super::*;
use crate::fakes::carrier::{
    ApiReply, ApiRequest, Behaviour, Command, FromService, Instruction, WireMessage,
};

fn headers(of: &[(&'static str, String)]) -> HeaderMap {
    of.iter()
        .map(|(name, value)| (HeaderName::from_static(name), HeaderValue::from_str(value).unwrap()))
        .collect()
}

fn read(request: &CallbackRequest) -> (Check, Result<Vec<CarrierEvent>, String>) {
    let headers = headers(&request.headers);
    let callback = Callback {
        method: request.method,
        url: &request.url,
        headers: &headers,
        body: &request.body,
        now_ms: 0,
    };
    (service().check(&callback), service().read(&callback))
}

fn sent(request: &Outgoing) -> ApiRequest {
    let Authorization::Basic { user, password } = &request.authorization else { panic!() };
    let basic = format!("Basic {}", STANDARD.encode(format!("{user}:{}", password.reveal())));
    let mut headers = vec![("authorization".to_owned(), basic)];
    headers.extend(request.content_type.map(|kind| ("content-type".to_owned(), kind.to_owned())));
    ApiRequest {
        method: request.method.to_owned(),
        path: request.url.strip_prefix(API).unwrap().to_owned(),
        headers,
        body: request.body.to_vec(),
    }
}

fn arrived(reply: &ApiReply) -> HttpReply {
    HttpReply { status: reply.status, headers: Vec::new(), body: reply.body.clone().into() }
}

fn order() -> Outgoing {
    let (from, to) = (E164::parse("+14155550100").unwrap(), E164::parse("+442071838750").unwrap());
    service().place(&Order {
        from: &from,
        to: &to,
        media_url: MEDIA_URL,
        status_url: "https://voice.example.com/s",
        answer_url: "https://voice.example.com/a",
        command_id: "k",
        ring_seconds: 45,
        voicemail: None,
        max_seconds: 900,
        now_ms: 0,
    })
}

#[test]
fn orders_and_hang_ups_are_understood() {
    let taken = Command::Place {
        from: "+14155550100".to_owned(),
        to: "+442071838750".to_owned(),
        status_url: "https://voice.example.com/s".to_owned(),
        instruction: None,
        answer_url: Some("https://voice.example.com/a".to_owned()),
        detection: None,
    };
    assert_eq!(PlivoWire.read(&sent(&order())), Ok(taken));
    let accepted = Placed::Accepted { carrier_call_id: CALL_ID.to_owned() };
    assert_eq!(service().placed(&arrived(&PlivoWire.placed(&call(true)))), accepted);
    for answered in [true, false] {
        let ending =
            Ending { carrier_call_id: CALL_ID, answered, region_url: None, command_id: "k", now_ms: 0 };
        let command = PlivoWire.read(&sent(&service().hang_up(&ending))).unwrap();
        assert_eq!(command, Command::HangUp { carrier_call_id: CALL_ID.to_owned() });
        assert_eq!(service().hung_up(&arrived(&PlivoWire.done(&command))), Ok(()));
    }
    assert_eq!(service().hung_up(&arrived(&PlivoWire.gone())), Ok(()));
}

#[test]
fn the_fake_is_as_strict_as_plivo() {
    let good = sent(&order());
    let status = |request: &ApiRequest| PlivoWire.read(request).map_err(|reply| reply.status);
    let changed = |from: &str, to: &str| {
        let body = String::from_utf8(good.body.clone()).unwrap();
        assert!(body.contains(from), "{from}");
        status(&ApiRequest { body: body.replace(from, to).into_bytes(), ..good.clone() })
    };
    assert_eq!(changed("time_limit", "timeLimit"), Err(400));
    assert_eq!(changed("\"answer_url\"", "\"answer\""), Err(400));
    assert_eq!(changed("\"14155550100\"", "\"+14155550100\""), Err(400));
    assert_eq!(changed("14155550100", "442071838750"), Err(400));
    assert_eq!(changed("900", "\"900\""), Err(400));
    assert_eq!(status(&ApiRequest { headers: Vec::new(), ..good.clone() }), Err(401));
    let path = good.path.trim_end_matches('/').to_owned();
    assert_eq!(status(&ApiRequest { path, ..good.clone() }), Err(404));
    assert_eq!(status(&ApiRequest { method: "PUT".to_owned(), ..good.clone() }), Err(405));
}

#[test]
fn failed_orders_are_understood() {
    let placed = |behaviour| service().placed(&arrived(&PlivoWire.refused(behaviour).unwrap()));
    for behaviour in [Behaviour::Broken, Behaviour::NoId] {
        assert!(matches!(placed(behaviour), Placed::Unknown(_)), "{behaviour:?}");
    }
    for (behaviour, code) in
        [(Behaviour::BadNumber, "400"), (Behaviour::Unauthorized, "401"), (Behaviour::TooMany, "429")]
    {
        let Placed::Rejected(no) = placed(behaviour) else { panic!("{behaviour:?}") };
        assert_eq!(no.code, code);
    }
    for behaviour in [Behaviour::Take, Behaviour::Hang, Behaviour::Cut] {
        assert_eq!(PlivoWire.refused(behaviour), None);
    }
}

#[test]
fn callbacks_are_genuine_and_understood() {
    let (out, inward) = (call(true), call(false));
    let tell = |call: &PhoneCall, event: CallEvent| {
        let posted = callback(call, &event, 0);
        let (check, said) = read(&posted);
        assert_eq!(check, Check::Genuine, "{event:?}");
        let asked = PlivoWire.with_get(&posted, "7");
        assert_eq!(read(&asked).0, Check::Genuine, "{event:?} with GET");
        let mut said = said.unwrap();
        assert_eq!(said.len(), 1);
        said.remove(0)
    };
    assert_eq!(tell(&out, CallEvent::Asked), CarrierEvent::Asked { carrier_call_id: CALL_ID.to_owned() });
    let incoming = IncomingCall {
        carrier_call_id: CALL_ID.to_owned(),
        from: Some("+442071838750".to_owned()),
        to: "+14155550100".to_owned(),
        region_url: None,
    };
    assert_eq!(tell(&inward, CallEvent::Incoming), CarrierEvent::Incoming(incoming));
    let CarrierEvent::Report(ringing) = tell(&out, CallEvent::Ringing) else { panic!() };
    assert_eq!(ringing.progress, Some(Progress::Ringing));
    let rows = [
        (EndKind::HungUp, 66, Outcome::Completed, EndedReason::UserHungUp),
        (EndKind::HungUpByService, 66, Outcome::Completed, EndedReason::AssistantEnded),
        (EndKind::NoAnswer, 0, Outcome::NoAnswer, EndedReason::NoAnswer),
        (EndKind::Busy, 0, Outcome::Busy, EndedReason::Busy),
        (EndKind::Declined, 0, Outcome::Busy, EndedReason::Declined),
        (EndKind::Failed, 0, Outcome::Failed, EndedReason::Unreachable),
        (EndKind::Canceled, 0, Outcome::Canceled, EndedReason::Canceled),
    ];
    for call in [&out, &inward] {
        for (how, seconds, outcome, reason) in rows {
            let CarrierEvent::Report(report) = tell(call, CallEvent::Ended { how, seconds }) else {
                panic!()
            };
            let Some(Progress::Ended(end)) = report.progress else { panic!("{how:?}") };
            assert_eq!((end.outcome, end.reason), (outcome, reason), "{how:?}");
            assert_eq!(end.duration_ms, Some(i64::from(seconds) * 1_000));
            let billed = if seconds == 0 { (0, 0) } else { (120_000, 10_000) };
            let billed = Billed { duration_ms: Some(billed.0), cost_microusd: Some(billed.1) };
            assert_eq!(report.billed, Some(billed));
        }
    }
    let silent =
        PlivoWire.callback(&Public { base_url: BASE_URL.to_owned() }, &out, &CallEvent::Answered, 0, 0);
    assert_eq!(silent, None);
}

#[test]
fn modified_callbacks_are_rejected() {
    let good = callback(&call(true), &CallEvent::Asked, 0);
    let body = String::from_utf8(good.body.clone()).unwrap().replace("outbound", "inbound");
    let forged = Check::Forged(Forged::Wrong);
    assert_eq!(read(&CallbackRequest { body: body.into_bytes(), ..good.clone() }).0, forged);
    assert_eq!(read(&CallbackRequest { url: good.url.replace("t0ken", "t1ken"), ..good.clone() }).0, forged);
    let kept = good.headers.iter().filter(|(name, _)| !name.starts_with("x-plivo")).cloned().collect();
    assert_eq!(read(&CallbackRequest { headers: kept, ..good }).0, Check::Forged(Forged::Missing));
}

#[test]
fn the_media_protocols_match() {
    let url = "wss://voice.example.com/media/t0ken";
    let signed = headers(&PlivoWire.socket_headers(url));
    let asked = |url| Callback { method: "GET", url, headers: &signed, body: b"", now_ms: 0 };
    assert_eq!(service().check_media(&asked(url)), Check::Genuine);
    let other = "wss://voice.example.com/media/t1ken";
    assert_eq!(service().check_media(&asked(other)), Check::Forged(Forged::Wrong));

    let (mut line, mut stream) = (service().media_codec(), PlivoWire.media(&call(true)));
    let mut hears = |message: WireMessage| match message {
        WireMessage::Text(text) => line.read(MediaMessage::Text(text)).unwrap(),
        WireMessage::Binary(_) => panic!("Plivo sends text messages"),
    };
    let started = MediaEvent::Started { carrier_call_id: Some(CALL_ID.to_owned()) };
    assert_eq!(stream.opening().into_iter().flat_map(&mut hears).collect::<Vec<_>>(), [started]);
    assert_eq!(hears(stream.audio(&[0; 160])), [MediaEvent::Audio(vec![0; 160])]);
    assert_eq!(hears(stream.key('#')), [MediaEvent::Dtmf('#')]);
    assert_eq!(hears(stream.played("m-1")), [MediaEvent::Played("m-1".to_owned())]);
    assert_eq!(hears(stream.cleared(&["m-2".to_owned()]).remove(0)), [MediaEvent::Cleared]);
    assert_eq!(stream.closing(), []);
    let mut says = |message| match message {
        MediaMessage::Text(text) => stream.read(&WireMessage::Text(text)),
        MediaMessage::Binary(_) => panic!("Plivo expects text messages"),
    };
    let samples: Vec<i16> = (0..160).map(|at| at * 100 - 8_000).collect();
    let Ok(FromService::Audio(heard)) = says(line.audio(&samples)) else { panic!() };
    assert!(heard.iter().zip(&samples).all(|(heard, said)| heard.abs_diff(*said) <= 256), "{heard:?}");
    assert_eq!(says(line.mark("m-3")), Ok(FromService::Mark("m-3".to_owned())));
    assert_eq!(says(line.clear()), Ok(FromService::Clear));
}

#[test]
fn documents_are_understood() {
    let documents = documents();
    let instruction = |name: &str| {
        PlivoWire.instruction(200, "text/xml", documents[name]["xml"].as_str().unwrap().as_bytes())
    };
    let connect = Instruction::Connect { media_url: MEDIA_URL.to_owned(), status_url: None };
    assert_eq!(instruction("connect"), Ok(connect));
    assert_eq!(instruction("rejected"), Ok(Instruction::HangUp));
    assert_eq!(instruction("busy"), Ok(Instruction::HangUp));
}
