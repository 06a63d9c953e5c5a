//! Batches: every simulation of an assistant, repeated; what came of them; runs by their result.
use serde_json::{Value, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::limits::{BATCH_FAILURE_CHARS_MAX, BATCH_FAILURES_MAX, REPEAT_MAX};
use sidetone_engine::sql;
use sidetone_tests::World;
use sidetone_tests::reply::ids_of;

const GREETING: &str = "Hello, front desk.";

fn front_desk(world: &World) -> String {
    let body = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": GREETING});
    world.create("/assistants", body).id
}

/// A simulation with these evaluations.
fn simulation(world: &World, assistant_id: &str, evaluations: Value) -> String {
    let body = json!({"name": "Booking", "instructions": "Book a table.", "evaluations": evaluations});
    let scenario = world.create("/simulations/scenarios", body);
    let body =
        json!({"assistant_id": assistant_id, "persona_id": world.persona().id, "scenario_id": scenario.id});
    world.create("/simulations", body).id
}

fn start(world: &World, body: Value) -> (String, Vec<Value>) {
    let batch = world.post("/simulations/runs/batch", body).created();
    (batch["batch_id"].as_str().unwrap().to_owned(), batch["runs"].as_array().unwrap().clone())
}

/// Waits for the end of all runs, and reads their batch.
fn settle(world: &World, batch_id: &str, runs: &[Value]) -> Value {
    for run in runs {
        world.settle(run["id"].as_str().unwrap());
    }
    world.get(format!("/simulations/batches/{batch_id}")).ok().json
}

#[test]
fn each_simulation_is_repeated_with_seeds_one_after_the_other() {
    let world = World::new();
    let assistant = front_desk(&world);
    let simulations = [0, 1].map(|_| simulation(&world, &assistant, json!([])));
    let of = |runs: &[Value]| -> Vec<(String, i64)> {
        let of_run =
            |run: &Value| (run["simulation_id"].as_str().unwrap().to_owned(), run["seed"].as_i64().unwrap());
        runs.iter().map(of_run).collect()
    };
    let (batch_id, runs) = start(&world, json!({"assistant_id": assistant, "seed": 5, "repeat": 3}));
    let expected: Vec<(String, i64)> =
        simulations.iter().flat_map(|id| (5..8).map(|seed| (id.clone(), seed))).collect();
    assert_eq!(of(&runs), expected);
    let mut listed = world.get(format!("/simulations/runs?batch_id={batch_id}")).ok()["runs"].clone();
    listed.as_array_mut().unwrap().reverse();
    assert_eq!(ids_of(&listed), ids_of(&Value::from(runs)));

    let (_, runs) = start(&world, json!({"assistant_id": assistant, "repeat": 2}));
    let runs = of(&runs);
    assert_eq!((runs[1].1 - runs[0].1, runs[3].1 - runs[2].1), (1, 1), "{runs:?}");
    assert_ne!(runs[0].1, runs[2].1, "each simulation begins at random");
}

#[test]
fn a_batch_is_not_repeated_beyond_its_limits() {
    let world = World::new();
    let assistant = front_desk(&world);
    for _ in 0..11 {
        simulation(&world, &assistant, json!([]));
    }
    let refused = |body: Value, field: &str| {
        let mut body = body;
        body["assistant_id"] = json!(assistant);
        world.post("/simulations/runs/batch", body).refused("validation_failed").naming(&[field]);
    };
    for bad in [json!(0), json!(REPEAT_MAX + 1), json!(1.5), json!("3")] {
        refused(json!({"repeat": bad}), "repeat");
    }
    refused(json!({"repeat": REPEAT_MAX}), "repeat");
    refused(json!({"repeat": 2, "seed": (1_i64 << 53) - 1}), "seed");
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 0, "no run was queued");
    let (_, runs) = start(&world, json!({"assistant_id": assistant, "seed": (1_i64 << 53) - 1}));
    assert_eq!(runs.len(), 11);
}

