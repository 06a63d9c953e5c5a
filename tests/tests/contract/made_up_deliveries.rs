//! Deliveries that somebody has who has made up the file of a move: without their event, or naming what another workspace has.
use serde_json::{Value, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::limits::{DELIVERIES_WAITING_MAX, INTEGER_MAX};
use sidetone_engine::sql;
use sidetone_engine::storage::jobs::JobKind;
use sidetone_tests::World;

use super::deliveries::{header, only, test, text};

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "looks into storage")]
fn a_job_ends_although_the_event_of_a_due_delivery_is_not_there() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let webhook = world.webhook();
    test(&world, &webhook);
    world.write(vec![sql!("DELETE FROM events")]);
    let run = || block_on(sandbox.services().run_due_jobs("sandbox", JobKind::ALL, 16)).unwrap().ran;
    assert_eq!([run(), run()], [1, 0], "it is not due again and again");
    let delivery = only(&world, &webhook);
    assert_eq!((&delivery["status"], &delivery["next_attempt_at"]), (&json!("canceled"), &Value::Null));
    assert!(sandbox.sent_http().is_empty());
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "looks into storage")]
fn what_another_workspace_names_is_neither_sent_nor_deleted() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let (webhook, stranger) = (world.webhook(), world.other().workspace_id());
    let delivery = test(&world, &webhook);
    let event = "evt_00000000000000000000000001";
    let naming = |id: &str, event: &str| {
        sql!(
            "INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, type, body_bytes, status, attempts, failures, due_at, created_at)
             VALUES (:id, :stranger, :webhook, :event, 'webhook.test', 0, 'pending', 0, 0, 0, 0)",
            id = id,
            stranger = &stranger,
            webhook = webhook.id.as_str(),
            event = event
        )
    };
    world.write(vec![
        sql!(
            "INSERT INTO events (id, workspace_id, type, body, call_id, created_at)
             VALUES (:id, :stranger, 'webhook.test', '{}', '', 0)",
            id = event,
            stranger = &stranger
        ),
        naming("dlv_00000000000000000000000001", event),
        naming("dlv_00000000000000000000000002", text(&delivery["event_id"])),
    ]);
    sandbox.answer_http(200, "");
    assert_eq!(sandbox.run_jobs(), 1);
    let sent: Vec<String> = sandbox.sent_http().iter().map(|request| header(request, "webhook-id")).collect();
    assert_eq!(sent, [text(&delivery["event_id"])]);
    // By their ids, the other deliveries are old.
    while block_on(sandbox.services().sweep()).unwrap().more {}
    let again = format!("/webhooks/{}/deliveries/{}/redeliver", webhook.id, delivery.id);
    world.create(&again, json!({}));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "looks into storage")]
fn a_webhook_is_not_disabled_for_what_waits_in_another_workspace() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let (webhook, stranger) = (world.webhook(), world.other().workspace_id());
    world.write(vec![sql!(
        "INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, type, body_bytes, status, attempts, failures, due_at, created_at)
         WITH RECURSIVE n (i) AS (SELECT 0 UNION ALL SELECT i + 1 FROM n WHERE i < :count)
         SELECT 'dlv_' || i, :stranger, :webhook, 'evt_1', 'webhook.test', 0, 'pending', 1, 1, :later, 0 FROM n",
        count = DELIVERIES_WAITING_MAX,
        stranger = &stranger,
        webhook = webhook.id.as_str(),
        later = INTEGER_MAX
    )]);
    test(&world, &webhook);
    sandbox.answer_http(503, "");
    assert_eq!(sandbox.run_jobs(), 1);
    assert_eq!(world.get("/webhooks").ok().json[0]["enabled"], true);
}
