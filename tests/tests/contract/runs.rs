//! Runs: starting one or a batch, listing, deleting while queued. How they end is in `outcomes`.
use serde_json::{Value, json};
use sidetone::sandbox::block_on;
use sidetone_engine::base::limits::{
    LAST_LINE_BYTES_MAX, MODEL_ERROR_TEXT_BYTES_MAX, PAGE_BYTES_MAX, PAGE_ROWS_MAX, RUNS_QUEUED_MAX,
};
use sidetone_engine::sql;
use sidetone_engine::storage::jobs::JobKind;
use sidetone_tests::World;
use sidetone_tests::call::UNKNOWN_ID;

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_started_run_is_queued() {
    // The Sandbox runs no jobs by itself, so the run is still queued when it is read.
    let world = World::with_manual_clock();
    let simulation = world.simulation();
    let run =
        world.create(&format!("/simulations/{}/runs", simulation.id), json!({"mode": "chat", "seed": 42}));
    assert!(run.id.starts_with("run_"));
    assert_eq!(
        run.json,
        json!({"id": run.id, "simulation_id": simulation.id, "batch_id": null, "assistant_id": simulation["assistant_id"],
               "assistant_revision": 1, "snapshot": run["snapshot"], "mode": "chat", "tools": "mock", "status": "queued", "passed": null, "error": null, "turns": 0, "last_line": null, "failed_evaluation": null,
               "cost_microusd": 0, "max_cost_microusd": 1_000_000, "seed": 42,
               "created_at": run["created_at"], "started_at": null, "completed_at": null, "call_id": null, "mocks_unused": [], "metadata": {}})
    );
    let mut read = run.json.clone();
    read["simulation_name"] = simulation["name"].clone();
    read["variables"] = json!({});
    read["evaluations"] = json!([]);
    read["call"] = Value::Null;
    assert_eq!(world.get(format!("/simulations/runs/{}", run.id)).ok().json, read);
    let list = world.get("/simulations/runs").ok();
    assert_eq!(list["runs"], json!([run.json]));
    assert_eq!(list["pagination"], json!({"page": 1, "limit": 200, "total": 1, "total_pages": 1}));
}

#[test]
fn the_default_mode_is_chat_and_the_default_seed_is_random() {
    let world = World::new();
    let simulation = world.simulation();
    let path = format!("/simulations/{}/runs", simulation.id);
    let seeds: Vec<i64> = (0..3)
        .map(|_| {
            let run = world.create(&path, json!({}));
            assert_eq!(run["mode"], "chat");
            run["seed"].as_i64().unwrap()
        })
        .collect();
    assert!(seeds.iter().all(|seed| (0..1 << 53).contains(seed)), "{seeds:?}");
    assert!(seeds[0] != seeds[1] || seeds[1] != seeds[2], "{seeds:?}");
    for seed in [0_i64, (1 << 53) - 1] {
        assert_eq!(world.create(&path, json!({"seed": seed}))["seed"], seed);
    }
    for bad in [json!(-1), json!(1_i64 << 53), json!(0.5), json!("7"), json!(1e18)] {
        world.post(&path, json!({"seed": bad})).refused("validation_failed").naming(&["seed"]);
    }
    world.post(&path, json!({"mode": "video"})).refused("validation_failed").naming(&["mode"]);
}

#[test]
fn the_body_of_a_start_is_optional() {
    let world = World::new();
    let path = format!("/simulations/{}/runs", world.simulation().id);
    world.call(http::Method::POST, &path, None).created();
    for blank in [" ", "\r\n", "\x0c"] {
        let request = world.request(http::Method::POST, &path).header("content-type", "application/json");
        world.send(request.body(blank.into()).unwrap()).refused("invalid_json");
    }
}

#[test]
fn a_run_of_an_unknown_simulation_is_a_404() {
    let world = World::new();
    let theirs = world.other().simulation().id;
    for id in ["sim_nope", UNKNOWN_ID, &*theirs] {
        world.post(format!("/simulations/{id}/runs"), json!({})).refused("not_found");
    }
}

