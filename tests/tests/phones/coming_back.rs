//! Who is not reached does not take the caller away: at carriers that say so, the caller comes back to the assistant.
use std::time::Duration;

use serde_json::json;
use sidetone_tests::fakes::carrier::{Behaviour, EndKind, Instruction};

use crate::support::{GREETING, MOMENT_MS, Person, lines, texts};
use crate::transfers::{ANNOUNCED, asked_for, desk, is_transferred};

/// Creates a test of each scenario for each carrier that says what comes of a transfer.
macro_rules! with_each_that_tells {
    ($($scenario:ident),* $(,)?) => {
        with_each_that_tells!(@ twilio "twilio" $($scenario)*);
        with_each_that_tells!(@ plivo "plivo" $($scenario)*);
        with_each_that_tells!(@ vonage "vonage" $($scenario)*);
        with_each_that_tells!(@ telnyx "telnyx" $($scenario)*);
    };
    (@ $carrier:ident $name:literal $($scenario:ident)*) => {
        mod $carrier {
            $(#[test]
            fn $scenario() {
                super::$scenario($name);
            })*
        }
    };
}

with_each_that_tells!(
    who_is_busy_brings_the_caller_back,
    a_caller_comes_back_three_times,
    who_hangs_up_while_it_rings_has_hung_up,
    who_hangs_up_as_it_stops_ringing_has_hung_up,
    a_repeated_question_has_the_same_answer,
    what_came_of_it_may_be_known_before_the_answer,
    a_caller_who_is_not_connected_again_is_lost,
    a_call_that_rings_is_not_hung_up_by_request,
    those_who_have_talked_do_not_come_back,
    another_socket_opens_nothing,
    who_comes_back_is_recorded_and_counted_once,
);

/// Hands over to Sales, which are reached in no way; the caller is connected again.
fn is_back(person: &mut Person, how: EndKind) {
    let instruction = person.other_ends(how, false);
    assert!(matches!(instruction, Instruction::Connect { .. }), "{instruction:?}");
    person.comes_back();
}

const BUSY: &str = r#""Sales" is busy. The caller is back on the line."#;

fn who_is_busy_brings_the_caller_back(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    desk.expect(&desk.call(&id), &json!({"status": "in_progress"}));
    is_back(&mut person, EndKind::Busy);
    // On another line.
    let told = person.hears_anew();
    assert_eq!(told, format!("It says: Error: {BUSY}"));
    // They talk on, and the next one answers.
    person.says("Support");
    assert_eq!(person.hears(), ANNOUNCED);
    person.was_transferred();
    person.other_answers();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "transferred", "fault": "none"}));
    assert_eq!(
        lines(&call),
        [
            ("assistant", GREETING),
            ("user", "Sales"),
            ("assistant", ANNOUNCED),
            ("tool_call", r#"transfer_call({"name":"Sales"})"#),
            ("tool_result", BUSY),
            ("assistant", &*told),
            ("user", "Support"),
            ("assistant", ANNOUNCED),
            ("tool_call", r#"transfer_call({"name":"Support"})"#),
            ("tool_result", "Transferred."),
        ]
    );
    assert_eq!((person.transfers(), person.is_commanded_to_end()), (2, false));
}

fn a_caller_comes_back_three_times(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    for (how, told) in [
        (EndKind::NoAnswer, r#"Nobody has answered at "Sales"."#),
        (EndKind::Failed, r#""Sales" could not be reached."#),
        (EndKind::Busy, r#""Sales" is busy."#),
    ] {
        person.was_transferred();
        is_back(&mut person, how);
        assert_eq!(person.hears_anew(), format!("It says: Error: {told} The caller is back on the line."));
        person.says("Sales");
        assert_eq!(person.hears(), ANNOUNCED);
    }
    assert!(person.hears().contains("nobody has taken it three times"));
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "user_hung_up"}));
    assert_eq!(person.transfers(), 3);
}

fn who_hangs_up_while_it_rings_has_hung_up(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    person.over(EndKind::HungUp);
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "user_hung_up", "fault": "none"}));
    assert_eq!(texts(&call, "tool_result"), [""; 0]);
    assert_eq!(person.other_ends(EndKind::Canceled, true), Instruction::HangUp);
    assert!(!person.is_commanded_to_end());
}

/// The number's address for reports may not be entered at the carrier.
fn who_hangs_up_as_it_stops_ringing_has_hung_up(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    let then = person.other_ends(EndKind::Canceled, true);
    if provider == "telnyx" {
        // It tells only that the other end is over, and then of the caller's.
        assert!(matches!(then, Instruction::Connect { .. }), "{then:?}");
        person.hang_up();
    } else {
        assert_eq!(then, Instruction::HangUp);
    }
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "user_hung_up", "fault": "none"}));
    assert!(!person.is_commanded_to_end());
}

