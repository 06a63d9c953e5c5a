//! MCP on one URL for both eras: tables of requests and expected responses.
use http::Method;
use serde_json::{Value, json};
use sidetone_tests::{Reply, World};

const MODERN: &str = "2026-07-28";
const LEGACY: [&str; 4] = ["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";

/// Description, headers, message, status, JSON-RPC error code or 0.
type LegacyRow<'a> = (&'a str, Vec<(&'a str, &'a str)>, Value, u16, i64);
/// Description, method, headers, params, status, JSON-RPC error code or 0.
type ModernRow<'a> = (&'a str, &'a str, Vec<(&'a str, &'a str)>, Value, u16, i64);

#[test]
fn initialize_agrees_on_a_version() {
    let world = World::new();
    let initialize = |version: Value| {
        let params = json!({"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "t", "version": "1"}});
        result(&world.mcp(request("initialize", params)).ok())
    };
    for version in LEGACY {
        assert_eq!(initialize(json!(version))["protocolVersion"], version);
    }
    for other in [json!(MODERN), json!("2099-01-01"), json!(""), json!(7), Value::Null] {
        assert_eq!(initialize(other)["protocolVersion"], "2025-11-25");
    }
    let answer = initialize(json!("2025-06-18"));
    assert_eq!(answer["capabilities"], json!({"tools": {}, "prompts": {}, "resources": {}}));
    assert_eq!(answer["serverInfo"]["name"], "sidetone");
    assert!(answer["instructions"].as_str().is_some_and(|text| text.len() < 2048));
    let reply = world.mcp(request("initialize", json!({"protocolVersion": "2025-06-18"})));
    assert_eq!(reply.header("mcp-session-id"), None, "sessions are not supported");
}

#[test]
fn legacy_requests_get_the_responses_in_the_table() {
    let world = World::new();
    let v = |version: &'static str| vec![("mcp-protocol-version", version)];
    let none = Vec::new;
    let list = || request("tools/list", json!({}));
    let meta = || json!({"_meta": {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}});
    let ok = 0;
    #[rustfmt::skip] // one row per line
    let table: Vec<LegacyRow> = vec![
        ("no version header is legal", none(), list(), 200, ok),
        ("2025-11-25", v("2025-11-25"), list(), 200, ok),
        ("2025-06-18", v("2025-06-18"), list(), 200, ok),
        ("2025-03-26", v("2025-03-26"), list(), 200, ok),
        ("2024-11-05", v("2024-11-05"), list(), 200, ok),
        ("an unknown version", v("2099-01-01"), list(), 400, -32022),
        ("an invalid version", v("latest"), list(), 400, -32022),
        ("a modern version without metadata", v(MODERN), list(), 400, -32602),
        ("initialize under a modern version", v(MODERN), request("initialize", json!({})), 400, -32020),
        ("ping", none(), request("ping", json!({})), 200, ok),
        ("params may be left out", none(), json!({"jsonrpc": "2.0", "id": 1, "method": "ping"}), 200, ok),
        ("ids may be strings", none(), json!({"jsonrpc": "2.0", "id": "a", "method": "ping"}), 200, ok),
        ("or zero", none(), json!({"jsonrpc": "2.0", "id": 0, "method": "ping"}), 200, ok),
        ("or negative", none(), json!({"jsonrpc": "2.0", "id": -5, "method": "ping"}), 200, ok),
        ("or empty strings", none(), json!({"jsonrpc": "2.0", "id": "", "method": "ping"}), 200, ok),
        ("an unknown method", none(), request("nope", json!({})), 200, -32601),
        ("an empty method", none(), request("", json!({})), 200, -32601),
        ("a method in other capitals", none(), request("Tools/List", json!({})), 200, -32601),
        ("resources/list", none(), request("resources/list", json!({})), 200, ok),
        ("prompts/list", none(), request("prompts/list", json!({})), 200, ok),
        ("a resource that is not there", none(), request("resources/read", json!({"uri": "sidetone://calls/call_1"})), 200, -32002),
        ("subscriptions to resources are not offered", none(), request("resources/subscribe", json!({"uri": "sidetone://calls/call_1"})), 200, -32601),
        ("completions are not offered", none(), request("completion/complete", json!({})), 200, -32601),
        ("logging is not offered", none(), request("logging/setLevel", json!({"level": "info"})), 200, -32601),
        ("discover is modern", none(), request("server/discover", json!({})), 200, -32601),
        ("an unknown cursor", none(), request("tools/list", json!({"cursor": "x"})), 200, -32602),
        ("an unknown tool", none(), request("tools/call", json!({"name": "nope", "arguments": {}})), 200, -32602),
        ("an operation that is no tool", none(), request("tools/call", json!({"name": "download_recording", "arguments": {"id": "call_1"}})), 200, -32602),
        ("a tool in other capitals", none(), request("tools/call", json!({"name": "List_Assistants"})), 200, -32602),
        ("no tool name", none(), request("tools/call", json!({"arguments": {}})), 200, -32602),
        ("a tool name that is not a string", none(), request("tools/call", json!({"name": 1})), 200, -32602),
        ("arguments as a list", none(), request("tools/call", json!({"name": "list_assistants", "arguments": []})), 200, -32602),
        ("arguments as null", none(), request("tools/call", json!({"name": "list_assistants", "arguments": null})), 200, -32602),
        ("arguments as a string that is not an object", none(), request("tools/call", json!({"name": "list_assistants", "arguments": "[]"})), 200, -32602),
        ("arguments as a string that contains an object", none(), request("tools/call", json!({"name": "list_assistants", "arguments": "{}"})), 200, ok),
        ("no arguments", none(), request("tools/call", json!({"name": "list_assistants"})), 200, ok),
        ("a rejected call is a result", none(), request("tools/call", json!({"name": "get_assistant", "arguments": {}})), 200, ok),
        ("an undeclared task", none(), request("tools/call", json!({"name": "list_assistants", "task": {"ttl": 1}})), 200, ok),
        ("a progress token", none(), request("tools/call", json!({"name": "list_assistants", "_meta": {"progressToken": 1}})), 200, ok),
        ("unknown members are ignored", none(), json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "extra": 1}), 200, ok),
        ("an unsupported version of JSON-RPC", none(), json!({"jsonrpc": "1.0", "id": 1, "method": "ping"}), 400, -32600),
        ("jsonrpc as a number", none(), json!({"jsonrpc": 2.0, "id": 1, "method": "ping"}), 400, -32600),
        ("no jsonrpc", none(), json!({"id": 1, "method": "ping"}), 400, -32600),
        ("no method", none(), json!({"jsonrpc": "2.0", "id": 1}), 400, -32600),
        ("a method that is not a string", none(), json!({"jsonrpc": "2.0", "id": 1, "method": 1}), 400, -32600),
        ("id null", none(), json!({"jsonrpc": "2.0", "id": null, "method": "ping"}), 400, -32600),
        ("id with a fraction", none(), json!({"jsonrpc": "2.0", "id": 1.5, "method": "ping"}), 400, -32600),
        ("id true", none(), json!({"jsonrpc": "2.0", "id": true, "method": "ping"}), 400, -32600),
        ("id an object", none(), json!({"jsonrpc": "2.0", "id": {}, "method": "ping"}), 400, -32600),
        ("params a list", none(), json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": []}), 400, -32600),
        ("params null", none(), json!({"jsonrpc": "2.0", "id": 1, "method": "ping", "params": null}), 400, -32600),
        ("a string", none(), json!("ping"), 400, -32600),
        ("a number", none(), json!(1), 400, -32600),
        ("null", none(), Value::Null, 400, -32600),
        ("an empty object", none(), json!({}), 400, -32600),
        ("a notification", none(), json!({"jsonrpc": "2.0", "method": "notifications/initialized"}), 202, ok),
        ("an unknown notification", none(), json!({"jsonrpc": "2.0", "method": "nope", "params": []}), 202, ok),
        ("a notification named tools/call has no effect", none(), json!({"jsonrpc": "2.0", "method": "tools/call",
            "params": {"name": "create_assistant", "arguments": {"data": {"name": "A", "instructions": "B"}}}}), 202, ok),
        ("a response", none(), json!({"jsonrpc": "2.0", "id": 1, "result": {}}), 202, ok),
        ("an error response", none(), json!({"jsonrpc": "2.0", "id": 1, "error": {"code": 1, "message": ""}}), 202, ok),
        ("an empty batch", none(), json!([]), 400, -32600),
        ("a batch under a version without batches", v("2025-06-18"), json!([list()]), 400, -32600),
        ("a batch under the newest legacy version", v("2025-11-25"), json!([list()]), 400, -32600),
        ("a batch under the modern version", v(MODERN), json!([list()]), 400, -32600),
        ("a batch that contains a modern request", none(), json!([request("ping", json!({})), request("tools/list", meta())]), 400, -32600),
        ("a batch of notifications", none(), json!([{"jsonrpc": "2.0", "method": "notifications/x"}]), 202, ok),
        ("a batch of 51", none(), vec![request("ping", json!({})); 51].into(), 400, -32600),
    ];
    for (what, headers, message, status, code) in table {
        let id = message.get("id").cloned();
        let reply = world.call_with(Method::POST, "/mcp", Some(&message), &headers);
        answered(what, &reply, status, code);
        if let (Some(id), true) = (id, reply["error"]["code"] != -32600 && reply.status != 202) {
            assert_eq!(reply["id"], id, "{what}: the response has the id");
        }
        if code == -32600 {
            assert_eq!(reply["id"], Value::Null, "{what}");
        }
        if code == -32022 {
            let supported = reply["error"]["data"]["supported"].as_array().unwrap();
            assert!(supported.contains(&json!(MODERN)) && supported.contains(&json!(LEGACY[0])), "{what}");
            assert!(reply["error"]["data"]["requested"].is_string(), "{what}");
        }
        if status == 202 {
            assert!(reply.body.is_empty(), "{what}");
        }
    }
    assert_eq!(world.get("/assistants").ok().json, json!([]), "no notification had an effect");
}

#[test]
fn modern_requests_get_the_responses_in_the_table() {
    let world = World::new();
    let good_meta = || json!({VERSION_KEY: MODERN, CAPABILITIES_KEY: {}});
    let call = |name: &str| json!({"_meta": good_meta(), "name": name, "arguments": {}});
    let h = |method: &'static str| vec![("mcp-protocol-version", MODERN), ("mcp-method", method)];
    let named = |name: &'static str| [h("tools/call"), vec![("mcp-name", name)]].concat();
    let plain = || json!({"_meta": good_meta()});
    let ok = 0;
    #[rustfmt::skip] // one row per line
    let table: Vec<ModernRow> = vec![
        ("tools/list", "tools/list", h("tools/list"), plain(), 200, ok),
        ("server/discover", "server/discover", h("server/discover"), plain(), 200, ok),
        ("tools/call", "tools/call", named("list_assistants"), call("list_assistants"), 200, ok),
        ("a name in base64", "tools/call", named("=?base64?bGlzdF9hc3Npc3RhbnRz?="), call("list_assistants"), 200, ok),
        ("white space around a header", "tools/list", vec![("mcp-protocol-version", MODERN), ("mcp-method", "  tools/list ")], plain(), 200, ok),
        ("clientInfo is optional and accepted", "tools/list", h("tools/list"), json!({"_meta": {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}, "io.modelcontextprotocol/clientInfo": {"name": "t"}}}), 200, ok),
        ("capabilities missing", "tools/list", h("tools/list"), json!({"_meta": {VERSION_KEY: MODERN}}), 400, -32602),
        ("capabilities that are not an object", "tools/list", h("tools/list"), json!({"_meta": {VERSION_KEY: MODERN, CAPABILITIES_KEY: []}}), 400, -32602),
        ("a version that is not a string", "tools/list", h("tools/list"), json!({"_meta": {VERSION_KEY: 1, CAPABILITIES_KEY: {}}}), 400, -32602),
        ("no version header", "tools/list", vec![("mcp-method", "tools/list")], plain(), 400, -32020),
        ("another version header", "tools/list", vec![("mcp-protocol-version", "2025-11-25"), ("mcp-method", "tools/list")], plain(), 400, -32020),
        ("an unknown version", "tools/list", vec![("mcp-protocol-version", "2099-01-01"), ("mcp-method", "tools/list")], json!({"_meta": {VERSION_KEY: "2099-01-01", CAPABILITIES_KEY: {}}}), 400, -32022),
        ("a legacy version as a modern one", "tools/list", vec![("mcp-protocol-version", "2025-11-25"), ("mcp-method", "tools/list")], json!({"_meta": {VERSION_KEY: "2025-11-25", CAPABILITIES_KEY: {}}}), 400, -32022),
        ("no Mcp-Method", "tools/list", vec![("mcp-protocol-version", MODERN)], plain(), 400, -32020),
        ("another Mcp-Method", "tools/list", h("tools/call"), plain(), 400, -32020),
        ("Mcp-Method in other capitals", "tools/list", h("Tools/List"), plain(), 400, -32020),
        ("no Mcp-Name", "tools/call", h("tools/call"), call("list_assistants"), 400, -32020),
        ("another Mcp-Name", "tools/call", named("list_tools"), call("list_assistants"), 400, -32020),
        ("Mcp-Name in other capitals", "tools/call", named("LIST_ASSISTANTS"), call("list_assistants"), 400, -32020),
        ("Mcp-Name in broken base64", "tools/call", named("=?base64?%%?="), call("list_assistants"), 400, -32020),
        ("ping is not modern", "ping", h("ping"), plain(), 404, -32601),
        ("initialize is not modern", "initialize", h("initialize"), plain(), 404, -32601),
        ("resources/list", "resources/list", h("resources/list"), plain(), 200, ok),
        ("resources/templates/list", "resources/templates/list", h("resources/templates/list"), plain(), 200, ok),
        ("prompts/list", "prompts/list", h("prompts/list"), plain(), 200, ok),
        ("a resource without Mcp-Name", "resources/read", h("resources/read"), json!({"_meta": good_meta(), "uri": "sidetone://guides/tools"}), 400, -32020),
        ("a resource", "resources/read", [h("resources/read"), vec![("mcp-name", "sidetone://guides/tools")]].concat(), json!({"_meta": good_meta(), "uri": "sidetone://guides/tools"}), 200, ok),
        ("a resource that is not there", "resources/read", [h("resources/read"), vec![("mcp-name", "sidetone://guides/x")]].concat(), json!({"_meta": good_meta(), "uri": "sidetone://guides/x"}), 200, -32602),
        ("a prompt without Mcp-Name", "prompts/get", h("prompts/get"), json!({"_meta": good_meta(), "name": "write_scenarios", "arguments": {"assistant_id": "asst_1"}}), 400, -32020),
        ("a prompt", "prompts/get", [h("prompts/get"), vec![("mcp-name", "write_scenarios")]].concat(), json!({"_meta": good_meta(), "name": "write_scenarios", "arguments": {"assistant_id": "asst_1"}}), 200, ok),
        ("no subscriptions", "subscriptions/listen", h("subscriptions/listen"), plain(), 404, -32601),
        ("an unknown method", "nope", h("nope"), plain(), 404, -32601),
        ("an unknown tool", "tools/call", named("nope"), call("nope"), 200, -32602),
        ("no tool name", "tools/call", h("tools/call"), plain(), 200, -32602),
        ("arguments as a list", "tools/call", named("list_tools"), json!({"_meta": good_meta(), "name": "list_tools", "arguments": []}), 200, -32602),
        ("an unknown cursor", "tools/list", h("tools/list"), json!({"_meta": good_meta(), "cursor": "x"}), 200, -32602),
        ("a rejected call is a result", "tools/call", named("get_assistant"), call("get_assistant"), 200, ok),
    ];
    for (what, method, headers, params, status, code) in table {
        for id in [json!(7), json!("seven")] {
            let message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            let reply = world.call_with(Method::POST, "/mcp", Some(&message), &headers);
            answered(what, &reply, status, code);
            assert_eq!(reply["id"], id, "{what}: the response has the id");
            if code == ok {
                assert_eq!(reply["result"]["resultType"], "complete", "{what}");
                assert_eq!(
                    reply["result"]["_meta"]["io.modelcontextprotocol/serverInfo"]["name"], "sidetone",
                    "{what}"
                );
            }
            if ["tools/list", "server/discover"].contains(&method) && code == ok {
                assert!(reply["result"]["ttlMs"].is_u64(), "{what}");
                assert_eq!(reply["result"]["cacheScope"], "public", "{what}");
            }
            if method == "resources/list" && code == ok {
                assert_eq!(reply["result"]["cacheScope"], "private", "{what}");
                assert_eq!(reply["result"]["ttlMs"], 0, "{what}");
            }
            if code == -32022 {
                assert!(
                    reply["error"]["data"]["supported"].as_array().unwrap().contains(&json!(MODERN)),
                    "{what}"
                );
            }
        }
    }
    let notification = json!({"jsonrpc": "2.0", "method": "notifications/x", "params": plain()});
    answered("a notification", &world.mcp(notification), 202, ok);
    let discovered = world.call_with(
        Method::POST,
        "/mcp",
        Some(&json!({"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": plain()})),
        &h("server/discover"),
    );
    let discovered = result(&discovered);
    assert!(discovered["supportedVersions"].as_array().unwrap().contains(&json!(MODERN)));
    assert_eq!(discovered["capabilities"], json!({"tools": {}, "prompts": {}, "resources": {}}));
}

