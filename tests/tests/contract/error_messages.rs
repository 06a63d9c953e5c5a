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
        "is not an argument of this tool, but a field of the body; send it inside `data`, as {\"data\": {\"name\": …}}"
    );
    let reply = world.tool("create_api_key", json!({"scope": "all", "data": {"name": "A"}}));
    assert_eq!(
        first_problem(&reply.json),
        "is not an argument of this tool; arguments are: data, idempotency_key"
    );
    let reply = world.tool("update_assistant", json!({"id": "asst_1", "assistant": {}, "data": {}}));
    assert_eq!(
        first_problem(&reply.json),
        "is not an argument of this tool; arguments are: id, data, if_revision"
    );
}

#[test]
fn a_field_that_another_operation_sets_is_told_which() {
    let world = World::new();
    let path = format!("/assistants/{}", world.assistant().id);
    for (field, tool, route) in [
        ("tool_ids", "set_assistant_tools", "PUT /assistants/{id}/tools"),
        ("knowledge_ids", "set_assistant_knowledge", "PUT /assistants/{id}/knowledge"),
    ] {
        let told = format!("is not a field here; {tool}, `{route}` sets it");
        let reply = world.patch(&path, json!({field: []})).refused("validation_failed").naming(&[field]);
        assert_eq!(problem(&reply), told);
        let body = json!({"name": "A", "instructions": "B", field: ["x"]});
        assert_eq!(problem(&world.post("/assistants", body).refused("validation_failed")), told);
    }
}

#[test]
fn every_wrong_part_of_a_list_is_named_at_once() {
    let world = World::new();
    let transfers = json!([
        {"name": "Sales", "number": "+1"},
        {"name": "", "number": "+14155550101"},
        {"name": "Sales", "number": "+2"},
        {"name": "Sales", "number": "+14155550102", "x": 1},
    ]);
    world
        .post("/assistants", json!({"name": "", "instructions": "I", "model": "nobody/m", "voice": "nobody/v",
            "language": "English", "transfers": transfers, "speech": {"speed": 9}, "voicemail": {"action": "leave_message"}}))
        .refused("validation_failed")
        .naming(&[
            "name",
            "transfers[1].name",
            "transfers[3].x",
            "speech.speed",
            "transfers[0].number",
            "transfers[2].number",
            "model",
            "voice",
            "language",
            "transfers[2].name",
            "transfers[3].name",
            "voicemail.message",
        ]);
}

#[test]
#[cfg_attr(not(test_host = "sandbox"), ignore = "needs settings of its own")]
fn what_a_voice_or_a_transcriber_cannot_do_is_refused_and_not_bent() {
    let world = World::with_settings(&[
        ("SIDETONE_ELEVENLABS_API_KEY", "k"),
        ("SIDETONE_DEEPGRAM_API_KEY", "k"),
        ("SIDETONE_OPENAI_API_KEY", "k"),
    ]);
    let assistant = |voice: &str, speech: Value| {
        world.post(
            "/assistants",
            json!({"name": "A", "instructions": "I", "voice": voice, "speech": speech,
            "transcriber": if voice == "builtin/tone" { "" } else { "deepgram/flux-general-en" }}),
        )
    };
    for (voice, speed, told) in [
        ("elevenlabs/v", 1.3, Some("must be 0.7 to 1.2 with this voice")),
        ("elevenlabs/v", 1.2, None),
        ("deepgram/aura-2-thalia-en", 0.6, Some("must be 0.7 to 1.5 with this voice")),
        ("openai/alloy", 2.0, None),
        ("builtin/tone", 2.0, None),
    ] {
        let reply = assistant(voice, json!({"speed": speed}));
        match told {
            Some(told) => {
                assert_eq!(
                    problem(&reply.refused("validation_failed").naming(&["speech.speed"])),
                    told,
                    "{voice}"
                )
            }
            None => assert_eq!(reply.created()["speech"]["speed"], speed, "{voice}"),
        }
    }
    let short = json!({"end_of_turn_min_ms": 200, "end_of_turn_max_ms": 400});
    let reply = assistant("openai/alloy", short.clone());
    let reply = reply.refused("validation_failed").naming(&["speech.end_of_turn_max_ms"]);
    assert_eq!(problem(&reply), "must be at least 500 with this transcriber");
    // A change of the voice alone is refused, too: nothing that was set is bent.
    let fast = assistant("openai/alloy", json!({"speed": 2.0})).created();
    let path = format!("/assistants/{}", fast["id"].as_str().unwrap());
    world
        .patch(&path, json!({"voice": "elevenlabs/v"}))
        .refused("validation_failed")
        .naming(&["speech.speed"]);
    world.patch(&path, json!({"voice": "elevenlabs/v", "speech": {"speed": 1.1}})).ok();
    assert_eq!(assistant("builtin/tone", short).created()["speech"]["end_of_turn_max_ms"], 400);
}

#[test]
fn what_is_limited_is_said_in_the_answer() {
    let world = World::new();
    let path = format!("/assistants/{}/test-token", world.assistant().id);
    let token = world.post(&path, json!({"ttl_seconds": 1, "max_duration_seconds": 99_999})).ok();
    assert_eq!((&token["ttl_seconds"], &token["max_duration_seconds"]), (&json!(30), &json!(3_600)));
    let keyterms =
        |count: usize| json!({"name": "A", "instructions": "I", "keyterms": vec!["x".repeat(48); count]});
    world.post("/assistants", keyterms(40)).created();
    let reply = world.post("/assistants", keyterms(41)).refused("validation_failed").naming(&["keyterms"]);
    assert_eq!(problem(&reply), "must have at most 2000 bytes in all, 2 for each added; has 2050");
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
        (Method::PATCH, "/numbers/%2B14155550123", "This path accepts only GET, PUT, DELETE."),
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
