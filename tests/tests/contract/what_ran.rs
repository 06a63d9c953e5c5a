//! What a run or call ran with has a name: the same configuration has the same hash, whatever its ids.
use serde_json::{Map, Value, json};
use sidetone_engine::base::limits::SNAPSHOTS_KEPT_BYTES_MAX;
use sidetone_engine::sql;
use sidetone_tests::direct_access::wait;
use sidetone_tests::example::sha256;
use sidetone_tests::{Created, World};

/// What a simulation is made of.
struct Made {
    assistant: Created,
    tool: Created,
    document: Created,
    persona: Created,
    scenario: Created,
    simulation: Created,
}

impl Made {
    fn new(world: &World) -> Self {
        let tool = world.create(
            "/tools",
            json!({"name": "lookup_order", "description": "Finds an order.", "url": "https://example.com/orders",
                   "parameters": {"type": "object", "required": ["order_id"], "properties": {"order_id": {"type": "string"}}}}),
        );
        let document =
            world.create("/knowledge", json!({"name": "Hours", "content": "We open at nine on Saturday."}));
        let assistant = world.create(
            "/assistants",
            json!({"name": "Shop", "instructions": "Help.", "first_message": "Hello!", "model": "builtin/rules", "voice": "builtin/tone"}),
        );
        world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
        world
            .put(format!("/assistants/{}/knowledge", assistant.id), json!({"knowledge_ids": [document.id]}))
            .ok();
        let persona =
            world.create("/simulations/personas", json!({"name": "Ada", "system_prompt": "Patient."}));
        let scenario = world.create(
            "/simulations/scenarios",
            json!({"name": "Order", "instructions": "Say \"When do you open on Saturday?\", then \"Where is order A-17?\".",
                   "evaluations": [{"kind": "transcript", "role": "assistant", "includes": "at nine"}],
                   "tool_mocks": {"lookup_order": [{"result": {"status": "on its way"}}]}}),
        );
        let simulation = world.create(
            "/simulations",
            json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id}),
        );
        Self { assistant, tool, document, persona, scenario, simulation }
    }

    #[track_caller]
    fn run(&self, world: &World, body: Value) -> Value {
        let started = world.create(&format!("/simulations/{}/runs", self.simulation.id), body);
        let run = world.settle(&started.id);
        assert_eq!((&run["status"], &run["snapshot"]), (&json!("completed"), &started["snapshot"]));
        assert_eq!(run["call"]["snapshot"], run["snapshot"], "the call has it, too");
        run
    }

    fn snapshot(&self, world: &World) -> String {
        hash_of(&self.run(world, json!({"seed": 7})))
    }
}

#[track_caller]
fn hash_of(run_or_call: &Value) -> String {
    let hash = run_or_call["snapshot"].as_str().unwrap_or_else(|| panic!("no snapshot: {run_or_call:#}"));
    assert!(hash.len() == 64 && hash.bytes().all(|byte| byte.is_ascii_hexdigit()), "{hash}");
    hash.to_owned()
}

/// What was said, without the id of the run, which tool calls are named by.
fn said(run: &Value) -> String {
    run["call"]["transcript"].to_string().replace(run["id"].as_str().unwrap(), "run")
}

/// Rows of snapshots and of their names in the workspace.
fn rows_kept(world: &World) -> (i64, i64) {
    let select = sql!(
        "SELECT (SELECT COUNT(*) FROM snapshots WHERE workspace_id = :id) AS parts,
           (SELECT COUNT(*) FROM named_snapshots WHERE workspace_id = :id) AS names,
           (SELECT COALESCE(SUM(OCTET_LENGTH(content)), 0) FROM snapshots WHERE workspace_id = :id) AS bytes,
           (SELECT snapshot_bytes FROM workspaces WHERE id = :id) AS counted",
        id = &world.workspace_id()
    );
    let rows = wait(world.direct_access().ports().database.read(vec![select])).unwrap();
    let row = rows[0].first().unwrap();
    assert_eq!(row.integer("counted").unwrap(), row.integer("bytes").unwrap(), "what is kept is counted");
    (row.integer("parts").unwrap(), row.integer("names").unwrap())
}

