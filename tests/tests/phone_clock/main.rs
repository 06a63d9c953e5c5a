//! Telephone calls with a manual clock: long waits, and races between events.
#![allow(missing_docs, clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]
mod broken_lines;
mod call_minute;
mod capacity;
mod coming_back;
mod desk;
mod handed_over;
mod recordings;
mod records;
mod rejections;
mod replays;

use std::cell::Cell;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use bytes::Bytes;
use desk::*;
use serde_json::{Value, json};
use sidetone::sandbox::{Reply, Sandbox, SandboxSocket, block_on};
use sidetone_engine::ports::{HttpError, HttpReply, HttpRequest};
use sidetone_tests::World;
use sidetone_tests::fakes::carrier::telnyx::TelnyxWire;
use sidetone_tests::fakes::carrier::vonage::VonageWire;
use sidetone_tests::fakes::carrier::{CallEvent, EndKind, PhoneCall, Public, Wire, WireMessage};

/// The time limit for audio starts with the answer, not with the socket, which opens while the call rings.
#[test]
fn audio_must_start_within_ten_seconds_of_the_answer() {
    for ringing_ms in [100, 9_900, 19_950, 40_000] {
        let desk = Desk::new();
        let call = desk.place();
        desk.tell(&call, &CallEvent::Ringing);
        let socket = desk.socket(&call);
        desk.wait(ringing_ms);
        desk.tell(&call, &CallEvent::Answered);
        // Telnyx reports the answer and starts the audio over different connections.
        desk.wait(150);
        begin(&socket, &call);
        desk.expect(&json!({"status": "in_progress"}));
        assert_eq!(socket.closed(), None, "answered after {ringing_ms} ms, dropped");
        assert!(!socket.received().is_empty(), "answered after {ringing_ms} ms, not greeted");
    }
}

/// Nobody can be asked for the variables of an incoming call.
#[test]
fn an_incoming_call_has_what_is_built_in() {
    let desk = Desk::new();
    let greeting = json!({"first_message": "Hello {{caller_number}}{{name}}!"});
    let path = format!("/assistants/{}", desk.assistant);
    assert_eq!(desk.sandbox.patch(&path, greeting).status, 200);
    let call = desk.is_called();
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    begin(&socket, &call);
    desk.wait(10_000);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 10 });
    drop(socket);
    desk.sandbox.run_jobs();
    let call = desk.call();
    let (noted, greeted) = (&call["transcript"][0], &call["transcript"][1]);
    assert_eq!(
        (&noted["role"], &noted["text"]),
        (&json!("system"), &json!("Nothing was filled in for {{name}}"))
    );
    let line = greeted["intended_text"].as_str().or(greeted["text"].as_str()).unwrap();
    assert_eq!(line, format!("Hello {}!", call["from"].as_str().unwrap()));
}

#[test]
fn an_answered_call_without_audio_ends() {
    let desk = Desk::new();
    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let socket = desk.socket(&call);
    desk.wait(5_000);
    desk.tell(&call, &CallEvent::Answered);
    desk.wait(9_000);
    assert_eq!(socket.closed(), None);
    desk.wait(11_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "media_lost", "fault": "carrier"}));
    assert_eq!(desk.commands(), ["hangup"]);
}

/// Otherwise the carrier would keep the silent line open.
#[test]
fn a_call_with_a_deleted_assistant_is_hung_up_as_the_operators_fault() {
    for outbound in [true, false] {
        let desk = Desk::new();
        let call = if outbound { desk.place() } else { desk.is_called() };
        assert_eq!(desk.sandbox.delete(&format!("/numbers/{OURS}")).status, 204);
        assert_eq!(desk.sandbox.delete(&format!("/assistants/{}", desk.assistant)).status, 204);
        assert_eq!(desk.try_socket(&call).err().unwrap().status, 404);
        desk.expect_given_up("operator");
        // The carrier's later report does not change the end.
        desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUpByService, seconds: 0 });
        desk.expect(&json!({"ended_reason": "aborted", "fault": "operator"}));
        assert_eq!(desk.try_socket(&call).err().unwrap().status, 409, "its socket is used");
    }
}

#[test]
fn a_call_with_an_unavailable_voice_is_hung_up_as_the_operators_fault() {
    let desk = Desk::new();
    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let path = format!("/assistants/{}", desk.assistant);
    let changed = desk.sandbox.patch(&path, json!({"voice": "other/voice"}));
    assert_eq!(changed.status, 200, "{}", changed.json);
    assert_eq!(desk.try_socket(&call).err().unwrap().status, 404);
    desk.expect_given_up("operator");
}

/// The analysis must not wait for the expiry of a lease.
#[test]
fn a_call_that_ends_when_its_audio_starts_is_analyzed_at_once() {
    let desk = Desk::new();
    let call = desk.place();
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 1 });
    begin(&socket, &call);
    assert!(socket.closed().is_some());
    desk.sandbox.run_jobs();
    let call = desk.call();
    assert_eq!(call["status"], "ended");
    assert_eq!(call["analysis"]["method"], "rule", "{call}");
}

