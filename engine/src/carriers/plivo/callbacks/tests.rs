use http::{HeaderMap, HeaderValue};
use proptest::prelude::*;

use super::*;
use crate::conversation::{CallFault, EndedReason, Outcome};

const CALL: &str = "3e82ae9d-2c78-4d85-b1a4-6eae7dbafb36";

fn posted(body: &[u8]) -> Result<Vec<CarrierEvent>, String> {
    let mut headers = HeaderMap::new();
    headers
        .insert("content-type", HeaderValue::from_static("application/x-www-form-urlencoded; charset=utf-8"));
    read(&Callback { method: "POST", url: "https://h/p?token=1", headers: &headers, body, now_ms: 0 })
}

fn asked(query: &str) -> Result<Vec<CarrierEvent>, String> {
    let url = format!("https://h/p?{query}");
    read(&Callback { method: "GET", url: &url, headers: &HeaderMap::new(), body: b"", now_ms: 0 })
}

fn one(body: &str) -> CarrierEvent {
    let mut events = posted(body.as_bytes()).unwrap();
    assert_eq!(asked(body).unwrap(), events);
    assert_eq!(events.len(), 1, "{events:?}");
    events.remove(0)
}

fn report(body: &str) -> Report {
    match one(body) {
        CarrierEvent::Report(report) => report,
        other => panic!("{other:?}"),
    }
}

#[test]
fn parses_an_incoming_call() {
    let body = format!(
        "CallUUID={CALL}&From=14155550199&To=14155550100&Direction=inbound&CallStatus=ringing&Event=StartApp\
         &BillRate=0.0085&SessionStart=2024-09-26+14%3A05%3A18.1&ParentAuthID=MA&CallerName=Zo%C3%AB"
    );
    let call = IncomingCall {
        carrier_call_id: CALL.to_owned(),
        from: Some("+14155550199".to_owned()),
        to: "+14155550100".to_owned(),
        region_url: None,
    };
    assert_eq!(one(&body), CarrierEvent::Incoming(call.clone()));
    // Callbacks of an application may look like this.
    assert_eq!(one(&body.replace("&Event=StartApp", "")), CarrierEvent::Incoming(call.clone()));
    for withheld in ["", "anonymous", "Anonymous", "RESTRICTED"] {
        let hidden = IncomingCall { from: None, ..call.clone() };
        assert_eq!(one(&body.replace("14155550199", withheld)), CarrierEvent::Incoming(hidden), "{withheld}");
    }
    let sip = IncomingCall { from: Some("sip:a@b".to_owned()), ..call };
    assert_eq!(one(&body.replace("14155550199", "sip%3Aa%40b")), CarrierEvent::Incoming(sip));
    assert!(posted(body.replace("14155550100", "").as_bytes()).is_err());
}

#[test]
fn an_outgoing_call_rings_and_asks_for_its_document() {
    let body = format!("CallUUID={CALL}&RequestUUID=r&From=1&To=2&Direction=outbound&CallStatus=");
    let asked = CarrierEvent::Asked { carrier_call_id: CALL.to_owned() };
    assert_eq!(one(&format!("{body}in-progress&Event=StartApp")), asked);
    assert_eq!(one(&format!("{body}in-progress")), asked);
    for event in ["ringing&Event=Ring", "ringing"] {
        let found = report(&format!("{body}{event}"));
        assert_eq!(
            (found.carrier_call_id.as_str(), found.progress),
            (CALL, Some(Progress::Ringing)),
            "{event}"
        );
        assert_eq!((found.billed, found.machine), (None, None));
    }
}

#[test]
fn the_end_has_reason_duration_and_cost() {
    let body = format!(
        "AnswerTime=2024-09-26+14%3A05%3A18&BillDuration=120&BillRate=0.005&CallStatus=completed&CallUUID={CALL}\
         &Direction=outbound&Duration=66&EndTime=2024-09-26+14%3A06%3A24&Event=Hangup&From=14155550100\
         &HangupCause=NORMAL_CLEARING&HangupCauseCode=4000&HangupCauseName=Normal+Hangup&HangupSource=Callee\
         &RequestUUID={CALL}&To=14155550199&TotalCost=0.01000"
    );
    let found = report(&body);
    let Some(Progress::Ended(end)) = &found.progress else { panic!("{found:?}") };
    assert_eq!(
        (end.outcome, end.reason, end.fault),
        (Outcome::Completed, EndedReason::UserHungUp, CallFault::None)
    );
    assert_eq!((end.cause.as_str(), end.duration_ms), ("Normal Hangup 4000", Some(66_000)));
    assert_eq!(found.billed, Some(Billed { duration_ms: Some(120_000), cost_microusd: Some(10_000) }));
    let inbound = report(&body.replace("outbound", "inbound").replace("Callee", "Caller"));
    let Some(Progress::Ended(end)) = inbound.progress else { panic!() };
    assert_eq!(end.reason, EndedReason::UserHungUp);
    // A callback of an application has no event.
    assert_eq!(report(&body.replace("&Event=Hangup", "")), found);
}

