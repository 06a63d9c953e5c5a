//! How runs end: `passed` is the result of the evaluations, `error` means that the run itself failed.
use serde_json::{Value, json};
use sidetone_tests::{Created, World};

#[test]
fn a_completed_run_has_the_result_of_its_evaluations() {
    let world = World::new();
    let run = start(&world, json!([{"kind": "transcript", "role": "assistant", "includes": "9 TO  5"}]));
    let over = world.settle(&run.id);
    assert_eq!((&over["status"], &over["passed"]), (&json!("completed"), &json!(true)), "{over}");
    assert_eq!(over["error"], Value::Null);
    for time in ["created_at", "started_at", "completed_at"] {
        assert!(over[time].is_string(), "{time}");
    }
    let evaluation = &over["evaluations"][0];
    let shown: Vec<&String> = evaluation.as_object().unwrap().keys().collect();
    assert_eq!(shown, ["kind", "role", "includes", "passed", "matched_index", "reason"]);
    assert_eq!(evaluation["passed"], true);
    let matched = evaluation["matched_index"].as_u64().unwrap() as usize;
    let transcript = over["call"]["transcript"].as_array().unwrap();
    assert!(
        transcript[matched]["text"].as_str().unwrap().to_lowercase().contains("9 to 5"),
        "{transcript:?}"
    );
    for (n, row) in transcript.iter().enumerate() {
        assert_eq!(row["index"], n, "rows are counted from 0");
        assert!(row["start_ms"].as_i64() <= row["end_ms"].as_i64(), "{row}");
    }
    assert_eq!(transcript[0]["text"], "Hello, front desk.", "the assistant starts with its first message");
}

/// How many lists are called `transcript` within `value`.
fn transcripts(value: &Value) -> usize {
    match value {
        Value::Object(fields) => {
            let named = fields.get("transcript").is_some_and(Value::is_array);
            usize::from(named) + fields.values().map(transcripts).sum::<usize>()
        }
        Value::Array(items) => items.iter().map(transcripts).sum(),
        _ => 0,
    }
}

#[test]
fn a_run_has_its_transcript_once_as_that_of_its_call() {
    let world = World::new();
    let run = start(&world, json!([{"kind": "transcript", "role": "assistant", "includes": "9 to 5"}]));
    world.settle(&run.id);
    let path = format!("/simulations/runs/{}", run.id);
    let read = world.get(format!("{path}?wait_seconds=1")).ok().json;
    assert_eq!(transcripts(&read), 1, "{read}");
    assert!(read.get("transcript").is_none() && !read["call"]["transcript"].as_array().unwrap().is_empty());
    assert_eq!(world.get(&path).ok().json, read);
    assert_eq!(world.tool("get_simulation_run", json!({"id": run.id})).ok().json, read);
    let list = world.get("/simulations/runs").ok().json;
    assert_eq!((list["runs"].as_array().unwrap().len(), transcripts(&list)), (1, 0), "{list}");
}

#[test]
fn a_run_with_failed_evaluations_is_completed() {
    let world = World::new();
    let run = start(
        &world,
        json!([
            {"kind": "transcript", "role": "assistant", "includes": "hello"},
            {"kind": "transcript", "role": "assistant", "includes": "we are closed forever"},
            {"kind": "transcript_excludes", "role": "any", "includes": "FRONT desk"},
            {"kind": "transcript_excludes", "role": "any", "includes": "goodbye forever"},
            {"kind": "tool_call", "role": "tool", "includes": "book"},
        ]),
    );
    let over = world.settle(&run.id);
    assert_eq!((&over["status"], &over["passed"]), (&json!("completed"), &json!(false)), "{over}");
    let passed: Vec<&Value> =
        over["evaluations"].as_array().unwrap().iter().map(|one| &one["passed"]).collect();
    assert_eq!(passed, [true, false, false, true, false]);
    assert!(over["evaluations"].as_array().unwrap().iter().all(|one| one["reason"].is_string()), "{over}");
    let first = &over["evaluations"][1];
    let told = format!("“we are closed forever”: {}", first["reason"].as_str().unwrap());
    assert_eq!(over["failed_evaluation"], told, "the first that failed, and why");
    assert_eq!(world.get("/simulations/runs").ok()["runs"][0]["failed_evaluation"], told);
}

