//! The assistant hands a call over to a person.
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_tests::fakes::carrier::{
    Behaviour, CallEvent, EndKind, Instruction, PROVIDER_WITHOUT_PRICES, RATE_MICROUSD,
};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

use crate::support::{Desk, GREETING, MOMENT_MS, Person, lines, texts};

with_each_carrier!(
    an_announced_call_is_transferred_once,
    an_incoming_call_is_transferred,
    the_carrier_may_close_the_media_before_it_answers,
    the_assistant_goes_on_after_a_refusal,
    an_unclear_answer_is_not_asked_again,
    a_broken_connection_is_not_asked_again,
    two_transfers_in_one_turn_are_one,
    a_name_that_is_not_listed_reaches_nobody,
    a_number_of_the_call_reaches_nobody,
    who_hangs_up_during_the_announcement_is_not_transferred,
    a_tool_of_the_same_turn_answers_first,
    a_number_that_is_not_reached_ends_the_line,
    a_transferred_call_is_not_hung_up_by_request,
);

const SALES: &str = "+4930123456";
pub(super) const ANNOUNCED: &str = "One moment.";

/// The time of an order, which holds for what follows, too.
const ORDERED_S: u32 = 3_600;
const LONGEST_S: u32 = 7_200;

/// A desk whose assistant announces and transfers to whomever the person names.
pub(super) fn desk(provider: &'static str) -> Desk {
    with_model(provider, "fake/parallel-tools")
}

fn with_model(provider: &'static str, model: &str) -> Desk {
    let desk = Desk::with_model(provider, model);
    let transfers = json!([
        {"name": "Sales", "number": SALES, "when": "They want to buy."},
        {"name": "Support", "number": "+4930123457"},
    ]);
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), json!({"transfers": transfers})).ok();
    desk
}

/// A call whose person has asked for somebody, and heard the announcement.
pub(super) fn asked_for(desk: &Desk, name: &str) -> (String, Person) {
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says(name);
    assert_eq!(person.hears(), ANNOUNCED);
    (id, person)
}

fn to_sales(caller_id: Option<&str>, seconds: u32) -> Instruction {
    Instruction::Dial { to: SALES.to_owned(), caller_id: caller_id.map(str::to_owned), seconds, told: None }
}

#[track_caller]
pub(super) fn is_transferred(desk: &Desk, id: &str, person: &Person) -> Value {
    let call = desk.over(id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "transferred", "fault": "none"}));
    assert_eq!(texts(&call, "tool_result"), ["Transferred."]);
    assert_eq!((person.transfers(), person.is_commanded_to_end()), (1, false), "{call}");
    call
}

fn an_announced_call_is_transferred_once(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    assert_eq!(person.was_transferred(), to_sales(Some(&desk.number), ORDERED_S));
    person.other_answers();
    let call = is_transferred(&desk, &id, &person);
    assert_eq!(
        lines(&call),
        [
            ("assistant", GREETING),
            ("user", "Sales"),
            ("assistant", ANNOUNCED),
            ("tool_call", r#"transfer_call({"name":"Sales"})"#),
            ("tool_result", "Transferred."),
        ]
    );
    assert_eq!(call["transcript"][2]["interrupted"], false, "{call}");
    // They talk, and hang up. The carrier says what it cost.
    let before = call["costs"]["telephony_microusd"].clone();
    person.over(EndKind::HungUp);
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    let late = desk.over(&id);
    if !["vonage", PROVIDER_WITHOUT_PRICES].contains(&provider) {
        assert!(late["costs"]["telephony_microusd"].as_i64() > before.as_i64(), "{late}");
    }
    assert_eq!(late["ended_reason"], "transferred");
    assert_eq!((person.transfers(), person.is_commanded_to_end()), (1, false));
}

fn an_incoming_call_is_transferred(provider: &'static str) {
    let desk = desk(provider);
    let mut person = desk.is_called();
    person.answer();
    assert_eq!(person.hears(), GREETING);
    person.says("Sales");
    assert_eq!(person.hears(), ANNOUNCED);
    // Some carriers show the number of who has called, others only one of ours.
    let ours = ["telnyx", "vonage"].contains(&provider).then_some(desk.number.as_str());
    assert_eq!(person.was_transferred(), to_sales(ours, LONGEST_S));
    person.other_answers();
    let id = desk.only_call()["id"].as_str().unwrap().to_owned();
    is_transferred(&desk, &id, &person);
    person.over(EndKind::HungUp);
}

fn the_carrier_may_close_the_media_before_it_answers(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.transfers_are(Behaviour::Late);
    person.is_transferred();
    person.close_media();
    person.other_answers();
    is_transferred(&desk, &id, &person);
}

fn the_assistant_goes_on_after_a_refusal(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.transfers_are(Behaviour::TooMany);
    person.says("Sales");
    assert_eq!(person.hears(), ANNOUNCED);
    let told = person.hears();
    assert!(told.starts_with("It says: Error: The carrier did not transfer the call: "), "{told}");
    // Another attempt is another request.
    person.transfers_are(Behaviour::Take);
    person.says("Support");
    assert_eq!(person.hears(), ANNOUNCED);
    person.was_transferred();
    person.other_answers();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "transferred", "outcome": "completed"}));
    assert_eq!((person.transfers(), person.is_commanded_to_end()), (2, false));
}

fn an_unclear_answer_is_not_asked_again(provider: &'static str) {
    is_unclear(provider, Behaviour::Broken);
}

