//! Properties of every row of the operation table. New operations are covered automatically.
use std::collections::{BTreeMap, BTreeSet};

use http::Method;
use serde_json::{Map, Value, json};
use sidetone_engine::base::api_key::ApiKey;
use sidetone_engine::base::limits::PAGE_ROWS_DEFAULT;
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::{Operation, Success};
use sidetone_tests::call::{UNKNOWN_ID, body_schema, properties, schemas};
use sidetone_tests::{Call, Reply, ToolReply, World};

#[test]
fn a_valid_call_has_the_same_result_over_rest_and_mcp() {
    for operation in operations() {
        let world = World::new();
        let (one, two) = (world.other(), world.other());
        let rest = Call::valid(&one, operation).rest(&one);
        assert_eq!(rest.status, operation.success.status(), "{}: {rest:?}", operation.id);
        if !operation.is_tool() {
            continue;
        }
        let tool = as_by_rest(Call::valid(&two, operation)).tool(&two).ok();
        let expected = match operation.success {
            Success::Empty => json!({}),
            _ => rest.json,
        };
        assert_eq!(levelled(&tool.json), levelled(&expected), "{}", operation.id);
    }
}

/// The same call with the defaults of REST, where those of MCP give less.
fn as_by_rest(call: Call) -> Call {
    let has = |name: &str| properties(schemas(call.operation).query.as_ref()).any(|(known, _)| known == name);
    let (pages, views) = (has("page"), has("view"));
    let call = if pages { call.with_query("limit", json!(PAGE_ROWS_DEFAULT)) } else { call };
    if views { call.with_query("view", json!("full")) } else { call }
}

#[test]
fn every_operation_accepts_an_idempotency_key_over_rest_and_mcp() {
    for operation in operations().filter(|operation| operation.takes_idempotency_key()) {
        let world = World::new();
        let call = Call::valid(&world, operation);
        let body = call.body.clone().map(Value::Object);
        let first = world.call_with(Method::POST, &call.uri(), body.as_ref(), &[("idempotency-key", "once")]);
        assert_eq!(first.status, operation.success.status(), "{}: {first:?}", operation.id);
        let mut arguments = call.arguments();
        arguments.insert("idempotency_key".to_owned(), "once".into());
        let second = world.tool(operation.id, arguments.into()).ok();
        assert!(second.replayed, "{}", operation.id);
        let mut expected = first.json;
        if operation.id == "create_api_key" {
            expected["key"] = Value::Null;
        }
        assert_eq!(second.json, expected, "{}", operation.id);
    }
}

#[test]
fn every_operation_requires_a_key() {
    let world = World::new();
    for operation in operations() {
        let call = Call::valid(&world, operation);
        let uri = call.uri();
        for (uri, body) in [(uri.clone(), call.body.clone()), (format!("{uri}?bogus=1"), Some(Map::new()))] {
            let request = http::Request::builder()
                .method(operation.method.clone())
                .uri(uri)
                .header("content-type", "application/json")
                .body(Value::from(body.unwrap_or_default()).to_string().into())
                .unwrap();
            challenged(world.send(request), operation);
        }
    }
}

#[test]
fn an_invalid_key_is_a_401_before_anything_else_is_checked() {
    let unknown = ApiKey::from_bytes([9; 32]);
    let mut truncated = unknown.as_str().to_owned();
    truncated.pop();
    for operation in operations() {
        let world = World::new();
        let call = Call::valid(&world, operation);
        let bad = call.with_query("bogus", json!("1"));
        for key in [unknown.as_str(), &truncated, "sk-wrong"] {
            let stranger = world.with_key(key).from_elsewhere();
            challenged(call.rest(&stranger), operation);
            challenged(bad.rest(&stranger), operation);
            if operation.is_tool() {
                let tool = json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call",
                    "params": {"name": operation.id, "arguments": call.arguments()}});
                challenged(stranger.mcp(tool), operation);
            }
        }
        // The rejected calls had no effect: the call still succeeds with a valid key.
        assert_eq!(call.rest(&world).status, operation.success.status(), "{}", operation.id);
    }
}

