//! Runs of a persona and a scenario that are given with the request, on an assistant that may be given, too.
use serde_json::{Value, json};
use sidetone_tests::World;
use sidetone_tests::call::UNKNOWN_ID;

const INLINE: &str = "/simulations/runs/inline";
const GREETING: &str = "Hello, front desk.";

fn front_desk(world: &World) -> String {
    let body = json!({"name": "Front desk", "instructions": "Be kind.", "first_message": GREETING});
    world.create("/assistants", body).id
}

/// A start that expects the assistant to say `words`.
fn expecting(words: &str, more: Value) -> Value {
    let mut body = json!({
        "persona": {"system_prompt": "You are in a hurry."},
        "scenario": {"instructions": "Book a table.",
                     "evaluations": [{"kind": "transcript", "role": "assistant", "includes": words}]},
    });
    body.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
    body
}

/// Starts, waits for the end of all runs, and reads the batch.
fn run(world: &World, body: Value) -> (Value, Vec<Value>) {
    let started = world.post(INLINE, body).created();
    let runs: Vec<Value> = started["runs"]
        .as_array()
        .unwrap()
        .iter()
        .map(|run| world.settle(run["id"].as_str().unwrap()))
        .collect();
    let batch_id = started["batch_id"].as_str().unwrap();
    (world.get(format!("/simulations/batches/{batch_id}")).ok().json, runs)
}

/// A deleted run is not read by repeating its start, and does not start again.
#[test]
fn the_stored_answer_to_a_start_goes_with_its_runs() {
    let world = World::new();
    let assistant = front_desk(&world);
    let metadata = json!({"patient": "Ada Lovelace"});
    let body = expecting("front desk", json!({"assistant_id": assistant, "repeat": 2, "metadata": metadata}));
    let runs = world.post_once(INLINE, "batch", body.clone()).created()["runs"].clone();
    for run in runs.as_array().unwrap() {
        world.settle(run["id"].as_str().unwrap());
    }
    assert_eq!(world.post_once(INLINE, "batch", body.clone()).created()["runs"], runs);
    world.delete(format!("/simulations/runs/{}", runs[0]["id"].as_str().unwrap())).empty();
    let again = world.post_once(INLINE, "batch", body).refused("not_found");
    assert!(!again.json.to_string().contains("Lovelace"), "{again:?}");
    let left = world.get(format!("/simulations/runs?assistant_id={assistant}")).ok();
    assert_eq!(left["pagination"]["total"], 1, "nothing was started again");
    let simulation = world.run()["simulation_id"].as_str().unwrap().to_owned();
    let path = format!("/simulations/{simulation}/runs");
    let run = world.post_once(&path, "one", json!({"metadata": metadata})).created();
    let id = run["id"].as_str().unwrap().to_owned();
    world.settle(&id);
    world.delete("/simulations/runs?status=completed").ok();
    world.post_once(&path, "one", json!({"metadata": metadata})).refused("not_found");
    world.get(format!("/simulations/runs/{id}")).refused("not_found");
}

/// Each run and each call has the variables.
#[test]
fn variables_of_many_runs_are_limited_together() {
    let world = World::new();
    let assistant = front_desk(&world);
    let variables: serde_json::Map<String, Value> =
        (0..15).map(|n| (format!("v{n}"), json!("x".repeat(1_000)))).collect();
    let start = |repeat: i64| {
        let more = json!({"assistant_id": assistant, "repeat": repeat, "variables": variables});
        world.post(INLINE, expecting("front desk", more))
    };
    start(100).refused("validation_failed").naming(&["variables"]);
    assert_eq!(start(2).created()["runs"].as_array().unwrap().len(), 2);
}

