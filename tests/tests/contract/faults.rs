//! Storage faults for every operation: before a batch is committed, half-way, or after. Always on the Sandbox, over a
//! database that fails on demand. `tests/faults/` covers whole scenarios.
use sidetone_engine::storage::jobs::JobKind;
use std::sync::Arc;

use serde_json::{Value, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::limits::{JOB_LEASE_MS, PHONE_CONNECT_MS};
use sidetone_engine::operations::operation::{Operation, Success};
use sidetone_engine::operations::{OPERATIONS, by_id};
use sidetone_tests::fakes::carrier::Carriers;
use sidetone_tests::faults::database::SECRET_DETAIL;
use sidetone_tests::faults::{FaultPlan, FaultyDatabase, Moment, StorageFault, until_stalled};
use sidetone_tests::{Call, World};

#[test]
fn a_failed_write_is_a_503_and_a_retry_applies_it_once() {
    for moment in [StorageFault::Before, StorageFault::Half, StorageFault::After] {
        let (world, database) = faulty();
        // A POST with status 200 creates no visible resource.
        let creates = |operation: &&Operation| {
            let once = operation.id == "create_outbound_call";
            operation.takes_idempotency_key() && operation.success == Success::Created && !once
        };
        for operation in OPERATIONS.iter().filter(creates) {
            let call = Call::valid(&world, operation);
            let before = state(&world);
            // Advances the clock, so that a change is visible in `updated_at`.
            world.sandbox().unwrap().advance(1);
            let key = format!("{}-{moment:?}", operation.id);
            let body = Value::Object(call.body.clone().unwrap());
            database.fail_write(1, moment);
            let failed = world.post_once(call.uri(), &key, body.clone()).refused("unavailable");
            assert_eq!(failed.header("retry-after"), Some("1"), "{}", operation.id);
            assert!(!String::from_utf8_lossy(&failed.body).contains(SECRET_DETAIL), "{failed:?}");
            assert_eq!(
                state(&world) != before,
                moment == StorageFault::After,
                "{}: committed or not",
                operation.id
            );

            let retried = world.post_once(call.uri(), &key, body.clone()).created();
            let replayed = retried.header("idempotent-replayed").is_some();
            assert_eq!(replayed, moment == StorageFault::After, "{}", operation.id);
            let after = state(&world);
            assert!(after != before, "{}", operation.id);
            let again = world.post_once(call.uri(), &key, body).created();
            assert_eq!(again.header("idempotent-replayed"), Some("true"));
            assert_eq!(state(&world), after, "{}: applied once", operation.id);
            assert_eq!(retried["id"], again["id"]);
        }
    }
}

#[test]
fn a_retry_does_not_place_a_call_whose_intent_may_be_stored() {
    let moments = [StorageFault::Before, StorageFault::Half, StorageFault::After];
    for (moment, to) in moments.into_iter().zip(["+14159990001", "+14159990002", "+14159990003"]) {
        let (world, database) = faulty();
        let operation = by_id("create_outbound_call").unwrap();
        let call = Call::valid(&world, operation).with_field("to", json!(to));
        let body = Value::Object(call.body.clone().unwrap());
        let asked = || Carriers::shared().get("twilio").orders(to).len();
        database.fail_write(1, moment);
        world.post_once(call.uri(), "once", body.clone()).refused("unavailable");
        assert_eq!(asked(), 0, "{moment:?}: the intent was not known to be stored");
        let retried = world.post_once(call.uri(), "once", body);
        if moment == StorageFault::After {
            let refused = retried.refused("request_in_progress");
            let id = refused.json["error"]["details"]["call_id"].as_str().unwrap().to_owned();
            assert_eq!(world.get(format!("/calls/{id}")).ok().json["status"], "queued");
            // The service cannot know that it never asked the carrier, so it does not ask again. The call's job settles it.
            world.sandbox().unwrap().advance(PHONE_CONNECT_MS);
            world.sandbox().unwrap().run_jobs();
            let call = world.get(format!("/calls/{id}")).ok().json;
            assert_eq!((&call["outcome"], &call["ended_reason"]), (&json!("failed"), &json!("unsettled")));
            assert_eq!(asked(), 0);
        } else {
            retried.created();
            assert_eq!(asked(), 1, "{moment:?}");
        }
    }
}

#[test]
fn every_operation_returns_503_during_a_storage_outage_and_works_afterwards() {
    for operation in OPERATIONS {
        let (world, database) = faulty();
        let call = Call::valid(&world, operation);
        database.set_disconnected(true);
        call.rest(&world).refused("unavailable");
        if operation.is_tool() {
            call.tool(&world).refused("unavailable");
        }
        let health = world.send_unchecked(http::Request::get("/healthz").body("".into()).unwrap());
        assert_eq!(health.status, 503);
        database.set_disconnected(false);
        assert_eq!(call.rest(&world).status, operation.success.status(), "{}", operation.id);
    }
}

#[test]
fn a_storage_outage_is_invisible_without_a_valid_key() {
    let (world, database) = faulty();
    let stranger = world.with_key("sidetone_wrong");
    database.set_disconnected(true);
    stranger.get("/assistants").refused("unauthorized");
}

#[test]
fn a_patch_with_a_failed_commit_is_applied_completely_or_not_at_all() {
    for moment in [StorageFault::Before, StorageFault::Half, StorageFault::After] {
        let (world, database) = faulty();
        let path = format!("/assistants/{}", world.assistant().id);
        database.fail_write(1, moment);
        world.patch(&path, json!({"name": "New", "instructions": "New"})).refused("unavailable");
        let read = world.get(&path).ok();
        let expected =
            if moment == StorageFault::After { ("New", "New", 2) } else { ("Front desk", "Be kind.", 1) };
        assert_eq!(
            (&read["name"], &read["instructions"], &read["revision"]),
            (&json!(expected.0), &json!(expected.1), &json!(expected.2))
        );
        // A retry gets the response of a successful first try.
        assert_eq!(world.patch(&path, json!({"name": "New", "instructions": "New"})).ok()["revision"], 2);
    }
}

#[test]
fn a_running_run_cannot_be_deleted() {
    let (world, database) = faulty();
    let sandbox = world.sandbox().unwrap();
    let run = world.run();
    let path = format!("/simulations/runs/{}", run.id);
    // A process claims the run and is killed; its lease is still valid.
    database.start_plan(FaultPlan::kill(1, Moment::After));
    assert!(until_stalled(sandbox.services().run_due_jobs("lost", JobKind::ALL, 32)).is_none());
    database.start_job_runner();
    let read = world.get(&path).ok();
    assert_eq!(read["status"], "running");
    assert!(read["started_at"].is_string());
    world.delete(&path).refused("run_in_progress");
    world.tool("delete_simulation_run", json!({"id": run.id})).refused("run_in_progress");
    assert_eq!(sandbox.run_jobs(), 0, "no other runner claims the run during the lease");
    sandbox.advance(JOB_LEASE_MS + 1);
    assert_eq!(world.settle(&run.id)["status"], "completed");
    world.delete(&path).empty();
}

#[test]
fn a_run_with_a_failed_result_write_ends_with_the_same_result() {
    let reference = {
        let (world, _) = faulty();
        world.settle(&world.run().id)
    };
    for moment in [StorageFault::Before, StorageFault::Half, StorageFault::After] {
        let (world, database) = faulty();
        let run = world.run();
        // The first write claims the run, the second stores its result.
        database.fail_write(2, moment);
        let turn = block_on(world.sandbox().unwrap().services().run_due_jobs("first", JobKind::ALL, 32));
        assert!(turn.is_err() || !turn.unwrap().incidents.is_empty(), "{moment:?}: the fault did not occur");
        world.sandbox().unwrap().advance(JOB_LEASE_MS + 1);
        let over = world.settle(&run.id);
        assert_eq!(over["status"], "completed", "{over}");
        assert_eq!(over["call"]["transcript"], reference["call"]["transcript"], "{moment:?}");
        assert_eq!(over["evaluations"], reference["evaluations"], "{moment:?}");
        assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 1);
    }
}

fn faulty() -> (World, Arc<FaultyDatabase>) {
    let database = Arc::new(FaultyDatabase::default());
    (World::over(database.clone()), database)
}

/// All lists, and the deliveries of each webhook.
fn state(world: &World) -> Vec<Value> {
    let lists = OPERATIONS
        .iter()
        .filter(|operation| operation.method == http::Method::GET && !operation.path.contains('{'))
        .map(|operation| operation.path.to_owned());
    let webhooks = world.get("/webhooks").ok().ids();
    let deliveries = webhooks.iter().map(|id| format!("/webhooks/{id}/deliveries"));
    lists.chain(deliveries).map(|path| world.get(path).ok().json).collect()
}
