//! What somebody who knows the service little gets wrong first, and what they are told.
use serde_json::{Value, json};
use sidetone_tests::call::UNKNOWN_ID;
use sidetone_tests::{Reply, World};

fn message(error: &Value) -> &str {
    error["error"]["message"].as_str().unwrap()
}

fn fields(reply: &Reply) -> Vec<(String, String)> {
    let fields = reply.json["error"]["details"]["fields"].as_array().unwrap().iter();
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    fields.map(|field| (text(&field["field"]), text(&field["message"]))).collect()
}

#[test]
fn an_id_of_another_kind_is_told_what_reads_it() {
    let world = World::new();
    let unknown = |kind: &str| UNKNOWN_ID.replacen("asst", kind, 1);
    for (path, tool, kind, reads, route) in [
        (
            "/simulations/runs",
            "get_simulation_run",
            "batch",
            "get_simulation_batch",
            "GET /simulations/batches/{id}",
        ),
        ("/calls", "get_call", "run", "get_simulation_run", "GET /simulations/runs/{id}"),
        ("/assistants", "get_assistant", "tool", "get_tool", "GET /tools/{id}"),
        (
            "/simulations",
            "get_simulation",
            "scen",
            "get_simulation_scenario",
            "GET /simulations/scenarios/{id}",
        ),
    ] {
        let id = unknown(kind);
        let reply = world.get(format!("{path}/{id}")).refused("not_found");
        let told = message(&reply.json);
        assert!(told.contains(reads) && told.contains(route), "{told}");
        assert_eq!(message(&world.tool(tool, json!({"id": id})).refused("not_found").json), told);
    }
    // Whether there is such a thing makes no difference, nor whose it is.
    let of = |world: &World, id: &str| {
        message(&world.get(format!("/calls/{id}")).refused("not_found").json).to_owned()
    };
    let theirs = world.other().assistant().id;
    assert_eq!(of(&world, &theirs), of(&world, UNKNOWN_ID));
    assert_eq!(of(&world, &world.assistant().id), of(&world, UNKNOWN_ID));
    let same_kind = of(&world, &unknown("call"));
    assert!(same_kind.starts_with("No such call"), "{same_kind}");
}

#[test]
fn a_filter_says_what_it_cannot_be() {
    let world = World::new();
    world.a_call();
    let (tool, call) = (world.a_tool().id, UNKNOWN_ID.replacen("asst", "call", 1));
    let (tool, call) = (tool.as_str(), call.as_str());
    for (path, wrong) in [
        ("/calls", vec![("assistant_id", ""), ("assistant_id", tool), ("assistant_id", call)]),
        ("/simulations", vec![("assistant_id", ""), ("assistant_id", call)]),
        ("/simulations/runs", vec![("batch_id", ""), ("simulation_id", call), ("batch_id", UNKNOWN_ID)]),
    ] {
        for (name, value) in wrong {
            world.get(format!("{path}?{name}={value}")).refused("invalid_parameter").naming(&[name]);
        }
    }
    for name in ["search", "model", "voice"] {
        world.get(format!("/calls?{name}=")).refused("validation_failed").naming(&[name]);
        world.tool("list_calls", json!({name: ""})).refused("validation_failed").naming(&[name]);
    }
    for path in ["/calls", "/events"] {
        let reversed = format!("{path}?date_from=2026-02-01&date_to=2026-01-31");
        world.get(reversed).refused("validation_failed").naming(&["date_from"]);
        world.get(format!("{path}?date_from=2026-02-01&date_to=2026-02-01")).ok();
    }
    world.delete("/calls?date_from=2026-02-01&date_to=2026-01-31").refused("validation_failed");
    // An unknown id is no mistake.
    for unknown in [UNKNOWN_ID, "nobody", "asst_nope"] {
        assert_eq!(world.get(format!("/calls?assistant_id={unknown}")).ok()["calls"], json!([]), "{unknown}");
    }
}

#[test]
fn a_number_is_told_its_bounds() {
    let world = World::new();
    let path = format!("/simulations/{}/runs", world.simulation().id);
    for (seed, told) in [
        (json!(1_u64 << 63), "must be at most 9007199254740991"),
        (json!(18_446_744_073_709_551_616.0), "must be at most 9007199254740991"),
        (json!(1.5), "must be a whole number from 0 to 9007199254740991, not 1.5"),
    ] {
        let reply = world.post(&path, json!({"seed": seed})).refused("validation_failed");
        assert_eq!(fields(&reply), [("seed".to_owned(), told.to_owned())]);
    }
    for (timeout, told) in [
        (json!(5_000.5), "must be a whole number from 100 to 30000, not 5000.5"),
        (json!(1e20), "must be at most 30000"),
    ] {
        let body = json!({"name": "a", "url": "https://example.com/", "timeout_ms": timeout});
        let reply = world.post("/tools", body).refused("validation_failed");
        assert_eq!(fields(&reply), [("timeout_ms".to_owned(), told.to_owned())]);
    }
}

#[test]
fn a_name_is_more_than_white_space() {
    let world = World::new();
    for (path, body) in [
        ("/assistants", json!({"instructions": "I"})),
        ("/knowledge", json!({"content": "C"})),
        ("/simulations/personas", json!({"system_prompt": "P"})),
        ("/simulations/scenarios", json!({"instructions": "I"})),
        ("/keys", json!({})),
    ] {
        let mut body = body;
        for blank in ["  ", "\u{a0}"] {
            body["name"] = blank.into();
            world.post(path, body.clone()).refused("validation_failed").naming(&["name"]);
        }
        body["name"] = " A ".into();
        world.post(path, body).created();
    }
}

