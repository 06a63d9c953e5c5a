use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::conversation::{EndedReason, Outcome};

const CALL: &str = "CA0123456789abcdef0123456789abcdef";

fn read_form(pairs: &[(&str, &str)]) -> Result<Vec<CarrierEvent>, String> {
    let mut all = vec![("CallSid", CALL), ("AccountSid", "AC0123456789abcdef0123456789abcdef")];
    all.extend(pairs);
    all.extend([("To", "+14155550123"), ("From", "+442071838750")]);
    read_body("POST", "https://voice.example.com/", &shared::form(&all))
}

fn read_body(method: &str, url: &str, body: &str) -> Result<Vec<CarrierEvent>, String> {
    let mut headers = HeaderMap::new();
    let form = HeaderValue::from_static("application/x-www-form-urlencoded; charset=UTF-8");
    headers.insert("content-type", form);
    read(&Callback { method, url, headers: &headers, body: body.as_bytes(), now_ms: 0 })
}

fn report_of(pairs: &[(&str, &str)]) -> Report {
    match read_form(pairs).unwrap().as_slice() {
        [CarrierEvent::Report(report)] => report.clone(),
        other => panic!("{other:?}"),
    }
}

fn incoming_of(pairs: &[(&str, &str)]) -> IncomingCall {
    match read_form(pairs).unwrap().as_slice() {
        [CarrierEvent::Incoming(call)] => call.clone(),
        other => panic!("{other:?}"),
    }
}

#[test]
fn parses_an_incoming_call() {
    let expected = IncomingCall {
        carrier_call_id: CALL.to_owned(),
        from: Some("+442071838750".to_owned()),
        to: "+14155550123".to_owned(),
        region_url: None,
    };
    for status in ["ringing", "in-progress", "queued"] {
        assert_eq!(incoming_of(&[("Direction", "inbound"), ("CallStatus", status)]), expected, "{status}");
    }
    // The voice URL may be requested with GET.
    let query = shared::form(&[
        ("CallSid", CALL),
        ("CallStatus", "ringing"),
        ("Direction", "inbound"),
        ("Called", "14155550123"),
        ("Caller", "442071838750"),
    ]);
    let events =
        read_body("GET", &format!("https://voice.example.com/?{query}"), "CallStatus=completed").unwrap();
    assert_eq!(events, [CarrierEvent::Incoming(expected)]);
}

#[test]
fn withheld_numbers_are_none() {
    for (from, expected) in [
        ("+266696687", None),
        ("+86282452253", None),
        ("anonymous", None),
        ("Restricted", None),
        ("", Some("+442071838750")),
        ("+26669668", Some("+26669668")),
        ("sip:alice@example.com", Some("sip:alice@example.com")),
        ("client:alice", Some("client:alice")),
    ] {
        // The first value of a name counts; an empty one counts as missing, and `Caller` repeats `From`.
        let pairs =
            [("CallSid", CALL), ("To", "+14155550123"), ("Direction", "inbound"), ("CallStatus", "ringing")];
        let mut pairs = pairs.to_vec();
        pairs.extend([("From", from), ("Caller", if from.is_empty() { "+442071838750" } else { from })]);
        let events = read_body("POST", "https://voice.example.com/", &shared::form(&pairs)).unwrap();
        let [CarrierEvent::Incoming(call)] = events.as_slice() else { panic!("{events:?}") };
        assert_eq!(call.from.as_deref(), expected, "{from}");
    }
}

#[test]
fn parses_progress_in_both_directions() {
    for direction in ["outbound-api", "outbound-dial", "inbound"] {
        let status = |status| {
            report_of(&[
                ("Direction", direction),
                ("CallStatus", status),
                ("CallbackSource", "call-progress-events"),
            ])
        };
        assert_eq!(status("ringing").progress, Some(Progress::Ringing), "{direction}");
        assert_eq!(status("in-progress").progress, Some(Progress::Answered), "{direction}");
        assert_eq!(status("answered").progress, Some(Progress::Answered), "{direction}");
    }
    // An outgoing call is reported even without a source.
    let report = report_of(&[("Direction", "outbound-api"), ("CallStatus", "ringing")]);
    assert_eq!(report.progress, Some(Progress::Ringing));
}

#[test]
fn parses_the_end_of_a_call() {
    let report = report_of(&[
        ("CallStatus", "completed"),
        ("Direction", "inbound"),
        ("SipResponseCode", "200"),
        ("CallDuration", "61"),
        ("Duration", "2"),
        ("SequenceNumber", "3"),
    ]);
    let end = End::of(EndedReason::UserHungUp, "completed 200").lasting(Some(61_000));
    assert_eq!(report.progress, Some(Progress::Ended(end)));
    assert_eq!(report.billed, Some(Billed { duration_ms: Some(120_000), cost_microusd: None }));

    let report =
        report_of(&[("CallStatus", "busy"), ("Direction", "outbound-api"), ("SipResponseCode", "603")]);
    let Some(Progress::Ended(end)) = report.progress else { panic!("{report:?}") };
    assert_eq!((end.reason, end.outcome), (EndedReason::Declined, Outcome::Busy));
    assert_eq!((end.cause.as_str(), end.duration_ms, report.billed), ("busy 603", None, None));

    for (status, reason) in [
        ("no-answer", EndedReason::NoAnswer),
        ("canceled", EndedReason::Canceled),
        ("failed", EndedReason::Unreachable),
    ] {
        let report = report_of(&[("CallStatus", status), ("CallDuration", "-1"), ("SipResponseCode", "x")]);
        assert_eq!(report.progress, Some(Progress::Ended(End::of(reason, status))), "{status}");
    }
}

