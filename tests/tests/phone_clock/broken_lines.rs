//! Lines that break: a socket that closes without the carrier's `stop`, one on which nothing arrives any more, and reports
//! that contradict the conversation.
use super::*;

fn connected(desk: &Desk) -> (PhoneCall, SandboxSocket<'_>) {
    let call = desk.place();
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    begin(&socket, &call);
    desk.expect(&json!({"status": "in_progress"}));
    (call, socket)
}

fn silence(socket: &SandboxSocket<'_>) {
    let payload = STANDARD.encode([0xff; 160]);
    socket.send(json!({"event": "media", "media": {"track": "inbound", "payload": payload}}).to_string());
}

/// Carriers send silence while somebody is silent.
#[test]
fn a_line_on_which_nothing_arrives_is_lost_after_half_a_minute() {
    let desk = Desk::new();
    let (_, socket) = connected(&desk);
    desk.wait(29_000);
    silence(&socket);
    desk.wait(29_000);
    assert_eq!(socket.closed(), None);
    desk.wait(1_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({
        "status": "ended", "outcome": "failed", "ended_reason": "media_lost", "fault": "carrier",
    }));
    assert_eq!(desk.commands(), ["hangup"]);
}

#[test]
fn a_socket_that_closes_without_a_goodbye_is_lost_media_from_then_on() {
    let desk = Desk::new();
    let (_, socket) = connected(&desk);
    desk.wait(1_500);
    drop(socket);
    desk.expect(&json!({"ended_reason": "media_lost", "fault": "carrier", "duration_ms": 1_500}));
}

/// The carrier reports this end, and its socket closes without a goodbye.
fn reported_and_closed(how: EndKind) -> Desk {
    let desk = Desk::new();
    let (call, socket) = connected(&desk);
    desk.wait(1_500);
    desk.tell(&call, &CallEvent::Ended { how, seconds: 2 });
    drop(socket);
    desk
}

#[test]
fn the_carrier_says_whose_hang_up_closed_the_socket() {
    reported_and_closed(EndKind::HungUp).expect(&json!({
        "outcome": "completed", "ended_reason": "user_hung_up", "fault": "none", "duration_ms": 1_500,
    }));
}

/// A report that only says that the call is over explains nothing: every carrier ends a call whose socket is gone.
#[test]
fn an_end_that_was_nobodys_explains_no_broken_socket() {
    reported_and_closed(EndKind::HungUpByService)
        .expect(&json!({"outcome": "failed", "ended_reason": "media_lost", "fault": "carrier"}));
}

#[test]
fn who_has_talked_had_answered_whatever_the_carrier_reports() {
    for how in [EndKind::NoAnswer, EndKind::Canceled, EndKind::Busy, EndKind::Declined] {
        let desk = Desk::new();
        let (call, _socket) = connected(&desk);
        desk.wait(1_500);
        desk.tell(&call, &CallEvent::Ended { how, seconds: 2 });
        desk.wait(5_000);
        desk.sandbox.run_jobs();
        desk.expect(&json!({"outcome": "completed", "ended_reason": "user_hung_up", "fault": "none"}));
    }
}
