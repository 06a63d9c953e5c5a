//! `POST /tools/{id}/test`: one signed request, shown with its answer.
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};
use sidetone_tests::{Created, World};

const SOON: Duration = Duration::from_secs(30);

fn tool(world: &World, url: &str, method: &str) -> Created {
    world.create(
        "/tools",
        json!({"name": "find_slot", "url": url, "method": method, "timeout_ms": 20_000, "parameters": {
            "type": "object", "properties": {"day": {"type": "string"}, "party": {"type": "integer"}},
            "required": ["day"]}}),
    )
}

#[test]
fn the_request_is_that_of_a_conversation_and_says_that_it_is_a_test() {
    let world = World::with_fakes();
    let receiver = Receiver::start(ReceiverBehaviour::Status(200));
    let made = tool(&world, &receiver.url(), "POST");
    let path = format!("/tools/{}/test", made.id);
    let tested = world.post(&path, json!({"arguments": {"day": "2026-11-24", "party": 2}})).ok();
    let received = receiver.wait_for(1, SOON).remove(0);
    let body: Value = serde_json::from_slice(&received.body).unwrap();
    assert_eq!(body["type"], "tool.call");
    assert_eq!(body["tool"], json!({"name": "find_slot"}));
    assert_eq!(body["arguments"], json!({"day": "2026-11-24", "party": 2}));
    assert_eq!(
        body["call"],
        json!({"id": null, "source": "test", "from": null, "to": null, "assistant_id": null, "assistant_revision": null, "metadata": {}})
    );
    assert_eq!(received.header("idempotency-key"), body["id"]);
    // What is shown is what was sent.
    assert_eq!(tested["request"]["body"].as_str().unwrap().as_bytes(), received.body);
    for (name, value) in tested["request"]["headers"].as_object().unwrap() {
        assert_eq!(received.header(name), value, "{name}");
    }
    assert_eq!(
        (&tested["request"]["method"], &tested["request"]["url"]),
        (&json!("POST"), &json!(receiver.url()))
    );
    assert_eq!((&tested["response"]["status"], &tested["error"]), (&json!(200), &Value::Null));
    assert!(tested["duration_ms"].as_i64().unwrap() >= 0);
    let secret = made["signing_secret"].as_str().unwrap();
    assert!(!tested.json.to_string().contains(secret), "the secret is not shown");
    let entry = world.get("/audit").ok().json[0].clone();
    assert_eq!((&entry["operation"], &entry["subject"]), (&json!("test_tool"), &json!(made.id)));
}

#[test]
fn arguments_of_get_are_in_the_url() {
    let world = World::with_fakes();
    let receiver = Receiver::start(ReceiverBehaviour::Status(200));
    let made = tool(&world, &receiver.url(), "GET");
    let tested = world.post(format!("/tools/{}/test", made.id), json!({"arguments": {"day": "a b"}})).ok();
    assert_eq!(tested["request"]["url"], format!("{}?day=a+b", receiver.url()));
    assert_eq!(tested["request"]["body"], "");
}

#[test]
fn arguments_must_fit_the_parameters() {
    let world = World::with_fakes();
    let receiver = Receiver::start(ReceiverBehaviour::Status(200));
    let made = tool(&world, &receiver.url(), "POST");
    let path = format!("/tools/{}/test", made.id);
    world
        .post(&path, json!({"arguments": {"day": "x", "party": "two"}}))
        .refused("validation_failed")
        .naming(&["arguments.party"]);
    world.post(&path, json!({})).refused("validation_failed").naming(&["arguments.day"]);
    assert_eq!(receiver.count(), 0, "nothing was sent");
}

#[test]
fn an_endpoint_that_fails_is_a_result() {
    let world = World::with_fakes();
    let receiver = Receiver::start(ReceiverBehaviour::Status(503));
    let made = tool(&world, &receiver.url(), "POST");
    let path = format!("/tools/{}/test", made.id);
    let test = || world.post(&path, json!({"arguments": {"day": "x"}})).ok();
    let failed = test();
    assert_eq!(
        (&failed["response"]["status"], &failed["error"]),
        (&json!(503), &json!("the tool answered HTTP 503"))
    );
    world.patch(format!("/tools/{}", made.id), json!({"timeout_ms": 300})).ok();
    receiver.set(ReceiverBehaviour::Hang);
    let hung = test();
    assert_eq!(
        (&hung["response"], &hung["error"]),
        (&Value::Null, &json!("the tool did not answer within 300 ms"))
    );
    receiver.set(ReceiverBehaviour::Flood(200));
    assert_eq!(test()["response"], Value::Null);
}

#[test]
fn a_repeat_with_the_same_key_sends_nothing() {
    let world = World::with_fakes();
    let receiver = Receiver::start(ReceiverBehaviour::Status(200));
    let made = tool(&world, &receiver.url(), "POST");
    let path = format!("/tools/{}/test", made.id);
    let body = json!({"arguments": {"day": "x"}});
    let first = world.post_once(&path, "once", body.clone()).ok();
    let again = world.post_once(&path, "once", body).ok();
    assert_eq!(first.json, again.json);
    assert_eq!(receiver.count(), 1);
}