#[test]
fn an_end_may_lack_details() {
    let found = report(&format!("CallUUID={CALL}&Event=Hangup&CallStatus=busy"));
    let Some(Progress::Ended(end)) = found.progress else { panic!() };
    assert_eq!((end.reason, end.cause.as_str(), end.duration_ms), (EndedReason::Busy, "busy", None));
    assert_eq!(found.billed, None);
    let odd = report(&format!("CallUUID={CALL}&Event=Hangup&Duration=-4&BillDuration=x&TotalCost=1e9"));
    assert_eq!(odd.billed, None);
}

#[test]
fn parses_machine_detection() {
    let body =
        format!("CallUUID={CALL}&Event=MachineDetection&Direction=outbound&CallStatus=in-progress&Machine=");
    assert_eq!(report(&format!("{body}true")).machine, Some(true));
    assert_eq!(report(&format!("{body}false")).machine, Some(false));
    assert_eq!(report(&format!("{body}true")).progress, None);
}

#[test]
fn other_callbacks_are_ignored() {
    for event in
        ["StartStream", "StopStream", "DroppedStream", "DegradedStream", "PlayedStream", "Record", "Redirect"]
    {
        let body = format!("CallUUID={CALL}&Event={event}&StreamID=s&Timestamp=1");
        assert_eq!(posted(body.as_bytes()), Ok(Vec::new()), "{event}");
    }
    assert_eq!(posted(b"Digits=1"), Ok(Vec::new()));
    assert_eq!(posted(format!("CallUUID={CALL}&Event=StartApp").as_bytes()), Ok(Vec::new()));
}

#[test]
fn unreadable_callbacks_are_errors() {
    for id in ["", "a/b", "%00", &"a".repeat(65)] {
        assert!(posted(format!("CallUUID={id}&Event=Ring").as_bytes()).is_err(), "{id}");
    }
    assert!(posted(b"Event=Hangup").is_err());
    let json =
        Callback { method: "POST", url: "https://h/p", headers: &HeaderMap::new(), body: b"{}", now_ms: 0 };
    assert!(read(&json).is_err());
    assert!(read(&Callback { method: "PUT", ..json }).is_err());
}

proptest! {
    #[test]
    fn arbitrary_bytes_do_not_panic(body in proptest::collection::vec(any::<u8>(), 0..300)) {
        let _ = posted(&body);
    }

    #[test]
    fn arbitrary_values_do_not_panic(
        event in "StartApp|Ring|Hangup|MachineDetection|",
        direction in "inbound|outbound|",
        status in "[a-z-]{0,12}",
        values in proptest::collection::vec("\\PC{0,20}", 6),
    ) {
        let names = ["CallUUID", "To", "From", "HangupCauseCode", "Duration", "TotalCost"];
        let pairs = names.iter().zip(&values).map(|(name, value)| (*name, value.as_str()));
        let fixed = [("Event", event.as_str()), ("Direction", direction.as_str()), ("CallStatus", status.as_str())];
        let body = form_urlencoded::Serializer::new(String::new()).extend_pairs(pairs.chain(fixed)).finish();
        // An invalid id never gets through as a call.
        if let Ok(events) = posted(body.as_bytes()) {
            prop_assert!(events.is_empty() || is_id(values[0].trim()));
        }
    }
}

#[test]
fn what_came_of_a_dial_is_read() {
    let ended = |body: &str| {
        let url = format!("https://h/p?CallUUID={CALL}&{body}");
        dial_ended(&Callback { method: "GET", url: &url, headers: &HeaderMap::new(), body: b"", now_ms: 0 })
    };
    for (status, untaken) in [
        ("completed", None),
        ("busy", Some(Untaken::Busy)),
        ("no-answer", Some(Untaken::NoAnswer)),
        ("timeout", Some(Untaken::NoAnswer)),
        ("failed", Some(Untaken::Failed)),
        ("cancel", Some(Untaken::Failed)),
    ] {
        for (ours, is_over) in [("in-progress", false), ("completed", true)] {
            let expected = DialEnd { carrier_call_id: Some(CALL.to_owned()), untaken, is_over };
            assert_eq!(ended(&format!("DialStatus={status}&CallStatus={ours}")), Ok(expected), "{status}");
        }
    }
    assert!(ended("CallStatus=in-progress").is_err());
    // The callbacks of the other leg: only its answer counts.
    let other = "3e82ae9d-2c78-4d85-b1a4-6eae7dbafb37";
    let of_other = |action: &str| {
        asked(&format!(
            "CallUUID={CALL}&CallStatus=in-progress&Direction=inbound&DialAction={action}&DialBLegUUID={other}"
        ))
    };
    for action in ["answer", "connected"] {
        let report = Report {
            carrier_call_id: other.to_owned(),
            progress: Some(Progress::Answered),
            ..Report::default()
        };
        assert_eq!(of_other(action), Ok(vec![CarrierEvent::Report(report)]));
    }
    for action in ["hangup", "digits"] {
        assert_eq!(of_other(action), Ok(Vec::new()));
    }
}