fn a_repeated_question_has_the_same_answer(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    let first = person.other_ends(EndKind::Busy, false);
    assert!(matches!(first, Instruction::Connect { .. }), "{first:?}");
    assert_eq!(person.other_ends(EndKind::Busy, false), first);
    person.comes_back();
    assert_eq!(person.hears_anew(), format!("It says: Error: {BUSY}"));
    assert_eq!(person.transfers(), 1);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up"}));
    assert_eq!(texts(&call, "tool_result"), [BUSY]);
    assert_eq!(person.other_ends(EndKind::Busy, false), Instruction::HangUp, "the call is over");
}

fn what_came_of_it_may_be_known_before_the_answer(provider: &'static str) {
    let desk = desk(provider);
    for (behaviour, is_taken) in [(Behaviour::Late, true), (Behaviour::Late, false)] {
        let (id, mut person) = desk.connected();
        assert_eq!(person.hears(), GREETING);
        person.transfers_are(behaviour);
        person.says("Sales");
        assert_eq!(person.hears(), ANNOUNCED);
        person.was_transferred();
        if is_taken {
            person.other_answers();
            desk.expect(&desk.over(&id), &json!({"ended_reason": "transferred"}));
            continue;
        }
        is_back(&mut person, EndKind::Busy);
        assert_eq!(person.hears_anew(), format!("It says: Error: {BUSY}"));
        person.hang_up();
        desk.expect(&desk.over(&id), &json!({"ended_reason": "user_hung_up"}));
    }
}

fn a_caller_who_is_not_connected_again_is_lost(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    person.other_ends(EndKind::Busy, false);
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "media_lost", "outcome": "failed", "fault": "carrier"}));
    person.was_commanded_to_end();
}

fn a_call_that_rings_is_not_hung_up_by_request(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    desk.world.post(format!("/calls/{id}/hang-up"), json!({})).refused("unavailable");
    is_back(&mut person, EndKind::Busy);
    person.hears_anew();
    desk.world.post(format!("/calls/{id}/hang-up"), json!({})).ok();
    person.was_hung_up();
    desk.expect(&desk.over(&id), &json!({"ended_reason": "hung_up_by_request"}));
}

/// Nobody has said that the other one has answered.
fn those_who_have_talked_do_not_come_back(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    assert_eq!(person.other_ends(EndKind::HungUp, false), Instruction::HangUp);
    if provider != "telnyx" {
        is_transferred(&desk, &id, &person);
        return;
    }
    // Only here the line stays open, with nobody at its other end.
    desk.expect(&desk.over(&id), &json!({"outcome": "completed", "ended_reason": "transferred"}));
    person.was_commanded_to_end();
}

fn another_socket_opens_nothing(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = desk.connected();
    let first = person.media_url().to_owned();
    assert_eq!(person.hears(), GREETING);
    person.says("Sales");
    assert_eq!(person.hears(), ANNOUNCED);
    person.was_transferred();
    assert_eq!(person.try_media_socket(&first), Err(409), "while it rings");
    is_back(&mut person, EndKind::Busy);
    let second = person.media_url().to_owned();
    for url in [&first, &second] {
        // Vonage signs the requests of its latest document.
        let refused = person.try_media_socket(url);
        assert!(matches!(refused, Err(403 | 409)), "a socket is opened once: {refused:?}");
    }
    assert_eq!(person.hears_anew(), format!("It says: Error: {BUSY}"));
    person.hang_up();
    desk.over(&id);
    assert_eq!(person.try_media_socket(&second), Err(409), "the call is over");
}

/// One call, one recording, in which the ringing is silence.
fn who_comes_back_is_recorded_and_counted_once(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    std::thread::sleep(Duration::from_millis(2_000));
    is_back(&mut person, EndKind::Busy);
    person.hears_anew();
    person.hang_up();
    let call = desk.over(&id);
    let duration_ms = call["duration_ms"].as_i64().unwrap();
    let recording = &call["recording"];
    assert!((recording["duration_ms"].as_i64().unwrap() - duration_ms).abs() <= 100, "{call}");
    let waveform = desk.world.get(format!("/calls/{id}/waveform")).ok().json;
    assert!(waveform["missing_ms"].as_i64().unwrap() <= 200, "{}", waveform["missing_ms"]);
    let rows = call["transcript"].as_array().unwrap();
    let start_ms = |row: usize| rows[row]["start_ms"].as_i64().unwrap();
    assert!(start_ms(4) - start_ms(3) >= 2_000, "the result came as the caller was back: {call}");
    assert_eq!(desk.calls().len(), 1);
}
