//! A machine answers.
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::tone::{ToneDecoder, ToneHeard};
use sidetone_tests::fakes;
use sidetone_tests::fakes::carrier::{Answerer, Behaviour};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

use crate::recordings::channels;
use crate::speech::hears_ms;
use crate::support::{Desk, GREETING, MOMENT_MS, Person, lines, texts};

with_each_carrier!(
    nothing_is_detected_unless_wanted,
    a_person_talks_as_ever,
    a_machine_is_hung_up_on,
    a_message_is_left_after_the_greeting,
    what_a_machine_says_is_recorded_and_not_answered,
    nothing_interrupts_the_message,
    who_hangs_up_during_the_message_cuts_it,
    a_machine_that_is_known_before_the_answer_is_not_greeted,
    a_result_after_the_end_changes_nothing,
    a_result_for_an_unknown_call_changes_nothing,
    a_tool_that_runs_meanwhile_is_recorded,
    a_transfer_under_way_comes_first,
    who_calls_is_no_machine,
);

const MESSAGE: &str = "This is Blue Door Dental. Please call us back.";
const MACHINE: &str = "The carrier reports that a machine answered";
/// Longer than it takes to notice the machine.
const LONG_GREETING: &str = "Hello, this is the front desk of Blue Door Dental. I am calling about your appointment \
    tomorrow morning, and I have a few questions for you before it.";

fn desk(provider: &'static str, action: &str) -> Desk {
    with_model(provider, "builtin/rules", action)
}

fn with_model(provider: &'static str, model: &str, action: &str) -> Desk {
    let desk = Desk::with_model(provider, model);
    patch(&desk, json!({"voicemail": {"action": action, "message": MESSAGE}}));
    desk
}

fn patch(desk: &Desk, fields: Value) {
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), fields).ok();
}

/// The greeting of the machine is over, as far as the carrier says so: Plivo does not, and silence says it.
fn greets(person: &mut Person) {
    person.detects(Answerer::Machine);
    person.detects(Answerer::GreetedMachine);
}

#[track_caller]
fn is_voicemail(desk: &Desk, id: &str) -> Value {
    let call = desk.over(id);
    desk.expect(&call, &json!({"outcome": "voicemail", "ended_reason": "assistant_ended", "fault": "none"}));
    call
}

fn nothing_is_detected_unless_wanted(provider: &'static str) {
    let desk = Desk::new(provider);
    for voicemail in [Value::Null, json!({"action": "hang_up"}), Value::Null] {
        let is_wanted = !voicemail.is_null();
        patch(&desk, json!({"voicemail": voicemail}));
        let (id, mut person) = desk.connected();
        assert_eq!(person.call().detection.is_some(), is_wanted);
        assert_eq!(person.hears(), GREETING);
        person.hang_up();
        desk.expect(&desk.over(&id), &json!({"outcome": "completed", "ended_reason": "user_hung_up"}));
    }
}

fn a_person_talks_as_ever(provider: &'static str) {
    let desk = desk(provider, "leave_message");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.detects(Answerer::Person);
    person.detects(Answerer::Unsure);
    if provider != "plivo" {
        // What was detected first stands. Plivo reports nothing but machines.
        greets(&mut person);
    }
    std::thread::sleep(Duration::from_millis(2 * MOMENT_MS));
    person.says("When do you open on Saturday?");
    assert!(person.hears().contains("open at ten"));
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "user_hung_up"}));
    assert_eq!(texts(&call, "system"), [""; 0]);
}

fn a_machine_is_hung_up_on(provider: &'static str) {
    let desk = desk(provider, "hang_up");
    patch(&desk, json!({"first_message": LONG_GREETING}));
    let (id, mut person) = desk.connected();
    person.hears_somebody();
    person.detects(Answerer::Machine);
    // Carriers repeat themselves.
    let last = person.sent() - 1;
    person.status_again(last);
    person.was_hung_up();
    let call = is_voicemail(&desk, &id);
    let [greeting, note] = call["transcript"].as_array().unwrap().as_slice() else { panic!("{call}") };
    assert_eq!((&greeting["interrupted"], &greeting["intended_text"]), (&json!(true), &json!(LONG_GREETING)));
    assert_eq!((&note["role"], &note["text"]), (&json!("system"), &json!(MACHINE)));
}