#[test]
fn a_stored_assistant_is_run_without_storing_anything() {
    let world = World::new();
    let assistant = front_desk(&world);
    let body = expecting("front desk", json!({"assistant_id": assistant, "seed": 5, "repeat": 2}));
    let (batch, runs) = run(&world, body);
    assert_eq!(
        (&batch["total"], &batch["passed"], &batch["assistant_id"]),
        (&json!(2), &json!(2), &json!(assistant))
    );
    let seen: Vec<Value> = runs
        .iter()
        .map(|run| json!([run["simulation_id"], run["batch_id"], run["seed"], run["assistant_revision"]]))
        .collect();
    let batch_id = &batch["batch_id"];
    assert_eq!(runs[0]["simulation_name"], "Caller × Scenario");
    assert_eq!((&batch["seed"], &batch["repeat"], &batch["mode"]), (&json!(5), &json!(2), &json!("chat")));
    assert_eq!(seen, [json!([null, batch_id, 5, 1]), json!([null, batch_id, 6, 1])]);
    for path in ["/simulations", "/simulations/personas", "/simulations/scenarios"] {
        assert_eq!(world.get(path).ok().json, json!([]), "{path}");
    }
    let listed = world.get(format!("/simulations/runs?assistant_id={assistant}")).ok();
    assert_eq!(
        (&listed["pagination"]["total"], &listed["runs"][0]["simulation_id"]),
        (&json!(2), &Value::Null)
    );
    // Each is a call, and goes like any other.
    let call = runs[0]["call_id"].as_str().unwrap();
    assert_eq!(world.get(format!("/calls/{call}")).ok()["simulation_run_id"], runs[0]["id"]);
    let id = runs[0]["id"].as_str().unwrap();
    world.other().get(format!("/simulations/runs/{id}")).refused("not_found");
    world.delete(format!("/simulations/runs/{id}")).empty();
    world.get(format!("/simulations/runs/{id}")).refused("not_found");
}

#[test]
fn changes_of_an_assistant_are_tried_without_saving_them() {
    let world = World::new();
    let assistant = front_desk(&world);
    let before = world.get(format!("/assistants/{assistant}")).ok().json;
    let changes = json!({"first_message": "Good evening, night desk.", "speech": {"speed": 1.5}});
    let body = |words: &str| expecting(words, json!({"assistant_id": assistant, "assistant": changes}));
    assert_eq!(run(&world, body("night desk")).0["passed"], 1);
    let (batch, runs) = run(&world, body("front desk"));
    assert_eq!((&batch["failed"], &batch["failures"][0]["simulation_id"]), (&json!(1), &Value::Null));
    assert_eq!(
        (&runs[0]["assistant_id"], &runs[0]["call"]["transcript"][0]["text"]),
        (&json!(assistant), &json!("Good evening, night desk."))
    );
    assert_eq!(world.get(format!("/assistants/{assistant}")).ok().json, before);
}

#[test]
fn an_assistant_need_not_be_stored() {
    let world = World::new();
    let hours =
        world.create("/knowledge", json!({"name": "Hours", "content": "On Saturday we open at ten."})).id;
    let draft = json!({"name": "Draft", "instructions": "Be kind.", "first_message": GREETING, "knowledge_ids": [hours]});
    let mut body = expecting("open at ten", json!({"assistant": draft, "seed": 1}));
    body["scenario"]["instructions"] = json!("Ask \"When do you open on Saturday?\"");
    let (batch, runs) = run(&world, body.clone());
    assert_eq!(batch["passed"], 1, "{batch} {:?}", runs[0]["call"]["transcript"]);
    assert_eq!(runs[0]["assistant_revision"], 0);
    let id = runs[0]["assistant_id"].as_str().unwrap();
    world.get(format!("/assistants/{id}")).refused("not_found");
    assert_eq!(world.get("/assistants").ok().json, json!([]));
    // The same again is the same assistant, and the same seed says the same.
    let (_, again) = run(&world, body.clone());
    assert_eq!(
        (&again[0]["assistant_id"], &again[0]["call"]["transcript"]),
        (&runs[0]["assistant_id"], &runs[0]["call"]["transcript"])
    );
    body["assistant"]["instructions"] = json!("Be brief.");
    assert_ne!(run(&world, body).1[0]["assistant_id"], id);
    assert_eq!(world.get(format!("/calls?assistant_id={id}")).ok()["pagination"]["total"], 2);
}