fn a_broken_connection_is_not_asked_again(provider: &'static str) {
    is_unclear(provider, Behaviour::Cut);
}

fn is_unclear(provider: &'static str, behaviour: Behaviour) {
    let desk = desk(provider);
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.transfers_are(behaviour);
    person.says("Sales");
    assert_eq!(person.hears(), ANNOUNCED);
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "carrier_failed", "outcome": "failed", "fault": "carrier"}));
    assert!(texts(&call, "tool_result")[0].starts_with("The carrier did not say"), "{call}");
    assert_eq!((person.transfers(), person.is_commanded_to_end()), (1, false));
}

fn two_transfers_in_one_turn_are_one(provider: &'static str) {
    let desk = with_model(provider, "fake/twice");
    let (id, mut person) = asked_for(&desk, "Sales");
    assert_eq!(person.was_transferred(), to_sales(Some(&desk.number), ORDERED_S));
    person.other_answers();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "transferred"}));
    assert_eq!(texts(&call, "tool_call").len(), 2, "{call}");
    assert_eq!(person.transfers(), 1);
}

fn a_name_that_is_not_listed_reaches_nobody(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Marketing");
    let told = person.hears();
    assert!(told.starts_with("It says: Error: The arguments do not fit"), "{told}");
    person.hang_up();
    desk.expect(&desk.over(&id), &json!({"ended_reason": "user_hung_up"}));
    assert_eq!(person.transfers(), 0);
}

/// Another assistant would answer there, and hand the call over again.
fn a_number_of_the_call_reaches_nobody(provider: &'static str) {
    let desk = desk(provider);
    let ours = json!([{"name": "Ourselves", "number": desk.number}]);
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), json!({"transfers": ours})).ok();
    let (id, mut person) = asked_for(&desk, "Ourselves");
    let told = person.hears();
    assert_eq!(told, "It says: Error: The call was not transferred: the number is one of this call.");
    person.hang_up();
    desk.expect(&desk.over(&id), &json!({"ended_reason": "user_hung_up"}));
    assert_eq!(person.transfers(), 0);
}

fn who_hangs_up_during_the_announcement_is_not_transferred(provider: &'static str) {
    // What is to be cut lasts long.
    let desk = with_model(provider, "fake/announces-at-length");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Sales");
    person.hears_somebody();
    person.hang_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "user_hung_up"}));
    assert_eq!(texts(&call, "tool_result"), [""; 0]);
    assert_eq!(person.transfers(), 0);
}

fn a_tool_of_the_same_turn_answers_first(provider: &'static str) {
    let desk = desk(provider);
    let receiver = Receiver::start(ReceiverBehaviour::Hold);
    let tool = desk.world.create(
        "/tools",
        json!({"name": "note", "description": "Notes it.", "url": receiver.url(), "timeout_ms": 30_000,
               "parameters": {"type": "object"}}),
    );
    let path = format!("/assistants/{}/tools", desk.assistant.id);
    desk.world.put(path, json!({"tool_ids": [tool.id]})).ok();
    let (id, mut person) = asked_for(&desk, "Sales");
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    assert_eq!(person.transfers(), 0);
    receiver.set(ReceiverBehaviour::Status(200));
    person.was_transferred();
    person.other_answers();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": "transferred"}));
    assert_eq!(texts(&call, "tool_result"), ["ok", "Transferred."]);
}

fn a_number_that_is_not_reached_ends_the_line(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    person.other_answers();
    let call = is_transferred(&desk, &id, &person);
    person.tell_of_other_end(&CallEvent::Ringing);
    person.tell_of_other_end(&CallEvent::Ended { how: EndKind::NoAnswer, seconds: 0 });
    if provider == "telnyx" {
        // Only here the line stays open, with nobody at its other end.
        person.was_commanded_to_end();
    }
    std::thread::sleep(Duration::from_millis(MOMENT_MS));
    assert_eq!(person.is_commanded_to_end(), provider == "telnyx");
    assert_eq!(desk.over(&id), call, "the other end is not the call");
}

fn a_transferred_call_is_not_hung_up_by_request(provider: &'static str) {
    let desk = desk(provider);
    let (id, mut person) = asked_for(&desk, "Sales");
    person.was_transferred();
    person.other_answers();
    let call = is_transferred(&desk, &id, &person);
    let reply = desk.world.post(format!("/calls/{id}/hang-up"), json!({}));
    assert_eq!((reply.status, desk.call(&id)), (200, call));
    assert!(!person.is_commanded_to_end());
}

/// The carrier's rate for an hour is all that there is: 59 minutes for both ends, and two while the other one rings.
#[test]
fn little_money_shortens_a_transfer() {
    let desk = with_model(PROVIDER_WITHOUT_PRICES, "builtin/rules");
    let limit = json!({"monthly_spend_limit_microusd": 60 * RATE_MICROUSD});
    desk.world.patch("/workspace", limit).ok();
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Please transfer me to Sales.");
    assert_eq!(person.was_transferred(), to_sales(Some(&desk.number), 28 * 60));
    person.other_answers();
    is_transferred(&desk, &id, &person);
    let reserved = |desk: &Desk| desk.world.get("/workspace").ok()["reserved_microusd"].as_i64();
    assert_eq!(reserved(&desk), Some(58 * RATE_MICROUSD));
    person.over(EndKind::HungUp);
    assert_eq!(reserved(&desk), Some(0));
}