fn a_message_is_left_after_the_greeting(provider: &'static str) {
    let desk = desk(provider, "leave_message");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.detects(Answerer::Machine);
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    if provider != "plivo" {
        assert!(!texts(&desk.call(&id), "assistant").contains(&MESSAGE), "its greeting goes on");
        person.detects(Answerer::GreetedMachine);
        let last = person.sent() - 1;
        person.status_again(last);
    }
    assert_eq!(person.hears(), MESSAGE);
    person.was_hung_up();
    let call = is_voicemail(&desk, &id);
    assert_eq!(lines(&call), [("assistant", GREETING), ("system", MACHINE), ("assistant", MESSAGE)]);
    assert_eq!(call["transcript"][2]["interrupted"], false, "{call}");
    let ([_, assistant], rate_hz) = channels(&desk.world.get(format!("/calls/{id}/recording")).ok().body);
    let rate = if rate_hz == 16_000 { Rate::Khz16 } else { Rate::Khz8 };
    let recorded = ToneDecoder::new(rate).hear(&assistant).into_iter().filter_map(|heard| match heard {
        ToneHeard::Said { text, .. } => Some(text),
        _ => None,
    });
    assert_eq!(recorded.collect::<Vec<_>>(), [GREETING, MESSAGE]);
}

fn what_a_machine_says_is_recorded_and_not_answered(provider: &'static str) {
    // Twilio reports a machine only when its greeting is over: until then, the assistant talks with it.
    if provider == "twilio" {
        return;
    }
    let desk = desk(provider, "leave_message");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.detects(Answerer::Machine);
    desk.until(&id, "told of the machine", |call| texts(call, "system") == [MACHINE]);
    person.says("Not at home.");
    desk.until(&id, "greeted", |call| texts(call, "user") == ["Not at home."]);
    person.detects(Answerer::GreetedMachine);
    assert_eq!(person.hears(), MESSAGE);
    person.was_hung_up();
    let call = is_voicemail(&desk, &id);
    let expected =
        [("assistant", GREETING), ("system", MACHINE), ("user", "Not at home."), ("assistant", MESSAGE)];
    assert_eq!(lines(&call), expected);
}

fn nothing_interrupts_the_message(provider: &'static str) {
    let desk = desk(provider, "leave_message");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    greets(&mut person);
    person.hears_somebody();
    person.key('1');
    person.says("Hello?");
    assert_eq!(person.hears(), MESSAGE);
    person.was_hung_up();
    let call = is_voicemail(&desk, &id);
    assert_eq!(texts(&call, "assistant"), [GREETING, MESSAGE]);
}

fn who_hangs_up_during_the_message_cuts_it(provider: &'static str) {
    let desk = desk(provider, "leave_message");
    patch(&desk, json!({"voicemail": {"action": "leave_message", "message": LONG_GREETING}}));
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    greets(&mut person);
    person.hears_somebody();
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "voicemail", "ended_reason": "user_hung_up", "fault": "none"}));
    let row = call["transcript"].as_array().unwrap().last().unwrap();
    assert_eq!((&row["interrupted"], &row["intended_text"]), (&json!(true), &json!(LONG_GREETING)), "{call}");
}

fn a_machine_that_is_known_before_the_answer_is_not_greeted(provider: &'static str) {
    for action in ["hang_up", "leave_message"] {
        let desk = desk(provider, action);
        let (id, mut person) = desk.place();
        person.ring();
        greets(&mut person);
        person.answer();
        if action == "leave_message" {
            assert_eq!(person.hears(), MESSAGE);
        }
        person.was_hung_up();
        let call = is_voicemail(&desk, &id);
        let expected: &[_] = match action {
            "hang_up" => &[("system", MACHINE)],
            _ => &[("system", MACHINE), ("assistant", MESSAGE)],
        };
        assert_eq!(lines(&call), expected);
    }
}

fn a_result_after_the_end_changes_nothing(provider: &'static str) {
    let desk = desk(provider, "hang_up");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "user_hung_up"}));
    person.detects(Answerer::Machine);
    assert_eq!(desk.over(&id), call);
}

fn a_result_for_an_unknown_call_changes_nothing(provider: &'static str) {
    let desk = desk(provider, "hang_up");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.detects_for_nobody(Answerer::Machine);
    std::thread::sleep(Duration::from_millis(2 * MOMENT_MS));
    person.says("When do you open on Saturday?");
    assert!(person.hears().contains("open at ten"));
    person.hang_up();
    desk.expect(&desk.over(&id), &json!({"outcome": "completed", "ended_reason": "user_hung_up"}));
    assert_eq!(desk.calls().len(), 1);
}