#[test]
fn an_inline_run_obeys_the_rules_of_what_is_stored() {
    let world = World::new();
    let assistant = front_desk(&world);
    let theirs = world.other();
    let refused = |more: Value, field: &str| {
        let mut body = expecting("front desk", json!({"assistant_id": assistant}));
        for (name, value) in more.as_object().unwrap() {
            body[name] = value.clone();
        }
        world.post(INLINE, body).refused("validation_failed").naming(&[field]);
    };
    refused(json!({"assistant_id": UNKNOWN_ID}), "assistant_id");
    refused(json!({"assistant_id": theirs.assistant().id}), "assistant_id");
    refused(json!({"assistant": {"model": "nobody/gpt"}}), "assistant.model");
    refused(json!({"assistant": {"bogus": 1}}), "assistant.bogus");
    refused(json!({"assistant": {"instructions": "é".repeat(16_385)}}), "assistant.instructions");
    refused(json!({"assistant": {"id": assistant}}), "assistant.id");
    refused(json!({"assistant": {"tool_ids": [theirs.a_tool().id]}}), "assistant.tool_ids[0]");
    refused(json!({"assistant": {"knowledge_ids": [theirs.document(5).id]}}), "assistant.knowledge_ids[0]");
    // That of the runs is a field of the request.
    let of_the_run = json!({"ticket": "17"});
    refused(json!({"assistant": {"metadata": of_the_run}}), "assistant.metadata");
    refused(json!({"persona": {"system_prompt": "x", "metadata": of_the_run}}), "persona.metadata");
    refused(json!({"scenario": {"instructions": "x", "metadata": of_the_run}}), "scenario.metadata");
    refused(json!({"persona": {"system_prompt": ""}}), "persona.system_prompt");
    refused(json!({"persona": {"system_prompt": "x", "model": "nobody/gpt"}}), "persona.model");
    refused(json!({"persona": {}}), "persona.system_prompt");
    refused(json!({"scenario": {"instructions": "x", "judge_votes": 10}}), "scenario.judge_votes");
    refused(
        json!({"scenario": {"instructions": "x", "evaluations": [{"kind": "judge", "includes": " "}]}}),
        "scenario.evaluations[0].includes",
    );
    refused(json!({"repeat": 101}), "repeat");
    refused(json!({"seed": (1_i64 << 53) - 1, "repeat": 2}), "seed");
    let nobody = expecting("x", json!({}));
    world.post(INLINE, nobody.clone()).refused("validation_failed").naming(&["assistant_id"]);
    let mut half = nobody;
    half["assistant"] = json!({"name": "Draft"});
    world.post(INLINE, half).refused("validation_failed").naming(&["assistant.instructions"]);
    let books = world.create("/tools", json!({"name": "send_keys", "url": "https://example.com/hook"})).id;
    let mut own = expecting("x", json!({"assistant_id": assistant}));
    own["assistant"] = json!({"keys": true, "tool_ids": [books]});
    world.post(INLINE, own).refused("validation_failed").naming(&["assistant.keys"]);
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 0, "no run was queued");
}

