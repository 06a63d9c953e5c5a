//! Webhooks: registering receivers. There is no operation to read a single one.
use http::Method;
use serde_json::json;
use sidetone_tests::World;

use crate::tools::is_secret;

#[test]
fn a_new_webhook_is_enabled_and_shows_its_secret_once() {
    let world = World::new();
    let made = world.webhook();
    assert!(made.id.starts_with("hook_"));
    is_secret(made["signing_secret"].as_str().unwrap());
    let mut shown = made.json.clone();
    shown.as_object_mut().unwrap().remove("signing_secret");
    assert_eq!(
        shown,
        json!({"id": made.id, "url": "https://receiver.example/", "events": ["call.ended"], "enabled": true,
               "metadata": {}, "created_at": made["created_at"], "updated_at": made["created_at"]})
    );
    assert_eq!(world.get("/webhooks").ok().json, json!([shown]));
    let path = format!("/webhooks/{}", made.id);
    let off = world.patch(&path, json!({"enabled": false})).ok();
    assert_eq!((&off["enabled"], &off["signing_secret"]), (&json!(false), &json!(null)));
    world.call(Method::GET, &path, None).refused("method_not_allowed");
    world.delete(&path).empty();
    world.delete(&path).refused("not_found");
    world.patch(&path, json!({"enabled": true})).refused("not_found");
}

#[test]
fn events_are_known_types_without_duplicates_and_at_least_one() {
    let world = World::new();
    let all = [
        "call.started",
        "call.ended",
        "call.analyzed",
        "recording.ready",
        "simulation.run.completed",
        "simulation.run.error",
        "webhook.test",
        "*",
    ];
    let url = "https://example.com/";
    let made = world.create("/webhooks", json!({"url": url, "events": all}));
    assert_eq!(made["events"], json!(all));
    let path = format!("/webhooks/{}", made.id);
    let twice = world.patch(&path, json!({"events": ["*", "call.ended", "*"]})).ok();
    assert_eq!(twice["events"], json!(["*", "call.ended"]));
    world.patch(&path, json!({"events": []})).refused("validation_failed").naming(&["events"]);
    for bad in ["", "call.Ended", "call.*", "call"] {
        world.patch(&path, json!({"events": ["*", bad]})).refused("validation_failed").naming(&["events[1]"]);
        world
            .post("/webhooks", json!({"url": url, "events": [bad]}))
            .refused("validation_failed")
            .naming(&["events[0]"]);
    }
    world.post("/webhooks", json!({})).refused("validation_failed").naming(&["url", "events"]);
}

#[test]
fn the_number_of_webhooks_is_limited() {
    let world = World::new();
    let webhook = json!({"url": "https://example.com/", "events": ["call.started"]});
    for _ in 0..250 {
        world.post("/webhooks", webhook.clone()).created();
    }
    let refusal = world.post("/webhooks", webhook.clone()).refused("limit_reached");
    assert_eq!(refusal.status, 409);
    // One batch writes an event and its deliveries to all of them.
    world.settle(&world.run().id);
    let webhooks = world.get("/webhooks").ok().json;
    for made in webhooks.as_array().unwrap() {
        let path = format!("/webhooks/{}/deliveries", made["id"].as_str().unwrap());
        assert_eq!(world.get(path).ok()["deliveries"].as_array().unwrap().len(), 1);
    }
    world.delete(format!("/webhooks/{}", webhooks[0]["id"].as_str().unwrap())).empty();
    world.post("/webhooks", webhook).created();
}
