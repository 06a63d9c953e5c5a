//! Property tests: for any input the response is one that the contract allows, never an internal error, and every error has
//! the envelope. `World` checks that for each response.
use http::Method;
use proptest::collection::{btree_map, vec};
use proptest::prelude::*;
use proptest::sample::select;
use serde_json::{Map, Value, json};
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Operation;
use sidetone_tests::call::{properties, schemas};
use sidetone_tests::{Call, Reply, World};

thread_local! {
    /// One service for all cases of a property, so that cases also meet the state of earlier ones.
    static WORLD: World = World::new();
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::with_cases(200) })]

    #[test]
    fn any_body_to_any_operation(Row(operation) in operation(), body in json_value()) {
        WORLD.with(|world| {
            let path = operation.path.replace("{id}", "x").replace("{delivery_id}", "x").replace("{number}", "+14155550123");
            client_error_or_success(&world.call(operation.method.clone(), &path, Some(&body)))
        })?;
    }

    #[test]
    fn any_value_in_any_field(Row(operation) in with_body(), field in any::<prop::sample::Index>(), value in json_value()) {
        WORLD.with(|world| {
            // An earlier case may have forbidden all spending, and a valid call may place a telephone call.
            let no_limit = json!({"monthly_spend_limit_microusd": null});
            world.call(Method::PATCH, "/workspace", Some(&no_limit)).ok();
            let call = Call::valid(world, operation);
            let names: Vec<&String> = call.body.as_ref().unwrap().keys().collect();
            prop_assume!(!names.is_empty());
            let call = call.with_field(names[field.index(names.len())], value);
            let rest = call.rest(world);
            client_error_or_success(&rest)?;
            let tool = call.tool(world);
            // MCP accepts everything that REST accepts, and converts some texts that REST rejects.
            prop_assert!(rest.status >= 400 || !tool.is_error || tool.code() == "name_taken", "{rest:?} {tool:?}");
            Ok(())
        })?;
    }

    #[test]
    fn any_bytes_to_any_operation(Row(operation) in operation(), bytes in vec(any::<u8>(), 0..300)) {
        WORLD.with(|world| {
            let path = operation.path.replace("{id}", "x").replace("{delivery_id}", "x").replace("{number}", "+14155550123");
            let request = world.request(operation.method.clone(), &path).header("content-type", "application/json");
            client_error_or_success(&world.send(request.body(bytes.into()).unwrap()))
        })?;
    }

    #[test]
    fn any_path_and_query(method in method(), path in r"(/(assistants|simulations|runs|numbers|tools|mcp|keys|\PC|[%+.~a-f0-9]{0,6})){0,4}/?", query in r"(&?[a-z_]{0,8}=?[%0-9a-z+&=;]{0,8}){0,4}") {
        WORLD.with(|world| {
            let uri = format!("{path}?{query}");
            prop_assume!(uri.starts_with('/') && uri.parse::<http::Uri>().is_ok());
            // Excluded: these could revoke the key in use.
            prop_assume!(method != Method::DELETE || !uri.starts_with("/keys"));
            client_error_or_success(&world.call(method, &uri, None))
        })?;
    }

    #[test]
    fn any_query_to_any_operation(Row(operation) in operation(), values in btree_map("[a-z_]{1,8}|limit|page|status|assistant_id", "\\PC{0,12}|-?[0-9]{0,20}", 0..4)) {
        WORLD.with(|world| {
            let mut call = Call { operation, path: Vec::new(), query: Map::new(), body: None };
            call.path = operation.path_names().map(|name| (name.to_owned(), "x".to_owned())).collect();
            call.query = values.into_iter().map(|(name, value)| (name, value.into())).collect();
            let known = properties(schemas(operation).query.as_ref()).count();
            let rest = world.call(operation.method.clone(), &call.uri(), None);
            client_error_or_success(&rest)?;
            prop_assert!(known > 0 || call.query.is_empty() || rest.status >= 400, "an unknown parameter was accepted: {rest:?}");
            Ok(())
        })?;
    }

    #[test]
    fn any_mcp_message(message in mcp_message(), version in option_of_version()) {
        WORLD.with(|world| {
            let headers: Vec<(&str, &str)> = version.iter().map(|version| ("mcp-protocol-version", version.as_str())).collect();
            let reply = world.call_with(Method::POST, "/mcp", Some(&message), &headers);
            prop_assert!([200, 202, 400, 404].contains(&reply.status), "{reply:?}");
            prop_assert!(reply.status == 202 || reply.json.is_array() || reply["jsonrpc"] == "2.0", "{reply:?}");
            Ok(())
        })?;
    }

    #[test]
    fn any_arguments_to_any_tool(Row(operation) in operation(), arguments in json_value()) {
        WORLD.with(|world| {
            prop_assume!(operation.id != "revoke_api_key");
            let params = json!({"name": operation.id, "arguments": arguments});
            let reply = world.mcp(json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params}));
            prop_assert_eq!(reply.status, 200);
            let known = reply["result"].is_object() || reply["error"]["code"] == -32602;
            prop_assert!(known, "{:?}", reply);
            Ok(())
        })?;
    }

    #[test]
    fn texts_are_stored_unchanged(name in "[^\\pC\\p{Zl}\\p{Zp}]{1,120}", instructions in "[^\\x00]{1,200}") {
        WORLD.with(|world| {
            let made = world.create("/assistants", json!({"name": name, "instructions": instructions}));
            let read = world.get(format!("/assistants/{}", made.id)).ok();
            prop_assert_eq!(&read["name"], &json!(name));
            prop_assert_eq!(&read["instructions"], &json!(instructions));
            world.delete(format!("/assistants/{}", made.id)).empty();
            Ok(())
        })?;
    }
}