#[test]
fn a_batch_queues_every_simulation_of_the_assistant() {
    let world = World::new();
    let assistant = world.assistant().id;
    let simulations: Vec<String> = (0..3).map(|_| world.simulation_of(&assistant).id).collect();
    world.simulation();
    let batch =
        world.post("/simulations/runs/batch", json!({"assistant_id": assistant, "seed": 5})).created();
    let batch_id = batch["batch_id"].as_str().unwrap();
    assert!(batch_id.starts_with("batch_"));
    let runs = batch["runs"].as_array().unwrap();
    let of: Vec<&str> = runs.iter().map(|run| run["simulation_id"].as_str().unwrap()).collect();
    assert_eq!(of, simulations);
    for run in runs {
        assert_eq!((&run["batch_id"], &run["assistant_id"]), (&json!(batch_id), &json!(assistant)));
        assert_eq!(
            (&run["status"], &run["mode"], &run["seed"]),
            (&json!("queued"), &json!("chat"), &json!(5))
        );
    }
    let listed = world.get(format!("/simulations/runs?batch_id={batch_id}")).ok();
    assert_eq!(listed["pagination"]["total"], 3);
}

#[test]
fn a_batch_needs_an_assistant_with_a_simulation() {
    let world = World::new();
    let theirs = world.other();
    let theirs = theirs.simulation()["assistant_id"].clone();
    for id in [json!(world.assistant().id), theirs, json!("asst_nope")] {
        world
            .post("/simulations/runs/batch", json!({"assistant_id": id}))
            .refused("validation_failed")
            .naming(&["assistant_id"]);
    }
    world.post("/simulations/runs/batch", json!({})).refused("validation_failed").naming(&["assistant_id"]);
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 0, "no run was queued");
}

#[test]
fn runs_are_listed_newest_first_in_pages() {
    let world = World::new();
    let path = format!("/simulations/{}/runs", world.simulation().id);
    let mut made: Vec<String> = (0..5).map(|_| world.create(&path, json!({})).id).collect();
    made.reverse();
    let page = |query: &str| {
        let reply = world.get(format!("/simulations/runs?{query}")).ok();
        (sidetone_tests::reply::ids_of(&reply["runs"]), reply["pagination"].clone())
    };
    assert_eq!(page(""), (made.clone(), json!({"page": 1, "limit": 200, "total": 5, "total_pages": 1})));
    assert_eq!(
        page("limit=2"),
        (made[..2].to_vec(), json!({"page": 1, "limit": 2, "total": 5, "total_pages": 3}))
    );
    assert_eq!(
        page("limit=2&page=3"),
        (made[4..].to_vec(), json!({"page": 3, "limit": 2, "total": 5, "total_pages": 3}))
    );
    assert_eq!(
        page("limit=2&page=4"),
        (vec![], json!({"page": 4, "limit": 2, "total": 5, "total_pages": 3}))
    );
    assert_eq!(page("limit=1000&page=1000000000").0, Vec::<String>::new());
    assert_eq!(
        World::new().get("/simulations/runs").ok()["pagination"],
        json!({"page": 1, "limit": 200, "total": 0, "total_pages": 0})
    );
}

#[test]
fn the_largest_page_has_at_most_4_mib() {
    let world = World::new();
    let run = world.run();
    // What carries it out must not write after this test.
    world.settle(&run.id);
    let quotes = |bytes: usize| "\"".repeat(bytes);
    let message = format!("The assistant's model failed: {}", quotes(MODEL_ERROR_TEXT_BYTES_MAX));
    let update = sql!(
        "UPDATE runs SET status = 'error', last_line = :last_line, error = :error, started_at = 1, completed_at = 1,
         call_id = :call WHERE workspace_id = :workspace_id AND id = :id",
        last_line = quotes(LAST_LINE_BYTES_MAX),
        error = json!({"code": "provider_not_configured", "message": message}).to_string(),
        call = format!("call_{}", "0".repeat(26)),
        workspace_id = &world.workspace_id(),
        id = &run.id
    );
    world.write(vec![update]);
    let list = world.get("/simulations/runs?limit=1").ok();
    assert_eq!(list["runs"][0]["error"]["message"], message);
    assert!(
        list.body.len() * usize::try_from(PAGE_ROWS_MAX).unwrap() <= PAGE_BYTES_MAX,
        "{}",
        list.body.len()
    );
}

