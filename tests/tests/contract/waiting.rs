//! Reads that wait for the end of what they read.
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::base::limits::{FOLLOWERS_MAX, WAIT_SECONDS_MAX};
use sidetone_engine::sql;
use sidetone_tests::World;
use sidetone_tests::call::UNKNOWN_ID;

/// A run, its batch and its call, which have ended.
struct Ended {
    run: String,
    paths: [String; 3],
}

fn ended(world: &World) -> Ended {
    let batch = world.batch();
    let run = batch["runs"][0]["id"].as_str().unwrap().to_owned();
    let call = world.settle(&run)["call_id"].as_str().unwrap().to_owned();
    let paths = [
        format!("/simulations/runs/{run}"),
        format!("/simulations/batches/{}", batch.id),
        format!("/calls/{call}"),
    ];
    Ended { run, paths }
}

/// Has the run look as if it went on, or had ended, with its call.
fn mark(world: &World, run: &str, [of_run, of_call]: [&str; 2]) {
    let workspace_id = world.workspace_id();
    world.write(vec![
        sql!(
            "UPDATE runs SET status = :status WHERE workspace_id = :workspace_id AND id = :id",
            status = of_run,
            workspace_id = &workspace_id,
            id = run
        ),
        sql!(
            "UPDATE calls SET status = :status WHERE workspace_id = :workspace_id AND simulation_run_id = :id",
            status = of_call,
            workspace_id = &workspace_id,
            id = run
        ),
    ]);
}

const GOES_ON: [&str; 2] = ["running", "in_progress"];
const HAS_ENDED: [&str; 2] = ["completed", "ended"];

fn waiting(path: &str, seconds: i64) -> String {
    format!("{path}?wait_seconds={seconds}")
}

#[test]
fn what_has_ended_is_answered_at_once() {
    let world = World::new();
    let Ended { paths, .. } = ended(&world);
    let started = Instant::now();
    for path in &paths {
        let at_once = world.get(path).ok();
        assert_eq!(world.get(waiting(path, WAIT_SECONDS_MAX)).ok().json, at_once.json);
    }
    assert!(started.elapsed() < Duration::from_secs(10), "waited {:?}", started.elapsed());
    for unknown in ["/simulations/runs/", "/simulations/batches/", "/calls/"] {
        world.get(waiting(&format!("{unknown}{UNKNOWN_ID}"), WAIT_SECONDS_MAX)).refused("not_found");
    }
    for path in &paths {
        for bad in [-1, WAIT_SECONDS_MAX + 1] {
            world.get(waiting(path, bad)).refused("validation_failed").naming(&["wait_seconds"]);
        }
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn what_goes_on_is_answered_when_the_time_is_over() {
    let world = World::with_manual_clock();
    let Ended { run, paths } = ended(&world);
    mark(&world, &run, GOES_ON);
    let now_ms = || world.sandbox().unwrap().services().now().ms();
    for path in &paths {
        let before = now_ms();
        let answer = world.get(waiting(path, 7)).ok();
        assert_eq!(now_ms() - before, 7_000);
        assert_eq!(answer.json, world.get(path).ok().json);
        assert_eq!(now_ms() - before, 7_000, "without wait_seconds nobody waits");
        world.other().get(waiting(path, 7)).refused("not_found");
        assert_eq!(now_ms() - before, 7_000, "nobody waits for what belongs to others");
    }
    let before = now_ms();
    world.tool("get_simulation_run", json!({"id": run, "wait_seconds": 3})).ok();
    assert_eq!(now_ms() - before, 3_000);
    // No message of a batch waits: the answers before it would be held meanwhile.
    let before = now_ms();
    let message = |id: i64| {
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call",
               "params": {"name": "get_simulation_run", "arguments": {"id": run, "wait_seconds": 5}}})
    };
    let replies = world.mcp((1..=4).map(message).collect::<Vec<Value>>().into()).ok();
    assert_eq!(replies.json.as_array().unwrap().len(), 4);
    assert!(replies.json.as_array().unwrap().iter().all(|reply| reply["result"]["isError"] == false));
    assert_eq!(now_ms() - before, 0);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_service_that_stops_answers_at_once() {
    let world = World::with_manual_clock();
    let Ended { run, paths } = ended(&world);
    mark(&world, &run, GOES_ON);
    let services = world.sandbox().unwrap().services();
    services.begin_to_stop();
    let before = services.now();
    for path in &paths {
        assert_eq!(world.get(waiting(path, WAIT_SECONDS_MAX)).ok().json, world.get(path).ok().json);
    }
    world.tool("get_simulation_run", json!({"id": run, "wait_seconds": WAIT_SECONDS_MAX})).ok();
    assert_eq!(services.now(), before);
}

#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs time that passes by itself")]
fn what_ends_is_answered_soon_after() {
    let world = World::new();
    let Ended { run, paths } = ended(&world);
    for path in &paths {
        mark(&world, &run, GOES_ON);
        let started = Instant::now();
        let answer = std::thread::scope(|scope| {
            let waiter = scope.spawn(|| world.get(waiting(path, WAIT_SECONDS_MAX)).ok());
            std::thread::sleep(Duration::from_millis(1_500));
            assert!(!waiter.is_finished(), "it did not wait");
            mark(&world, &run, HAS_ENDED);
            waiter.join().unwrap()
        });
        assert!(started.elapsed() < Duration::from_secs(10), "waited {:?}", started.elapsed());
        assert_eq!(answer.json, world.get(path).ok().json);
    }
}

#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs a service that works by itself")]
fn a_run_is_waited_for_from_its_start() {
    let world = World::new();
    let run = world.run().id;
    let wait = || {
        let read = json!({"id": run, "wait_seconds": WAIT_SECONDS_MAX});
        world.tool("get_simulation_run", read).ok().json["status"].clone()
    };
    // A busy machine takes longer than one read waits.
    assert!((0..4).any(|_| wait() == "completed"));
}

#[test]
#[cfg_attr(test_host = "sandbox", ignore = "needs time that passes by itself")]
fn a_key_that_is_revoked_while_it_waits_reads_nothing() {
    let world = World::new();
    let Ended { run, paths } = ended(&world);
    let made = world.create("/keys", json!({"name": "short-lived"}));
    let short = world.with_key(made["key"].as_str().unwrap());
    mark(&world, &run, GOES_ON);
    std::thread::scope(|scope| {
        let waiter = scope.spawn(|| short.get(waiting(&paths[0], 10)));
        std::thread::sleep(Duration::from_millis(1_000));
        world.delete(format!("/keys/{}", made.id)).empty();
        waiter.join().unwrap().refused("unauthorized");
    });
}

#[test]
#[cfg_attr(not(test_host = "native"), ignore = "fills the places of one process")]
fn beyond_the_places_of_a_process_nobody_waits() {
    let world = World::new();
    let Ended { run, paths } = ended(&world);
    mark(&world, &run, GOES_ON);
    let started = Instant::now();
    let waited = std::thread::scope(|scope| {
        let ask = || {
            world.get(waiting(&paths[0], 15)).ok();
            started.elapsed()
        };
        let all: Vec<_> = (0..FOLLOWERS_MAX).map(|_| scope.spawn(ask)).collect();
        all.into_iter().map(|one| one.join().unwrap()).collect::<Vec<Duration>>()
    });
    let at_once = waited.iter().filter(|waited| **waited < Duration::from_secs(14)).count();
    assert!((16..128).contains(&at_once), "{at_once} of {FOLLOWERS_MAX} did not wait");
}