#[test]
fn parses_machine_detection() {
    for (by, machine, greeting) in [
        ("human", Some(false), None),
        ("machine_start", Some(true), None),
        ("machine_end_beep", Some(true), Some(Greeting::Ended)),
        ("machine_end_silence", Some(true), Some(Greeting::Ended)),
        ("machine_end_other", Some(true), Some(Greeting::Ended)),
        ("fax", Some(true), Some(Greeting::None)),
    ] {
        let report = report_of(&[("AnsweredBy", by), ("MachineDetectionDuration", "2100")]);
        assert_eq!((report.machine, report.greeting, report.progress), (machine, greeting, None), "{by}");
    }
    let report =
        report_of(&[("AnsweredBy", "unknown"), ("CallStatus", "in-progress"), ("Direction", "outbound-api")]);
    assert_eq!((report.machine, report.progress), (None, Some(Progress::Answered)));
}

/// When the response to the order was lost, this report gives the call's SID.
#[test]
fn an_accepted_call_is_reported() {
    for status in ["queued", "initiated"] {
        let report = report_of(&[("CallStatus", status), ("Direction", "outbound-api")]);
        assert_eq!(report, Report { carrier_call_id: CALL.to_owned(), ..Report::default() }, "{status}");
    }
}

#[test]
fn other_callbacks_are_ignored() {
    for pairs in [
        [("RecordingSid", "RE1"), ("RecordingStatus", "completed")],
        [("StreamEvent", "stream-stopped"), ("StreamSid", "MZ1")],
        [("AnsweredBy", "unknown"), ("MachineDetectionDuration", "9")],
    ] {
        assert_eq!(read_form(&pairs), Ok(Vec::new()), "{pairs:?}");
    }
}

#[test]
fn unreadable_callbacks_are_errors() {
    let url = "https://voice.example.com/";
    assert_eq!(read_body("POST", url, "").unwrap_err(), "no CallSid");
    assert_eq!(
        read_body("POST", url, "CallSid=CA1&CallStatus=ringing").unwrap_err(),
        r#"invalid CallSid "CA1""#
    );
    let unknown = read_form(&[("CallStatus", &"gone\n".repeat(50))]).unwrap_err();
    assert!(unknown.starts_with(r#"unknown CallStatus "gone\n"#) && unknown.len() < 80, "{unknown}");
    let body = format!("CallSid={CALL}&CallStatus=ringing&Direction=inbound");
    assert_eq!(read_body("POST", url, &body).unwrap_err(), "no To");
    // Only signed parameters count: those of a form, or those of the URL of a GET.
    assert_eq!(read_body("POST", &format!("{url}?{body}"), "").unwrap_err(), "no CallSid");
    assert_eq!(read_body("GET", url, &body).unwrap_err(), "no CallSid");
}

proptest! {
    #[test]
    fn arbitrary_values_do_not_panic(
        method in "GET|POST", body in prop::collection::vec(any::<u8>(), 0..200),
        values in prop::collection::vec((
            "CallStatus|Direction|CallDuration|Duration|SipResponseCode|AnsweredBy|From|To",
            "(ringing|completed|failed|inbound|9{0,30}|machine_)|.{0,12}",
        ), 0..12),
    ) {
        let mut pairs = vec![("CallSid", CALL)];
        pairs.extend(values.iter().map(|(name, value)| (name.as_str(), value.as_str())));
        let mut form = shared::form(&pairs).into_bytes();
        form.extend(body);
        let url = format!("https://voice.example.com/?{}", String::from_utf8_lossy(&form));
        let headers = HeaderMap::from_iter([(
            http::header::CONTENT_TYPE, HeaderValue::from_static("application/x-www-form-urlencoded"),
        )]);
        let read = read(&Callback { method: &method, url: &url, headers: &headers, body: &form, now_ms: 0 });
        match read {
            Ok(events) => prop_assert!(events.len() <= 1),
            Err(words) => prop_assert!(words.len() <= 20 + 10 * QUOTED_BYTES_MAX, "{}", words),
        }
    }
}

#[test]
fn what_came_of_a_dial_is_read() {
    let ended = |pairs: &[(&str, &str)]| {
        let mut headers = HeaderMap::new();
        headers.insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded"));
        let all = [&[("CallSid", CALL)], pairs].concat();
        let body = shared::form(&all);
        let url = "https://voice.example.com/?call=t&back=1";
        dial_ended(&Callback { method: "POST", url, headers: &headers, body: body.as_bytes(), now_ms: 0 })
    };
    for (status, untaken) in [
        ("completed", None),
        ("answered", None),
        ("busy", Some(Untaken::Busy)),
        ("no-answer", Some(Untaken::NoAnswer)),
        ("failed", Some(Untaken::Failed)),
        ("canceled", Some(Untaken::Failed)),
    ] {
        for (ours, is_over) in [("in-progress", false), ("completed", true)] {
            let expected = DialEnd { carrier_call_id: Some(CALL.to_owned()), untaken, is_over };
            assert_eq!(ended(&[("DialCallStatus", status), ("CallStatus", ours)]), Ok(expected), "{status}");
        }
    }
    assert!(ended(&[("CallStatus", "in-progress")]).is_err());
    assert!(ended(&[("DialCallStatus", "tired"), ("CallStatus", "in-progress")]).is_err());
}
