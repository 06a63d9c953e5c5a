//! Incoming calls.
use serde_json::json;
use sidetone_tests::fakes::carrier::Carriers;

use crate::support::{Desk, GREETING, Person, a_number, lines};

with_each_carrier!(
    a_bound_number_is_answered,
    the_number_says_when_its_carrier_last_announced_a_call,
    a_call_to_an_unbound_number_is_declined,
    a_call_to_a_number_of_another_carrier_is_declined,
    a_repeated_announcement_is_one_call,
    rebinding_affects_the_next_call,
    unbinding_does_not_affect_the_live_call,
);

fn a_bound_number_is_answered(provider: &'static str) {
    let desk = Desk::new(provider);
    let mut person = desk.is_called();
    person.answer();
    assert_eq!(person.hears(), GREETING);
    person.says("When do you open on Saturday?");
    let answer = person.hears();
    assert!(answer.contains("open at ten"), "{answer}");
    person.hang_up();
    let id = desk.only_call()["id"].as_str().unwrap().to_owned();
    let call = desk.over(&id);
    let expected = json!({
        "source": "inbound", "direction": "inbound", "outcome": "completed", "ended_reason": "user_hung_up",
        "fault": "none", "provider": provider, "carrier_call_id": person.id(), "from": person.call().from,
        "to": desk.number, "assistant_id": desk.assistant.id,
    });
    desk.expect(&call, &expected);
    let said =
        [("assistant", GREETING), ("user", "When do you open on Saturday?"), ("assistant", answer.as_str())];
    assert_eq!(lines(&call), said);
}

fn the_number_says_when_its_carrier_last_announced_a_call(provider: &'static str) {
    let desk = Desk::new(provider);
    let bound = || desk.world.get("/numbers").ok().json[0].clone();
    assert_eq!(bound()["last_callback_at"], json!(null));
    let mut person = desk.is_called();
    person.answer();
    person.hang_up();
    let call = desk.only_call();
    assert_eq!(bound()["last_callback_at"], call["started_at"]);
    let path = format!("/numbers/{}", desk.number);
    let other = if provider == "vonage" { "twilio" } else { "vonage" };
    let moved = desk.world.put(path, json!({"assistant_id": desk.assistant.id, "provider": other})).ok();
    assert_eq!((&moved["last_callback_at"], &bound()["last_callback_at"]), (&json!(null), &json!(null)));
}

fn a_call_to_an_unbound_number_is_declined(provider: &'static str) {
    let desk = Desk::new(provider);
    let mut phone = desk.carrier.call(&a_number("1234"), &a_number("0000"));
    assert!((200..300).contains(&phone.announced().status), "{:?}", phone.announced());
    assert!(phone.was_refused());
    assert!(desk.calls().is_empty());
}

fn a_call_to_a_number_of_another_carrier_is_declined(provider: &'static str) {
    let desk = Desk::new(provider);
    let other = Carriers::shared().iter().find(|carrier| carrier.provider() != provider).unwrap();
    assert!(other.call(&a_number("1234"), &desk.number).was_refused());
    assert!(desk.calls().is_empty(), "{:?}", desk.calls());
}

fn a_repeated_announcement_is_one_call(provider: &'static str) {
    let desk = Desk::new(provider);
    let mut person = desk.is_called();
    person.announce();
    person.answer();
    assert_eq!(person.hears(), GREETING);
    person.hang_up();
    desk.over(desk.only_call()["id"].as_str().unwrap());
}

fn rebinding_affects_the_next_call(provider: &'static str) {
    let desk = Desk::new(provider);
    let mut first = desk.is_called();
    first.answer();
    assert_eq!(first.hears(), GREETING);
    let other = desk.world.create(
        "/assistants",
        json!({"name": "Night desk", "instructions": "Be kind.", "first_message": "Good night.", "voice": "builtin/tone"}),
    );
    desk.bind(&other.id, provider);
    first.says("When do you open on Saturday?");
    assert!(first.hears().contains("open at ten"), "the live call keeps its assistant");
    let mut second = desk.is_called();
    second.answer();
    assert_eq!(second.hears(), "Good night.");
    for (person, assistant) in [(&mut first, &desk.assistant.id), (&mut second, &other.id)] {
        person.hang_up();
        let call = call_of(&desk, person);
        desk.expect(&desk.over(&call), &json!({"assistant_id": assistant, "ended_reason": "user_hung_up"}));
    }
}

fn unbinding_does_not_affect_the_live_call(provider: &'static str) {
    let desk = Desk::new(provider);
    let mut person = desk.is_called();
    person.answer();
    assert_eq!(person.hears(), GREETING);
    desk.world.delete(format!("/numbers/{}", desk.number)).empty();
    person.says("When do you open on Saturday?");
    assert!(person.hears().contains("open at ten"));
    assert!(desk.carrier.call(&a_number("1234"), &desk.number).was_refused());
    person.hang_up();
    desk.over(desk.only_call()["id"].as_str().unwrap());
}

fn call_of(desk: &Desk, person: &Person) -> String {
    let call = desk.calls().into_iter().find(|call| call["carrier_call_id"] == person.id());
    call.expect("a row")["id"].as_str().unwrap().to_owned()
}