#[test]
fn the_same_seed_gives_the_same_run() {
    let world = World::new();
    let first = start(&world, json!([]));
    let path = format!("/simulations/{}/runs", first["simulation_id"].as_str().unwrap());
    let second = world.create(&path, json!({"seed": first["seed"]}));
    let (first, second) = (world.settle(&first.id), world.settle(&second.id));
    assert_eq!(first["call"]["transcript"], second["call"]["transcript"]);
    assert_eq!(first["passed"], Value::Null, "a run without evaluations is not decided");
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_run_uses_the_configuration_at_its_start() {
    let world = World::with_manual_clock();
    let run = start(&world, json!([{"kind": "transcript", "role": "assistant", "includes": "9 to 5"}]));
    let assistant = run["assistant_id"].as_str().unwrap();
    world.patch(format!("/assistants/{assistant}"), json!({"first_message": "Changed."})).ok();
    let documents = world.get("/knowledge").ok().ids();
    world.delete(format!("/knowledge/{}", documents[0])).empty();
    world.delete(format!("/assistants/{assistant}")).empty();
    let over = world.settle(&run.id);
    assert_eq!((&over["status"], &over["passed"]), (&json!("completed"), &json!(true)), "{over}");
    assert_eq!(over["call"]["transcript"][0]["text"], "Hello, front desk.");
    assert_eq!(over["assistant_revision"], run["assistant_revision"]);
}

#[test]
fn a_completed_run_can_be_deleted() {
    let world = World::new();
    let run = start(&world, json!([]));
    world.settle(&run.id);
    let path = format!("/simulations/runs/{}", run.id);
    assert_eq!(world.get("/simulations/runs?status=completed").ok()["pagination"]["total"], 1);
    world.delete(&path).empty();
    world.get(&path).refused("not_found");
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 0);
}

#[test]
fn a_batch_completes() {
    let world = World::new();
    let first = start(&world, json!([]));
    let assistant = first["assistant_id"].as_str().unwrap();
    for _ in 0..4 {
        world.simulation_of(assistant);
    }
    let batch = world.post("/simulations/runs/batch", json!({"assistant_id": assistant})).created();
    for run in batch["runs"].as_array().unwrap() {
        assert_eq!(world.settle(run["id"].as_str().unwrap())["status"], "completed");
    }
    let path = format!("/simulations/runs?status=completed&batch_id={}", batch["batch_id"].as_str().unwrap());
    assert_eq!(world.get(path).ok()["pagination"]["total"], 5);
}

