//! Calls that the service places and the carrier accepts.
use bytes::Bytes;
use http::Method;
use serde_json::json;
use sidetone_tests::fakes::carrier::Command;

use crate::support::{Desk, GREETING, a_number, lines};

with_each_carrier!(
    the_person_ends,
    the_assistant_ends,
    busy,
    no_answer,
    declined,
    failed,
    a_retry_with_a_key_places_one_call,
    an_order_continues_after_its_client_disconnects,
    the_limit_of_concurrent_calls_holds_for_concurrent_orders,
    a_dry_run_places_no_call,
    the_only_number_of_an_assistant_is_the_default,
);

fn the_person_ends(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    let to = person.call().to.clone();
    assert_eq!(desk.call(&id)["status"], "queued");
    person.ring();
    let ringing = desk.once(&id, "ringing");
    assert!(ringing["answered_at"].is_null(), "{ringing}");
    person.answer();
    desk.once(&id, "in_progress");
    assert_eq!(person.hears(), GREETING);
    person.says("When do you open on Saturday?");
    let answer = person.hears();
    assert!(answer.contains("open at ten"), "{answer}");
    person.hang_up();

    let call = desk.over(&id);
    let expected = json!({
        "source": "outbound", "direction": "outbound", "outcome": "completed", "ended_reason": "user_hung_up",
        "fault": "none", "provider": provider, "carrier_call_id": person.id(), "from": desk.number, "to": to,
        "user_number": to, "assistant_id": desk.assistant.id, "voice": "builtin/tone",
    });
    desk.expect(&call, &expected);
    let said =
        [("assistant", GREETING), ("user", "When do you open on Saturday?"), ("assistant", answer.as_str())];
    assert_eq!(lines(&call), said);
    for at in ["answered_at", "ended_at"] {
        assert!(call[at].is_string(), "{at} of {call}");
    }
    assert!(call["duration_ms"].as_i64().unwrap() > 1_000, "{call}");
    assert_eq!(desk.orders(&to), 1);
    // The number that it was placed from says that the carrier's reports arrive.
    let bound = desk.world.get("/numbers").ok().json[0].clone();
    assert_eq!(bound["number"], desk.number);
    assert!(bound["last_callback_at"].as_str().unwrap() >= call["answered_at"].as_str().unwrap(), "{bound}");
    assert!(person.problems().is_empty(), "{:?}", person.problems());
}

fn the_assistant_ends(provider: &'static str) {
    let desk = Desk::with_model(provider, "fake/says-goodbye");
    let (id, mut person) = desk.connected();
    assert_eq!(person.hears(), GREETING);
    person.says("Thank you, that was all.");
    assert_eq!(
        person.hears(),
        "Goodbye, and thank you.",
        "the last words are spoken before the line is closed"
    );
    person.was_hung_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "completed", "ended_reason": "assistant_ended", "fault": "none"}));
    let ends = desk.carrier.commands(person.id()).into_iter();
    let ends = ends.filter(|command| matches!(command, Command::HangUp { .. })).count();
    assert!(ends <= 1, "{provider} got {ends} hang-up commands");
}

fn busy(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.busy();
    let expected = json!({"outcome": "busy", "ended_reason": "busy", "fault": "none", "answered_at": null,
                          "transcript": [], "carrier_call_id": person.id()});
    desk.expect(&desk.over(&id), &expected);
}

fn no_answer(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.ring();
    desk.once(&id, "ringing");
    person.no_answer();
    let expected =
        json!({"outcome": "no_answer", "ended_reason": "no_answer", "fault": "none", "answered_at": null});
    desk.expect(&desk.over(&id), &expected);
}

fn declined(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.ring();
    person.decline();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "busy", "fault": "none"}));
    // Not every carrier distinguishes a declined call from a busy line.
    assert!(["declined", "busy"].contains(&call["ended_reason"].as_str().unwrap()), "{call}");
}