#[test]
fn both_eras_have_the_same_tools() {
    let world = World::new();
    let legacy = result(&world.mcp(request("tools/list", json!({}))));
    let meta = json!({"_meta": {VERSION_KEY: MODERN, CAPABILITIES_KEY: {}}});
    let headers = [("mcp-protocol-version", MODERN), ("mcp-method", "tools/list")];
    let modern = result(&world.call_with(Method::POST, "/mcp", Some(&request("tools/list", meta)), &headers));
    assert_eq!(legacy["tools"], modern["tools"]);
    assert_eq!(
        legacy.as_object().unwrap().keys().collect::<Vec<_>>(),
        ["tools"],
        "one page without a cursor"
    );
    assert_eq!(
        result(&world.other().mcp(request("tools/list", json!({})))),
        legacy,
        "the list is the same for every key"
    );
}

#[test]
fn batch_responses_are_in_order_and_one_error_does_not_affect_others() {
    let world = World::new();
    let create = |id: i64, data: Value| json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "create_assistant", "arguments": {"data": data}}});
    let batch = json!([
        create(1, json!({"name": "A", "instructions": "B"})),
        {"jsonrpc": "2.0", "method": "notifications/x"},
        {"jsonrpc": "2.0", "id": null, "method": "ping"},
        create(2, json!({"name": "A"})),
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": {"name": "list_assistants"}},
        7,
    ]);
    let reply =
        world.call_with(Method::POST, "/mcp", Some(&batch), &[("mcp-protocol-version", "2025-03-26")]).ok();
    let replies = reply.json.as_array().unwrap();
    let ids: Vec<&Value> = replies.iter().map(|one| &one["id"]).collect();
    assert_eq!(ids, [&json!(1), &Value::Null, &json!(2), &json!(3), &Value::Null]);
    assert_eq!(replies[0]["result"]["isError"], false);
    assert_eq!(replies[1]["error"]["code"], -32600);
    assert_eq!(replies[2]["result"]["structuredContent"]["error"]["code"], "validation_failed");
    assert_eq!(replies[3]["result"]["structuredContent"]["items"].as_array().unwrap().len(), 1);
    assert_eq!(replies[4]["error"]["code"], -32600);
}

