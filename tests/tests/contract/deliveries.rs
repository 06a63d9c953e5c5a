//! Webhook deliveries: what is sent, when, and what the API reports about it. Uses a manual clock and scripted
//! responses of receivers; `receivers` covers real sockets.
use http::Method;
use serde_json::{Value, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::ids::{CallId, Id as _};
use sidetone_engine::base::limits::{DELIVERIES_WAITING_MAX, DELIVERY_RETRY_MS, EVENT_KEPT_MS, INTEGER_MAX};
use sidetone_engine::ports::{HttpError, HttpReply, HttpRequest};
use sidetone_engine::sql;
use sidetone_engine::storage::batch::Batch;
use sidetone_engine::storage::events::{self, EventKind, Subscribers};
use sidetone_tests::{Created, World};

use super::delivery_signatures::verify;

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_failing_delivery_is_retried_on_schedule_until_the_last_attempt() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    let delivery = test(&world, &webhook);
    let mut bodies = Vec::new();
    let mut stamps = Vec::new();
    for (n, pause_ms) in DELIVERY_RETRY_MS.into_iter().enumerate() {
        sandbox.answer_http(500, "no");
        assert_eq!(sandbox.run_jobs(), 1, "attempt {n}");
        let read = only(&world, &webhook);
        assert_eq!((&read["status"], &read["attempts"]), (&json!("pending"), &json!(n + 1)));
        assert_eq!(read["last_error"], "The receiver answered HTTP 500.");
        assert_eq!((&read["last_status"], &read["last_response"]), (&json!(500), &json!("no")));
        sandbox.advance(pause_ms - 1);
        assert_eq!(sandbox.run_jobs(), 0, "no retry before it is due");
        sandbox.advance(pause_ms / 10 + 1);
        for request in sandbox.sent_http() {
            verify(&request, text(&webhook["signing_secret"]));
            assert_eq!(header(&request, "webhook-id"), delivery["event_id"]);
            stamps.push(header(&request, "webhook-timestamp"));
            bodies.push(request.body);
        }
    }
    sandbox.fail_http(HttpError::Timeout);
    assert_eq!(sandbox.run_jobs(), 1, "the last attempt");
    let read = only(&world, &webhook);
    assert_eq!((&read["status"], &read["attempts"]), (&json!("failed"), &json!(8)));
    assert_eq!((&read["next_attempt_at"], &read["last_status"]), (&Value::Null, &Value::Null));
    assert_eq!(read["last_error"], "The receiver did not answer within 15 s.");
    assert_eq!(bodies.len(), 7);
    assert!(bodies.iter().all(|body| *body == bodies[0]), "every attempt sends the same body");
    stamps.dedup();
    assert_eq!(stamps.len(), 7, "every attempt has a new timestamp");
    sandbox.advance(365 * 24 * 60 * 60 * 1000);
    assert_eq!(sandbox.run_jobs(), 0);
    assert_eq!(list(&world, &webhook, "?status=failed").len(), 1, "a failed delivery stays readable");

    // A redelivery keeps the id and restarts the schedule.
    sandbox.sent_http();
    let again = redeliver(&world, &delivery);
    assert_eq!((&again["status"], &again["attempts"]), (&json!("pending"), &json!(8)));
    sandbox.answer_http(503, "");
    sandbox.run_jobs();
    sandbox.advance(6_000);
    sandbox.answer_http(200, "");
    sandbox.run_jobs();
    let sent = sandbox.sent_http();
    assert_eq!(sent.len(), 2);
    assert!(sent.iter().all(|request| header(request, "webhook-id") == delivery["event_id"]
        && request.body == bodies[0]));
    let read = only(&world, &webhook);
    assert_eq!((&read["status"], &read["attempts"]), (&json!("delivered"), &json!(10)));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn every_kind_of_failure_is_reported_and_retried() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    for (answer, status, error) in [
        (reply(302, &[("location", "http://169.254.169.254/")]), json!(302), "redirects are not followed"),
        (reply(404, &[]), json!(404), "HTTP 404"),
        (Err(HttpError::Timeout), Value::Null, "within 15 s"),
        (Err(HttpError::Refused), Value::Null, "public HTTPS"),
        (
            Err(HttpError::Failed("reset by peer at 10.1.2.3".to_owned())),
            Value::Null,
            "closed the connection",
        ),
        (flood(500), json!(500), "HTTP 500"),
    ] {
        let webhook = world.webhook();
        test(&world, &webhook);
        sandbox.script_http(answer);
        sandbox.run_jobs();
        let read = only(&world, &webhook);
        assert_eq!((&read["status"], &read["last_status"]), (&json!("pending"), &status), "{read}");
        assert!(text(&read["last_error"]).contains(error), "{read}");
        assert!(!read.to_string().contains("10.1.2.3"), "internal details are only in the log: {read}");
        world.delete(format!("/webhooks/{}", webhook.id)).empty();
    }
    assert_eq!(sandbox.sent_http().len(), 6, "no redirect was followed");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_large_response_counts_as_success_and_is_truncated() {
    let world = World::with_manual_clock();
    let webhook = world.webhook();
    test(&world, &webhook);
    world.sandbox().unwrap().script_http(flood(200));
    world.sandbox().unwrap().run_jobs();
    let read = only(&world, &webhook);
    assert_eq!(read["status"], "delivered");
    let kept = text(&read["last_response"]);
    assert!(kept.len() <= 1024 && kept.starts_with("é") && !kept.contains('\0'), "{} bytes", kept.len());
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_410_disables_the_webhook() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    let delivery = test(&world, &webhook);
    sandbox.answer_http(410, "go away");
    sandbox.run_jobs();
    assert_eq!(world.get("/webhooks").ok().json[0]["enabled"], false);
    let read = only(&world, &webhook);
    assert_eq!((&read["status"], &read["last_status"]), (&json!("failed"), &json!(410)));
    world.post(format!("/webhooks/{}/test", webhook.id), json!({})).refused("webhook_disabled");
    let path = format!("/webhooks/{}/deliveries/{}/redeliver", webhook.id, delivery.id);
    world.post(path, json!({})).refused("webhook_disabled");
    assert_eq!(sandbox.run_jobs(), 0);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_webhook_is_disabled_when_it_fails_and_too_many_deliveries_wait_for_it() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let [failing, accepting] = [0, 1].map(|_| world.webhook());
    let fill = |webhook: &Created, count: i64| {
        let id = webhook.id.as_str();
        world.write(vec![sql!(
            "INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, type, body_bytes, status, attempts, failures, due_at, created_at)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
             SELECT 'dlv_' || :id || i, webhooks.workspace_id, webhooks.id, 'evt_1', 'call.ended', 0, 'pending', 1, 1, :later, 0
             FROM n CROSS JOIN webhooks WHERE webhooks.id = :id",
            id = id,
            count = count,
            later = INTEGER_MAX
        )]);
    };
    let is_enabled = |webhook: &Created| {
        let all = world.get("/webhooks").ok().json;
        let one = all.as_array().unwrap().iter().find(|one| one["id"] == webhook.id.as_str()).cloned();
        one.unwrap()["enabled"] == true
    };
    // Each of two webhooks may have half of what the workspace may have.
    let part = DELIVERIES_WAITING_MAX / 2;
    fill(&failing, part - 1);
    test(&world, &failing);
    sandbox.answer_http(503, "");
    assert_eq!(sandbox.run_jobs(), 1);
    assert!(is_enabled(&failing), "its part and no more");
    fill(&accepting, part + 1);
    test(&world, &accepting);
    sandbox.answer_http(200, "");
    assert_eq!(sandbox.run_jobs(), 1);
    assert!(is_enabled(&accepting), "its receiver accepts");
    test(&world, &failing);
    sandbox.answer_http(503, "");
    assert_eq!(sandbox.run_jobs(), 1);
    assert!(!is_enabled(&failing));
    assert_eq!(list(&world, &failing, "?status=pending&limit=1").len(), 1, "what waits stays");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_410_from_a_previous_url_does_not_disable_the_webhook() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    test(&world, &webhook);
    let path = format!("/webhooks/{}", webhook.id);
    let other = world.clone();
    sandbox.meanwhile(move || {
        other.patch(&path, json!({"url": "https://elsewhere.example/"})).ok();
    });
    sandbox.answer_http(410, "");
    sandbox.run_jobs();
    assert_eq!(world.get("/webhooks").ok().json[0]["enabled"], true);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn retry_after_is_honoured_within_the_schedule() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    for (value, wait_ms) in [("60", 60_000), ("86400", 300_000), ("1", 5_000), ("nonsense", 5_000)] {
        let webhook = world.webhook();
        test(&world, &webhook);
        sandbox.script_http(reply(429, &[("Retry-After", value)]));
        sandbox.run_jobs();
        sandbox.advance(wait_ms - 1);
        assert_eq!(sandbox.run_jobs(), 0, "{value}");
        sandbox.advance(wait_ms / 10 + 1);
        sandbox.answer_http(200, "");
        assert_eq!(sandbox.run_jobs(), 1, "{value}");
        assert_eq!(only(&world, &webhook)["status"], "delivered");
        world.delete(format!("/webhooks/{}", webhook.id)).empty();
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_disabled_webhook_gets_no_new_events_and_pending_ones_wait() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook =
        world.create("/webhooks", json!({"url": "https://receiver.example/", "events": ["call.ended"]}));
    let path = format!("/webhooks/{}", webhook.id);
    emit(&world, EventKind::CallEnded, &json!({"call": {"id": "call_1"}}));
    world.patch(&path, json!({"enabled": false})).ok();
    emit(&world, EventKind::CallEnded, &json!({"call": {"id": "call_2"}}));
    sandbox.run_jobs();
    sandbox.advance(60_000);
    assert_eq!(sandbox.run_jobs(), 0);
    assert!(sandbox.sent_http().is_empty());
    assert_eq!(
        only(&world, &webhook)["status"],
        "pending",
        "no delivery was created while the webhook was disabled"
    );
    world.patch(&path, json!({"enabled": true})).ok();
    sandbox.answer_http(200, "");
    sandbox.run_jobs();
    let sent = sandbox.sent_http();
    assert_eq!(sent.len(), 1);
    let body: Value = serde_json::from_slice(&sent[0].body).unwrap();
    assert_eq!(body["data"], json!({"call": {"id": "call_1"}}));
    assert_eq!(only(&world, &webhook)["status"], "delivered");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn deleting_a_webhook_cancels_pending_deliveries_which_stay_readable() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    let delivered = test(&world, &webhook);
    sandbox.answer_http(200, "");
    sandbox.run_jobs();
    let pending = test(&world, &webhook);
    sandbox.answer_http(500, "");
    sandbox.run_jobs();
    world.delete(format!("/webhooks/{}", webhook.id)).empty();
    sandbox.sent_http();
    sandbox.advance(60_000);
    sandbox.run_jobs();
    assert!(sandbox.sent_http().is_empty());
    let read = list(&world, &webhook, "");
    let states: Vec<_> = read.iter().map(|one| (text(&one["id"]), text(&one["status"]))).collect();
    assert_eq!(states, [(&*pending.id, "canceled"), (&*delivered.id, "delivered")]);
    assert_eq!(read[0]["next_attempt_at"], Value::Null);
    let path = format!("/webhooks/{}/deliveries/{}/redeliver", webhook.id, pending.id);
    world.post(path, json!({})).refused("not_found");
    let unused = world.webhook();
    world.get(format!("/webhooks/{}/deliveries", unused.id)).ok();
    world.delete(format!("/webhooks/{}", unused.id)).empty();
    world.get(format!("/webhooks/{}/deliveries", unused.id)).refused("not_found");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_redelivery_requested_during_an_attempt_is_made() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    // During the last attempt of the schedule, and during an earlier one.
    for (attempts, status, told) in [(8, 500, "delivered"), (3, 500, "delivered"), (3, 410, "pending")] {
        let webhook = world.webhook();
        let delivery = test(&world, &webhook);
        for _ in 1..attempts {
            sandbox.answer_http(500, "");
            sandbox.run_jobs();
            sandbox.advance(24 * 60 * 60 * 1_000);
        }
        let (other, again) =
            (world.clone(), Created { id: delivery.id.clone(), json: delivery.json.clone() });
        sandbox.meanwhile(move || {
            other.sandbox().unwrap().advance(1_000);
            redeliver(&other, &again);
        });
        sandbox.answer_http(status, "");
        sandbox.answer_http(200, "");
        sandbox.run_jobs();
        let read = list(&world, &webhook, "");
        assert_eq!(read[0]["status"], told, "{attempts} {status}: {:#}", read[0]);
        // A 410 disables the webhook, so there is no further attempt.
        let made = if told == "delivered" { attempts + 1 } else { attempts };
        assert_eq!(read[0]["attempts"], made, "{attempts} {status}: {:#}", read[0]);
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn an_attempt_in_progress_is_recorded_although_its_webhook_was_deleted() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    for (status, told) in [(200, "delivered"), (500, "canceled")] {
        let webhook = world.webhook();
        test(&world, &webhook);
        let (other, path) = (world.clone(), format!("/webhooks/{}", webhook.id));
        sandbox.meanwhile(move || {
            other.delete(&path).empty();
        });
        sandbox.answer_http(status, "");
        sandbox.run_jobs();
        let read = only(&world, &webhook);
        assert_eq!((&read["status"], &read["attempts"]), (&json!(told), &json!(1)));
        assert_eq!(read["next_attempt_at"], Value::Null);
        sandbox.advance(60_000);
        assert_eq!(sandbox.run_jobs(), 0);
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn an_event_emitted_while_the_job_ends_is_delivered() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    test(&world, &webhook);
    let (other, hook) = (world.clone(), webhook.clone());
    sandbox.meanwhile(move || {
        test(&other, &hook);
    });
    sandbox.answer_http(200, "");
    sandbox.answer_http(200, "");
    sandbox.run_jobs();
    let states: Vec<Value> = list(&world, &webhook, "").iter().map(|one| one["status"].clone()).collect();
    assert_eq!(states, ["delivered", "delivered"]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn only_subscribed_events_are_stored_and_sent() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let make = |events: Value| {
        world.create("/webhooks", json!({"url": "https://receiver.example/", "events": events}))
    };
    let (ended, all, started) =
        (make(json!(["call.ended"])), make(json!(["*"])), make(json!(["call.started"])));
    let stranger = world.other();
    let theirs = stranger.create("/webhooks", json!({"url": "https://receiver.example/", "events": ["*"]}));
    emit(&world, EventKind::CallEnded, &json!({"call": {"id": "call_1"}}));
    sandbox.answer_http(200, "");
    sandbox.answer_http(200, "");
    sandbox.run_jobs();
    let sent = sandbox.sent_http();
    assert_eq!(sent.len(), 2);
    assert_eq!(
        header(&sent[0], "webhook-id"),
        header(&sent[1], "webhook-id"),
        "one event, delivered to two webhooks"
    );
    assert_eq!((list(&world, &ended, "").len(), list(&world, &all, "").len()), (1, 1));
    assert!(list(&world, &started, "").is_empty() && list(&stranger, &theirs, "").is_empty());
}

#[test]
fn a_delivery_is_found_only_under_its_webhook_and_workspace() {
    let world = World::new();
    let (one, two) = (world.webhook(), world.webhook());
    let delivery = test(&world, &one);
    let path = |webhook: &Created| format!("/webhooks/{}/deliveries/{}/redeliver", webhook.id, delivery.id);
    world.post(path(&two), json!({})).refused("not_found");
    let stranger = world.other();
    stranger.post(path(&one), json!({})).refused("not_found");
    stranger.get(format!("/webhooks/{}/deliveries", one.id)).refused("not_found");
    let theirs = stranger.webhook();
    stranger.post(path(&theirs), json!({})).refused("not_found");
    world.call(Method::POST, &path(&one), None).created();
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn deliveries_are_paged_and_filtered_by_status() {
    let world = World::with_manual_clock();
    let webhook = world.webhook();
    let mut made: Vec<String> = (0..5).map(|_| test(&world, &webhook).id).collect();
    made.reverse();
    let page = world.get(format!("/webhooks/{}/deliveries?limit=2&page=2", webhook.id)).ok();
    assert_eq!(page["pagination"], json!({"page": 2, "limit": 2, "total": 5, "total_pages": 3}));
    assert_eq!(sidetone_tests::reply::ids_of(&page["deliveries"]), made[2..4]);
    assert_eq!(list(&world, &webhook, "?status=pending").len(), 5);
    assert!(list(&world, &webhook, "?status=delivered").is_empty());
    world.get(format!("/webhooks/{}/deliveries?status=lost", webhook.id)).refused("validation_failed");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn many_events_to_one_webhook_each_arrive_once() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    let mut events: Vec<Value> = (0..100).map(|_| test(&world, &webhook)["event_id"].clone()).collect();
    for _ in 0..100 {
        sandbox.answer_http(200, "");
    }
    sandbox.run_jobs();
    let mut sent: Vec<Value> =
        sandbox.sent_http().iter().map(|request| header(request, "webhook-id").into()).collect();
    events.sort_by_key(Value::to_string);
    sent.sort_by_key(Value::to_string);
    assert_eq!(sent, events);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn expired_events_and_deliveries_are_deleted_in_bounded_steps() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    for _ in 0..1_200 {
        test(&world, &webhook);
    }
    sandbox.advance(EVENT_KEPT_MS + 120_000);
    let young = test(&world, &webhook);
    let statement = |sql: &'static str| sidetone_engine::sql!(sql);
    let rounds = (1..).find(|_| !block_on(sandbox.services().sweep()).unwrap().more).unwrap();
    assert_eq!(rounds, 4, "three with 500 at most, one that finds nothing");
    let kept = list(&world, &webhook, "");
    assert_eq!(kept.iter().map(|one| text(&one["id"])).collect::<Vec<_>>(), [&young.id]);
    let rows =
        block_on(sandbox.services().ports().database.read(vec![statement("SELECT id FROM events")])).unwrap();
    assert_eq!(rows[0].values.len(), 1);
    assert_eq!(world.get("/events").ok().ids(), [text(&young["event_id"])]);
}

#[track_caller]
pub fn test(world: &World, webhook: &Created) -> Created {
    world.create(&format!("/webhooks/{}/test", webhook.id), json!({}))
}

#[track_caller]
fn redeliver(world: &World, delivery: &Created) -> Created {
    let webhook = text(&delivery["webhook_id"]);
    world.create(&format!("/webhooks/{webhook}/deliveries/{}/redeliver", delivery.id), json!({}))
}

#[track_caller]
pub fn list(world: &World, webhook: &Created, query: &str) -> Vec<Value> {
    let list = world.get(format!("/webhooks/{}/deliveries{query}", webhook.id)).ok();
    list["deliveries"].as_array().unwrap().clone()
}

/// The webhook's only delivery.
#[track_caller]
pub(super) fn only(world: &World, webhook: &Created) -> Value {
    let all = list(world, webhook, "");
    assert_eq!(all.len(), 1, "{all:?}");
    all[0].clone()
}

/// Emits an event like a job, in the workspace of `world`.
fn emit(world: &World, kind: EventKind, data: &Value) {
    let engine = world.sandbox().unwrap().services();
    let database = &engine.ports().database;
    let hash = sidetone_engine::base::hash::sha256_hex(world.key().as_bytes());
    let workspace =
        sidetone_engine::sql!("SELECT workspace_id FROM api_keys WHERE hash = :hash", hash = hash);
    let rows = block_on(database.read(vec![workspace])).unwrap();
    let workspace_id = rows[0].first().unwrap().id("workspace_id").unwrap();
    let rows = block_on(database.read(vec![events::subscribers(&workspace_id)])).unwrap();
    let subscribers = Subscribers::read(&rows[0]).unwrap();
    let now_ms = engine.ports().clock.now_ms();
    let mut batch = Batch::default();
    let call_id = CallId::from_stored(data["call"]["id"].as_str().unwrap_or("call_1"));
    let about = kind.of_call(&call_id);
    batch.emit(engine, &workspace_id, &subscribers, about, now_ms, || Ok(data.clone())).unwrap();
    block_on(batch.write(engine)).unwrap();
}

pub(super) fn run_with_tool(world: &World) -> (Created, Created) {
    let assistant = world.assistant();
    let tool = world.create(
        "/tools",
        json!({"name": "order_status", "url": "https://example.com/", "description": "Looks up the status of an order",
               "parameters": {"type": "object", "properties": {}}}),
    );
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Order", "instructions": "Ask: \"What is the status of my order?\""}),
    );
    let simulation = world.create(
        "/simulations",
        json!({"assistant_id": assistant.id, "persona_id": world.persona().id, "scenario_id": scenario.id}),
    );
    (tool, world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 1})))
}

fn reply(status: u16, headers: &[(&str, &str)]) -> Result<HttpReply, HttpError> {
    let headers = headers.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Ok(HttpReply { status, headers, body: "".into() })
}

/// An endless response, cut off by the host.
fn flood(status: u16) -> Result<HttpReply, HttpError> {
    let body = "é\0".repeat(30_000).into();
    Err(HttpError::TooLarge(HttpReply { status, headers: Vec::new(), body }))
}

pub(super) fn header(request: &HttpRequest, name: &str) -> String {
    let found = request.headers.iter().find(|(known, _)| *known == name);
    found.map(|(_, value)| value.clone()).unwrap_or_else(|| panic!("no {name}"))
}

pub(super) fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_else(|| panic!("a text: {value}"))
}
