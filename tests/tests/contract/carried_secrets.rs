//! The signing secrets of a workspace that came from another host: those that it brought sign on, and later ones are made of
//! more than ids, which whoever wrote the file has chosen.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sidetone_engine::base::ids::{Id as _, ToolId, WebhookId};
use sidetone_engine::base::limits::TEST_TOKEN_SECONDS_MAX;
use sidetone_engine::base::sealed::seal;
use sidetone_engine::ports::HttpRequest;
use sidetone_engine::sql;
use sidetone_engine::storage::signing::{Origin, SecretOwner, label, webhook_signature};
use sidetone_tests::{Created, World};

use super::deliveries::{header, run_with_tool, test, text};

const BROUGHT: [u8; 32] = [1; 32];
const BROUGHT_BEFORE: [u8; 32] = [2; 32];

/// Gives the workspace a salt.
fn arrive(world: &World) {
    let salted = sql!(
        "UPDATE workspaces SET secret_salt = 'a salt' WHERE id = :workspace",
        workspace = &world.workspace_id()
    );
    world.write(vec![salted]);
}

/// Stores what a webhook or a tool brought: the secrets of version 1, and of 0, as if there were one.
fn bring(world: &World, table: &str, id: &str, owner: SecretOwner<'_>) {
    let key = world.sandbox().unwrap().services().config().secret.clone();
    let sealed = |version, secret| seal(key.as_bytes(), &label(owner, version), [9; 16], secret);
    let carried = json!({"version": 1, "sealed": [sealed(1, &BROUGHT), sealed(0, &BROUGHT_BEFORE)]});
    world.write(vec![sql!(
        format!("UPDATE {table} SET carried_secrets = :carried WHERE workspace_id = :workspace AND id = :id"),
        carried = carried.to_string(),
        workspace = &world.workspace_id(),
        id = id
    )]);
}

fn as_text(secret: [u8; 32]) -> String {
    format!("whsec_{}", STANDARD.encode(secret))
}