#[test]
fn every_wrong_field_of_an_inline_run_is_named_at_once() {
    let world = World::new();
    let assistant = front_desk(&world);
    let refused = |body: Value, fields: &[&str]| {
        world.post(INLINE, body.clone()).refused("validation_failed").naming(fields);
        let arguments = json!({"data": body, "confirm": true});
        world.tool("start_inline_simulation", arguments).refused("validation_failed").naming(fields);
    };
    refused(json!({}), &["persona", "scenario", "assistant_id"]);
    refused(
        json!({"assistant": {"name": "a"}, "persona": {}, "scenario": {}}),
        &["persona.system_prompt", "scenario.instructions", "assistant.instructions"],
    );
    let bad = "nobody/gpt";
    let blank = json!({"kind": "judge", "includes": " "});
    refused(
        json!({
            "assistant": {"name": "a", "instructions": "I", "model": bad},
            "persona": {"system_prompt": "P", "model": bad},
            "scenario": {"instructions": "I", "judge_model": bad, "tool_mocks": {"1": [{"result": 1}]}},
        }),
        &["persona.model", "scenario.tool_mocks.1", "scenario.judge_model", "assistant.model"],
    );
    // What the schema refuses does not hide what the rules refuse, also of an assistant that is changed.
    refused(
        json!({
            "assistant_id": assistant, "repeat": 200, "assistant": {"model": bad, "x": 1},
            "persona": {"model": bad, "system_prompt": 5},
            "scenario": {"instructions": "I", "judge_model": bad, "evaluations": [blank, {"kind": "judge"}]},
        }),
        &[
            "repeat",
            "assistant.x",
            "persona.system_prompt",
            "scenario.evaluations[1].includes",
            "persona.model",
            "scenario.evaluations[0].includes",
            "scenario.judge_model",
            "assistant.model",
        ],
    );
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 0, "no run was queued");
}

#[test]
fn an_answer_for_a_tool_that_the_assistant_does_not_have_is_refused() {
    let world = World::new();
    let url = "https://example.com/book";
    let tool = world.create("/tools", json!({"name": "book_appointment", "url": url})).id;
    let assistant = front_desk(&world);
    let mut body = expecting("x", json!({"assistant_id": assistant, "assistant": {"tool_ids": [tool]}}));
    body["scenario"]["tool_mocks"] = json!({"book_apointment": [{"result": 1}]});
    let reply = world.post(INLINE, body.clone()).refused("validation_failed");
    let reply = reply.naming(&["scenario.tool_mocks.book_apointment"]);
    assert!(reply.json.to_string().contains("it has: book_appointment"), "{reply:?}");
    let arguments = json!({"data": body, "confirm": true});
    world.tool("start_inline_simulation", arguments).refused("validation_failed");
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 0, "no run was queued");
    body["scenario"]["tool_mocks"] = json!({"book_appointment": [{"result": 1}]});
    let started = world.post(INLINE, body).created();
    assert_eq!(started["runs"][0]["mocks_unused"], json!([]));
}

#[test]
fn over_mcp_it_needs_a_confirmation() {
    let world = World::new();
    let data = expecting("front desk", json!({"assistant_id": front_desk(&world)}));
    world.tool("start_inline_simulation", json!({"data": data})).refused("confirmation_required");
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 0);
    let started = world.tool("start_inline_simulation", json!({"data": data, "confirm": true})).ok();
    world.settle(started.json["runs"][0]["id"].as_str().unwrap());
}

#[test]
fn an_assistant_too_large_to_run_is_named_as_it_was_given() {
    let world = World::new();
    let parameters = json!({
        "type": "object",
        "properties": {"a": {"type": "string", "description": "x".repeat(30_000)}},
    });
    let tools: Vec<String> = (0..64)
        .map(|n| {
            let tool =
                json!({"name": format!("t{n}"), "url": "https://example.com/", "parameters": parameters});
            world.create("/tools", tool).id
        })
        .collect();
    let id = world.assistant().id;
    world.put(format!("/assistants/{id}/tools"), json!({"tool_ids": tools})).ok();
    let mut body = json!({"assistant_id": id, "persona": {"system_prompt": "Brief."},
        "scenario": {"instructions": "Ask."}});
    let path = "/simulations/runs/inline";
    world.post(path, body.clone()).refused("validation_failed").naming(&["assistant_id"]);
    body["assistant"] = json!({"first_message": "Hi"});
    world.post(path, body).refused("validation_failed").naming(&["assistant"]);
}
