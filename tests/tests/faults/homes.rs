//! Live calls in Durable Objects that the platform ends. The call is settled as after a crash, with what was stored.
use serde_json::{Value, json};
use sidetone_engine::base::limits::LIVE_LEASE_MS;
use sidetone_tests::edge::Edge;
use sidetone_tests::faults::{Endpoint, FaultHarness, FaultPlan};
use sidetone_tests::host::only_on;
use sidetone_tests::process::{Folder, bootstrap_key};
use sidetone_tests::{Browser, World};

use crate::harness;

const GREETING: &str = "Hello, front desk.";
const QUESTION: &str = "When do you open on Saturday?";

fn front_desk(world: &World) -> String {
    let body = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": GREETING,
                      "voice": "builtin/tone"});
    let assistant = world.create("/assistants", body).id;
    let hours =
        world.create("/knowledge", json!({"name": "Hours", "content": "On Saturday we open at ten."}));
    world.put(format!("/assistants/{assistant}/knowledge"), json!({"knowledge_ids": [hours.id]})).ok();
    assistant
}

fn call(harness: &FaultHarness, id: &str) -> Value {
    harness.world.get(format!("/calls/{id}")).ok().json
}

/// The call once its lease has expired: first nobody may end it.
#[track_caller]
fn settled(harness: &FaultHarness, id: &str) -> Value {
    harness.sweep();
    assert_eq!(call(harness, id)["status"], "in_progress", "its lease is valid");
    harness.pass(LIVE_LEASE_MS + 1);
    harness.sweep();
    let call = call(harness, id);
    assert_eq!(
        (&call["status"], &call["ended_reason"], &call["fault"]),
        (&json!("ended"), &json!("aborted"), &json!("platform")),
        "{call}"
    );
    call
}

fn texts(call: &Value) -> Vec<&str> {
    let rows = call["transcript"].as_array().expect("a transcript").iter();
    rows.map(|row| row["text"].as_str().expect("a text")).collect()
}

#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs Durable Objects")]
fn a_written_call_whose_object_is_ended_keeps_what_was_said() {
    only_on(&["worker"]);
    let harness = harness();
    harness.start_plan(&FaultPlan::default());
    let assistant = front_desk(&harness.world);
    let mut client = harness.world.start_conversation(&assistant);
    let id = client.expect("call_started")["call"]["id"].as_str().expect("an id").to_owned();
    client.hear();
    client.say(QUESTION);
    let answer = client.hear();
    harness.abort_call(&id);
    let (_, closed) = client.rest();
    assert_ne!(closed, Some(1_000), "the connection breaks");
    // A signal to a call that nobody holds is none.
    assert_eq!(call(&harness, &id)["status"], "in_progress");
    assert_eq!(texts(&settled(&harness, &id)), [GREETING, QUESTION, &answer]);
}

#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs Durable Objects")]
fn a_spoken_call_whose_object_is_ended_keeps_what_was_said_before_the_last_answer() {
    only_on(&["worker"]);
    let harness = harness();
    harness.start_plan(&FaultPlan::default());
    let mut browser = Browser::open(&harness.world, &front_desk(&harness.world), "tone");
    let id = browser.expect("call_started")["call"]["id"].as_str().expect("an id").to_owned();
    assert_eq!(browser.hear(), GREETING);
    browser.say(QUESTION);
    browser.hear();
    harness.abort_call(&id);
    let call = settled(&harness, &id);
    assert_eq!(texts(&call)[..2], [GREETING, QUESTION], "{call}");
    assert!(call["duration_ms"].as_i64().expect("a duration") > 0, "{call}");
}

#[test]
#[cfg_attr(not(test_host = "worker"), ignore = "needs workerd to kill")]
fn a_call_is_settled_after_the_kill_of_workerd() {
    only_on(&["worker"]);
    let state = Folder::new();
    let endpoint = Endpoint::start();
    let edge = Edge::faulty_on(state.path());
    let harness = FaultHarness::at(edge.clone(), bootstrap_key(0), endpoint.clone());
    let assistant = front_desk(&harness.world);
    let mut client = harness.world.start_conversation(&assistant);
    let id = client.expect("call_started")["call"]["id"].as_str().expect("an id").to_owned();
    client.hear();
    edge.kill();
    let harness = FaultHarness::at(Edge::faulty_on(state.path()), bootstrap_key(0), endpoint);
    assert_eq!(texts(&settled(&harness, &id)), [GREETING]);
}
