//! Properties of every field of every operation: its type, its limits, whether it is required. New fields are covered
//! automatically.
use serde_json::{Map, Value, json};
use sidetone_engine::operations::operation::Presence;
use sidetone_tests::call::{UNKNOWN_ID, body_schema, properties, schemas, types};
use sidetone_tests::{Call, World};

use super::every_operation::{levelled, operations, required, same_error, unchanged, with_body};

#[test]
fn the_error_names_an_unknown_body_field() {
    for operation in with_body() {
        let world = World::new();
        let call = Call::valid(&world, operation);
        for name in ["bogus", "Name", "", "confirm", "workspace_id", "a.b", "__proto__"] {
            let call = call.with_field(name, json!(1));
            let rest = call.rest(&world).refused("validation_failed").naming(&[name]);
            same_error(&rest, &call.tool(&world), operation);
        }
        unchanged(&world, &call, operation);
    }
}

#[test]
fn the_error_names_an_unknown_query_parameter() {
    for operation in operations() {
        let world = World::new();
        let call = Call::valid(&world, operation);
        for (name, value) in [
            ("bogus", json!("1")),
            ("Limit", json!("x")),
            ("id", json!("x")),
            ("", json!("x")),
            ("confirm", json!("true")),
        ] {
            let rest = call
                .with_query(name, value.clone())
                .rest(&world)
                .refused("validation_failed")
                .naming(&[name]);
            let taken = operation.path_names().any(|taken| taken == name)
                || (name == "confirm" && operation.spends());
            if taken || !operation.is_tool() {
                continue;
            }
            for value in [value, json!(1), json!(true), Value::Null, json!({"a": 1})] {
                // REST calls it a query parameter, MCP an argument.
                call.with_query(name, value).tool(&world).refused("validation_failed").naming(&rest.fields());
            }
        }
        unchanged(&world, &call, operation);
    }
}

#[test]
fn query_values_are_checked_for_type_and_range() {
    for operation in operations().filter(|operation| operation.query.is_some()) {
        let world = World::new();
        let call = Call::valid(&world, operation);
        for (name, schema) in properties(schemas(operation).query.as_ref()) {
            let refused = |value: Value, code: &str| {
                let call = call.with_query(name, value);
                let rest = call.rest(&world).refused(code).naming(&[name]);
                same_error(&rest, &call.tool(&world).refused(code), operation);
            };
            match types(schema).as_slice() {
                ["integer"] => {
                    for bad in ["abc", "", "1.5", "+1"] {
                        refused(bad.into(), "invalid_parameter");
                    }
                    refused(json!(1.5), "invalid_parameter");
                    if let Some(least) = schema["minimum"].as_i64() {
                        refused(json!(least - 1), "validation_failed");
                    }
                    if let Some(most) = schema["maximum"].as_i64() {
                        refused(json!(most + 1), "validation_failed");
                    }
                }
                ["string"] if schema["enum"].is_array() => refused("bogus".into(), "validation_failed"),
                ["string"] => {}
                ["object"] => refused("x".into(), "invalid_parameter"),
                ["boolean"] => ["yes", "", "2", "null"]
                    .into_iter()
                    .for_each(|bad| refused(bad.into(), "invalid_parameter")),
                other => panic!("{}: no rule for a query value of type {other:?}", operation.id),
            }
            let mut rest = call.clone();
            rest.query.shift_remove(name);
            let begins = if rest.query.is_empty() { '?' } else { '&' };
            let twice = format!("{}{begins}{name}=1&{name}=1", rest.uri());
            let body = call.body.clone().map(Value::Object);
            let twice = world.call(operation.method.clone(), &twice, body.as_ref());
            twice.refused("invalid_parameter").naming(&[name]);
            // `null` is one of the words.
            let words = schema["enum"].as_array().into_iter().flatten();
            if words.into_iter().any(|word| word == "null") {
                continue;
            }
            let null = call.with_query(name, Value::Null).tool(&world);
            assert!(null.is_error && null.fields() == [name.as_str()], "{}: {null:?}", operation.id);
        }
    }
}