#[test]
fn a_run_with_an_unreachable_model_ends_in_error() {
    let world = World::with_settings(&[(
        "SIDETONE_PROVIDERS",
        r#"{"groq": {"base_url": "https://api.groq.example/v1"}}"#,
    )]);
    let run = start(&world, json!([{"kind": "transcript", "role": "assistant", "includes": "hello"}]));
    let assistant = run["assistant_id"].as_str().unwrap();
    world.patch(format!("/assistants/{assistant}"), json!({"model": "groq/llama"})).ok();
    let broken =
        world.create(&format!("/simulations/{}/runs", run["simulation_id"].as_str().unwrap()), json!({}));
    let over = world.settle(&broken.id);
    assert_eq!(
        (&over["status"], &over["passed"]),
        (&json!("error"), &Value::Null),
        "a run has either a result or an error: {over}"
    );
    assert!(over["error"]["code"].is_string() && over["error"]["message"].is_string(), "{over}");
    assert!(over["completed_at"].is_string());
    world.delete(format!("/simulations/runs/{}", broken.id)).empty();
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn tool_calls_are_signed_and_results_are_in_the_transcript() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let run = with_tool(&world);
    sandbox.answer_http(200, r#"{"status": "shipped"}"#);
    let over = world.settle(&run.id);
    assert_eq!((&over["status"], &over["passed"]), (&json!("completed"), &json!(true)), "{over}");
    let roles: Vec<&str> = over["call"]["transcript"]
        .as_array()
        .unwrap()
        .iter()
        .map(|row| row["role"].as_str().unwrap())
        .collect();
    assert!(roles.contains(&"tool_call") && roles.contains(&"tool_result"), "{roles:?}");
    let sent = sandbox.sent_http();
    let [call] = sent.as_slice() else { panic!("one call: {sent:?}") };
    assert_eq!((call.method, call.url.as_str()), ("POST", "https://example.com/orders"));
    let body: Value = serde_json::from_slice(&call.body).unwrap();
    assert_eq!((&body["type"], &body["tool"]["name"]), (&json!("tool.call"), &json!("order_status")));
    assert_eq!(body["call"]["source"], "simulation");
    let header =
        |name: &str| call.headers.iter().find(|(known, _)| *known == name).map(|(_, value)| value.clone());
    assert_eq!(header("idempotency-key").as_deref(), body["id"].as_str());
    for name in ["webhook-id", "webhook-timestamp", "webhook-signature"] {
        assert!(header(name).is_some(), "{name}");
    }
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn a_tool_timeout_is_an_error_result_and_the_run_fails() {
    let world = World::with_manual_clock();
    let run = with_tool(&world);
    world.sandbox().unwrap().fail_http(sidetone_engine::ports::HttpError::Timeout);
    let over = world.settle(&run.id);
    assert_eq!((&over["status"], &over["passed"]), (&json!("completed"), &json!(false)), "{over}");
    assert_eq!(over["evaluations"][0]["reason"], "The tool was called, but its result is an error.");
}

/// The kinds about tools, with what restricts them.
#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs the manual clock")]
fn tool_calls_are_evaluated_by_arguments_number_and_result() {
    let world = World::with_manual_clock();
    let sandbox = world.sandbox().unwrap();
    let assistant = world.assistant();
    let parameters =
        json!({"type": "object", "required": ["order"], "properties": {"order": {"type": "integer"}}});
    let tool = world.create(
        "/tools",
        json!({"name": "order_status", "url": "https://example.com/orders", "description": "Status of an order",
               "parameters": parameters}),
    );
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
    let called = |more: Value| {
        let mut evaluation = json!({"kind": "tool_call", "includes": "order_status"});
        evaluation.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        evaluation
    };
    let evaluations = json!([
        called(json!({})),
        called(json!({"arguments": {"order": 17}})),
        called(json!({"arguments": {"order": "17"}})),
        called(json!({"arguments": {"order": 17}, "times": 1})),
        called(json!({"times": 2})),
        {"kind": "tool_not_called", "includes": "refund"},
        {"kind": "tool_not_called", "includes": "*"},
        {"kind": "no_tool_error", "includes": "*"},
        {"kind": "transcript_excludes", "role": "assistant", "includes": "refund"},
    ]);
    let run =
        simulate(&world, &assistant.id, "Ask: \"What is the status of order 17?\"", evaluations.clone());
    sandbox.answer_http(200, r#"{"status": "shipped"}"#);
    let over = world.settle(&run.id);
    let results = over["evaluations"].as_array().unwrap();
    let passed: Vec<&Value> = results.iter().map(|one| &one["passed"]).collect();
    // The assistant has no tool `refund`: that it was not called says nothing.
    let open = &Value::Null;
    assert_eq!(
        passed,
        [
            &json!(true),
            &json!(true),
            &json!(false),
            &json!(true),
            &json!(false),
            open,
            &json!(false),
            &json!(true),
            &json!(true)
        ],
        "{results:#?}"
    );
    let told = results[5]["reason"].as_str().unwrap();
    assert!(told.starts_with("The assistant has no tool of this name; it has “order_status”"), "{told}");
    assert_eq!((&results[3]["arguments"], &results[3]["times"]), (&json!({"order": 17}), &json!(1)));
    let again =
        world.create(&format!("/simulations/{}/runs", run["simulation_id"].as_str().unwrap()), json!({}));
    sandbox.answer_http(500, "down");
    let over = world.settle(&again.id);
    let results = over["evaluations"].as_array().unwrap();
    let passed: Vec<&Value> = results.iter().map(|one| &one["passed"]).collect();
    let failed = json!(false);
    assert_eq!(passed[..5], [&failed; 5], "{results:#?}");
    assert_eq!(passed[5..], [open, &failed, &failed, &json!(true)], "{results:#?}");
    let told = results[3]["reason"].as_str().unwrap();
    assert!(
        told.starts_with("0 matching calls of this tool succeeded; there should be 1. One failed: “"),
        "{told}"
    );
    assert!(results[3]["matched_index"].is_u64(), "the call that failed");
}

/// `passed` is null wherever nothing decides, and the reason says so.
#[test]
fn what_the_offline_judge_cannot_decide_is_not_decided() {
    let judge = |includes: &str| json!({"kind": "judge", "role": "any", "includes": includes});
    let decided = |evaluations: Value| {
        let world = World::new();
        let over = world.settle(&start(&world, evaluations).id);
        let path = format!("/simulations/{}", over["simulation_id"].as_str().unwrap());
        assert_eq!(world.get(path).ok()["last_run"]["passed"], over["passed"], "{over}");
        let listed = world.get("/simulations/runs").ok()["runs"][0].clone();
        assert_eq!(listed["passed"], over["passed"]);
        over
    };
    let good = "The assistant says \"9 to 5\" and never says sorry.";
    let over = decided(json!([judge(good)]));
    assert_eq!((&over["passed"], &over["failed_evaluation"]), (&json!(true), &Value::Null), "{over}");
    let over = decided(json!([judge(good), judge("The assistant is friendly.")]));
    let open = &over["evaluations"][1];
    assert_eq!(
        (&over["passed"], &open["passed"], &open["matched_index"]),
        (&Value::Null, &Value::Null, &Value::Null)
    );
    assert!(open["reason"].as_str().unwrap().contains("does not know “is”"), "{open}");
    let told = over["failed_evaluation"].as_str().unwrap();
    assert!(told.starts_with("“The assistant is friendly.”: builtin/rules cannot decide"), "{told}");
    let over =
        decided(json!([judge("The assistant is friendly."), judge("The assistant says goodbye forever.")]));
    assert_eq!(over["passed"], Value::Null, "{over}");
    let over = decided(json!([
        judge("The assistant is friendly."),
        judge("The assistant says \"goodbye forever\".")
    ]));
    assert_eq!(over["passed"], false, "one that failed decides: {over}");
    assert_eq!(decided(json!([]))["passed"], Value::Null);
}

/// A queued run: the caller asks for the opening hours, which are in the assistant's knowledge.
fn start(world: &World, evaluations: Value) -> Created {
    let assistant = world.create(
        "/assistants",
        json!({"name": "Front desk", "instructions": "Answer questions.", "first_message": "Hello, front desk."}),
    );
    let document = world.create(
        "/knowledge",
        json!({"name": "Opening hours", "content": "Our opening hours are 9 to 5 from Monday to Friday."}),
    );
    world
        .put(format!("/assistants/{}/knowledge", assistant.id), json!({"knowledge_ids": [document.id]}))
        .ok();
    simulate(world, &assistant.id, "Ask: \"What are your opening hours?\"", evaluations)
}

/// A queued run: the caller asks for the status of an order, which needs a tool.
fn with_tool(world: &World) -> Created {
    let assistant = world.assistant();
    let tool = world.create(
        "/tools",
        json!({"name": "order_status", "url": "https://example.com/orders", "description": "Looks up the status of an order",
               "parameters": {"type": "object", "properties": {}}}),
    );
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
    let evaluations = json!([{"kind": "tool_call", "role": "tool", "includes": "order_status"}]);
    simulate(world, &assistant.id, "Ask: \"What is the status of my order?\"", evaluations)
}

fn simulate(world: &World, assistant_id: &str, instructions: &str, evaluations: Value) -> Created {
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "Question", "instructions": instructions, "evaluations": evaluations}),
    );
    let body =
        json!({"assistant_id": assistant_id, "persona_id": world.persona().id, "scenario_id": scenario.id});
    let simulation = world.create("/simulations", body);
    world.create(&format!("/simulations/{}/runs", simulation.id), json!({"seed": 11}))
}
