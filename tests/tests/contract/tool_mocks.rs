//! Answers of a scenario in place of tools: no endpoint is called, unless a run is started with `"tools": "live"`.
use std::time::Duration;

use serde_json::{Value, json};
use sidetone_tests::World;
use sidetone_tests::receiver::{Receiver, ReceiverBehaviour};

const SOON: Duration = Duration::from_secs(30);

/// A shop with one tool, whose endpoint is a receiver.
struct Shop {
    world: World,
    receiver: Receiver,
    tool: String,
    assistant: String,
    scenario: String,
    simulation: String,
}

impl Shop {
    /// The caller asks for these orders, one after the other.
    fn new(orders: &[&str], scenario: Value) -> Self {
        let world = World::with_fakes();
        let receiver = Receiver::start(ReceiverBehaviour::Says(r#"{"status": "from the endpoint"}"#));
        let tool = world.create(
            "/tools",
            json!({"name": "lookup_order", "description": "Finds an order.", "url": receiver.url(), "timeout_ms": 2_000,
                   "parameters": {"type": "object", "required": ["order_id"], "properties": {"order_id": {"type": "string"}}}}),
        );
        let assistant = world.create(
            "/assistants",
            json!({"name": "Shop", "instructions": "Help.", "first_message": "Hello!", "model": "builtin/rules", "voice": "builtin/tone"}),
        );
        let tools = json!({"tool_ids": [tool.id]});
        world.put(format!("/assistants/{}/tools", assistant.id), tools).ok();
        let lines: Vec<String> = orders.iter().map(|order| format!("\"Where is order {order}?\"")).collect();
        let mut body = json!({"name": "Orders", "instructions": format!("Say {}.", lines.join(", then "))});
        for (name, value) in scenario.as_object().unwrap() {
            body[name] = value.clone();
        }
        let scenario = world.create("/simulations/scenarios", body).id;
        let persona = world.persona().id;
        let simulation = world
            .create(
                "/simulations",
                json!({"assistant_id": assistant.id, "persona_id": persona, "scenario_id": scenario}),
            )
            .id;
        Self { world, receiver, tool: tool.id, assistant: assistant.id, scenario, simulation }
    }

    fn answering(orders: &[&str], answers: Value) -> Self {
        Self::new(orders, json!({"tool_mocks": {"lookup_order": answers}}))
    }

    /// Waits for the endpoint for as long as a busy machine may need to answer.
    fn patient(self) -> Self {
        self.world.patch(format!("/tools/{}", self.tool), json!({"timeout_ms": 20_000})).ok();
        self
    }

    #[track_caller]
    fn run(&self, body: Value) -> Value {
        let run = self.world.create(&format!("/simulations/{}/runs", self.simulation), body);
        self.world.settle(&run.id)
    }

    fn path(&self) -> String {
        format!("/simulations/scenarios/{}", self.scenario)
    }
}

fn rows<'a>(run: &'a Value, role: &str) -> Vec<&'a Value> {
    run["call"]["transcript"].as_array().unwrap().iter().filter(|row| row["role"] == role).collect()
}

/// The texts of the tool results.
fn results(run: &Value) -> Vec<&str> {
    rows(run, "tool_result").into_iter().map(|row| row["text"].as_str().unwrap()).collect()
}