#[test]
fn runs_are_filtered_by_every_id_and_status() {
    let world = World::new();
    let (one, two) = (world.assistant().id, world.assistant().id);
    let (a, b) = (world.simulation_of(&one).id, world.simulation_of(&two).id);
    let first = world.create(&format!("/simulations/{a}/runs"), json!({})).id;
    let batch = world.post("/simulations/runs/batch", json!({"assistant_id": two})).created();
    let second = batch["runs"][0]["id"].as_str().unwrap().to_owned();
    let ids = |query: String| {
        sidetone_tests::reply::ids_of(&world.get(format!("/simulations/runs?{query}")).ok()["runs"])
    };
    assert_eq!(ids(format!("assistant_id={one}")), [&*first]);
    assert_eq!(ids(format!("assistant_id={two}")), [&*second]);
    assert_eq!(ids(format!("simulation_id={b}")), [&*second]);
    assert_eq!(ids(format!("batch_id={}", batch["batch_id"].as_str().unwrap())), [&*second]);
    assert_eq!(ids(format!("simulation_id={a}&assistant_id={one}")), [&*first]);
    assert_eq!(ids(format!("simulation_id={a}&assistant_id={two}")), Vec::<String>::new());
    for unknown in ["assistant_id=x", "simulation_id=x", "batch_id=%00", "assistant_id=%27"] {
        assert_eq!(ids(unknown.to_owned()), Vec::<String>::new());
    }
    let by_status: usize = ["queued", "running", "completed", "error"]
        .map(|status| ids(format!("status={status}")).len())
        .iter()
        .sum();
    assert!(by_status <= 2 + 2, "a run has one status at a time");
    assert_eq!(world.other().get(format!("/simulations/runs?simulation_id={a}")).ok()["runs"], json!([]));
}

