//! The assistant presses keys in the menu of whom it calls.
use serde_json::{Value, json};
use sidetone_tests::Created;
use sidetone_tests::dtmf::keys_in;

use crate::recordings::channels;
use crate::support::{Desk, GREETING, Person, lines, texts};

with_each_carrier!(
    keys_are_pressed_in_a_menu,
    a_menu_that_goes_on_talking_cuts_no_key,
    who_hangs_up_while_keys_are_pressed_hears_no_more,
    a_requested_hang_up_ends_the_keys_too,
    wrong_keys_are_refused_to_the_model,
    without_the_field_no_key_is_pressed,
    who_calls_hears_no_key,
);

fn desk(provider: &'static str, model: &str) -> Desk {
    let desk = Desk::with_model(provider, model);
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), json!({"keys": true})).ok();
    desk
}

/// Listens until so many keys were heard, to the end of the last tone; returns all so far.
pub fn hears_keys(person: &Person, keys: usize) -> String {
    let rate_hz = person.rate_hz();
    person.hear_until("keys", |played| Some(keys_in(played, rate_hz)).filter(|heard| heard.len() >= keys))
}

/// The result rows of tools, and whether each is an error.
fn results(call: &Value) -> Vec<(&str, bool)> {
    let rows = call["transcript"].as_array().unwrap().iter().filter(|row| row["role"] == "tool_result");
    rows.map(|row| (row["text"].as_str().unwrap(), row["is_error"] == true)).collect()
}

fn keys_are_pressed_in_a_menu(provider: &'static str) {
    let desk = desk(provider, "builtin/rules");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Please press the key \"2\" for sales.");
    assert_eq!(hears_keys(&person, 1), "2");
    assert_eq!(person.hears(), "The key 2 was pressed.");
    person.says("Now press the keys \"31w*#\" of your number.");
    assert_eq!(hears_keys(&person, 5), "231*#");
    assert_eq!(person.hears(), "The keys 3, 1, *, # were pressed.");
    assert!(person.problems().is_empty(), "{:?}", person.problems());
    person.hang_up();
    let call = desk.over(&id);
    assert_eq!(
        lines(&call),
        [
            ("assistant", GREETING),
            ("user", "Please press the key \"2\" for sales."),
            ("tool_call", "send_keys({\"keys\":\"2\"})"),
            ("tool_result", "The key 2 was pressed."),
            ("assistant", "The key 2 was pressed."),
            ("user", "Now press the keys \"31w*#\" of your number."),
            ("tool_call", "send_keys({\"keys\":\"31w*#\"})"),
            ("tool_result", "The keys 3, 1, *, # were pressed."),
            ("assistant", "The keys 3, 1, *, # were pressed."),
        ]
    );
    let rows = &call["transcript"];
    let took_ms = rows[7]["start_ms"].as_i64().unwrap() - rows[6]["start_ms"].as_i64().unwrap();
    assert!((1_250..4_000).contains(&took_ms), "the result came {took_ms} ms after the call");
    let recording = desk.world.get(format!("/calls/{id}/recording")).ok().body;
    let ([_, assistant], rate_hz) = channels(&recording);
    assert_eq!(keys_in(&assistant, rate_hz), "231*#");
}

fn a_menu_that_goes_on_talking_cuts_no_key(provider: &'static str) {
    let desk = desk(provider, "builtin/rules");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Please press the keys \"123456789\".");
    hears_keys(&person, 1);
    person.says("Or wait for somebody.");
    assert_eq!(hears_keys(&person, 9), "123456789");
    assert!(person.cleared().is_empty(), "a tone with a gap is two keys");
    let result = "The keys 1, 2, 3, 4, 5, 6, 7, 8, 9 were pressed.";
    let call = desk.until(&id, "told of the keys", |call| !results(call).is_empty());
    assert_eq!(results(&call), [(result, false)]);
    desk.until(&id, "answered", |call| texts(call, "assistant").len() == 2);
    person.hang_up();
    let call = desk.over(&id);
    assert!(texts(&call, "user").contains(&"Or wait for somebody."), "{call}");
}

fn who_hangs_up_while_keys_are_pressed_hears_no_more(provider: &'static str) {
    let desk = desk(provider, "builtin/rules");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Please press the keys \"12345678901234567890\".");
    hears_keys(&person, 3);
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "user_hung_up"}));
    expect_cut(&call);
}

