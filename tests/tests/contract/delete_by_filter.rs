//! Runs and calls that are deleted by a filter.
use std::sync::Arc;

use serde_json::{Value, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::limits::{CALLS_DELETED_AT_ONCE, RETENTION_CALLS_MAX};
use sidetone_engine::sql;
use sidetone_engine::storage::calls::write;
use sidetone_engine::storage::jobs::JobKind;
use sidetone_tests::meanwhile::Meanwhile;
use sidetone_tests::{World, example};

const RUNS: &str = "/simulations/runs";

fn total(world: &World, path: &str) -> i64 {
    world.get(path).ok()["pagination"]["total"].as_i64().unwrap()
}

fn settled_batch(world: &World, repeat: i64) -> String {
    let simulation = world.simulation();
    let body = json!({"assistant_id": simulation["assistant_id"], "repeat": repeat});
    let batch = world.post("/simulations/runs/batch", body).created();
    for run in batch["runs"].as_array().unwrap() {
        world.settle(run["id"].as_str().unwrap());
    }
    batch["batch_id"].as_str().unwrap().to_owned()
}

fn snapshots(world: &World) -> i64 {
    let count = sql!(
        "SELECT COUNT(*) AS count FROM snapshots WHERE workspace_id = :workspace_id",
        workspace_id = &world.workspace_id()
    );
    let [rows] = block_on(world.direct_access().read([count])).unwrap();
    rows.first().unwrap().integer("count").unwrap()
}

#[test]
fn a_run_that_no_longer_matches_stays() {
    let database = Arc::new(Meanwhile::default());
    let world = World::over(database.clone());
    let body = json!({"assistant_id": world.simulation()["assistant_id"], "repeat": 3});
    world.post("/simulations/runs/batch", body).created();
    for query in ["status=queued", "passed=null"] {
        world.write(vec![sql!("UPDATE runs SET status = 'queued', passed = NULL, completed_at = NULL")]);
        let complete = "UPDATE runs SET status = 'completed', passed = 1, completed_at = created_at";
        database.before("DELETE FROM runs", vec![sql!(complete)]);
        let deleted = world.delete(format!("{RUNS}?{query}")).ok();
        assert_eq!((&deleted["deleted"], database.has_happened()), (&json!(0), true), "{query}");
        assert_eq!(total(&world, &format!("{RUNS}?status=completed")), 3, "{query}");
    }
    assert_eq!(world.delete(format!("{RUNS}?status=completed")).ok()["deleted"], 3);
}

#[test]
fn the_runs_of_a_batch_are_deleted_and_no_others() {
    let world = World::new();
    let (one, other) = (settled_batch(&world, 3), settled_batch(&world, 2));
    let theirs = world.other();
    let query = format!("{RUNS}?batch_id={one}");
    let nothing = json!({"deleted": 0, "in_progress": 0, "more": false});
    assert_eq!(theirs.delete(&query).ok().json, nothing);
    let dry = world.delete(format!("{query}&dry_run=true")).ok();
    assert_eq!(dry.json, json!({"would_delete": 3, "in_progress": 0, "more": false}));
    assert_eq!(total(&world, RUNS), 5, "a dry run deletes nothing");
    assert_eq!(world.delete(format!("{query}&passed=true")).ok().json, nothing);
    assert_eq!(world.delete(&query).ok().json, json!({"deleted": 3, "in_progress": 0, "more": false}));
    world.get(format!("/simulations/batches/{one}")).refused("not_found");
    assert_eq!((total(&world, RUNS), total(&world, &format!("{RUNS}?batch_id={other}"))), (2, 2));
    assert_eq!(total(&world, "/calls?source=simulation"), 5, "calls are kept");
    let tool = world.tool("delete_simulation_runs", json!({"batch_id": other})).ok();
    assert_eq!(tool.json, json!({"deleted": 2, "in_progress": 0, "more": false}));
    assert_eq!(world.get("/audit?limit=1").ok().json[0]["operation"], "delete_simulation_runs");
}

#[test]
#[cfg_attr(test_host = "worker", ignore = "looks into storage")]
fn what_runs_shared_goes_with_the_last_of_them() {
    let world = World::new();
    let one = settled_batch(&world, 2);
    let other = settled_batch(&world, 2);
    let of_both = snapshots(&world);
    world.delete("/calls?source=simulation").ok();
    assert_eq!(snapshots(&world), of_both, "the runs have them");
    world.delete(format!("{RUNS}?batch_id={one}")).ok();
    // Runs of the same configuration have a snapshot in common.
    assert!((1..=of_both).contains(&snapshots(&world)), "{} of {of_both}", snapshots(&world));
    world.delete(format!("{RUNS}?batch_id={other}")).ok();
    assert_eq!(snapshots(&world), 0);
}

#[test]
fn without_a_filter_nothing_is_deleted() {
    let world = World::new();
    settled_batch(&world, 1);
    for query in ["", "?dry_run=true", "?dry_run=false"] {
        world.delete(format!("{RUNS}{query}")).refused("validation_failed").naming(&["batch_id"]);
        world.delete(format!("/calls{query}")).refused("validation_failed").naming(&["date_to"]);
    }
    // The page of a list is no filter.
    for query in ["?limit=1", "?page=2"] {
        world.delete(format!("{RUNS}{query}")).refused("validation_failed");
        world.delete(format!("/calls{query}")).refused("validation_failed");
    }
    assert_eq!((total(&world, RUNS), total(&world, "/calls")), (1, 1));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn running_runs_stay_and_queued_ones_never_run() {
    let world = World::with_manual_clock();
    let engine = world.sandbox().unwrap().services().clone();
    world.patch("/workspace", json!({"runs_at_once": 1})).ok();
    let body = json!({"assistant_id": world.simulation()["assistant_id"], "repeat": 3});
    let batch = world.post("/simulations/runs/batch", body).created();
    let held = block_on(engine.claim_jobs("one", JobKind::ALL, 10)).unwrap();
    let query = format!("{RUNS}?batch_id={}", batch["batch_id"].as_str().unwrap());
    assert_eq!(world.delete(&query).ok().json, json!({"deleted": 2, "in_progress": 1, "more": false}));
    assert_eq!(world.get(&query).ok()["runs"][0]["status"], "running");
    assert_eq!(block_on(engine.run_job(&held[0])), None);
    assert_eq!(total(&world, &format!("{query}&status=completed")), 1);
    assert_eq!(world.delete(&query).ok().json, json!({"deleted": 1, "in_progress": 0, "more": false}));
}

/// Ended calls of the same time.
fn calls(world: &World, count: i64) -> Vec<String> {
    (0..count)
        .map(|_| {
            let new = example::new_call(world);
            world.write(write::record(&new, Some(&example::ended_call()), Some(&example::analysis())));
            new.id.to_string()
        })
        .collect()
}

#[test]
fn calls_that_have_ended_are_deleted_with_all_that_tells_about_them() {
    let world = World::new();
    let run = world.settle(&world.run().id);
    let ids = calls(&world, RETENTION_CALLS_MAX + 3);
    let kept = run["call_id"].as_str().unwrap();
    let source = world.get(format!("/calls/{}", ids[0])).ok()["source"].as_str().unwrap().to_owned();
    assert_ne!(source, "simulation");
    let query = format!("/calls?source={source}");
    let count = ids.len();
    assert_eq!(
        world.other().delete(&query).ok().json,
        json!({"deleted": 0, "in_progress": 0, "more": false})
    );
    let dry = world.tool("delete_calls", json!({"source": source, "dry_run": true})).ok();
    assert_eq!(dry.json, json!({"would_delete": count, "in_progress": 0, "more": false}));
    assert_eq!(total(&world, "/calls"), 1 + count as i64);
    assert_eq!(world.delete(&query).ok().json, json!({"deleted": count, "in_progress": 0, "more": false}));
    for id in [&ids[0], &ids[count - 1]] {
        world.get(format!("/calls/{id}")).refused("not_found");
    }
    assert_eq!(world.get("/calls").ok()["stats"]["total"], 1);
    world.get(format!("/calls/{kept}")).ok();
    // By the end of a period, and by words of the transcript; a wrong time deletes nothing.
    world.delete("/calls?date_to=yesterday").refused("invalid_parameter").naming(&["date_to"]);
    assert_eq!(world.delete("/calls?date_to=2001-01-01").ok()["deleted"], 0);
    assert_eq!(world.delete("/calls?search=zqxzqx").ok()["deleted"], 0);
    assert_eq!(world.delete("/calls?date_from=2001-01-01").ok()["deleted"], 1);
    let run = world.get(format!("/simulations/runs/{}", run["id"].as_str().unwrap())).ok();
    assert_eq!((&run["status"], &run["call"]), (&json!("completed"), &Value::Null));
}

#[test]
fn a_call_in_progress_stays() {
    let world = World::new();
    let id = calls(&world, 1).remove(0);
    world.write(vec![sql!(
        "UPDATE calls SET status = 'in_progress' WHERE workspace_id = :workspace_id AND id = :id",
        workspace_id = &world.workspace_id(),
        id = id.as_str()
    )]);
    let answer = world.delete("/calls?date_from=2001-01-01").ok();
    assert_eq!(answer.json, json!({"deleted": 0, "in_progress": 1, "more": false}));
    world.get(format!("/calls/{id}")).ok();
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "many calls; nothing in it depends on the host")]
fn one_request_deletes_so_many_calls() {
    let world = World::new();
    calls(&world, CALLS_DELETED_AT_ONCE + 2);
    let query = "/calls?date_from=2001-01-01";
    assert_eq!(
        world.delete(format!("{query}&dry_run=true")).ok().json,
        json!({"would_delete": CALLS_DELETED_AT_ONCE, "in_progress": 0, "more": true})
    );
    assert_eq!(
        world.delete(query).ok().json,
        json!({"deleted": CALLS_DELETED_AT_ONCE, "in_progress": 0, "more": true})
    );
    assert_eq!(world.delete(query).ok().json, json!({"deleted": 2, "in_progress": 0, "more": false}));
}
