//! Errors say everything that is wrong, once, in the terms of the request.
use http::Method;
use serde_json::{Value, json};
use sidetone_engine::base::limits::{DOCUMENT_BYTES_MAX, INSTRUCTIONS_BYTES_MAX};
use sidetone_tests::{Reply, World};

#[test]
fn an_error_lists_what_schema_type_and_resource_refuse() {
    let world = World::new();
    let assistant = world.assistant().id;
    let private = "https://127.0.0.1/";
    world
        .post("/assistants", json!({"name": "", "model": "nobody/m", "voice": "nobody/v", "x": 1}))
        .refused("validation_failed")
        .naming(&["instructions", "name", "x", "model", "voice"]);
    world
        .patch(format!("/assistants/{assistant}"), json!({"name": "", "model": "nobody/m"}))
        .refused("validation_failed")
        .naming(&["name", "model"]);
    world
        .post("/tools", json!({"name": "1", "url": private, "timeout_ms": 1, "parameters": {"type": "nope"}}))
        .refused("validation_failed")
        .naming(&["timeout_ms", "name", "parameters.type", "url"]);
    world
        .patch(format!("/tools/{}", world.a_tool().id), json!({"url": private, "timeout_ms": 1}))
        .refused("validation_failed")
        .naming(&["timeout_ms", "url"]);
    world
        .post("/webhooks", json!({"url": private, "events": []}))
        .refused("validation_failed")
        .naming(&["events", "url"]);
    world.post("/simulations/personas", json!({"model": "nobody/m"})).refused("validation_failed").naming(&[
        "name",
        "system_prompt",
        "model",
    ]);
    let (blank, good) =
        (json!({"kind": "judge", "includes": " "}), json!({"kind": "judge", "includes": "a"}));
    let evaluations = [&blank, &good, &blank];
    let scenario = json!({"instructions": "I", "evaluations": evaluations, "judge_model": "nobody/m"});
    world.post("/simulations/scenarios", scenario.clone()).refused("validation_failed").naming(&[
        "name",
        "evaluations[0].includes",
        "evaluations[2].includes",
        "judge_model",
    ]);
    let mut named = scenario;
    named["name"] = "S".into();
    world.post("/simulations/scenarios", named).refused("validation_failed").naming(&[
        "evaluations[0].includes",
        "evaluations[2].includes",
        "judge_model",
    ]);
}

#[test]
fn an_error_lists_problems_of_query_and_body_together() {
    let world = World::new();
    world
        .post("/calls/outbound?dry=1", json!({"to": "+1", "from": "+2"}))
        .refused("validation_failed")
        .naming(&["dry", "assistant_id", "to", "from"]);
    world
        .post("/calls/outbound", json!({"assistant_id": "asst_x", "to": "+14155550123"}))
        .refused("validation_failed")
        .naming(&["assistant_id", "from"]);
    world
        .tool("update_assistant", json!({"name": "A", "data": {"name": ""}}))
        .refused("validation_failed")
        .naming(&["id", "name", "name"]);
}

#[test]
fn a_private_target_alone_keeps_its_own_code() {
    let world = World::new();
    let url = "https://127.0.0.1/";
    world.post("/webhooks", json!({"url": url, "events": ["*"]})).refused("private_target").naming(&["url"]);
}

#[test]
fn nothing_is_said_about_fields_that_were_not_sent() {
    let world = World::new();
    let assistant = world.assistant().id;
    world
        .patch(format!("/assistants/{assistant}"), json!({"x": 1}))
        .refused("validation_failed")
        .naming(&["x"]);
    world
        .patch(format!("/tools/{}", world.a_tool().id), json!({"x": 1}))
        .refused("validation_failed")
        .naming(&["x"]);
    world
        .patch(format!("/assistants/{assistant}"), json!({"pipeline_mode": "realtime", "model": 5}))
        .refused("validation_failed")
        .naming(&["model"]);
}

#[test]
fn a_body_that_is_not_json_is_said_to_be_that_once() {
    let world = World::new();
    for (body, reason) in [
        (&b"{\"name\":\"A\",}"[..], "trailing comma at line 1 column 13. Send one JSON document."),
        (b"\xEF\xBB\xBF{}", "it starts with a byte order mark. Send UTF-8 without one."),
        (b"{\"name\":\"\xFF\"}", "byte 9 is not UTF-8. Send JSON encoded as UTF-8."),
    ] {
        let request = world.request(Method::POST, "/assistants").header("content-type", "application/json");
        let reply = world.send(request.body(body.to_vec().into()).unwrap()).refused("invalid_json");
        assert_eq!(message(&reply), format!("The body is not valid JSON: {reason}"));
    }
}