fn failed(provider: &'static str) {
    let desk = Desk::new(provider);
    let (id, mut person) = desk.place();
    person.fail();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "failed"}));
    assert!(["unreachable", "carrier_failed"].contains(&call["ended_reason"].as_str().unwrap()), "{call}");
    assert_ne!(call["fault"], "none");
}

fn an_order_continues_after_its_client_disconnects(provider: &'static str) {
    let desk = Desk::new(provider);
    let to = a_number("0202");
    let order =
        desk.world.request(Method::POST, "/calls/outbound").header("content-type", "application/json");
    let order = order.body(Bytes::from(desk.order_body(&to).to_string())).unwrap();
    let client = desk.world.begin(&order);
    let phone = desk.carrier.rings(&to);
    // The carrier has received the order and not responded yet.
    assert!(desk.only_call()["carrier_call_id"].is_null());
    drop(client);
    let id = desk.only_call()["id"].as_str().unwrap().to_owned();
    desk.until(&id, "known by the carrier's id", |call| call["carrier_call_id"] == phone.id());
    assert_eq!(desk.orders(&to), 1);
}

fn a_retry_with_a_key_places_one_call(provider: &'static str) {
    let desk = Desk::new(provider);
    let to = a_number("7777");
    let first = desk.world.post_once("/calls/outbound", "once", desk.order_body(&to)).created();
    let again = desk.world.post_once("/calls/outbound", "once", desk.order_body(&to)).created();
    assert_eq!((&again.json, again.header("idempotent-replayed")), (&first.json, Some("true")));
    desk.world
        .post_once("/calls/outbound", "once", desk.order_body(&a_number("7777")))
        .refused("idempotency_key_reused");
    assert_eq!((desk.orders(&to), desk.calls().len()), (1, 1));
    desk.carrier.rings(&to).busy();
    desk.over(first["id"].as_str().unwrap());
}

/// Concurrent orders all see a free slot when they read.
fn the_limit_of_concurrent_calls_holds_for_concurrent_orders(provider: &'static str) {
    let desk = Desk::new(provider);
    desk.world.patch("/workspace", json!({"calls_at_once": 1})).ok();
    let statuses: Vec<u16> = std::thread::scope(|scope| {
        let orders: Vec<_> = (0..8)
            .map(|_| {
                let (world, wanted) = (desk.world.clone(), desk.order_body(&a_number("7777")));
                scope.spawn(move || world.post("/calls/outbound", wanted).status)
            })
            .collect();
        orders.into_iter().map(|order| order.join().unwrap()).collect()
    });
    let with = |wanted: u16| statuses.iter().filter(|status| **status == wanted).count();
    assert_eq!((with(201), with(429)), (1, 7), "{statuses:?}");
    assert_eq!(desk.calls().len(), 1);
}

fn a_dry_run_places_no_call(provider: &'static str) {
    let desk = Desk::new(provider);
    let to = a_number("7777");
    let would = desk.world.post("/calls/outbound?dry_run=true", desk.order_body(&to));
    assert!((200..300).contains(&would.status), "{would:?}");
    assert_eq!((desk.orders(&to), desk.calls().len()), (0, 0));
    // A dry run with problems reports them and also places no call.
    let mut wrong = desk.order_body(&to);
    wrong["from"] = json!(a_number("0000"));
    let would_not = desk.world.post("/calls/outbound?dry_run=true", wrong);
    assert_ne!(would_not.json, would.json);
    assert_eq!((desk.orders(&to), desk.calls().len()), (0, 0));
}

fn the_only_number_of_an_assistant_is_the_default(provider: &'static str) {
    let desk = Desk::new(provider);
    let to = a_number("7777");
    let body = json!({"assistant_id": desk.assistant.id, "to": to});
    let call = desk.world.post("/calls/outbound", body).created().json;
    desk.expect(&call, &json!({"from": desk.number, "provider": provider}));
    let mut phone = desk.carrier.rings(&to);
    assert_eq!(phone.call().from, desk.number);
    phone.busy();
    desk.over(call["id"].as_str().unwrap());
}