#[test]
#[cfg_attr(test_host = "worker", ignore = "looks into storage")]
fn what_runs_share_is_stored_once() {
    let world = World::new();
    let assistant = front_desk(&world);
    simulation(&world, &assistant, json!([]));
    let (batch_id, runs) = start(&world, json!({"assistant_id": assistant, "repeat": REPEAT_MAX}));
    assert_eq!(runs.len(), 100);
    let count = sql!(
        "SELECT COUNT(*) AS count FROM snapshots WHERE workspace_id = :workspace_id",
        workspace_id = &world.workspace_id()
    );
    let [rows] = block_on(world.direct_access().read([count])).unwrap();
    assert_eq!(rows.first().unwrap().integer("count").unwrap(), 2);
    let batch = settle(&world, &batch_id, &runs);
    assert_eq!((&batch["total"], &batch["completed"]), (&json!(100), &json!(100)));
}

#[test]
fn a_batch_tells_how_it_was_started() {
    let world = World::new();
    let assistant = front_desk(&world);
    let [one, other] = [(); 2].map(|()| simulation(&world, &assistant, json!([])));
    let scenario = |id: &str, variables: Value| {
        let simulation = world.get(format!("/simulations/{id}")).ok();
        let path = format!("/simulations/scenarios/{}", simulation["scenario_id"].as_str().unwrap());
        world.patch(path, json!({"variables": variables})).ok();
    };
    scenario(&one, json!({"shop": "Tea", "day": "Monday", "own": "1"}));
    scenario(&other, json!({"shop": "Tea", "day": "Tuesday"}));
    let options = json!({"mode": "chat", "tools": "live", "seed": 3, "repeat": 2, "max_cost_microusd": 70_000,
        "variables": {"name": "\"Ada\""}, "metadata": {"ticket": "17"}});
    let again = |options: &Value| {
        let mut body = options.clone();
        body["assistant_id"] = json!(assistant);
        let (batch_id, runs) = start(&world, body);
        let batch = settle(&world, &batch_id, &runs);
        let read =
            |run: &Value| world.get(format!("/simulations/runs/{}", run["id"].as_str().unwrap())).ok().json;
        (batch, runs.iter().map(read).collect::<Vec<_>>())
    };
    let (batch, first) = again(&options);
    let mut told = options.clone();
    told["variables"] = json!({"name": "\"Ada\"", "shop": "Tea"});
    for (name, value) in told.as_object().unwrap() {
        assert_eq!(batch[name], *value, "{name}");
    }
    // What it tells starts the same again.
    let (repeated, second) = again(&told);
    assert_eq!((&repeated["variables"], second.len()), (&told["variables"], 4));
    for (run, again) in first.iter().zip(&second) {
        for name in [
            "simulation_id",
            "seed",
            "mode",
            "tools",
            "max_cost_microusd",
            "variables",
            "metadata",
            "snapshot",
        ] {
            assert_eq!(run[name], again[name], "{name}");
        }
    }
    // A call takes the variables of its run along; those of another run of the same simulation are the same.
    for run in [&first[0], &first[3]] {
        world.delete(format!("/calls/{}", run["call_id"].as_str().unwrap())).empty();
    }
    let read = world.get(format!("/simulations/batches/{}", batch["batch_id"].as_str().unwrap())).ok();
    assert_eq!((&read["variables"], &read["seed"]), (&told["variables"], &json!(3)));
    // Each simulation begins at a random seed.
    let (batch, _) = again(&json!({"repeat": 1}));
    assert_eq!(
        (&batch["seed"], &batch["repeat"], &batch["tools"]),
        (&Value::Null, &json!(1), &json!("mock"))
    );
    assert_eq!((&batch["variables"], &batch["metadata"]), (&json!({"shop": "Tea"}), &json!({})));
}