#[test]
fn an_id_of_another_workspace_gets_the_same_error_as_an_unknown_id() {
    for operation in operations().filter(|operation| operation.path.contains("{id}")) {
        let world = World::new();
        let stranger = world.other();
        let call = Call::valid(&world, operation);
        let theirs = call.rest(&stranger).refused("not_found");
        let mut unknown = call.clone();
        for (_, id) in &mut unknown.path {
            let kind = id.split('_').next().unwrap_or_default().to_owned();
            // A revision is no id.
            if id.contains('_') {
                *id = UNKNOWN_ID.replacen("asst", &kind, 1);
            }
        }
        let unknown = unknown.rest(&stranger).refused("not_found");
        assert_eq!(theirs["error"]["message"], unknown["error"]["message"], "{}", operation.id);
        if operation.is_tool() {
            let tool = call.tool(&stranger).refused("not_found");
            same_error(&theirs, &tool, operation);
        }
        // The resource is unchanged.
        assert_eq!(call.rest(&world).status, operation.success.status(), "{}", operation.id);
    }
}

#[test]
fn a_malformed_id_is_a_404() {
    let world = World::new();
    for operation in operations().filter(|operation| operation.path.contains("{id}")) {
        let call = Call::valid(&world, operation);
        for id in ["x", "asst_", "-1", "null", "a/b", "..", "é", "\0", " ", "'", "%", "*", &"x".repeat(5_000)]
        {
            let call = call.with_path(id);
            if id == ".." && !world.is_literal() {
                continue;
            }
            let rest = call.rest(&world).refused("not_found");
            // U+0000 is rejected anywhere in JSON.
            if id != "\0" && operation.is_tool() {
                same_error(&rest, &call.tool(&world).refused("not_found"), operation);
            }
        }
    }
}

#[test]
fn a_405_names_the_allowed_methods() {
    let mut routes: BTreeMap<&str, BTreeSet<&str>> = BTreeMap::new();
    for operation in operations() {
        routes.entry(operation.path).or_default().insert(operation.method.as_str());
    }
    let world = World::new();
    for (path, methods) in &routes {
        let path = path.replace("{number}", "%2B14155550123").replace("{id}", UNKNOWN_ID);
        let path = path.replace("{delivery_id}", UNKNOWN_ID);
        for method in ["GET", "POST", "PUT", "PATCH", "DELETE", "OPTIONS", "TRACE", "PROPFIND", "get"] {
            if methods.contains(method) || (method == "get" && !world.is_literal()) {
                continue;
            }
            let reply = world.call(Method::from_bytes(method.as_bytes()).unwrap(), &path, None);
            let reply = reply.refused("method_not_allowed");
            let allow: BTreeSet<&str> = reply.header("allow").unwrap().split(", ").collect();
            assert_eq!(allow, *methods, "{method} {path}");
        }
    }
}

#[test]
fn head_is_get_without_the_body() {
    for operation in operations().filter(|operation| operation.method == Method::GET) {
        let world = World::new();
        let call = Call::valid(&world, operation);
        let head = world.call(Method::HEAD, &call.uri(), None);
        assert_eq!(head.status, 200, "{}", operation.id);
        assert_eq!(head.header("etag"), call.rest(&world).header("etag"));
    }
}

#[test]
fn an_etag_is_sent_exactly_where_it_is_documented() {
    for operation in operations() {
        let world = World::new();
        let document = world.get("/openapi.json").ok().json;
        let method = operation.method.as_str().to_ascii_lowercase();
        let reply = Call::valid(&world, operation).rest(&world);
        let documented = &document["paths"][operation.path][&method]["responses"][reply.status.to_string()];
        assert!(documented["description"].is_string(), "{}", operation.id);
        let told = documented["headers"].get("ETag").is_some();
        assert_eq!(reply.header("etag").is_some(), told, "{}", operation.id);
    }
}

