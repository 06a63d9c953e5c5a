use super::*;
use crate::base::setting::Secret;
use crate::speech::exchange::SpeechFault;
use crate::speech::transcribers::TranscriberKind;
use bytes::Bytes;

fn settings(base_url: &str) -> TranscriberSettings {
    TranscriberSettings {
        party: Party::speech("test"),
        base_url: base_url.into(),
        api_key: Secret::new("secret"),
        model: "m".into(),
        language: None,
        keyterms: vec![],
        turn_ends_ms: 3_000,
    }
}

fn link(keep_alive: Option<&'static str>) -> SocketLink {
    let settings = settings("https://stt.example");
    let request = socket_request(&settings, "/v1/listen", &[("model", "a b".into())], "Token");
    SocketLink::new(Reporter::new(TranscriberKind::Deepgram, &settings), request, keep_alive)
}

fn transmits(link: &mut SocketLink) -> Vec<Transmit> {
    std::iter::from_fn(|| link.poll_transmit()).collect()
}

fn connects(link: &mut SocketLink) -> Vec<ExchangeId> {
    let connects = transmits(link).into_iter().filter_map(|transmit| match transmit {
        Transmit::Connect { id, .. } => Some(id),
        _ => None,
    });
    connects.collect()
}

fn closed() -> Arrival {
    Arrival::Closed { code: 1006, reason: String::new() }
}

#[test]
fn addresses_of_sockets() {
    let url =
        |base: &str| socket_request(&settings(base), "/realtime", &[], "Bearer").map(|request| request.url);
    assert_eq!(url("https://api.example/v1").as_deref(), Some("wss://api.example/v1/realtime"));
    assert_eq!(url("ws://localhost:9/v1/realtime").as_deref(), Some("ws://localhost:9/v1/realtime"));
    assert_eq!(url("ftp://x"), None);
    assert_eq!(url("nonsense"), None);
    let mut link = link(None);
    link.begin(0);
    let Some(Transmit::Connect { request, .. }) = link.poll_transmit() else { panic!("no connection") };
    assert_eq!(request.url, "wss://stt.example/v1/listen?model=a+b");
    assert_eq!(request.headers, [("authorization", "Token secret".to_owned())]);
    assert!(!format!("{request:?}").contains("secret"));
}

#[test]
fn three_attempts_follow_a_broken_connection() {
    let mut link = link(None);
    link.begin(0);
    assert_eq!(connects(&mut link), [0]);
    assert_eq!(link.arrived(10, 0, Arrival::Opened), Some(Change::Opened));
    assert_eq!(link.arrived(20, 0, closed()), Some(Change::Lost));
    assert_eq!(connects(&mut link), [1]);
    assert_eq!(link.arrived(30, 1, closed()), Some(Change::Lost));
    assert_eq!(link.timeout(), Some(530));
    assert_eq!(link.tick(529), None);
    assert_eq!(connects(&mut link), [0; 0]);
    link.tick(530);
    assert_eq!(connects(&mut link), [2]);
    // The server neither refuses nor opens.
    assert_eq!(link.timeout(), Some(10_530));
    assert_eq!(link.tick(10_530), Some(Change::Lost));
    link.tick(12_530);
    assert_eq!(connects(&mut link), [3]);
    let Some(Change::Over(failure)) = link.arrived(12_540, 3, closed()) else { panic!("another attempt") };
    assert!(failure.is_temporary);
    assert_eq!((link.timeout(), link.ended()), (None, None));
    // Only somebody who waits for a result begins another round.
    link.begin(13_000);
    assert_eq!(connects(&mut link), [0; 0]);
    link.try_again(13_000);
    assert_eq!(connects(&mut link), [4]);
}

#[test]
fn a_good_connection_gives_all_attempts_back() {
    let mut link = link(None);
    link.begin(0);
    for round in 0..10 {
        let now_ms = i64::from(round) * 20_000;
        link.arrived(now_ms, round, Arrival::Opened);
        assert_eq!(link.arrived(now_ms + SPEECH_STEADY_MS, round, closed()), Some(Change::Lost), "{round}");
    }
}