#[test]
fn a_mocked_tool_is_not_called() {
    let evaluations = json!([
        {"kind": "tool_call", "includes": "lookup_order", "arguments": {"order_id": "A-17"}, "times": 1},
        {"kind": "no_tool_error", "includes": "*"},
        {"kind": "transcript", "role": "assistant", "includes": "on its way"},
    ]);
    let mocks = json!({"lookup_order": [{"result": {"status": "on its way"}}]});
    let shop = Shop::new(&["A-17"], json!({"tool_mocks": mocks, "evaluations": evaluations}));
    for mode in ["chat", "voice"] {
        let run = shop.run(json!({"mode": mode, "seed": 7}));
        assert_eq!((&run["passed"], &run["tools"]), (&json!(true), &json!("mock")), "{run:#}");
        assert_eq!(results(&run), [r#"{"status":"on its way"}"#]);
        let result = rows(&run, "tool_result")[0];
        assert_eq!((&result["mocked"], &result["is_error"]), (&json!(true), &json!(false)));
        assert!(rows(&run, "tool_call")[0].get("mocked").is_none());
    }
    assert_eq!(shop.receiver.count(), 0);
}

#[test]
fn a_live_run_calls_the_tool() {
    let shop = Shop::answering(&["A-17"], json!([{"result": "from the scenario"}])).patient();
    let run = shop.run(json!({"tools": "live"}));
    assert_eq!(run["tools"], "live");
    assert_eq!(results(&run), [r#"{"status": "from the endpoint"}"#]);
    assert!(rows(&run, "tool_result")[0].get("mocked").is_none());
    assert_eq!(shop.receiver.wait_for(1, SOON).len(), 1);
    for bad in [json!("real"), json!(null), json!(true)] {
        let path = format!("/simulations/{}/runs", shop.simulation);
        shop.world.post(&path, json!({"tools": bad})).refused("validation_failed").naming(&["tools"]);
    }
}

#[test]
fn a_tool_without_a_mock_is_called() {
    let mocks = json!({"cancel_order": [{"result": "canceled"}]});
    let shop = Shop::new(&["A-17"], json!({"tool_mocks": mocks})).patient();
    let run = shop.run(json!({}));
    assert_eq!(run["tools"], "mock");
    assert_eq!(results(&run), [r#"{"status": "from the endpoint"}"#]);
    assert_eq!(shop.receiver.wait_for(1, SOON).len(), 1);
}

#[test]
fn a_run_lists_the_answers_for_tools_that_its_assistant_does_not_have() {
    let mocks = json!({"lookup_ordr": [{"result": "on its way"}], "lookup_order": [{"result": "lost"}]});
    let evaluations = json!([{"kind": "transcript", "role": "assistant", "includes": "on its way"}]);
    let shop = Shop::new(&["A-17"], json!({"tool_mocks": mocks, "evaluations": evaluations}));
    let unused = json!(["lookup_ordr"]);
    let run = shop.run(json!({}));
    assert_eq!(run["mocks_unused"], unused);
    let listed = shop.world.get("/simulations/runs").ok();
    assert_eq!(listed["runs"][0]["mocks_unused"], unused);
    let body = json!({"assistant_id": shop.assistant});
    let batch = shop.world.post("/simulations/runs/batch", body).created();
    assert_eq!(batch["runs"][0]["mocks_unused"], unused);
    shop.world.settle(batch["runs"][0]["id"].as_str().unwrap());
    let batch = shop.world.get(format!("/simulations/batches/{}", batch["batch_id"].as_str().unwrap())).ok();
    assert_eq!(batch["failures"][0]["mocks_unused"], unused, "{batch:?}");
    assert_eq!(shop.receiver.count(), 0);
    // A run that calls the tools answers for none.
    assert_eq!(shop.run(json!({"tools": "live"}))["mocks_unused"], json!([]));
    let many: serde_json::Map<String, Value> =
        (0..20).map(|n| (format!("none_{n:02}"), json!([{"result": n}]))).collect();
    shop.world.patch(shop.path(), json!({"tool_mocks": many})).ok();
    assert_eq!(shop.run(json!({}))["mocks_unused"].as_array().map(Vec::len), Some(8), "no more are listed");
}

#[test]
fn answers_are_given_in_their_order_and_the_last_one_is_repeated() {
    let answers = json!([{"result": "one"}, {"error": "the shop is closed"}, {"result": "three"}]);
    let shop = Shop::answering(&["A-1", "A-2", "A-3", "A-4", "A-5"], answers);
    let run = shop.run(json!({}));
    assert_eq!(results(&run), ["one", "the shop is closed", "three", "three", "three"]);
    let failed: Vec<bool> =
        rows(&run, "tool_result").iter().map(|row| row["is_error"].as_bool().unwrap()).collect();
    assert_eq!(failed, [false, true, false, false, false]);
    assert!(rows(&run, "tool_result").iter().all(|row| row["mocked"] == true));
    assert_eq!(shop.receiver.count(), 0);
}

#[test]
fn an_answer_may_be_for_some_arguments_only() {
    let answers = json!([
        {"when": {"order_id": "B-2"}, "result": "lost"},
        {"when": {"order_id": "B-2"}, "result": "found"},
        {"when": {"order_id": 2}, "result": "never: a text is no number"},
        {"result": null},
        {"when": {"order_id": "A-1"}, "result": [1, 2.5, "three"]},
    ]);
    let shop = Shop::answering(&["A-1", "B-2", "A-1", "B-2", "A-1", "B-2", "C-3"], answers);
    let run = shop.run(json!({}));
    let list = r#"[1,2.5,"three"]"#;
    // The third is the first answer for B-2 that was not given; the one for all was given to A-1.
    assert_eq!(results(&run), ["null", "lost", list, "found", list, "null", "null"]);
    assert_eq!(shop.receiver.count(), 0);
}

#[test]
fn a_call_that_no_answer_fits_fails_and_calls_nothing() {
    let evaluations = json!([
        {"kind": "no_tool_error", "includes": "lookup_order"}, {"kind": "tool_call", "includes": "lookup_order"},
    ]);
    let mocks = json!({"lookup_order": [{"when": {"order_id": "B-2"}, "result": "found"}]});
    let shop = Shop::new(&["A-17"], json!({"tool_mocks": mocks, "evaluations": evaluations}));
    let run = shop.run(json!({}));
    let result = rows(&run, "tool_result")[0];
    assert_eq!(result["text"], "no mock of this tool matches these arguments");
    assert_eq!((&result["is_error"], &result["mocked"]), (&json!(true), &json!(true)));
    assert_eq!(run["status"], "completed");
    let passed: Vec<&Value> =
        run["evaluations"].as_array().unwrap().iter().map(|one| &one["passed"]).collect();
    assert_eq!(passed, [false, false]);
    assert_eq!(shop.receiver.count(), 0);
}

#[test]
fn a_delay_passes_in_virtual_time_and_one_beyond_the_timeout_is_a_timeout() {
    let durations = [0, 1_500, 2_000, 2_001, 60_000].map(|delay_ms| {
        let shop = Shop::answering(&["A-17"], json!([{"result": "sent", "delay_ms": delay_ms}]));
        let run = shop.run(json!({}));
        let (call, result) = (rows(&run, "tool_call")[0], rows(&run, "tool_result")[0]);
        let expected = if delay_ms > 2_000 { "the tool did not answer within 2000 ms" } else { "sent" };
        assert_eq!((&result["text"], &result["is_error"]), (&json!(expected), &json!(delay_ms > 2_000)));
        assert_eq!(result["mocked"], true);
        result["end_ms"].as_i64().unwrap() - call["end_ms"].as_i64().unwrap()
    });
    assert_eq!(durations, [0, 1_500, 2_000, 2_000, 2_000]);
    let spoken = |delay_ms: i64| {
        let shop = Shop::answering(&["A-17"], json!([{"result": "sent", "delay_ms": delay_ms}]));
        shop.run(json!({"mode": "voice", "seed": 7}))["call"]["duration_ms"].as_i64().unwrap()
    };
    assert_eq!(spoken(1_000) - spoken(0), 1_000, "the recording has the pause");
}

#[test]
fn arguments_that_do_not_fit_the_schema_reach_no_mock() {
    let world = World::with_fakes();
    let tool = world.create(
        "/tools",
        json!({"name": "lookup", "url": "https://example.com/", "parameters": {"type": "object",
               "properties": {"order": {"type": "string"}}}}),
    );
    let assistant = world.create(
        "/assistants",
        json!({"name": "Shop", "instructions": "Help.", "model": "fake/unfit-arguments"}),
    );
    world.put(format!("/assistants/{}/tools", assistant.id), json!({"tool_ids": [tool.id]})).ok();
    let scenario = world.create(
        "/simulations/scenarios",
        json!({"name": "x", "instructions": "Say \"Lookup four?\"", "tool_mocks": {"lookup": [{"result": "sent"}]}}),
    );
    let persona = json!({"name": "Ada", "system_prompt": "Patient.", "model": "builtin/rules"});
    let persona = world.create("/simulations/personas", persona);
    let simulation = world.create(
        "/simulations",
        json!({"assistant_id": assistant.id, "persona_id": persona.id, "scenario_id": scenario.id}),
    );
    let run = world.create(&format!("/simulations/{}/runs", simulation.id), json!({}));
    let run = world.settle(&run.id);
    assert!(!rows(&run, "tool_call").is_empty(), "{run:#}");
    for row in rows(&run, "tool_result") {
        assert!(row["is_error"] == true && row.get("mocked").is_none(), "{row}");
    }
}

#[test]
fn a_run_keeps_the_mocks_that_it_was_started_with() {
    let shop = Shop::answering(&["A-17"], json!([{"result": "before"}]));
    let path = shop.path();
    let changed = json!({"lookup_order": [{"result": "after", "delay_ms": 10}], "other": [{"error": "no"}]});
    assert_eq!(
        shop.world.patch(&path, json!({"tool_mocks": changed})).ok()["tool_mocks"],
        changed,
        "it replaces all of them"
    );
    assert_eq!(results(&shop.run(json!({}))), ["after"]);
    // A change of something else leaves them.
    shop.world.patch(&path, json!({"name": "Renamed"})).ok();
    assert_eq!(shop.world.get(&path).ok()["tool_mocks"], changed);
    let mcp = shop.world.tool(
        "update_simulation_scenario",
        json!({"id": shop.scenario, "data": {"tool_mocks": {"lookup_order": [{"result": "over MCP"}]}}}),
    );
    assert!(!mcp.is_error, "{mcp:?}");
    let mcp = shop.world.tool(
        "start_simulation_run",
        json!({"id": shop.simulation, "data": {"tools": "mock"}, "confirm": true}),
    );
    assert!(!mcp.is_error, "{mcp:?}");
    let run = shop.world.get("/simulations/runs?limit=1").ok()["runs"][0]["id"].as_str().unwrap().to_owned();
    shop.world.patch(&path, json!({"tool_mocks": {}})).ok();
    assert_eq!(results(&shop.world.settle(&run)), ["over MCP"]);
    assert_eq!(shop.receiver.count(), 0);
    assert_eq!(results(&shop.run(json!({}))), [r#"{"status": "from the endpoint"}"#]);
}

#[test]
fn a_batch_and_other_assistants_use_the_same_scenario() {
    let mocks = json!({"lookup_order": [{"result": "sent"}], "find_slot": [{"result": "free"}]});
    let shop = Shop::new(&["A-17"], json!({"tool_mocks": mocks}));
    let world = &shop.world;
    let start = |tools: &str| {
        let body = json!({"assistant_id": shop.assistant, "tools": tools});
        let batch = world.post("/simulations/runs/batch", body).created();
        assert_eq!(batch["runs"][0]["tools"], tools);
        world.settle(batch["runs"][0]["id"].as_str().unwrap())
    };
    assert_eq!(results(&start("mock")), ["sent"]);
    assert_eq!(shop.receiver.count(), 0);
    assert_eq!(results(&start("live")), [r#"{"status": "from the endpoint"}"#]);
    // An assistant without these tools.
    let persona = world.persona().id;
    let other = world.create(
        "/simulations",
        json!({"assistant_id": world.assistant().id, "persona_id": persona, "scenario_id": shop.scenario}),
    );
    let run = world.create(&format!("/simulations/{}/runs", other.id), json!({}));
    let run = world.settle(&run.id);
    assert_eq!((&run["status"], rows(&run, "tool_call").len()), (&json!("completed"), 0));
    assert_eq!(shop.receiver.count(), 1);
}

#[test]
fn wrong_mocks_are_refused_and_named() {
    let world = World::new();
    let path = format!("/simulations/scenarios/{}", world.scenario().id);
    let one = json!({"result": "x"});
    let many = vec![one.clone(); 65];
    let tools: serde_json::Map<String, Value> = (0..65).map(|n| (format!("t{n}"), json!([one]))).collect();
    for (bad, field) in [
        (json!([]), "tool_mocks"),
        (json!(null), "tool_mocks"),
        (json!({"a": {}}), "tool_mocks.a"),
        (json!({"a": []}), "tool_mocks.a"),
        (json!({"a": many}), "tool_mocks.a"),
        (json!({"a": ["x"]}), "tool_mocks.a[0]"),
        (json!({"a": [{}]}), "tool_mocks.a[0]"),
        (json!({"a": [one, {"result": 1, "error": "x"}]}), "tool_mocks.a[1]"),
        (json!({"a": [{"result": null, "error": "x"}]}), "tool_mocks.a[0]"),
        (json!({"a": [{"error": ""}]}), "tool_mocks.a[0].error"),
        (json!({"a": [{"error": 1}]}), "tool_mocks.a[0].error"),
        (json!({"a": [{"result": 1, "when": []}]}), "tool_mocks.a[0].when"),
        (json!({"a": [{"result": 1, "if": {}}]}), "tool_mocks.a[0].if"),
        (json!({"a": [{"result": 1, "delay_ms": -1}]}), "tool_mocks.a[0].delay_ms"),
        (json!({"a": [{"result": 1, "delay_ms": 60_001}]}), "tool_mocks.a[0].delay_ms"),
        (json!({"a": [{"result": 1, "delay_ms": 0.5}]}), "tool_mocks.a[0].delay_ms"),
        (json!({"a-b": [one]}), "tool_mocks.a-b"),
        (json!({"": [one]}), "tool_mocks."),
        (json!({"1a": [one]}), "tool_mocks.1a"),
        (json!(tools), "tool_mocks"),
        (json!({"a": [{"result": "x".repeat(65_536)}]}), "tool_mocks"),
    ] {
        let reply = world.patch(&path, json!({"tool_mocks": bad})).refused("validation_failed");
        assert_eq!(reply.fields(), [field], "{}", bad.to_string().chars().take(80).collect::<String>());
    }
    assert_eq!(world.get(&path).ok()["tool_mocks"], json!({}));
    let most = json!({"a": [{"result": "x".repeat(65_536 - 21)}]});
    assert_eq!(world.patch(&path, json!({"tool_mocks": most})).ok()["tool_mocks"], most);
    // What was given comes back as it was given: null is a result, too.
    let given = json!({"a": [{"when": {"b": 1.5}, "result": null}, {"error": "no", "delay_ms": 60_000}]});
    assert_eq!(world.patch(&path, json!({"tool_mocks": given})).ok()["tool_mocks"], given);
    assert_eq!(world.get(&path).ok()["tool_mocks"], given);
    assert!(world.other().get(&path).json["error"].is_object());
}