#[test]
fn each_call_in_a_batch_has_its_own_idempotency_key() {
    let world = World::new();
    let create = |id: i64, key: Value| {
        let mut arguments = json!({"data": {"name": "A", "instructions": "B"}});
        if key.is_string() {
            arguments["idempotency_key"] = key;
        }
        json!({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "create_assistant", "arguments": arguments}})
    };
    let reply = world.mcp(json!([create(1, json!("k")), create(2, json!("k")), create(3, Value::Null)])).ok();
    let ids: Vec<&Value> =
        reply.json.as_array().unwrap().iter().map(|one| &one["result"]["structuredContent"]["id"]).collect();
    assert_eq!(ids[0], ids[1]);
    assert_ne!(ids[0], ids[2]);
    assert_eq!(world.get("/assistants").ok().ids().len(), 2);
}

#[test]
fn a_rejected_batch_has_no_effect() {
    let world = World::new();
    let create = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
        "params": {"name": "create_assistant", "arguments": {"data": {"name": "A", "instructions": "B"}}}});
    let modern = json!({"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {"_meta": {VERSION_KEY: MODERN}}});
    answered("modern in a batch", &world.mcp(json!([create, modern])), 400, -32600);
    let text = json!([create]).to_string();
    for broken in [
        text.replace("\"B\"", "\"B\\u0000\""),
        text.replace("\"name\":\"A\"", "\"name\":\"A\",\"name\":\"C\""),
    ] {
        answered(
            "a duplicate key or U+0000",
            &post(&world, "application/json", broken.as_bytes()),
            400,
            -32600,
        );
    }
    assert_eq!(world.get("/assistants").ok().json, json!([]));
}

#[test]
fn invalid_json_is_a_parse_error() {
    let world = World::new();
    for bad in [
        "",
        " ",
        "{",
        "{}{}",
        "{\"jsonrpc\":\"2.0\",\"id\":1,\"method\":\"ping\"",
        "\u{feff}{}",
        "{'a':1}",
        "\"\\ud800\"",
        &"[".repeat(10_000),
    ] {
        let reply = post(&world, "application/json", bad.as_bytes());
        answered(bad.get(..20).unwrap_or(bad), &reply, 400, -32700);
        assert_eq!(reply["id"], Value::Null);
    }
    answered(
        "bad UTF-8",
        &post(&world, "application/json", b"{\"jsonrpc\":\"2.0\",\"id\":\"\xff\",\"method\":\"ping\"}"),
        400,
        -32700,
    );
    let ping = request("ping", json!({})).to_string();
    for other in ["text/plain", "application/json-rpc", "", "application/json; charset=latin1"] {
        post(&world, other, ping.as_bytes()).refused("unsupported_media_type");
    }
    answered("a charset", &post(&world, "application/json; charset=utf-8", ping.as_bytes()), 200, 0);
}

#[test]
fn the_error_names_a_duplicate_key_or_nul_in_a_call() {
    let world = World::new();
    for (data, field) in [
        (r#"{"name":"A","name":"B","instructions":"C"}"#, "name"),
        (r#"{"name":"A\u0000","instructions":"C"}"#, "name"),
        (r#"{"name":"A","instructions":"C","x\u0000":1}"#, "[\"x\\u0000\"]"),
    ] {
        let text = format!(
            r#"{{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{{"name":"create_assistant","arguments":{{"data":{data}}}}}}}"#
        );
        let reply = post(&world, "application/json", text.as_bytes()).ok();
        let error = &reply["result"]["structuredContent"]["error"];
        assert_eq!(
            (&error["code"], &error["details"]["fields"][0]["field"]),
            (&json!("validation_failed"), &json!(field)),
            "{data}"
        );
    }
    assert_eq!(world.get("/assistants").ok().json, json!([]));
}

#[test]
fn only_post_and_cors_preflights_are_accepted() {
    let world = World::new();
    for method in [Method::GET, Method::DELETE, Method::PUT, Method::PATCH] {
        let reply = world.call(method, "/mcp", None).refused("method_not_allowed");
        assert_eq!(reply.header("allow"), Some("POST"));
    }
    let preflight = http::Request::builder()
        .method(Method::OPTIONS)
        .uri("/mcp")
        .header("origin", "http://localhost:6274")
        .header("access-control-request-method", "POST")
        .header("access-control-request-headers", "authorization,content-type,mcp-protocol-version");
    let reply = world.send(preflight.body("".into()).unwrap()).empty();
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://localhost:6274"));
    let allowed = reply.header("access-control-allow-headers").unwrap().to_lowercase();
    for header in
        ["authorization", "content-type", "accept", "mcp-protocol-version", "mcp-method", "mcp-name"]
    {
        assert!(allowed.split(", ").any(|name| name == header), "{header} in {allowed}");
    }
}

#[test]
fn only_the_services_own_origin_and_local_origins_are_accepted() {
    let world = World::new();
    let ping = request("ping", json!({}));
    let from = |origin: &str| world.call_with(Method::POST, "/mcp", Some(&ping), &[("origin", origin)]);
    for good in [
        "http://localhost",
        "http://localhost:6274",
        "https://127.0.0.1:8080",
        "http://[::1]:3000",
        "http://sandbox.example",
    ] {
        let reply = from(good);
        answered(good, &reply, 200, 0);
        assert_eq!(reply.header("access-control-allow-origin"), Some(good));
        assert!(reply.header("vary").unwrap().contains("Origin"));
    }
    for bad in [
        "http://evil.example.com",
        "null",
        "https://sandbox.example",
        "http://sandbox.example:81",
        "http://localhost.evil.example",
        "http://sandbox.example.evil.example",
        "file://",
        "",
        "http://127.0.0.1.evil.example",
        "http://10.0.0.1",
    ] {
        if bad.is_empty() && !world.is_literal() {
            continue;
        }
        from(bad).refused("forbidden_origin");
    }
    // Errors have the header too; otherwise a page could not read them.
    let stranger = world.with_key("sidetone_wrong");
    let reply = stranger
        .call_with(Method::POST, "/mcp", Some(&ping), &[("origin", "http://localhost:1")])
        .refused("unauthorized");
    assert_eq!(reply.header("access-control-allow-origin"), Some("http://localhost:1"));
}

#[test]
fn an_invalid_key_gets_the_rest_error() {
    let world = World::new();
    for message in [
        request("initialize", json!({})),
        request("tools/list", json!({})),
        json!("junk"),
        json!([]),
        json!({"jsonrpc": "2.0", "method": "x"}),
    ] {
        let reply =
            world.with_key("sidetone_wrong").from_elsewhere().mcp(message.clone()).refused("unauthorized");
        assert!(reply.header("www-authenticate").unwrap().starts_with("Bearer"), "{message}");
        assert!(
            !reply.header("www-authenticate").unwrap().contains("resource_metadata"),
            "there is no OAuth"
        );
    }
}

#[test]
fn lists_are_wrapped_and_deletes_return_an_empty_object() {
    let world = World::new();
    let made = world.assistant();
    let list = world.tool("list_assistants", json!({})).ok();
    assert_eq!(list.json, json!([made.json]));
    let deleted = world.tool("delete_assistant", json!({"id": made.id, "if_revision": 1})).ok();
    assert_eq!(deleted.json, json!({}));
    world.get(format!("/assistants/{}", made.id)).refused("not_found");
}

#[test]
fn if_revision_works_like_if_match() {
    let world = World::new();
    let id = world.assistant().id;
    for revision in [json!(1), json!("2"), json!(3.0)] {
        let name = format!("Name {revision}");
        world
            .tool("update_assistant", json!({"id": id, "if_revision": revision, "data": {"name": name}}))
            .ok();
    }
    let stale = json!({"id": id, "if_revision": 1, "data": {"name": "Stale"}});
    world.tool("update_assistant", stale).refused("revision_conflict");
    world.tool("delete_assistant", json!({"id": id, "if_revision": 1})).refused("revision_conflict");
    world
        .tool("update_assistant", json!({"id": id, "if_revision": 4}))
        .refused("validation_failed")
        .naming(&["data"]);
}

pub(super) fn request(method: &str, params: Value) -> Value {
    json!({"jsonrpc": "2.0", "id": 1, "method": method, "params": params})
}

#[track_caller]
pub(super) fn result(reply: &Reply) -> Value {
    assert!(reply["result"].is_object(), "{reply:?}");
    reply["result"].clone()
}

/// `code` 0 means success.
#[track_caller]
fn answered(what: &str, reply: &Reply, status: u16, code: i64) {
    assert_eq!(reply.status, status, "{what}: {reply:?}");
    assert_eq!(reply["error"]["code"].as_i64().unwrap_or(0), code, "{what}: {reply:?}");
    if status == 200 && reply.json.is_object() {
        assert_eq!(reply["jsonrpc"], "2.0", "{what}");
        assert_eq!(reply["result"].is_object(), code == 0, "{what}: {reply:?}");
    }
}

fn post(world: &World, content_type: &str, body: &[u8]) -> Reply {
    let request = world.request(Method::POST, "/mcp").header("content-type", content_type);
    world.send(request.body(body.to_vec().into()).unwrap())
}