#[test]
fn null_is_rejected_unless_the_schema_allows_it() {
    for operation in with_body() {
        let world = World::new();
        let call = Call::valid(&world, operation);
        for (name, _) in
            properties(body_schema(operation)).filter(|(_, schema)| !types(schema).contains(&"null"))
        {
            let call = call.with_field(name, Value::Null);
            let rest = call.rest(&world).refused("validation_failed").naming(&[name]);
            same_error(&rest, &call.tool(&world), operation);
        }
        unchanged(&world, &call, operation);
    }
}

/// These fields are null in responses, and a response may be sent back. The test above skips any field that allows null,
/// so this one makes sure that there are no others.
#[test]
fn only_known_fields_allow_null() {
    let mut fields: Vec<String> = with_body()
        .flat_map(|operation| properties(body_schema(operation)).map(move |field| (operation, field)))
        .filter(|(_, (_, schema))| types(schema).contains(&"null"))
        .map(|(operation, (name, _))| format!("{} {name}", operation.id))
        .collect();
    fields.sort();
    assert_eq!(
        fields,
        [
            "bind_number region",
            "create_assistant voicemail",
            "create_simulation name",
            "create_simulation_persona model",
            "create_simulation_scenario judge_model",
            "update_assistant voicemail",
            "update_simulation name",
            "update_simulation_persona model",
            "update_simulation_scenario judge_model",
            "update_workspace call_retention_days",
            "update_workspace monthly_spend_limit_microusd",
            "update_workspace recording_retention_days",
        ]
    );
}

#[test]
fn values_of_the_wrong_type_are_rejected() {
    for operation in with_body() {
        let world = World::new();
        let call = Call::valid(&world, operation);
        for (name, schema) in properties(body_schema(operation)) {
            for wrong in of_other_types(schema) {
                let rest = call.with_field(name, wrong).rest(&world);
                rest.refused("validation_failed").naming(&[name]);
            }
            if types(schema) == ["array"] {
                for wrong in of_other_types(&schema["items"]) {
                    let rest = call.with_field(name, json!([wrong])).rest(&world);
                    rest.refused("validation_failed").naming(&[&format!("{name}[0]")]);
                }
            }
        }
        unchanged(&world, &call, operation);
    }
}

#[test]
fn mcp_converts_texts_to_the_type_in_the_schema() {
    for operation in with_body() {
        let world = World::new();
        let (one, two) = (world.other(), world.other());
        let plain = Call::valid(&one, operation);
        let call = Call::valid(&two, operation);
        let mended = call.body.clone().unwrap().into_iter().map(|(name, value)| match value {
            Value::String(_) => (name, value),
            other => (name, Value::String(other.to_string())),
        });
        let mut arguments = call.arguments();
        arguments.insert("data".to_owned(), Value::Object(mended.collect()).to_string().into());
        let tool = two.tool(operation.id, arguments.into()).ok();
        assert_eq!(levelled(&tool.json), levelled(&plain.rest(&one).json), "{}", operation.id);
    }
}

#[test]
fn every_field_is_checked_against_the_limits_of_the_schema() {
    for operation in with_body() {
        let world = World::new();
        let call = Call::valid(&world, operation);
        for (name, schema) in properties(body_schema(operation)) {
            let mut over = Vec::new();
            if let Some(most) = schema["maxLength"].as_u64() {
                over.push("x".repeat(most as usize + 1).into());
                over.push("é".repeat(most as usize + 1).into());
            }
            if schema["minLength"].as_u64() == Some(1) {
                over.push("".into());
            }
            over.extend(schema["minimum"].as_i64().map(|least| json!(least - 1)));
            over.extend(schema["maximum"].as_i64().map(|most| json!(most + 1)));
            if schema["enum"].is_array() {
                over.extend([json!(""), json!("bogus")]);
            }
            if schema["minItems"].as_u64() == Some(1) {
                over.push(json!([]));
            }
            if let Some(most) = schema["maxItems"].as_u64() {
                let item = call.body.as_ref().and_then(|body| body[name].get(0)).expect("an item");
                over.push(vec![item.clone(); most as usize + 1].into());
            }
            for value in over {
                let call = call.with_field(name, value);
                let rest = call.rest(&world).refused("validation_failed").naming(&[name]);
                same_error(&rest, &call.tool(&world), operation);
            }
        }
        unchanged(&world, &call, operation);
    }
}