#[test]
fn what_the_operator_must_correct_is_not_tried_again() {
    let mut link = link(None);
    link.begin(0);
    let refusal = ExchangeFailure::Rejected { status: 401, body: "{}".into() };
    let Some(Change::Over(failure)) = link.arrived(5, 0, Arrival::Failed(refusal)) else {
        panic!("tried again")
    };
    assert_eq!((failure.fault, failure.is_temporary), (SpeechFault::Operator, false));
    assert_eq!(link.ended(), Some(&failure));
    transmits(&mut link);
    link.try_again(10);
    assert_eq!(transmits(&mut link), []);
}

#[test]
fn a_connection_that_was_given_up_is_not_heard_any_more() {
    let mut link = link(None);
    link.begin(0);
    link.arrived(1, 0, Arrival::Opened);
    link.send_text(2, "unsent");
    let failure = link.reporter.disturbed("was late", "");
    assert_eq!(link.broke(3, failure), Change::Lost);
    let told = transmits(&mut link);
    assert!(!told.iter().any(|transmit| matches!(transmit, Transmit::Send { .. })), "{told:?}");
    assert!(told.contains(&Transmit::Drop { id: 0 }));
    assert_eq!(link.arrived(4, 0, Arrival::Message(SocketMessage::Text("late".into()))), None);
    assert_eq!(link.arrived(4, 0, closed()), None);
}

#[test]
fn messages_are_bounded() {
    let mut link = link(None);
    link.begin(0);
    link.arrived(1, 0, Arrival::Opened);
    let text = Arrival::Message(SocketMessage::Binary(Bytes::from_static(b"{}")));
    assert_eq!(link.arrived(1, 0, text), Some(Change::Text("{}".into())));
    for _ in 0..SPEECH_UNREADABLE_MAX {
        let noise = Arrival::Message(SocketMessage::Binary(Bytes::from_static(b"\xff\xfe")));
        assert_eq!(link.arrived(1, 0, noise), None);
    }
    assert_eq!(link.unreadable(2), Some(Change::Lost));
    link.arrived(3, 1, Arrival::Opened);
    let huge = Arrival::Message(SocketMessage::Text("x".repeat(SPEECH_MESSAGE_BYTES_MAX + 1)));
    assert_eq!(link.arrived(4, 1, huge), Some(Change::Lost));
}

#[test]
fn silence_on_the_line_is_kept_alive() {
    let mut link = link(Some("ping"));
    link.begin(0);
    link.arrived(100, 0, Arrival::Opened);
    link.send_text(1_000, "audio");
    assert_eq!(link.timeout(), Some(6_000));
    transmits(&mut link);
    link.tick(6_000);
    assert_eq!(transmits(&mut link), [Transmit::Send { id: 0, message: SocketMessage::Text("ping".into()) }]);
    assert_eq!(link.timeout(), Some(11_000));
}

#[test]
fn closing_waits_for_the_last_words() {
    for (arrival, is_orderly) in [(Some(1000), true), (Some(1011), false), (None, false)] {
        let mut link = link(None);
        link.begin(0);
        link.arrived(1, 0, Arrival::Opened);
        assert_eq!(link.close(10, Some("bye")), None);
        let last = Arrival::Message(SocketMessage::Text("last".into()));
        assert_eq!(link.arrived(20, 0, last), Some(Change::Text("last".into())));
        let change = match arrival {
            Some(code) => link.arrived(30, 0, Arrival::Closed { code, reason: String::new() }),
            None => link.tick(10 + SPEECH_CLOSE_MS),
        };
        assert_eq!(change, Some(Change::Closed { is_orderly }));
        assert!(link.ended().is_some() && link.timeout().is_none());
        assert_eq!(link.close(40, None), None);
    }
    let mut link = link(None);
    assert_eq!(link.close(0, None), Some(Change::Closed { is_orderly: false }));
}