fn a_tool_that_runs_meanwhile_is_recorded(provider: &'static str) {
    let desk = with_model(provider, "fake/tools", "leave_message");
    let receiver = Receiver::start(ReceiverBehaviour::Hold);
    let tool = desk.world.create(
        "/tools",
        json!({"name": "find_order", "description": "Finds an order.", "url": receiver.url(),
               "timeout_ms": 30_000, "parameters": {"type": "object"}}),
    );
    let path = format!("/assistants/{}/tools", desk.assistant.id);
    desk.world.put(path, json!({"tool_ids": [tool.id]})).ok();
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Speak now.");
    desk.until(&id, "in a tool call", |call| texts(call, "tool_call") == ["find_order({})"]);
    greets(&mut person);
    desk.until(&id, "told of the machine", |call| texts(call, "system") == [MACHINE]);
    receiver.set(ReceiverBehaviour::Status(200));
    assert_eq!(person.hears(), MESSAGE);
    person.was_hung_up();
    let call = is_voicemail(&desk, &id);
    assert_eq!(texts(&call, "tool_result"), ["ok"]);
    assert_eq!(texts(&call, "assistant"), [GREETING, MESSAGE], "the model is not asked again");
}

fn a_transfer_under_way_comes_first(provider: &'static str) {
    let desk = with_model(provider, "fake/parallel-tools", "hang_up");
    patch(&desk, json!({"transfers": [{"name": "Sales", "number": "+4930123456"}]}));
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.transfers_are(Behaviour::Late);
    person.says("Sales");
    assert_eq!(person.hears(), "One moment.");
    person.is_transferred();
    person.detects(Answerer::Machine);
    person.other_answers();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "voicemail", "ended_reason": "transferred", "fault": "none"}));
    assert_eq!((person.transfers(), person.is_commanded_to_end()), (1, false), "{call}");
}

/// Only for calls that the assistant makes.
fn who_calls_is_no_machine(provider: &'static str) {
    let desk = desk(provider, "hang_up");
    let mut person = desk.is_called();
    person.answer();
    assert_eq!(person.hears(), GREETING);
    person.says("When do you open on Saturday?");
    assert!(person.hears().contains("open at ten"));
    let id = desk.only_call()["id"].as_str().unwrap().to_owned();
    person.hang_up();
    desk.expect(&desk.over(&id), &json!({"outcome": "completed", "ended_reason": "user_hung_up"}));
}

#[test]
fn a_fax_gets_no_message() {
    for provider in ["twilio", "telnyx"] {
        let desk = desk(provider, "leave_message");
        let (id, mut person) = desk.connected();
        assert_eq!(person.hears(), GREETING);
        person.detects(Answerer::Fax);
        person.was_hung_up();
        assert_eq!(lines(&is_voicemail(&desk, &id)), [("assistant", GREETING), ("system", MACHINE)]);
    }
}

/// With a provider's voice, and a transcriber that tells words while they are said.
#[test]
fn words_over_a_spoken_message_do_not_cut_it() {
    let desk = desk("twilio", "leave_message");
    let term = format!("term {}", desk.number);
    let voice = json!({"voice": "deepgram/aura-2-thalia-en", "transcriber": "deepgram/nova-3", "keyterms": [term],
                       "language": "en", "first_message": LONG_GREETING});
    patch(&desk, voice);
    fakes::shared_speech().will_hear(&term, &["Hello, who is there?"]);
    let (id, mut person) = desk.connected();
    hears_ms(&person, 1_500);
    person.detects(Answerer::GreetedMachine);
    desk.until(&id, "leaving the message", |call| texts(call, "assistant").len() == 2);
    crate::talked_over::makes_a_sound(&person, 600);
    person.was_hung_up();
    let call = is_voicemail(&desk, &id);
    let rows: Vec<&Value> =
        call["transcript"].as_array().unwrap().iter().filter(|row| row["role"] == "assistant").collect();
    assert_eq!(rows[0]["interrupted"], true, "{call}");
    assert_eq!((&rows[1]["text"], &rows[1]["interrupted"]), (&json!(MESSAGE), &json!(false)), "{call}");
}