#[test]
fn a_batch_tells_what_came_of_its_runs() {
    let world = World::new();
    let assistant = front_desk(&world);
    let good = simulation(
        &world,
        &assistant,
        json!([{"kind": "transcript", "role": "assistant", "includes": "front desk"}]),
    );
    let bad = simulation(
        &world,
        &assistant,
        json!([{"kind": "transcript", "role": "assistant", "includes": "unicorn"},
               {"kind": "transcript", "role": "assistant", "includes": "front desk"},
               {"kind": "transcript_excludes", "role": "assistant", "includes": "front desk"}]),
    );
    let open = simulation(&world, &assistant, json!([]));
    let (batch_id, runs) = start(&world, json!({"assistant_id": assistant, "seed": 3, "repeat": 2}));
    let batch = settle(&world, &batch_id, &runs);
    let of_bad: Vec<&Value> = runs.iter().filter(|run| run["simulation_id"] == bad).collect();
    let listed: Vec<Value> = batch["failures"]
        .as_array()
        .unwrap()
        .iter()
        .map(|failure| {
            json!([
                failure["run_id"],
                failure["simulation_id"],
                failure["seed"],
                failure["kind"],
                failure["includes"]
            ])
        })
        .collect();
    let failure =
        |run: &Value, kind: &str, includes: &str| json!([run["id"], bad, run["seed"], kind, includes]);
    assert_eq!(
        listed,
        [
            failure(of_bad[0], "transcript", "unicorn"),
            failure(of_bad[1], "transcript", "unicorn"),
            failure(of_bad[0], "transcript_excludes", "front desk"),
            failure(of_bad[1], "transcript_excludes", "front desk"),
        ]
    );
    // The row that decided; without one, the last line of the role.
    let run = world.get(format!("/simulations/runs/{}", of_bad[0]["id"].as_str().unwrap())).ok();
    let transcript = run["call"]["transcript"].as_array().unwrap();
    let last = transcript.iter().rfind(|row| row["role"] == "assistant").unwrap();
    assert_eq!(
        batch["failures"][0]["turn"],
        json!({"index": last["index"], "role": last["role"], "text": last["text"], "decides": false})
    );
    assert_eq!(
        batch["failures"][2]["turn"],
        json!({"index": 0, "role": "assistant", "text": GREETING, "decides": true})
    );
    assert_eq!(batch["failures"][0]["reason"], run["evaluations"][0]["reason"]);

    let mut counted = batch.clone();
    counted.as_object_mut().unwrap().shift_remove("failures");
    let last_end = runs
        .iter()
        .map(|run| world.get(format!("/simulations/runs/{}", run["id"].as_str().unwrap())).ok().json)
        .map(|run| run["completed_at"].as_str().unwrap().to_owned())
        .max();
    assert_eq!(
        counted,
        json!({"batch_id": batch_id, "assistant_id": assistant, "total": 6, "queued": 0, "running": 0, "completed": 6,
               "errors": 0, "passed": 2, "failed": 2, "undecided": 2, "total_cost_microusd": 0,
               "created_at": runs[0]["created_at"], "completed_at": last_end, "mode": "chat", "tools": "mock", "seed": 3,
               "repeat": 2, "max_cost_microusd": 1_000_000, "variables": {}, "metadata": {}, "failures_left_out": 0})
    );
    assert_eq!(world.tool("get_simulation_batch", json!({"id": batch_id})).ok().json, batch);

    // The same by the filter of the list.
    let of = |query: &str| {
        let listed = world.get(format!("/simulations/runs?batch_id={batch_id}&{query}")).ok();
        let tool: Value = query
            .split('&')
            .filter_map(|part| part.split_once('='))
            .map(|(name, value)| (name.to_owned(), json!(value)))
            .chain([("batch_id".to_owned(), json!(batch_id)), ("limit".to_owned(), json!(200))])
            .collect();
        assert_eq!(world.tool("list_simulation_runs", tool).ok().json, listed.json);
        let mut simulations: Vec<String> = listed["runs"]
            .as_array()
            .unwrap()
            .iter()
            .map(|run| run["simulation_id"].as_str().unwrap().to_owned())
            .collect();
        simulations.dedup();
        assert_eq!(listed["pagination"]["total"], 2 * simulations.len());
        simulations
    };
    assert_eq!(
        (of("passed=true"), of("passed=false"), of("passed=null")),
        (vec![good], vec![bad], vec![open.clone()])
    );
    assert_eq!(of("passed=null&status=completed"), [open]);
    assert_eq!(of("passed=null&status=queued"), [""; 0]);
    assert_eq!(world.other().get("/simulations/runs?passed=false").ok()["runs"], json!([]));
}