fn client_error_or_success(reply: &Reply) -> Result<(), TestCaseError> {
    prop_assert!(reply.status < 500, "{reply:?}");
    Ok(())
}

/// A row of the operation table that proptest can print.
#[derive(Clone, Copy)]
struct Row(&'static Operation);

impl std::fmt::Debug for Row {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.0.id)
    }
}

fn operation() -> impl Strategy<Value = Row> {
    select(OPERATIONS.iter().map(Row).collect::<Vec<_>>())
}

fn with_body() -> impl Strategy<Value = Row> {
    select(OPERATIONS.iter().filter(|operation| operation.body.is_some()).map(Row).collect::<Vec<_>>())
}

fn method() -> impl Strategy<Value = Method> {
    select(vec![
        Method::GET,
        Method::POST,
        Method::PUT,
        Method::PATCH,
        Method::DELETE,
        Method::OPTIONS,
        Method::TRACE,
    ])
}

/// JSON with meaningful and random names.
fn json_value() -> BoxedStrategy<Value> {
    let leaf = prop_oneof![
        Just(Value::Null),
        any::<bool>().prop_map(Value::from),
        any::<i64>().prop_map(Value::from),
        any::<f64>().prop_map(Value::from),
        "\\PC{0,20}".prop_map(Value::from),
        select(vec![
            "",
            "chat",
            "object",
            "true",
            "1",
            "{}",
            "[]",
            "https://example.com/",
            "builtin/rules",
            "\0",
            "twilio",
            "transcript"
        ])
        .prop_map(Value::from),
    ];
    leaf.prop_recursive(4, 32, 6, |inner| {
        prop_oneof![vec(inner.clone(), 0..6).prop_map(Value::from), object(inner)]
    })
    .boxed()
}

fn object(value: impl Strategy<Value = Value> + 'static) -> impl Strategy<Value = Value> {
    let names = select(vec![
        "name",
        "instructions",
        "url",
        "events",
        "enabled",
        "parameters",
        "type",
        "properties",
        "required",
        "items",
        "pattern",
        "evaluations",
        "kind",
        "role",
        "includes",
        "tool_ids",
        "assistant_id",
        "mode",
        "seed",
        "provider",
        "region",
        "data",
        "id",
        "confirm",
        "if_revision",
        "idempotency_key",
        "content",
        "model",
        "$ref",
        "enum",
        "minimum",
        "additionalProperties",
    ]);
    let name = prop_oneof![4 => names.prop_map(str::to_owned), 1 => "\\PC{0,8}"];
    btree_map(name, value, 0..6).prop_map(|map| map.into_iter().collect::<Map<_, _>>().into())
}

fn mcp_message() -> impl Strategy<Value = Value> {
    let methods = vec![
        "initialize",
        "ping",
        "tools/list",
        "tools/call",
        "server/discover",
        "resources/list",
        "notifications/initialized",
        "",
    ];
    let request =
        (json_value(), select(methods), json_value(), any::<u8>()).prop_map(|(id, method, params, shape)| {
            let mut message = json!({"jsonrpc": "2.0", "id": id, "method": method, "params": params});
            // Half are well-formed except for the params; the rest have an error.
            match shape {
                0..128 => message["id"] = 1.into(),
                128..144 => message["jsonrpc"] = "1.0".into(),
                144..176 => drop(message.as_object_mut().unwrap().remove("method")),
                176..208 => drop(message.as_object_mut().unwrap().remove("id")),
                _ => {}
            }
            message
        });
    let request = request.boxed();
    prop_oneof![4 => request.clone(), 1 => json_value(), 1 => vec(request, 0..4).prop_map(Value::from)]
}

fn option_of_version() -> impl Strategy<Value = Option<String>> {
    prop_oneof![
        3 => Just(None),
        1 => select(vec!["2025-03-26", "2025-06-18", "2025-11-25", "2026-07-28", "2099-01-01"]).prop_map(|version| Some(version.to_owned())),
        1 => "[!-~]{0,12}".prop_map(Some),
    ]
}