#[test]
fn the_same_snapshot_and_seed_give_the_same_conversation() {
    let world = World::new();
    let (one, elsewhere) = (Made::new(&world), world.other());
    let first = one.run(&world, json!({"seed": 7}));
    let again = one.run(&world, json!({"seed": 7}));
    let other_seed = one.run(&world, json!({"seed": 8}));
    let theirs = Made::new(&elsewhere).run(&elsewhere, json!({"seed": 7}));
    assert!(said(&first).contains("on its way"), "{first:#}");
    for run in [&again, &other_seed, &theirs] {
        assert_eq!(hash_of(run), hash_of(&first));
    }
    assert_eq!(said(&again), said(&first));
    assert_eq!(said(&theirs), said(&first));
    let listed = world.get("/simulations/runs").ok();
    assert!(listed["runs"].as_array().unwrap().iter().all(|run| run["snapshot"] == first["snapshot"]));
    assert_eq!(world.get("/calls?limit=1").ok()["calls"][0]["snapshot"], first["snapshot"]);
    assert_eq!(rows_kept(&world), (2, 1), "stored once");
}

/// A model that reads a snapshot is not sent megabytes of documents, twice.
#[test]
fn a_large_snapshot_is_cut_over_mcp() {
    let world = World::new();
    let made = Made::new(&world);
    let small = made.snapshot(&world);
    let rest = world.get(format!("/snapshots/{small}")).ok();
    assert_eq!(world.tool("get_snapshot", json!({"hash": small})).ok().json, rest.json);
    let long = "We open at nine on Saturday. ".repeat(1_500);
    for n in 0..3 {
        let document = world.create("/knowledge", json!({"name": format!("Long {n}"), "content": long}));
        let path = format!("/assistants/{}/knowledge", made.assistant.id);
        let mut ids = world.get(format!("/assistants/{}", made.assistant.id)).ok()["knowledge_ids"].clone();
        ids.as_array_mut().unwrap().push(json!(document.id));
        world.put(path, json!({"knowledge_ids": ids})).ok();
    }
    let large = made.snapshot(&world);
    let rest = world.get(format!("/snapshots/{large}")).ok().json;
    assert!(rest["assistant"]["knowledge"][1]["content"].as_str().unwrap().len() > 40_000);
    let told = world.tool("get_snapshot", json!({"hash": large})).ok();
    let shown = &told.json;
    assert!(
        told.advice.as_deref().is_some_and(|advice| advice.contains("GET /snapshots")),
        "{:?}",
        told.advice
    );
    assert!(shown.to_string().len() < 16 * 1024, "{}", shown.to_string().len());
    assert_eq!((&shown["hash"], &shown["simulation"]), (&rest["hash"], &rest["simulation"]));
    assert_eq!(
        shown["assistant"]["knowledge"][0]["content"], "We open at nine on Saturday.",
        "short ones are whole"
    );
    assert!(shown["assistant"]["knowledge"][1]["content"].as_str().unwrap().contains("bytes in all"));
}