#[test]
fn a_batch_shows_so_many_failures_of_as_many_runs_as_it_can() {
    let world = World::new();
    let assistant = front_desk(&world);
    let long = "é".repeat(1_000);
    simulation(
        &world,
        &assistant,
        json!([{"kind": "transcript", "role": "assistant", "includes": long},
               {"kind": "transcript", "role": "assistant", "includes": "unicorn"}]),
    );
    let (batch_id, runs) = start(&world, json!({"assistant_id": assistant, "seed": 1, "repeat": 25}));
    let batch = settle(&world, &batch_id, &runs);
    let failures = batch["failures"].as_array().unwrap();
    assert_eq!(failures.len(), BATCH_FAILURES_MAX as usize);
    let shown: Vec<&Value> = failures.iter().map(|failure| &failure["run_id"]).collect();
    let first: Vec<&Value> = runs[..20].iter().map(|run| &run["id"]).collect();
    assert_eq!(shown, first);
    for failure in failures {
        assert_eq!(failure["includes"], "é".repeat(BATCH_FAILURE_CHARS_MAX as usize));
    }
    // A second one of each of these, and at least one of each of the other five.
    assert_eq!((&batch["failed"], &batch["failures_left_out"]), (&json!(25), &json!(20 + 5)));
}

#[test]
fn a_batch_of_nobody_is_a_404() {
    let world = World::new();
    let batch = world.batch();
    let path = format!("/simulations/batches/{}", batch.id);
    world.other().get(&path).refused("not_found");
    for id in ["batch_nope", "batch_00000000000000000000000000", "x"] {
        world.get(format!("/simulations/batches/{id}")).refused("not_found");
    }
    let run = batch["runs"][0]["id"].as_str().unwrap();
    world.settle(run);
    assert_eq!(world.get(&path).ok()["total"], 1);
    // A transcript that was deleted with its call has no line to show.
    world.delete(format!("/simulations/runs/{run}")).empty();
    world.get(&path).refused("not_found");
}

#[test]
fn a_failure_outlives_its_transcript() {
    let world = World::new();
    let assistant = front_desk(&world);
    simulation(
        &world,
        &assistant,
        json!([{"kind": "transcript", "role": "assistant", "includes": "unicorn"}]),
    );
    let (batch_id, runs) = start(&world, json!({"assistant_id": assistant}));
    let batch = settle(&world, &batch_id, &runs);
    assert!(batch["failures"][0]["turn"].is_object(), "{batch}");
    let run = world.get(format!("/simulations/runs/{}", runs[0]["id"].as_str().unwrap())).ok();
    world.delete(format!("/calls/{}", run["call_id"].as_str().unwrap())).empty();
    let after = world.get(format!("/simulations/batches/{batch_id}")).ok();
    let mut expected = batch;
    expected["failures"][0]["turn"] = Value::Null;
    assert_eq!(after.json, expected);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_batch_can_be_read_while_it_goes_on() {
    let world = World::with_manual_clock();
    let engine = world.sandbox().unwrap().services().clone();
    world.patch("/workspace", json!({"runs_at_once": 1})).ok();
    let assistant = front_desk(&world);
    simulation(
        &world,
        &assistant,
        json!([{"kind": "transcript", "role": "assistant", "includes": "unicorn"}]),
    );
    let (batch_id, runs) = start(&world, json!({"assistant_id": assistant, "repeat": 3}));
    let read = || world.get(format!("/simulations/batches/{batch_id}")).ok().json;
    let counts = |batch: &Value| {
        ["queued", "running", "completed", "failed", "undecided"].map(|name| batch[name].as_i64().unwrap())
    };
    assert_eq!(counts(&read()), [3, 0, 0, 0, 0]);
    let held = block_on(engine.claim_jobs("one", sidetone_engine::storage::jobs::JobKind::ALL, 10)).unwrap();
    assert_eq!(counts(&read()), [2, 1, 0, 0, 0]);
    assert_eq!(block_on(engine.run_job(&held[0])), None);
    let batch = read();
    assert_eq!(counts(&batch), [2, 0, 1, 1, 0]);
    assert_eq!((&batch["completed_at"], &batch["failures"][0]["run_id"]), (&Value::Null, &runs[0]["id"]));
    world.sandbox().unwrap().run_jobs();
    let batch = read();
    assert_eq!((counts(&batch), batch["completed_at"].is_string()), ([0, 0, 3, 3, 0], true));
}