fn a_requested_hang_up_ends_the_keys_too(provider: &'static str) {
    let desk = desk(provider, "builtin/rules");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Please press the keys \"1234567890ABCDwwwwwwwwwwwwwwww*#\".");
    hears_keys(&person, 3);
    desk.world.post(format!("/calls/{id}/hang-up"), json!({}));
    person.was_hung_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "hung_up_by_request"}));
    expect_cut(&call);
}

/// The result is an error that tells which keys were pressed.
fn expect_cut(call: &Value) {
    let results = results(call);
    let told = "The call was over when only these keys were pressed: 1, 2";
    assert!(matches!(results[..], [(text, true)] if text.starts_with(told)), "{call}");
    assert_eq!(texts(call, "assistant"), [GREETING], "nothing is said afterwards: {call}");
}

fn wrong_keys_are_refused_to_the_model(provider: &'static str) {
    let desk = desk(provider, "builtin/rules");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Please press the key \"two\".");
    let answer = person.hears();
    assert!(answer.starts_with("I could not send keys because the arguments do not fit"), "{answer}");
    assert_eq!(keys_in(&person.heard(), person.rate_hz()), "");
    person.hang_up();
    let call = desk.over(&id);
    assert!(matches!(results(&call)[..], [(_, true)]), "{call}");
}

fn without_the_field_no_key_is_pressed(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, person) = desk.connected();
    expect_no_key(&desk, &id, person);
}

fn who_calls_hears_no_key(provider: &'static str) {
    let desk = desk(provider, "builtin/rules");
    let mut person = desk.is_called();
    person.answer();
    let id = desk.only_call()["id"].as_str().unwrap().to_owned();
    expect_no_key(&desk, &id, person);
}

fn expect_no_key(desk: &Desk, id: &str, mut person: Person) {
    assert_eq!(person.hears(), GREETING);
    person.says("Please press the key \"2\" for sales.");
    person.hears();
    assert_eq!(keys_in(&person.heard(), person.rate_hz()), "");
    person.hang_up();
    assert_eq!(texts(&desk.over(id), "tool_call"), [""; 0]);
}

/// A provider's model says something first: the keys come after it.
#[test]
fn keys_follow_the_line_before_them() {
    let desk = desk("twilio", "fake/parallel-tools");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("5#");
    assert_eq!(person.hears(), "One moment.");
    assert_eq!(keys_in(&person.heard(), person.rate_hz()), "");
    assert_eq!(hears_keys(&person, 2), "5#");
    assert_eq!(person.hears(), "It says: The keys 5, # were pressed.");
    person.hang_up();
    desk.over(&id);
}

/// The author's filler bridges a slow tool. Keys are heard, and a line would disturb them.
#[test]
fn no_filler_is_said_while_keys_are_pressed() {
    let desk = desk("plivo", "builtin/rules");
    let path = format!("/assistants/{}", desk.assistant.id);
    desk.world.patch(path, json!({"speech": {"filler": "One moment."}})).ok();
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Please press the keys \"1wwwww2\".");
    assert_eq!(hears_keys(&person, 2), "12");
    assert_eq!(person.hears(), "The keys 1, 2 were pressed.");
    person.hang_up();
    desk.over(&id);
}

/// Before there were keys, a tool could have that name. It works, and an assistant has only one of the two.
#[test]
fn a_tool_of_the_same_name_is_called_where_no_keys_are() {
    let desk = Desk::new("telnyx");
    let receiver =
        sidetone_tests::receiver::Receiver::start(sidetone_tests::receiver::ReceiverBehaviour::Status(200));
    let tool: Created = desk.world.create(
        "/tools",
        json!({"name": "send_keys", "description": "Sends the keys of a flat.", "url": receiver.url(),
               "parameters": {"type": "object"}}),
    );
    let path = format!("/assistants/{}", desk.assistant.id);
    desk.world.put(format!("{path}/tools"), json!({"tool_ids": [tool.id]})).ok();
    desk.world.patch(&path, json!({"keys": true})).refused("validation_failed");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Send me the keys, please.");
    assert_eq!(person.hears(), "Ok.");
    person.hang_up();
    assert_eq!(results(&desk.over(&id)), [("ok", false)]);
}