/// Deleting frees what a workspace keeps; starting is refused while it keeps too much.
#[test]
fn a_workspace_keeps_configurations_up_to_a_limit() {
    let world = World::new();
    let made = Made::new(&world);
    made.run(&world, json!({"seed": 7}));
    let keep = |bytes: i64| {
        let write = sql!(
            "UPDATE workspaces SET snapshot_bytes = snapshot_bytes + :bytes WHERE id = :id",
            bytes = bytes,
            id = &world.workspace_id()
        );
        wait(world.direct_access().ports().database.write(vec![write])).unwrap();
    };
    keep(SNAPSHOTS_KEPT_BYTES_MAX);
    let inline = json!({"assistant_id": made.assistant.id, "persona": {"system_prompt": "Patient."},
        "scenario": {"instructions": "Say \"Hello\"."}});
    for (path, body) in [
        (format!("/simulations/{}/runs", made.simulation.id), json!({})),
        ("/simulations/runs/batch".to_owned(), json!({"assistant_id": made.assistant.id})),
        ("/simulations/runs/inline".to_owned(), inline),
    ] {
        let refusal = world.post(&path, body).refused("limit_reached");
        assert_eq!(refusal["error"]["details"]["limit"], SNAPSHOTS_KEPT_BYTES_MAX, "{path}");
        let message = refusal["error"]["message"].as_str().unwrap();
        assert!(message.contains("DELETE /simulations/runs"), "{message}");
    }
    let token = world.test_token(&made.assistant.id);
    let url = token["websocket_url"].as_str().unwrap();
    assert_eq!(world.connect(url).err().map(|refusal| refusal.status), Some(409));
    let socket = format!("/voice-test/socket?token={}", token["token"].as_str().unwrap());
    world.get(socket).refused("limit_reached");
    let call = json!({"assistant_id": made.assistant.id, "to": "+14155550123"});
    let plan = world.post("/calls/outbound?dry_run=true", call).created();
    let problems: Vec<&str> =
        plan["problems"].as_array().unwrap().iter().filter_map(|one| one["code"].as_str()).collect();
    assert!(problems.contains(&"limit_reached"), "{problems:?}");
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 1, "nothing was started");
    keep(-SNAPSHOTS_KEPT_BYTES_MAX);
    made.run(&world, json!({"seed": 8}));
    world
        .get(format!("/voice-test/socket?token={}", token["token"].as_str().unwrap()))
        .refused("upgrade_required");
    assert_eq!(rows_kept(&world), (2, 1));
    world.delete("/simulations/runs?status=completed").ok();
    assert_eq!(rows_kept(&world), (2, 1), "the calls have it");
    world.delete("/calls?source=simulation").ok();
    assert_eq!(rows_kept(&world), (0, 0));
}

#[test]
fn every_part_counts_and_ids_and_revisions_do_not() {
    let world = World::new();
    let made = Made::new(&world);
    let first = made.snapshot(&world);
    let (assistant, tool) =
        (format!("/assistants/{}", made.assistant.id), format!("/tools/{}", made.tool.id));
    let document = format!("/knowledge/{}", made.document.id);
    let persona = format!("/simulations/personas/{}", made.persona.id);
    let scenario = format!("/simulations/scenarios/{}", made.scenario.id);
    let mut known = vec![first.clone()];
    for (path, changed) in [
        (&assistant, json!({"instructions": "Help well."})),
        (&assistant, json!({"speech": {"interruptible": false}})),
        (&assistant, json!({"voice": "builtin/browser"})),
        (&tool, json!({"description": "Finds any order."})),
        (&tool, json!({"timeout_ms": 6_000})),
        (&document, json!({"content": "We open at nine on Saturday, and at ten on Sunday."})),
        (&persona, json!({"system_prompt": "Impatient."})),
        (&persona, json!({"model": "builtin/rules"})),
        (&scenario, json!({"instructions": "Say \"Where is order A-17?\"."})),
        (&scenario, json!({"evaluations": []})),
        (&scenario, json!({"judge_votes": 3})),
        (&scenario, json!({"conditions": {"noise_db": -40}})),
        (&scenario, json!({"tool_mocks": {"lookup_order": [{"result": "lost"}]}})),
    ] {
        let before = match path.starts_with("/knowledge") {
            true => made.document.json.clone(),
            false => world.get(path).ok().json,
        };
        world.patch(path, changed.clone()).ok();
        let hash = made.snapshot(&world);
        assert!(!known.contains(&hash), "{changed}");
        known.push(hash);
        let back: Map<String, Value> =
            changed.as_object().unwrap().keys().map(|name| (name.clone(), before[name].clone())).collect();
        world.patch(path, back.into()).ok();
        assert_eq!(made.snapshot(&world), first, "as before {changed}");
    }
    for body in [json!({"mode": "voice", "seed": 7}), json!({"tools": "live", "seed": 7})] {
        let hash = hash_of(&made.run(&world, body.clone()));
        assert!(!known.contains(&hash), "{body}");
        known.push(hash);
    }
    // What changes nothing about a conversation.
    let secret = world.post(format!("{tool}/rotate-secret"), json!({})).created();
    world.patch(format!("/simulations/{}", made.simulation.id), json!({"name": "Renamed"})).ok();
    world.patch(&scenario, json!({"name": "Renamed"})).ok();
    assert_eq!(made.snapshot(&world), first);
    assert_eq!(hash_of(&made.run(&world, json!({"max_cost_microusd": 5}))), first);
    let shown = world.get(format!("/snapshots/{first}")).ok().json.to_string();
    for secret in [&secret.json, &made.tool.json] {
        assert!(!shown.contains(secret["signing_secret"].as_str().unwrap()));
    }
    assert!(!shown.contains("secret"), "{shown}");
}