fn signatures(request: &HttpRequest, secrets: &[&str]) -> String {
    let timestamp_s = header(request, "webhook-timestamp").parse().unwrap();
    let sign =
        |secret: &&str| webhook_signature(secret, &header(request, "webhook-id"), timestamp_s, &request.body);
    secrets.iter().map(sign).collect::<Vec<_>>().join(" ")
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_webhook_signs_with_what_it_brought_until_its_secret_is_rotated() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let make = || {
        world
            .post_once("/webhooks", "once", json!({"url": "https://receiver.example/", "events": ["*"]}))
            .created()
    };
    let made = make();
    let webhook = Created { id: text(&made["id"]).to_owned(), json: made.json };
    let id = WebhookId::from_stored(&*webhook.id);
    arrive(&world);
    bring(&world, "webhooks", &webhook.id, SecretOwner::Webhook(&id));
    let send = || {
        test(&world, &webhook);
        sandbox.answer_http(200, "");
        sandbox.run_jobs();
        sandbox.sent_http().pop().unwrap()
    };
    let request = send();
    assert_eq!(header(&request, "webhook-signature"), signatures(&request, &[&as_text(BROUGHT)]));
    assert_eq!(make()["signing_secret"], as_text(BROUGHT), "a repeated creation");

    let rotated = world.post(format!("/webhooks/{}/rotate-secret", webhook.id), json!({})).created();
    let new = text(&rotated["signing_secret"]);
    let request = send();
    assert_eq!(header(&request, "webhook-signature"), signatures(&request, &[new, &as_text(BROUGHT)]));
    let key = &sandbox.services().config().secret;
    assert_ne!(new, Origin::default().secret(key, SecretOwner::Webhook(&id), 2), "not of the id alone");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_tool_signs_with_what_it_brought_and_one_that_is_gone_not_with_what_its_id_alone_gives() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let key = sandbox.services().config().secret.clone();
    for is_deleted in [false, true] {
        let world = world.other();
        let (tool, run) = run_with_tool(&world);
        let id = ToolId::from_stored(&*tool.id);
        arrive(&world);
        bring(&world, "tools", &tool.id, SecretOwner::Tool(&id));
        if is_deleted {
            world.delete(format!("/tools/{}", tool.id)).empty();
        } else {
            sandbox.answer_http(200, "{}");
            world.post(format!("/tools/{}/test", tool.id), json!({"arguments": {}})).ok();
            let request = sandbox.sent_http().pop().unwrap();
            assert_eq!(header(&request, "webhook-signature"), signatures(&request, &[&as_text(BROUGHT)]));
        }
        sandbox.answer_http(200, "{}");
        assert_eq!(world.settle(&run.id)["status"], "completed");
        let request = sandbox.sent_http().pop().expect("the tool was called");
        let signed = header(&request, "webhook-signature");
        if is_deleted {
            let derived = Origin::default().secret(&key, SecretOwner::Tool(&id), 1);
            assert_ne!(signed, signatures(&request, &[&derived]));
        } else {
            assert_eq!(signed, signatures(&request, &[&as_text(BROUGHT)]));
        }
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn what_is_made_after_the_arrival_has_secrets_of_this_host() {
    let world = World::with_manual_clock();
    arrive(&world);
    let key = &world.sandbox().unwrap().services().config().secret;
    let (tool, webhook) = (world.a_tool(), world.webhook());
    let (tool_id, webhook_id) = (ToolId::from_stored(&*tool.id), WebhookId::from_stored(&*webhook.id));
    for (made, owner) in [(&tool, SecretOwner::Tool(&tool_id)), (&webhook, SecretOwner::Webhook(&webhook_id))]
    {
        assert_ne!(text(&made["signing_secret"]), Origin::default().secret(key, owner, 1));
    }
}

/// A stored response may have been written by somebody who knows the id of a workspace that was here.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_stored_response_signs_no_link_into_another_workspace() {
    let world = World::with_manual_clock();
    let path = format!("/assistants/{}/test-token", world.assistant().id);
    let ask = || world.post_once(&path, "once", json!({})).ok();
    let first = ask();
    assert_eq!(ask()["token"], first["token"]);
    world.write(vec![sql!(
        "UPDATE idempotency_keys SET reveal = json_set(reveal, '$.token.workspace_id', 'ws_01kas3v8hq4x7m2n5p6r9t0w1z')
         WHERE workspace_id = :workspace",
        workspace = &world.workspace_id()
    )]);
    let again = ask();
    for name in ["token", "url", "websocket_url"] {
        assert_eq!(again[name], Value::Null, "{name}");
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_stored_response_signs_no_link_for_longer_than_a_link_can_be_made_for() {
    let world = World::with_manual_clock();
    let path = format!("/assistants/{}/test-token", world.assistant().id);
    let ask = || world.post_once(&path, "once", json!({})).ok();
    ask();
    let claim = |name: &str, value: i64| {
        world.write(vec![sql!(
            "UPDATE idempotency_keys SET reveal = json_set(reveal, '$.token.' || :name, CAST(:value AS INTEGER))
             WHERE workspace_id = :workspace",
            name = name,
            value = value,
            workspace = &world.workspace_id()
        )]);
    };
    let most_ms = TEST_TOKEN_SECONDS_MAX * 1_000;
    let now_ms = world.sandbox().unwrap().services().ports().clock.now_ms();
    // Clocks may differ by a minute.
    claim("expires_at_ms", now_ms + most_ms + 60_001);
    for name in ["token", "url", "websocket_url"] {
        assert_eq!(ask()[name], Value::Null, "{name}");
    }
    claim("expires_at_ms", now_ms + most_ms + 60_000);
    claim("max_duration_seconds", i64::from(u16::MAX));
    let again = ask();
    let socket = text(&again["websocket_url"]).replace("ws://sandbox.example", "");
    let opens = world.get(format!("{socket}&check=1")).ok();
    assert_eq!(opens["max_duration_seconds"], TEST_TOKEN_SECONDS_MAX);
}