/// The end is not `media_lost` if the call was canceled before it had media.
#[test]
fn hanging_up_before_the_audio_cancels_the_call() {
    let desk = Desk::new();
    let call = desk.is_called();
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    desk.sandbox.answer_http(200, "{}");
    assert_eq!(desk.sandbox.post(&format!("/calls/{id}/hang-up"), json!({})).status, 200);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUpByService, seconds: 0 });
    desk.sandbox.run_jobs();
    desk.expect(
        &json!({"status": "ended", "outcome": "canceled", "ended_reason": "canceled", "fault": "none"}),
    );
}

/// It is not a fault if the caller hangs up right before the greeting.
#[test]
fn hanging_up_right_after_the_answer_is_user_hung_up() {
    for outbound in [false, true] {
        let desk = Desk::new();
        let call = if outbound { desk.place() } else { desk.is_called() };
        let socket = desk.socket(&call);
        desk.tell(&call, &CallEvent::Answered);
        desk.wait(600);
        desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 1 });
        drop(socket);
        desk.sandbox.run_jobs();
        desk.expect(&json!({
            "status": "ended", "outcome": "canceled", "ended_reason": "user_hung_up", "fault": "none",
            "duration_ms": 0,
        }));
        assert_eq!(desk.call()["analysis"]["method"], "rule", "the analysis does not wait");
        assert!(desk.commands().is_empty(), "the carrier ended the call itself");
    }
}

/// If the caller hangs up after a long silence, the cause is the missing audio.
#[test]
fn hanging_up_after_long_silence_is_media_lost() {
    let desk = Desk::new();
    let call = desk.is_called();
    desk.tell(&call, &CallEvent::Answered);
    desk.wait(15_000);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUp, seconds: 15 });
    desk.expect(
        &json!({"status": "ended", "outcome": "failed", "ended_reason": "media_lost", "fault": "carrier"}),
    );
    // The same holds if the service ended the call.
    let desk = Desk::new();
    let call = desk.is_called();
    desk.tell(&call, &CallEvent::Answered);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::HungUpByService, seconds: 1 });
    desk.expect(&json!({"ended_reason": "media_lost"}));
}

/// Chunks shorter than a millisecond must be added up exactly.
#[test]
fn a_flood_of_small_chunks_is_detected() {
    let desk = Desk::new();
    let call = desk.place();
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    begin(&socket, &call);
    let payload = STANDARD.encode([0xff; 7]);
    for _ in 0..12_000 {
        socket.send(json!({"event": "media", "media": {"track": "inbound", "payload": payload}}).to_string());
    }
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "media_lost"}));
}

/// The client asks once; the service repeats the request to the carrier.
#[test]
fn an_unanswered_hang_up_command_is_repeated() {
    let desk = Desk::new();
    let call = desk.place();
    desk.tell(&call, &CallEvent::Ringing);
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    desk.sandbox.fail_http(HttpError::Timeout);
    assert_eq!(desk.sandbox.post(&format!("/calls/{id}/hang-up"), json!({})).status, 504);
    assert_eq!(desk.commands(), ["hangup"]);
    desk.sandbox.run_jobs();
    assert!(desk.commands().is_empty(), "the carrier may still report the end");
    desk.wait(30_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::Canceled, seconds: 0 });
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "outcome": "canceled", "ended_reason": "canceled"}));
    assert!(desk.commands().is_empty());
}

/// A call that was given up has no conversation, so it must not keep ringing.
#[test]
fn a_call_that_rings_after_it_was_given_up_is_hung_up() {
    let desk = Desk::new();
    desk.sandbox.fail_http(HttpError::Timeout);
    assert_eq!(desk.order().status, 504);
    let call = desk.placed();
    desk.wait(200_000);
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
    desk.tell(&call, &CallEvent::Ringing);
    desk.tell(&call, &CallEvent::Ringing);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    assert_eq!(desk.commands(), ["hangup"]);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::Canceled, seconds: 0 });
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
}

/// Carriers start one call per second, so of 200 concurrent orders some ring only after minutes.
#[test]
fn an_accepted_call_waits_half_an_hour_and_a_ringing_call_three_minutes() {
    let desk = Desk::new();
    let call = desk.place();
    for _ in 0..29 {
        desk.wait(60_000);
        desk.sandbox.run_jobs();
        desk.expect(&json!({"status": "queued"}));
    }
    desk.tell(&call, &CallEvent::Ringing);
    desk.wait(179_000);
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ringing"}));
    assert!(desk.commands().is_empty());
    desk.wait(1_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
    assert_eq!(desk.commands(), ["hangup"]);
}

/// After a restart, a due time far in the future is assumed to come from a wrong clock.
#[test]
fn a_queued_call_keeps_waiting_after_a_restart() {
    let desk = Desk::new();
    desk.place();
    // The clock is set back a little.
    desk.wait(-10_000);
    block_on(desk.sandbox.services().release_all_leases()).unwrap();
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "queued"}));
    // The clock is set back so far that it must have been wrong.
    desk.wait(-4 * 3_600_000);
    block_on(desk.sandbox.services().release_all_leases()).unwrap();
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
}

