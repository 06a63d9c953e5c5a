//! Calls that end in the middle of the assistant's line: the log has what was heard and when the call ended.
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_tests::fakes::carrier::{CallEvent, EndKind};

use crate::support::{Desk, Person, texts};

with_each_carrier!(
    the_caller_hangs_up,
    somebody_else_hangs_up,
    the_connection_drops,
    the_connection_drops_with_the_call,
    a_dead_model_is_apologized_for,
);

/// How long the person listens.
const LISTENED_MS: u64 = 3_000;

fn the_caller_hangs_up(provider: &'static str) {
    is_cut(provider, "user_hung_up", |_, _, person| person.hang_up());
}

fn somebody_else_hangs_up(provider: &'static str) {
    is_cut(provider, "hung_up_by_request", |desk, id, person| {
        desk.world.post(format!("/calls/{id}/hang-up"), json!({})).ok();
        person.was_hung_up();
    });
}

fn the_connection_drops(provider: &'static str) {
    // Two carriers say that a call ends before they close its socket.
    let says_stop = ["twilio", "telnyx"].contains(&provider);
    let reason = if says_stop { "media_lost" } else { "user_hung_up" };
    is_cut(provider, reason, |_, _, person| person.drop_connection());
}

/// The carrier's report comes after the connection is gone. One carrier reports an end without saying whose it was.
fn the_connection_drops_with_the_call(provider: &'static str) {
    let reason = if provider == "twilio" { "media_lost" } else { "user_hung_up" };
    is_cut(provider, reason, |_, _, person| {
        person.drop_connection();
        std::thread::sleep(Duration::from_millis(200));
        person.tell(&CallEvent::Ended { how: EndKind::HungUp, seconds: 4 });
    });
}

/// A greeting of eight sentences, some twenty seconds long.
fn greeting() -> String {
    let rooms = ["first", "second", "third", "fourth", "fifth", "sixth", "seventh", "eighth"];
    rooms
        .map(|room| {
            format!("In the {room} room you find a great many wonderful things to look at and to buy.")
        })
        .join(" ")
}

fn is_cut(provider: &'static str, reason: &str, end: impl FnOnce(&Desk, &str, &mut Person)) {
    let desk = Desk::new(provider);
    let greeting = greeting();
    desk.world.patch(format!("/assistants/{}", desk.assistant.id), json!({"first_message": greeting})).ok();
    let (id, mut person) = desk.connected();
    let started = Instant::now();
    person.hears_somebody();
    person.heard_for(LISTENED_MS);
    end(&desk, &id, &mut person);
    let lasted_ms = i64::try_from(started.elapsed().as_millis()).unwrap();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"ended_reason": reason}));
    let row = &call["transcript"][0];
    assert_eq!((&row["interrupted"], &row["intended_text"]), (&json!(true), &json!(greeting)), "{call}");
    let heard = row["text"].as_str().unwrap();
    assert!(greeting.starts_with(heard) && !heard.is_empty(), "{provider}: {heard:?}");
    assert!(heard.len() < greeting.len() / 2, "{provider}: {heard:?}");
    let (end_ms, duration_ms) = (row["end_ms"].as_i64().unwrap(), call["duration_ms"].as_i64().unwrap());
    assert!(end_ms >= 2_000 && end_ms <= duration_ms, "{provider}: {call}");
    // The service waits three seconds for a report about a broken line: they are no part of the call.
    assert!(duration_ms <= lasted_ms + 2_500, "{provider}: {duration_ms} ms; it lasted {lasted_ms} ms");
    let summary = call["analysis"]["summary"].as_str().unwrap();
    assert!(!summary.contains("eighth"), "{provider}: {summary}");
}

fn a_dead_model_is_apologized_for(provider: &'static str) {
    const APOLOGY: &str = "I am sorry, I have a technical problem. Please call again later.";
    let desk = Desk::with_model(provider, "fake/no-such-model");
    let (id, mut person) = desk.connected();
    person.hears();
    person.says("Are you open?");
    assert_eq!(person.hears(), APOLOGY);
    person.was_hung_up();
    let call = desk.over(&id);
    desk.expect(&call, &json!({"outcome": "failed", "ended_reason": "model_failed", "fault": "operator"}));
    assert_eq!(texts(&call, "assistant").last(), Some(&APOLOGY), "{call}");
    let said: &Value = call["transcript"].as_array().unwrap().last().unwrap();
    assert_eq!(said["interrupted"], false, "{call}");
    assert!(said["end_ms"].as_i64() > said["start_ms"].as_i64(), "{call}");
}