#[test]
fn malformed_parameters_are_a_400_and_values_out_of_range_a_422() {
    let world = World::new();
    for name in ["limit", "page"] {
        for bad in
            ["abc", "", "1.5", "+1", "01", "1e3", "%201", "99999999999999999999", "0x10", "true", "null"]
        {
            world.get(format!("/simulations/runs?{name}={bad}")).refused("invalid_parameter").naming(&[name]);
        }
        for bad in ["0", "-1", "1001001001001"] {
            world.get(format!("/simulations/runs?{name}={bad}")).refused("validation_failed").naming(&[name]);
        }
    }
    world.get("/simulations/runs?limit=1001").refused("validation_failed").naming(&["limit"]);
    world.get("/simulations/runs?limit=1000").ok();
    for bad in ["sideways", "", "Queued"] {
        world.get(format!("/simulations/runs?status={bad}")).refused("validation_failed").naming(&["status"]);
    }
    world.get("/simulations/runs?limit=1&limit=2").refused("invalid_parameter").naming(&["limit"]);
    world.get("/simulations/runs?limit=abc&page=x").refused("invalid_parameter").naming(&["limit", "page"]);
    world.get("/simulations/runs?Limit=1").refused("validation_failed").naming(&["Limit"]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_queued_run_can_be_deleted_and_never_runs() {
    let world = World::with_manual_clock();
    let run = world.run();
    let path = format!("/simulations/runs/{}", run.id);
    world.other().delete(&path).refused("not_found");
    world.delete(&path).empty();
    world.get(&path).refused("not_found");
    world.delete(&path).refused("not_found");
    assert_eq!(world.sandbox().unwrap().run_jobs(), 0);
    assert_eq!(world.get("/simulations/runs").ok()["runs"], json!([]));
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_workspace_queues_runs_up_to_a_limit() {
    let world = World::with_manual_clock();
    let run = world.run();
    // As if they had been started one by one.
    world.write(vec![sql!(
        format!(
            "INSERT INTO runs SELECT runs.id || '_' || n.value, workspace_id, simulation_id, batch_id, assistant_id, assistant_revision,
             assistant_snapshot, simulation_snapshot, mode, seed, status, passed, error, evaluations, transcript, created_at, started_at,
             completed_at, call_id, turns, last_line, cost_microusd, max_cost_microusd, failed_evaluation, variables, metadata, tools, snapshot, mocks_unused
             FROM runs, json_each('[{}]') AS n WHERE runs.id = :id",
            (1..RUNS_QUEUED_MAX - 1).map(|n| n.to_string()).collect::<Vec<_>>().join(",")
        ),
        id = run.id.as_str()
    )]);
    let simulation = run["simulation_id"].as_str().unwrap();
    let (start, body) = (format!("/simulations/{simulation}/runs"), json!({}));
    let last = world.create(&start, body.clone());
    let refusal = world.post(&start, body.clone()).refused("limit_reached");
    assert_eq!(refusal["error"]["details"], json!({"limit": RUNS_QUEUED_MAX, "of": "queued runs"}));
    let batch = json!({"assistant_id": run["assistant_id"]});
    world.post("/simulations/runs/batch", batch).refused("limit_reached");
    world.delete(format!("/simulations/runs/{}", last.id)).empty();
    world.create(&start, body);
}

#[test]
#[cfg_attr(test_host = "worker", ignore = "looks into storage")]
fn runs_are_found_by_what_the_list_filters_by() {
    let world = World::new();
    for (filter, index) in [
        ("passed = 0", "runs_by_passed (workspace_id=? AND passed=?)"),
        ("passed IS NULL", "runs_by_passed (workspace_id=? AND passed=?)"),
        ("batch_id = 'b' AND +passed = 0", "runs_by_batch (workspace_id=? AND batch_id=?)"),
        ("simulation_id = 's' AND +passed = 0", "runs_by_simulation (workspace_id=? AND simulation_id=?)"),
        ("assistant_id = 'a' AND +passed = 0", "runs_by_assistant (workspace_id=? AND assistant_id=?)"),
        ("status = 'error'", "runs_by_status (workspace_id=? AND status=?)"),
    ] {
        let plan = sql!(
            format!(
                "EXPLAIN QUERY PLAN SELECT transcript FROM runs WHERE workspace_id = :workspace_id AND {filter} ORDER BY id DESC LIMIT 200"
            ),
            workspace_id = &world.workspace_id()
        );
        let [rows] = block_on(world.direct_access().read([plan])).unwrap();
        let steps: Vec<String> = rows.iter().map(|row| row.text("detail").unwrap()).collect();
        assert_eq!(steps, [format!("SEARCH runs USING INDEX {index}")], "{filter}");
    }
}

#[test]
fn a_batch_with_too_much_text_in_total_is_rejected() {
    let world = World::new();
    let assistant = world.assistant();
    let long = "x".repeat(32_000);
    let persona = world.create("/simulations/personas", json!({"name": "Ada", "system_prompt": long}));
    let scenario = world.create("/simulations/scenarios", json!({"name": "Long", "instructions": long}));
    let body = json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id});
    for _ in 0..132 {
        world.create("/simulations", body.clone());
    }
    let batch = json!({"assistant_id": assistant.id});
    world.post("/simulations/runs/batch", batch).refused("validation_failed").naming(&["assistant_id"]);
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 0);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn the_workspace_setting_limits_runs_in_progress() {
    // On the Sandbox, runs are claimed only when the test does it.
    let world = World::with_manual_clock();
    let engine = world.sandbox().unwrap().services().clone();
    world.patch("/workspace", json!({"runs_at_once": 2})).ok();
    let simulation = world.simulation();
    for _ in 0..5 {
        world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 7}));
    }
    let with = |status: &str| {
        let list = world.get(format!("/simulations/runs?status={status}")).ok();
        list["pagination"]["total"].as_i64().unwrap()
    };
    // Two are claimed and stay claimed while their runner works: there is no third one.
    let held = block_on(engine.claim_jobs("one", JobKind::ALL, 10)).unwrap();
    assert_eq!((held.len(), with("running"), with("queued")), (2, 2, 3));
    assert_eq!(block_on(engine.claim_jobs("another", JobKind::ALL, 10)).unwrap(), []);
    // A higher limit takes effect at once.
    world.patch("/workspace", json!({"runs_at_once": 3})).ok();
    assert_eq!(block_on(engine.claim_jobs("another", JobKind::ALL, 10)).unwrap().len(), 1);
    // The others start when these are finished.
    for job in &held {
        assert_eq!(block_on(engine.run_job(job)), None);
    }
    world.sandbox().unwrap().run_jobs();
    assert_eq!((with("completed"), with("running"), with("queued")), (4, 1, 0));
}