#[test]
fn a_snapshot_shows_what_ran() {
    let world = World::new();
    let made = Made::new(&world);
    let run = made.run(&world, json!({"mode": "chat"}));
    let hash = hash_of(&run);
    world.patch(format!("/assistants/{}", made.assistant.id), json!({"instructions": "Changed since."})).ok();
    world.delete(format!("/tools/{}", made.tool.id)).empty();
    let path = format!("/snapshots/{hash}");
    let shown = world.get(&path).ok().json;
    assert_eq!((&shown["hash"], &shown["mode"]), (&json!(hash), &json!("chat")));
    assert_eq!(shown["created_at"], run["created_at"]);
    let (assistant, simulation) = (&shown["assistant"], &shown["simulation"]);
    assert_eq!((&assistant["instructions"], &assistant["model"]), (&json!("Help."), &json!("builtin/rules")));
    assert_eq!(assistant["tools"][0]["name"], "lookup_order");
    assert_eq!(assistant["knowledge"][0]["content"], "We open at nine on Saturday.");
    assert_eq!((&simulation["persona"], &simulation["judge_votes"]), (&json!("Patient."), &json!(1)));
    assert_eq!(simulation["tool_mocks"]["lookup_order"][0]["result"]["status"], "on its way");
    assert_eq!(simulation["evaluations"].as_array().unwrap().len(), 1);
    for part in ["assistant", "simulation"] {
        assert_eq!(shown[format!("{part}_hash")], sha256(shown[part].to_string().as_bytes()), "{part}");
    }
    let name = format!(
        r#"{{"assistant":{},"mode":"chat","simulation":{}}}"#,
        shown["assistant_hash"], shown["simulation_hash"]
    );
    assert_eq!(sha256(name.as_bytes()), hash);
    let told = world.tool("get_snapshot", json!({"hash": hash}));
    assert!(!told.is_error, "{told:?}");
    for unknown in ["0".repeat(64), hash[1..].to_owned(), hash.to_uppercase(), "x".to_owned()] {
        world.get(format!("/snapshots/{unknown}")).refused("not_found");
    }
    world.other().get(&path).refused("not_found");
}