#[test]
fn a_mistake_is_called_what_it_is() {
    let world = World::new();
    let mocks = json!({"book": [{"result": 1, "error": "closed"}, {}]});
    let reply = world
        .post("/simulations/scenarios", json!({"name": "S", "instructions": "I", "tool_mocks": mocks}))
        .refused("validation_failed")
        .naming(&["tool_mocks.book[0]", "tool_mocks.book[1]"]);
    let told = fields(&reply);
    assert!(told[0].1.contains("cannot be both") && told[1].1.starts_with("needs a `result` or"), "{told:?}");
    for path in ["/calls", "/simulations/runs"] {
        let reply = world.delete(path).refused("validation_failed");
        let told = message(&reply.json);
        assert!(told.contains("at least one filter is required"), "{told}");
    }
    let tool = json!({"name": "a", "url": "https://u:p@example.com/"});
    let reply = world.post("/tools", tool).refused("private_target");
    assert!(message(&reply.json).contains("credentials"), "{reply:?}");
}

#[test]
fn a_field_beside_data_is_named_once() {
    let world = World::new();
    let refused = world.tool("create_assistant", json!({"name": "A", "instructions": "I"}));
    let refused = refused.refused("validation_failed");
    assert_eq!(refused.fields(), ["name", "instructions"]);
    assert!(refused.json.to_string().contains("send it inside `data`"), "{}", refused.json);
    let half = world.tool("create_assistant", json!({"name": "A", "data": {}})).refused("validation_failed");
    assert_eq!(half.fields(), ["name", "instructions"]);
    world.tool("create_assistant", json!({})).refused("validation_failed").naming(&["name", "instructions"]);
}

#[test]
fn words_of_a_filter_are_taken_as_json_has_them() {
    let world = World::new();
    let listed = |passed: Value| world.tool("list_simulation_runs", json!({"passed": passed})).ok().json;
    world.settle(&world.run().id);
    for (word, text) in [(json!(true), "true"), (json!(false), "false"), (Value::Null, "null")] {
        assert_eq!(listed(word), listed(text.into()), "{text}");
    }
    let all: Vec<Value> =
        ["true", "false", "null"].map(|text| listed(text.into())["pagination"]["total"].clone()).into();
    assert_eq!(all.iter().filter_map(Value::as_i64).sum::<i64>(), 1, "{all:?}");
    let trial =
        |passed: Value| world.tool("delete_simulation_runs", json!({"passed": passed, "dry_run": true})).ok();
    assert_eq!(trial(json!(false)).json, trial("false".into()).json);
    // Other types are none of the words.
    world.tool("list_simulation_runs", json!({"passed": 0})).refused("invalid_parameter").naming(&["passed"]);
    world
        .tool("list_simulation_runs", json!({"status": true}))
        .refused("invalid_parameter")
        .naming(&["status"]);
}

#[test]
fn a_dry_run_needs_no_confirmation() {
    let world = World::new();
    let order = json!({"assistant_id": world.assistant().id, "to": "+14155557777"});
    let ask = |more: Value| {
        let mut arguments = json!({ "data": order });
        arguments.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
        world.tool("create_outbound_call", arguments)
    };
    for asked in [json!({"dry_run": true}), json!({"dry_run": "true", "confirm": false})] {
        assert_eq!(ask(asked).ok().json["dry_run"], true);
    }
    for asked in [json!({}), json!({"dry_run": false}), json!({"dry_run": "yes"}), json!({"dry_run": 1})] {
        ask(asked).refused("confirmation_required");
    }
    // Where nothing can be tried, it is refused, and nothing starts.
    let simulation = world.simulation().id;
    world
        .tool("start_simulation_run", json!({"id": simulation, "dry_run": true}))
        .refused("validation_failed")
        .naming(&["dry_run"]);
    assert_eq!(world.get("/calls").ok()["stats"]["total"], 0);
    assert_eq!(world.get("/simulations/runs").ok()["pagination"]["total"], 0);
}

#[test]
fn a_start_of_many_runs_is_told_shortly_over_mcp() {
    let world = World::new();
    let data = |repeat: i64| {
        json!({
            "assistant_id": world.assistant().id, "persona": {"system_prompt": "P"}, "scenario": {"instructions": "I"}, "repeat": repeat,
        })
    };
    let started = world.tool("start_inline_simulation", json!({"data": data(60), "confirm": true})).ok().json;
    assert_eq!((started["runs"].as_array().map(Vec::len), &started["runs_left_out"]), (Some(10), &json!(50)));
    assert!(started.to_string().len() < 10_000, "{}", started.to_string().len());
    let batch = started["batch_id"].as_str().unwrap();
    assert_eq!(world.tool("get_simulation_batch", json!({"id": batch})).ok().json["total"], 60);
    let few = world.tool("start_inline_simulation", json!({"data": data(10), "confirm": true})).ok().json;
    assert_eq!((few["runs"].as_array().map(Vec::len), few.get("runs_left_out")), (Some(10), None));
    let all = world.post("/simulations/runs/inline", data(60)).created();
    assert_eq!(all["runs"].as_array().map(Vec::len), Some(60), "REST shows all");
}