#[test]
fn a_limit_in_bytes_is_told_in_bytes() {
    let world = World::new();
    let told = |reply: Reply, field: &str, most: usize, size: usize| {
        let reply = reply.refused("validation_failed").naming(&[field]);
        assert_eq!(problem(&reply), format!("must have at most {most} bytes, has {size}"));
    };
    for (text, size) in [("x".repeat(DOCUMENT_BYTES_MAX + 1), 51_201), ("é".repeat(30_000), 60_000)] {
        let reply = world.post("/knowledge", json!({"name": "A", "content": text}));
        told(reply, "content", DOCUMENT_BYTES_MAX, size);
    }
    for (text, size) in [("x".repeat(INSTRUCTIONS_BYTES_MAX + 1), 32_769), ("é".repeat(20_000), 40_000)] {
        let body = json!({"name": "A", "instructions": &text});
        told(world.post("/assistants", body.clone()), "instructions", INSTRUCTIONS_BYTES_MAX, size);
        told(world.post("/simulations/scenarios", body), "instructions", INSTRUCTIONS_BYTES_MAX, size);
        let persona = json!({"name": "A", "system_prompt": &text});
        told(world.post("/simulations/personas", persona), "system_prompt", INSTRUCTIONS_BYTES_MAX, size);
    }
    let url = format!("https://example.com/{}", "x".repeat(2_029));
    told(world.post("/webhooks", json!({"url": url, "events": ["*"]})), "url", 2_048, 2_049);
    let name = "é".repeat(121);
    let reply = world.post("/assistants", json!({"name": name, "instructions": "I"}));
    assert_eq!(problem(&reply), "must have at most 120 characters, has 121");
}

#[test]
fn a_missing_choice_is_told_with_its_values() {
    let world = World::new();
    let number = "/numbers/%2B14155550123";
    let reply = world.put(number, json!({"assistant_id": "asst_x"})).refused("validation_failed");
    assert_eq!(reply.fields(), ["provider"]);
    assert_eq!(problem(&reply), "is required; must be one of: twilio, telnyx, plivo, vonage");
    let reply = world.post("/webhooks", json!({"url": "https://example.com/"})).refused("validation_failed");
    assert!(problem(&reply).starts_with("is required; must be a list of: call.started, "), "{reply:?}");
}

#[test]
fn an_unknown_part_of_a_request_is_called_what_it_is() {
    let world = World::new();
    let webhook = world.webhook().id;
    let reply = world.get(format!("/webhooks/{webhook}/deliveries?size=1")).refused("validation_failed");
    assert_eq!(problem(&reply), "is not a query parameter; query parameters are: status, page, limit");
    let reply = world.get("/workspace?limit=1").refused("validation_failed");
    assert_eq!(problem(&reply), "is not a query parameter; no query parameters are accepted");
    let reply = world.post("/keys", json!({"name": "A", "scope": "all"})).refused("validation_failed");
    assert_eq!(problem(&reply), "is not a field; fields are: name");
    let reply = world.tool("create_api_key", json!({"name": "A", "data": {"name": "A"}}));
    assert_eq!(
        first_problem(&reply.json),
        "is not an argument of this tool; put the fields of the body inside `data`"
    );
}

#[test]
fn a_wrong_method_is_told_what_to_use() {
    let world = World::new();
    for (method, path, told) in [
        (
            Method::POST,
            "/numbers",
            "This path accepts only GET. To create or replace an item, use `PUT /numbers/{number}`.",
        ),
        (
            Method::GET,
            "/numbers/%2B14155550123",
            "This path accepts only PUT, DELETE. To read all items, use `GET /numbers`.",
        ),
        (Method::DELETE, "/assistants", "This path accepts only GET, POST."),
    ] {
        let reply = world.call(method, path, None).refused("method_not_allowed");
        assert_eq!(message(&reply), told);
    }
}

fn message(reply: &Reply) -> &str {
    reply.json["error"]["message"].as_str().unwrap()
}

fn problem(reply: &Reply) -> &str {
    first_problem(&reply.json)
}

fn first_problem(json: &Value) -> &str {
    json["error"]["details"]["fields"][0]["message"].as_str().unwrap()
}