/// A call that rings after a minute in the queue does not keep the rest of the half hour.
#[test]
fn ringing_is_limited_to_three_minutes_after_any_wait() {
    let desk = Desk::new();
    let call = desk.place();
    desk.wait(60_000);
    desk.tell(&call, &CallEvent::Ringing);
    desk.wait(180_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled"}));
}

#[test]
fn an_accepted_call_that_never_rings_ends_and_a_canceled_one_ends_sooner() {
    let desk = Desk::new();
    desk.place();
    desk.wait(1_799_000);
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "queued"}));
    desk.wait(1_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "ended_reason": "unsettled", "fault": "carrier"}));
    assert_eq!(desk.commands(), ["hangup"]);

    let desk = Desk::new();
    desk.place();
    let id = desk.call()["id"].as_str().unwrap().to_owned();
    desk.sandbox.answer_http(200, "{}");
    assert_eq!(desk.sandbox.post(&format!("/calls/{id}/hang-up"), json!({})).status, 200);
    desk.wait(180_000);
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.answer_http(200, "{}");
    desk.sandbox.run_jobs();
    desk.expect(&json!({"status": "ended", "outcome": "canceled", "ended_reason": "canceled"}));
}

/// Otherwise the carrier would end the call, and the log would blame the person.
#[test]
fn the_services_duration_limit_precedes_the_carriers() {
    let desk = Desk::new();
    desk.sandbox.answer_http(200, &json!({"data": {"call_control_id": CARRIER_CALL_ID}}).to_string());
    desk.order();
    let order: Value = serde_json::from_slice(&desk.sandbox.sent_http().pop().unwrap().body).unwrap();
    let call = phone_call(true, &order);
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    let answered_ms = desk.now_ms.get();
    desk.wait(2_000);
    begin(&socket, &call);
    while socket.closed().is_none() {
        press(&socket, "1");
        desk.wait(15_000);
        assert!(desk.now_ms.get() < 4_000_000, "the call does not end");
    }
    desk.expect(&json!({"ended_reason": "duration_limit"}));
    let lasted_ms = desk.now_ms.get() - answered_ms;
    let carriers_ms = order["time_limit_secs"].as_i64().unwrap() * 1_000;
    assert!(lasted_ms < carriers_ms, "{lasted_ms} ms; the carrier ends it after {carriers_ms}");
}

/// The call log must contain the model of the conversation.
#[test]
fn an_assistant_changed_while_ringing_is_logged_with_its_new_configuration() {
    let desk = Desk::new();
    let call = desk.place();
    let path = format!("/assistants/{}", desk.assistant);
    let changed = desk.sandbox.patch(&path, json!({"model": "other/larger"}));
    assert_eq!(changed.status, 200, "{}", changed.json);
    let socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Answered);
    begin(&socket, &call);
    desk.expect(&json!({"status": "in_progress", "assistant_revision": 2, "model": "other/larger"}));
    // Filters find the call by its new model only.
    let found =
        |model: &str| desk.sandbox.get(&format!("/calls?model={model}")).json["stats"]["total"].clone();
    assert_eq!((found("other/larger"), found("builtin/rules")), (json!(1), json!(0)));
    assert_eq!(desk.sandbox.get("/calls").json["stats"]["total"], 1);
}

/// Incoming calls cost money at the carrier.
#[test]
fn calls_to_a_workspace_beyond_its_spending_limit_are_declined() {
    let desk = Desk::new();
    let spent = desk.place();
    desk.tell(&spent, &CallEvent::Ringing);
    desk.tell(&spent, &CallEvent::Ended { how: EndKind::NoAnswer, seconds: 0 });
    desk.tell(&spent, &CallEvent::Priced { seconds: 60 });
    assert_ne!(desk.call()["costs"]["telephony_microusd"], 0, "{}", desk.call());
    desk.sandbox.patch("/workspace", json!({"monthly_spend_limit_microusd": 1}));
    assert_eq!(desk.order().status, 402);
    let mut call = phone_call(false, &json!({"webhook_url": "", "stream_url": ""}));
    call.carrier_call_id = "v3:another".to_owned();
    desk.sandbox.answer_http(200, "{}");
    desk.tell(&call, &CallEvent::Incoming);
    assert_eq!(desk.commands().last().map(String::as_str), Some("reject"));
}

/// No journal is left if the process dies between the end of the call and the end of its socket.
#[test]
fn a_call_that_ends_before_its_audio_leaves_no_journal() {
    let desk = Desk::new();
    let call = desk.place();
    let _socket = desk.socket(&call);
    desk.tell(&call, &CallEvent::Ringing);
    desk.tell(&call, &CallEvent::Ended { how: EndKind::NoAnswer, seconds: 0 });
    desk.sandbox.kill_conversations();
    desk.wait(600_000);
    desk.sandbox.run_jobs();
    assert_eq!(desk.call()["analysis"]["method"], "rule");
    let count = sidetone_engine::sql!("SELECT COUNT(*) AS journals FROM live_calls");
    let rows = block_on(desk.sandbox.services().ports().database.read(vec![count])).unwrap();
    assert_eq!(rows[0].first().unwrap().integer("journals").unwrap(), 0);
}
