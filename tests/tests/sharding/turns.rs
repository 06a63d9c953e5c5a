//! The jobs of several databases in invocations that end: none waits for long because another has much to do.
use http::Method;
use serde_json::json;
use sidetone::Sandbox;
use sidetone::sandbox::{block_on, memory_shards};
use sidetone_engine::jobs::{HintOf, Invocation};
use sidetone_engine::services::Services;
use sidetone_engine::sql;

use crate::product::{MINUTE_MS, assistant, get, send, with_bootstrap_keys};

/// More than the timer looks at in one minute.
const MANY: usize = 9;
/// No claims after this time.
const CLAIMING_MS: i64 = 120_000;

fn service(databases: usize) -> Sandbox {
    with_bootstrap_keys(memory_shards(databases))
}

fn run(mut invocation: Invocation) {
    while let Some(report) = block_on(invocation.next()) {
        assert!(report.incidents.is_empty() && !report.retry_hints, "{report:?}");
    }
}

/// Queues a run.
fn start(isolate: &Sandbox, key: &str) {
    let assistant_id = assistant(isolate, key);
    let body = json!({"assistant_id": assistant_id, "persona": {"system_prompt": "You are in a hurry."},
        "scenario": {"instructions": "Book a table.",
                     "evaluations": [{"kind": "transcript", "role": "assistant", "includes": "Hello"}]}});
    let started = send(isolate, key, Method::POST, "/simulations/runs/inline", Some(body));
    assert!(started.status < 300, "{started:?}");
}

/// The jobs of this kind that are left in each database.
fn left(isolate: &Sandbox, kind: &str) -> Vec<i64> {
    let ask = || sql!("SELECT COUNT(*) AS n FROM jobs WHERE kind = :kind", kind = kind);
    let of = |services: Services| {
        let rows = block_on(services.ports().database.read(vec![ask()])).unwrap();
        rows[0].first().unwrap().integer("n").unwrap()
    };
    isolate.services().on_every_shard().into_iter().map(of).collect()
}

#[test]
fn hints_name_their_database_and_the_timer_looks_at_each() {
    let isolate = service(3);
    let keys: Vec<String> = (0..3).map(|n| isolate.create_workspace(&n.to_string())).collect();
    isolate.named_hints();
    for key in &keys {
        start(&isolate, key);
    }
    let mut named: Vec<Option<String>> = isolate.named_hints().into_iter().map(|(name, _)| name).collect();
    named.sort();
    assert_eq!(named, ["DB_1", "DB_2", "DB_3"].map(|name| Some(name.to_owned())));
    let of = |shard| HintOf { queue: "runs", shard: Some(shard) };
    run(isolate.engine().jobs_of_hints("edge", [Some(of("DB_2"))]));
    assert_eq!(left(&isolate, "simulation_run"), [1, 0, 1], "those of one database");
    run(isolate.engine().scheduled_jobs("edge"));
    assert_eq!(left(&isolate, "simulation_run"), [0, 0, 0]);
}

#[test]
fn hints_of_one_database_name_none() {
    let isolate = Sandbox::new();
    start(&isolate, isolate.key());
    let hints = isolate.named_hints();
    assert!(!hints.is_empty() && hints.iter().all(|(name, _)| name.is_none()), "{hints:?}");
}

#[test]
fn a_database_with_much_to_do_leaves_the_others_to_another_invocation() {
    let isolate = service(3);
    let keys: Vec<String> = (0..3).map(|n| isolate.create_workspace(&n.to_string())).collect();
    for key in &keys {
        start(&isolate, key);
    }
    isolate.named_hints();
    let of = |shard| Some(HintOf { queue: "runs", shard: Some(shard) });
    let mut invocation = isolate.engine().jobs_of_hints("edge", ["DB_1", "DB_2", "DB_3"].map(of));
    block_on(invocation.next()).unwrap();
    // What the first one took.
    isolate.advance(CLAIMING_MS + 1);
    run(invocation);
    assert_eq!(left(&isolate, "simulation_run"), [0, 1, 1]);
    let hints = isolate.named_hints();
    let named: Vec<_> =
        hints.iter().filter_map(|(name, wake)| Some((name.as_deref()?, wake.queue))).collect();
    for shard in ["DB_2", "DB_3"] {
        assert!(named.iter().any(|(name, queue)| *name == shard && queue.as_str() == "runs"), "{named:?}");
    }
    let hinted = named.iter().map(|(name, queue)| Some(HintOf { queue: queue.as_str(), shard: Some(name) }));
    run(isolate.engine().jobs_of_hints("edge", hinted));
    assert_eq!(left(&isolate, "simulation_run"), [0, 0, 0]);
}

#[test]
fn each_of_many_databases_has_its_turn_and_calls_wait_for_none() {
    let isolate = service(MANY);
    let keys: Vec<String> = (0..MANY).map(|n| isolate.create_workspace(&n.to_string())).collect();
    for key in &keys {
        start(&isolate, key);
    }
    for (n, services) in isolate.services().on_every_shard().into_iter().enumerate() {
        let hang_up = sql!(
            "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
             SELECT MIN(id), :id, 'hang_up', 'call_1', 0, 0, 0 FROM workspaces",
            id = format!("job_{n}")
        );
        block_on(services.ports().database.write(vec![hang_up])).unwrap();
    }
    run(isolate.engine().scheduled_jobs("edge"));
    assert_eq!(left(&isolate, "hang_up"), [0; MANY], "somebody waits on the telephone");
    let runs = |isolate: &Sandbox| left(isolate, "simulation_run").iter().filter(|n| **n > 0).count();
    assert_eq!(runs(&isolate), MANY - 4);
    for _ in 0..2 {
        isolate.advance(MINUTE_MS);
        run(isolate.engine().scheduled_jobs("edge"));
    }
    assert_eq!(runs(&isolate), 0);
    assert_eq!(get(&isolate, &keys[MANY - 1]).status, 200);
}

/// As much as of one database, whichever databases have their turn.
#[test]
fn the_directory_is_swept_every_minute() {
    let shards = memory_shards(MANY);
    let directory = shards.directory.clone();
    let isolate = with_bootstrap_keys(shards);
    let count = || {
        let rows = block_on(directory.read(vec![sql!("SELECT COUNT(*) AS n FROM carrier_tokens")])).unwrap();
        rows[0].first().unwrap().integer("n").unwrap()
    };
    for _ in 0..MANY.div_ceil(4) {
        let expired = sql!(
            "INSERT INTO carrier_tokens (provider, id, request, expires_at)
             WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1200)
             SELECT 'vonage', 'token ' || i, '', 0 FROM n"
        );
        block_on(directory.write(vec![expired])).unwrap();
        run(isolate.engine().scheduled_jobs("edge"));
        assert_eq!(count(), 0);
        isolate.advance(MINUTE_MS);
    }
}

/// The database in which jobs are looked for first has most of the time.
#[test]
fn which_database_is_first_changes() {
    let isolate = service(3);
    let keys: Vec<String> = (0..3).map(|n| isolate.create_workspace(&n.to_string())).collect();
    let mut first = std::collections::BTreeSet::new();
    for _ in 0..3 {
        isolate.advance(MINUTE_MS);
        for key in &keys {
            start(&isolate, key);
        }
        let mut invocation = isolate.engine().scheduled_jobs("edge");
        while left(&isolate, "simulation_run") == [1, 1, 1] {
            block_on(invocation.next()).expect("a part that runs them");
        }
        first.extend(left(&isolate, "simulation_run").iter().position(|n| *n == 0));
        run(invocation);
    }
    assert_eq!(first.len(), 3, "{first:?}");
}