#[test]
fn mcp_calls_that_incur_usage_require_confirm_true() {
    for operation in operations().filter(|operation| operation.spends()) {
        let world = World::new();
        let call = Call::valid(&world, operation);
        let before = everything(&world);
        let mut arguments = call.arguments();
        arguments.remove("confirm");
        world.tool(operation.id, arguments.clone().into()).refused("confirmation_required");
        for no in [json!(false), json!("true"), json!(1), Value::Null, json!("yes"), json!([true]), json!({})]
        {
            arguments.insert("confirm".to_owned(), no);
            world.tool(operation.id, arguments.clone().into()).refused("confirmation_required");
        }
        assert_eq!(everything(&world), before, "{}: a rejected call had an effect", operation.id);
        call.tool(&world).ok();
        assert_ne!(
            everything(&world),
            before,
            "{}: no effect is visible, so this test proves nothing",
            operation.id
        );
        // REST has no such field.
        call.with_field("confirm", json!(true))
            .rest(&world)
            .refused("validation_failed")
            .naming(&["confirm"]);
    }
}

#[test]
fn mcp_rejects_reserved_arguments_that_do_not_apply() {
    for operation in operations().filter(|operation| operation.is_tool()) {
        let world = World::new();
        let call = Call::valid(&world, operation);
        for (name, value, taken) in [
            ("if_revision", json!(1), operation.revision),
            ("idempotency_key", json!("k"), operation.takes_idempotency_key()),
            ("data", json!({}), operation.body.is_some()),
            ("confirm", json!(true), operation.spends()),
        ] {
            if !taken {
                let mut arguments = call.arguments();
                arguments.insert(name.to_owned(), value);
                let reply = world.tool(operation.id, arguments.into()).refused("validation_failed");
                assert_eq!(reply.fields(), [name], "{}", operation.id);
            }
        }
        for name in operation.path_names() {
            let mut arguments = call.arguments();
            arguments.remove(name);
            world.tool(operation.id, arguments.clone().into()).refused("validation_failed").naming(&[name]);
            // A revision is a number.
            let other_type = if name == "revision" { json!(true) } else { json!(1) };
            for wrong in [other_type, Value::Null, json!(["x"])] {
                arguments.insert(name.to_owned(), wrong);
                world
                    .tool(operation.id, arguments.clone().into())
                    .refused("validation_failed")
                    .naming(&[name]);
            }
        }
        if operation.revision {
            for wrong in [json!("x"), json!(1.5), json!(-1), json!(true), json!([1])] {
                let mut arguments = call.arguments();
                arguments.insert("if_revision".to_owned(), wrong);
                world
                    .tool(operation.id, arguments.into())
                    .refused("validation_failed")
                    .naming(&["if_revision"]);
            }
        }
        unchanged(&world, &call, operation);
    }
}

const UPDATING_POSTS: [&str; 4] =
    ["create_browser_test_token", "hang_up_call", "restore_assistant_revision", "test_tool"];

#[test]
fn every_operation_is_completely_described() {
    let mut ids = BTreeSet::new();
    let mut routes = BTreeSet::new();
    for operation in operations() {
        let name = operation.id;
        assert!(ids.insert(name), "{name} is a duplicate");
        assert!(
            routes.insert((operation.method.as_str(), operation.path)),
            "{name}: the route is a duplicate"
        );
        assert!(!operation.title.is_empty() && operation.title.len() <= 60, "{name}: title");
        assert!(
            operation.description.len() >= 15 && operation.description.ends_with('.'),
            "{name}: description"
        );
        let reserved = ["data", "if_revision", "confirm", "idempotency_key"];
        let query = properties(schemas(operation).query.as_ref()).map(|(name, _)| name.as_str());
        for argument in operation.path_names().chain(query) {
            assert!(!reserved.contains(&argument), "{name}: `{argument}` is a reserved argument");
        }
        for (field, schema) in
            properties(body_schema(operation)).chain(properties(schemas(operation).query.as_ref()))
        {
            assert!(schema["description"].is_string(), "{name}: `{field}` has no description");
        }
        let status = match operation.method.as_str() {
            // By a filter, so that it says how many.
            "DELETE" if operation.query.is_some() => 200,
            "DELETE" => 204,
            // Test tokens are signed, not stored; hanging up and restoring create nothing.
            "POST" if !UPDATING_POSTS.contains(&name) => 201,
            _ => 200,
        };
        assert_eq!(
            operation.success.status(),
            status,
            "{name}: 200 for reads, PATCH, PUT and updating posts, 201 for creates and starts, 204 for deletes"
        );
        let no_json = status == 204 || !operation.is_tool();
        assert_eq!(operation.response.is_none(), no_json, "{name}");
        let body = matches!(operation.method.as_str(), "POST" | "PUT" | "PATCH");
        assert_eq!(operation.body.is_some(), body, "{name}");
    }
}