#[test]
fn the_error_names_a_missing_field() {
    for operation in with_body() {
        let world = World::new();
        let call = Call::valid(&world, operation);
        let required: Vec<&str> = required(operation);
        for name in &required {
            let call = call.without_field(name);
            let rest = call.rest(&world).refused("validation_failed").naming(&[name]);
            same_error(&rest, &call.tool(&world), operation);
        }
        let mut nothing = call.clone();
        nothing.body = Some(Map::new());
        let reply = nothing.rest(&world);
        match operation.body.map(|body| body.presence) {
            Some(Presence::Whole) => {
                let reply = reply.refused("validation_failed");
                // A rule of the operation may require one of two fields.
                assert!(reply.fields().starts_with(&required), "{}: {reply:?}", operation.id);
            }
            _ => assert_eq!(reply.status, operation.success.status(), "{}: {reply:?}", operation.id),
        }
        unchanged(&world, &call, operation);
    }
}

#[test]
fn the_error_names_a_body_id_of_another_workspace() {
    for operation in with_body() {
        let world = World::new();
        let stranger = world.other();
        let call = Call::valid(&world, operation);
        let theirs = Call::valid(&stranger, operation);
        for (name, _) in properties(body_schema(operation))
            .filter(|(name, _)| name.ends_with("_id") || name.ends_with("_ids"))
        {
            let field = if name.ends_with("_ids") { format!("{name}[0]") } else { name.clone() };
            let unknown = if name.ends_with("_ids") { json!([UNKNOWN_ID]) } else { json!(UNKNOWN_ID) };
            let mut foreign = theirs.body.as_ref().unwrap()[name].clone();
            if let Value::Array(ids) = &mut foreign {
                ids.truncate(1);
            }
            let told: Vec<Value> = [foreign, unknown]
                .into_iter()
                .map(|value| {
                    let call = call.with_field(name, value);
                    let rest = call.rest(&world).refused("validation_failed").naming(&[&field]);
                    same_error(&rest, &call.tool(&world), operation);
                    rest["error"]["details"].clone()
                })
                .collect();
            assert_eq!(told[0], told[1], "{}", operation.id);
        }
    }
}

#[test]
fn an_empty_or_invalid_body_is_a_400() {
    for operation in with_body() {
        let world = World::new();
        let call = Call::valid(&world, operation);
        let send = |content_type: &str, body: &str| {
            let request =
                world.request(operation.method.clone(), &call.uri()).header("content-type", content_type);
            world.send(request.body(body.to_owned().into()).unwrap())
        };
        let json_type = "application/json";
        if !operation.body_may_be_empty() {
            send(json_type, "").refused("invalid_json");
            send(json_type, " \n").refused("invalid_json");
        }
        send(json_type, "{").refused("invalid_json");
        for (other, field) in [("[]", "body"), ("null", "body"), ("\"{}\"", "body"), ("1", "body")] {
            send(json_type, other).refused("validation_failed").naming(&[field]);
        }
        for other in [
            "text/plain",
            "application/x-www-form-urlencoded",
            "application/jsonp",
            "",
            "application/json; charset=utf-16",
        ] {
            send(other, "{\"bogus\":1}").refused("unsupported_media_type");
        }
        let bogus = Value::from(call.with_field("bogus", json!(1)).body.unwrap()).to_string();
        for same in
            ["application/json; charset=utf-8", "Application/JSON", "application/json;charset=\"UTF-8\""]
        {
            send(same, &bogus).refused("validation_failed").naming(&["bogus"]);
        }
        unchanged(&world, &call, operation);
    }
}

/// Values of all types that the schema does not allow.
fn of_other_types(schema: &Value) -> Vec<Value> {
    let allowed = types(schema);
    let all = [
        ("string", json!("text")),
        ("string", json!("1")),
        ("integer", json!(7)),
        ("number", json!(1.5)),
        ("boolean", json!(true)),
        ("array", json!([])),
        ("array", json!([{"a": 1}])),
        ("object", json!({"bogus": 1})),
        ("object", json!({})),
        ("null", Value::Null),
    ];
    all.into_iter().filter(|(kind, _)| !allowed.contains(kind)).map(|(_, value)| value).collect()
}
