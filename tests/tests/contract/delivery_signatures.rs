//! Signatures of webhook deliveries and tool calls, and the rotation of their secrets.
use serde_json::{Value, json};
use sidetone_engine::base::limits::SECRET_OVERLAP_MS_MAX;
use sidetone_engine::ports::HttpRequest;
use sidetone_engine::storage::signing::webhook_signature;
use sidetone_tests::World;

use super::deliveries::{header, only, run_with_tool, test, text};

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_test_event_is_signed_and_sent_only_to_that_webhook() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    world.create("/webhooks", json!({"url": "https://other.example/", "events": ["*"]}));
    let delivery = test(&world, &webhook);
    assert!(delivery.id.starts_with("dlv_") && text(&delivery["event_id"]).starts_with("evt_"));
    assert_eq!(
        delivery.json,
        json!({"id": delivery.id, "webhook_id": webhook.id, "event_id": delivery["event_id"], "type": "webhook.test",
               "status": "pending", "attempts": 0, "next_attempt_at": delivery["created_at"], "last_status": null,
               "last_error": null, "last_response": null, "created_at": delivery["created_at"], "delivered_at": null})
    );
    sandbox.answer_http(204, "");
    sandbox.run_jobs();
    let sent = sandbox.sent_http();
    let [request] = sent.as_slice() else { panic!("one request: {sent:?}") };
    assert_eq!((request.method, request.url.as_str()), ("POST", "https://receiver.example/"));
    assert_eq!(header(request, "content-type"), "application/json");
    assert_eq!(header(request, "webhook-id"), delivery["event_id"]);
    verify(request, text(&webhook["signing_secret"]));
    let mut shown = webhook.json.clone();
    shown.as_object_mut().unwrap().shift_remove("signing_secret");
    let body: Value = serde_json::from_slice(&request.body).unwrap();
    assert_eq!(body["id"], delivery["event_id"]);
    assert_eq!(body["type"], "webhook.test");
    assert_eq!(body["created_at"], delivery["created_at"]);
    assert!(text(&body["workspace_id"]).starts_with("ws_"));
    assert_eq!(body["data"], json!({"webhook": shown}), "the event contains the webhook as REST returns it");
    assert_eq!(body.as_object().unwrap().len(), 5);
    let read = only(&world, &webhook);
    assert_eq!((&read["status"], &read["attempts"]), (&json!("delivered"), &json!(1)));
    assert_eq!((&read["last_status"], &read["next_attempt_at"]), (&json!(204), &Value::Null));
    assert_eq!(read["delivered_at"], delivery["created_at"]);
    assert_eq!(sandbox.run_jobs(), 0, "no job is left");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn after_a_rotation_both_secrets_sign_until_the_overlap_ends() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    let old = text(&webhook["signing_secret"]).to_owned();
    let rotated = world.post(format!("/webhooks/{}/rotate-secret", webhook.id), json!({})).created();
    let new = text(&rotated["signing_secret"]).to_owned();
    assert_ne!(old, new);
    assert_eq!(rotated["old_secret_until"], "2026-01-02T00:00:00.000Z");
    let send = || {
        test(&world, &webhook);
        sandbox.answer_http(200, "");
        sandbox.run_jobs();
        sandbox.sent_http().pop().unwrap()
    };
    let request = send();
    verify(&request, &old);
    verify(&request, &new);
    assert_eq!(header(&request, "webhook-signature").split(' ').count(), 2);
    assert!(
        header(&request, "webhook-signature").starts_with(&signature(&request, &new)),
        "the newest secret signs first"
    );
    sandbox.advance(i64::try_from(SECRET_OVERLAP_MS_MAX).unwrap());
    assert_eq!(header(&send(), "webhook-signature").split(' ').count(), 1);

    // Without an overlap, the old secret stops at once.
    let path = format!("/webhooks/{}/rotate-secret", webhook.id);
    let third = world.post_once(&path, "once", json!({"overlap_ms": 0})).created();
    let again = world.post_once(&path, "once", json!({"overlap_ms": 0})).created();
    assert_eq!(again["signing_secret"], third["signing_secret"], "a replay returns the same secret");
    let request = send();
    assert_eq!(header(&request, "webhook-signature"), signature(&request, text(&third["signing_secret"])));
    world.post(&path, json!({"overlap_ms": SECRET_OVERLAP_MS_MAX + 1})).refused("validation_failed");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn tool_calls_are_signed_with_the_current_secrets() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    for (overlap_ms, deleted) in [(60_000, false), (0, false), (60_000, true)] {
        let world = world.other();
        let (tool, run) = run_with_tool(&world);
        let path = format!("/tools/{}", tool.id);
        let rotated =
            world.post(format!("{path}/rotate-secret"), json!({"overlap_ms": overlap_ms})).created();
        assert_eq!(rotated["name"], tool["name"]);
        if deleted {
            world.delete(&path).empty();
        }
        sandbox.answer_http(200, "{}");
        assert_eq!(world.settle(&run.id)["status"], "completed");
        let request = sandbox.sent_http().pop().expect("the tool was called");
        let (old, new) = (text(&tool["signing_secret"]), text(&rotated["signing_secret"]));
        let expected = match (deleted, overlap_ms) {
            (true, _) => signature(&request, old),
            (false, 0) => signature(&request, new),
            (false, _) => format!("{} {}", signature(&request, new), signature(&request, old)),
        };
        assert_eq!(header(&request, "webhook-signature"), expected, "{overlap_ms} {deleted}");
    }
}

fn signature(request: &HttpRequest, secret: &str) -> String {
    let timestamp_s = header(request, "webhook-timestamp").parse().unwrap();
    webhook_signature(secret, &header(request, "webhook-id"), timestamp_s, &request.body)
}

#[track_caller]
pub(super) fn verify(request: &HttpRequest, secret: &str) {
    let all = header(request, "webhook-signature");
    assert!(all.split(' ').any(|one| one == signature(request, secret)), "{all}");
}