pub(super) fn operations() -> impl Iterator<Item = &'static Operation> {
    OPERATIONS.iter()
}

pub(super) fn with_body() -> impl Iterator<Item = &'static Operation> {
    operations().filter(|operation| operation.body.is_some())
}

pub(super) fn required(operation: &Operation) -> Vec<&'static str> {
    let required = body_schema(operation).and_then(|schema| schema["required"].as_array());
    required.into_iter().flatten().filter_map(Value::as_str).collect()
}

#[track_caller]
fn challenged(reply: Reply, operation: &Operation) {
    let reply = reply.refused("unauthorized");
    let challenge = reply.header("www-authenticate").unwrap_or_default();
    assert!(challenge == "Bearer" || challenge.starts_with("Bearer "), "{}: {challenge}", operation.id);
}

/// REST and MCP return the same error, except for the request id.
#[track_caller]
pub(super) fn same_error(rest: &Reply, tool: &ToolReply, operation: &Operation) {
    let told = |json: &Value| {
        let error = &json["error"];
        (error["code"].clone(), error["message"].clone(), error["details"].clone())
    };
    assert!(tool.is_error, "{}: {tool:?} against {rest:?}", operation.id);
    assert_eq!(told(&tool.json), told(&rest.json), "{}", operation.id);
}

/// The call still succeeds, so the rejected ones had no effect.
#[track_caller]
pub(super) fn unchanged(world: &World, call: &Call, operation: &Operation) {
    let reply = call.rest(world);
    assert_eq!(reply.status, operation.success.status(), "{}: {reply:?}", operation.id);
}

/// All lists of the workspace.
fn everything(world: &World) -> Vec<Value> {
    let lists = OPERATIONS
        .iter()
        .filter(|operation| operation.method == Method::GET && !operation.path.contains('{'));
    lists.map(|operation| world.get(operation.path).ok().json).collect()
}

/// The same response with placeholders for what differs between calls: ids, times, secrets, seeds, and the progress of a
/// delivery.
pub(super) fn levelled(value: &Value) -> Value {
    match value {
        Value::Object(map) => map
            .iter()
            .map(|(name, value)| {
                let level = match (name.as_str(), value) {
                    ("signing_secret" | "key" | "hint" | "number" | "seed", value) if !value.is_null() => {
                        "…".into()
                    }
                    // All three contain the token.
                    ("token", Value::String(_)) => "…".into(),
                    ("url" | "websocket_url", Value::String(url)) if url.contains("?token=") => "…".into(),
                    ("attempts" | "last_status" | "last_error" | "last_response", _) => "…".into(),
                    // The test of a tool: every request has its own id and signature.
                    ("request", request) if request["headers"]["webhook-id"].is_string() => "…".into(),
                    ("duration_ms", _) if map.contains_key("request") => "…".into(),
                    (name, Value::String(_)) if name.ends_with("_at") || name.ends_with("_until") => {
                        "time".into()
                    }
                    // Every call has its own number and carrier id.
                    ("carrier_call_id" | "from", Value::String(_)) => "own".into(),
                    (name, Value::String(id)) if name == "id" || name.ends_with("_id") => {
                        id.split('_').next().unwrap_or_default().into()
                    }
                    (_, value) => levelled(value),
                };
                (name.clone(), level)
            })
            .collect(),
        Value::Array(items) => items
            .iter()
            .map(|item| match item.as_str().and_then(|id| id.split_once('_')) {
                Some((prefix, ulid)) if ulid.len() == 26 => prefix.into(),
                _ => levelled(item),
            })
            .collect(),
        other => other.clone(),
    }
}