/// JavaScript writes 1 for what was `1.0`: whoever parses a snapshot there hashes that.
#[test]
fn whole_numbers_in_a_snapshot_have_no_fraction() {
    let world = World::new();
    let made = Made::new(&world);
    let mocks = json!({"lookup_order": [{"result": [2.0, 2.5, -0.0, {"deep": 1e3}]}]});
    let scenario = format!("/simulations/scenarios/{}", made.scenario.id);
    world.patch(scenario, json!({"tool_mocks": mocks})).ok();
    let shown = world.get(format!("/snapshots/{}", made.snapshot(&world))).ok();
    let text = std::str::from_utf8(&shown.body).unwrap();
    assert!(text.contains(r#""speed":1,"#) || text.contains(r#""speed":1}"#), "{text}");
    assert!(text.contains(r#"[2,2.5,0,{"deep":1000}]"#), "{text}");
    let shown = &shown.json;
    for part in ["assistant", "simulation"] {
        assert_eq!(shown[format!("{part}_hash")], sha256(shown[part].to_string().as_bytes()), "{part}");
    }
}

#[test]
fn the_calls_of_an_assistant_share_their_snapshot() {
    let world = World::new();
    let made = Made::new(&world);
    let call = || {
        let mut client = world.start_conversation(&made.assistant.id);
        let id = client.expect("call_started")["call"]["id"].as_str().unwrap().to_owned();
        client.hear();
        client.send(r#"{"type": "hang_up"}"#);
        client.rest();
        world.settled_call(&id)
    };
    let (one, other) = (call(), call());
    let hash = hash_of(&one);
    assert_eq!(hash_of(&other), hash);
    assert_eq!(rows_kept(&world), (1, 1));
    let shown = world.get(format!("/snapshots/{hash}")).ok().json;
    assert_eq!((&shown["mode"], &shown["simulation"]), (&Value::Null, &Value::Null));
    assert_eq!(shown["simulation_hash"], Value::Null);
    let run = made.run(&world, json!({}));
    assert_ne!(hash_of(&run), hash);
    let shown_of_run = world.get(format!("/snapshots/{}", hash_of(&run))).ok().json;
    assert_eq!(shown_of_run["assistant_hash"], shown["assistant_hash"], "the same assistant");
    assert_eq!(rows_kept(&world), (2, 2));
    world.patch(format!("/assistants/{}", made.assistant.id), json!({"first_message": "Hi!"})).ok();
    let changed = call();
    assert_ne!(hash_of(&changed), hash);
    for (call, left) in [(&one, (3, 3)), (&other, (3, 2)), (&changed, (2, 1))] {
        world.delete(format!("/calls/{}", call["id"].as_str().unwrap())).empty();
        assert_eq!(rows_kept(&world), left);
    }
    world.get(format!("/snapshots/{hash}")).refused("not_found");
    world.get(format!("/snapshots/{}", hash_of(&run))).ok();
}

#[test]
fn a_snapshot_goes_with_the_last_run_and_call_that_has_it() {
    let world = World::new();
    let made = Made::new(&world);
    let (one, other) = (made.run(&world, json!({})), made.run(&world, json!({})));
    // The same again, of another revision.
    let assistant = format!("/assistants/{}", made.assistant.id);
    for instructions in ["Changed.", "Help."] {
        world.patch(&assistant, json!({"instructions": instructions})).ok();
    }
    let back = made.run(&world, json!({}));
    let hash = hash_of(&one);
    assert_eq!((hash_of(&other), hash_of(&back)), (hash.clone(), hash.clone()));
    let path = format!("/snapshots/{hash}");
    let delete = |kind: &str, id: &Value| world.delete(format!("/{kind}/{}", id.as_str().unwrap())).empty();
    for run in [&one, &other] {
        delete("simulations/runs", &run["id"]);
        delete("calls", &run["call_id"]);
        world.get(&path).ok();
    }
    delete("calls", &back["call_id"]);
    world.get(&path).ok();
    let kept = world.get(format!("/simulations/runs/{}", back["id"].as_str().unwrap())).ok();
    assert_eq!((&kept["snapshot"], &kept["call"]), (&json!(hash), &Value::Null));
    delete("simulations/runs", &back["id"]);
    world.get(&path).refused("not_found");
    assert_eq!(rows_kept(&world), (0, 0));

    // The call may be the last that has it, and go by its age.
    let last = made.run(&world, json!({}));
    delete("simulations/runs", &last["id"]);
    world.get(&path).ok();
    assert_eq!(rows_kept(&world), (2, 1));
    world.patch("/workspace", json!({"call_retention_days": 1})).ok();
    world.write(vec![sql!(
        "UPDATE calls SET ended_at = 1000 WHERE workspace_id = :workspace_id",
        workspace_id = &world.workspace_id()
    )]);
    // A sweep that finds out what events of other tests tell about deletes no calls.
    for _ in 0..10 {
        wait(world.direct_access().sweep()).unwrap();
        if world.get(&path).status == 404 {
            break;
        }
    }
    world.get(&path).refused("not_found");
    assert_eq!(rows_kept(&world), (0, 0));
}
