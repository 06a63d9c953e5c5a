//! The list of MCP tools fits every client: names, schemas, annotations.
use serde_json::{Value, json};
use sidetone_engine::operations::OPERATIONS;
use sidetone_engine::operations::operation::Effects;
use sidetone_tests::World;

use super::mcp::{request, result};

/// Checks the subset of JSON Schema that every model API and client accepts.
#[test]
fn the_tool_list_is_compatible_with_all_clients() {
    let world = World::new();
    let reply = world.mcp(request("tools/list", json!({}))).ok();
    let list = result(&reply);
    assert!(reply.body.len() < 100_000, "{} bytes", reply.body.len());
    let tools = list["tools"].as_array().unwrap();
    let names: Vec<&str> = tools.iter().map(|tool| tool["name"].as_str().unwrap()).collect();
    let operations = || OPERATIONS.iter().filter(|operation| operation.is_tool());
    let expected: Vec<&str> = operations().map(|operation| operation.id).collect();
    assert_eq!(names, expected, "a tool for every operation, in the order of the table");
    assert!(!names.contains(&"download_recording"), "tools cannot return audio");
    for (tool, operation) in tools.iter().zip(operations()) {
        let name = operation.id;
        assert!(name.len() <= 40, "{name}");
        assert!(name.starts_with(|c: char| c.is_ascii_lowercase()), "{name}");
        assert!(name.chars().all(|c| c.is_ascii_lowercase() || c.is_ascii_digit() || c == '_'), "{name}");
        let keys: Vec<&String> = tool.as_object().unwrap().keys().collect();
        assert_eq!(
            keys,
            ["name", "title", "description", "inputSchema", "annotations"],
            "{name}: no outputSchema"
        );
        assert!(tool["title"].as_str().is_some_and(|title| !title.is_empty()), "{name}");
        assert!(tool["description"].as_str().is_some_and(|text| (10..=400).contains(&text.len())), "{name}");
        let annotations = &tool["annotations"];
        let read = operation.effects == Effects::Read;
        assert_eq!(annotations["readOnlyHint"], read, "{name}");
        let replaces =
            ["bind_number", "set_assistant_", "rotate_"].iter().any(|beginning| name.starts_with(beginning));
        let destroys = replaces || operation.effects == Effects::Delete;
        assert_eq!(annotations["destructiveHint"], destroys, "{name}");
        assert_eq!(annotations["openWorldHint"], operation.reaches_out(), "{name}");
        assert_eq!(
            annotations["idempotentHint"].as_bool(),
            Some(matches!(operation.effects, Effects::Read | Effects::Replace | Effects::Delete)),
            "{name}"
        );
        let schema = &tool["inputSchema"];
        assert_eq!(schema["type"], "object", "{name}");
        assert!(schema["properties"].is_object() && schema["required"].is_array(), "{name}");
        assert_eq!(schema["additionalProperties"], false, "{name}");
        let required = schema["required"].as_array().unwrap();
        for path in operation.path_names() {
            assert!(required.contains(&json!(path)), "{name}: {path}");
        }
        assert_eq!(required.contains(&json!("confirm")), operation.spends(), "{name}");
        assert_eq!(schema["properties"]["confirm"]["type"] == "boolean", operation.spends(), "{name}");
        assert_eq!(schema["properties"]["if_revision"]["type"] == "integer", operation.revision, "{name}");
        assert_eq!(schema["properties"].get("data").is_some(), operation.body.is_some(), "{name}");
        lint(schema, name);
        no_nulls(tool, name);
    }
}

/// Tokens that a model may have to read for the tools: clients send them along with every request.
const TOKENS_MAX: usize = 10_000;

/// As `o200k_base` counted once: 9,506 tokens of 41,580 bytes of such a list.
fn tokens(value: &Value) -> usize {
    value.to_string().len() * 9_506 / 41_580
}

/// `cargo test -p sidetone-tests --test contract the_tools_cost -- --nocapture` prints it.
#[test]
fn the_tools_cost_a_model_little() {
    let world = World::new();
    let list = result(&world.mcp(request("tools/list", json!({}))).ok());
    let tools = list["tools"].as_array().unwrap();
    // Clients show titles and annotations to people.
    let read = |tool: &Value| json!({"name": tool["name"], "description": tool["description"], "inputSchema": tool["inputSchema"]});
    let all: Vec<Value> = tools.iter().map(read).collect();
    let total: usize = all.iter().map(tokens).sum();
    let mut largest: Vec<(usize, &str)> =
        all.iter().map(|tool| (tokens(tool), tool["name"].as_str().unwrap())).collect();
    largest.sort();
    println!("{} tools: {total} tokens, {} with titles and annotations", all.len(), tokens(&list));
    for (tokens, name) in largest.iter().rev().take(10) {
        println!("{tokens:>6} {name}");
    }
    assert!(total <= TOKENS_MAX, "{total} tokens; the largest: {:?}", largest.last());
}

#[test]
fn the_list_of_calls_recommends_summaries() {
    let world = World::new();
    let list = result(&world.mcp(request("tools/list", json!({}))).ok());
    let tool = list["tools"].as_array().unwrap().iter().find(|tool| tool["name"] == "list_calls").unwrap();
    assert!(tool["description"].as_str().unwrap().contains("Prefer `view=summary`"), "{tool}");
}

#[test]
fn a_model_is_told_what_null_means_and_how_to_ask_for_metadata() {
    let world = World::new();
    let list = result(&world.mcp(request("tools/list", json!({}))).ok());
    let described = |tool: &str, field: &str| {
        let tool = list["tools"].as_array().unwrap().iter().find(|one| one["name"] == tool).unwrap().clone();
        tool["inputSchema"]["properties"][field]["description"].as_str().unwrap_or_default().to_owned()
    };
    let passed = described("list_simulation_runs", "passed");
    assert_eq!(passed, "`null`: not over, or not decided");
    let metadata = described("list_calls", "metadata");
    assert!(metadata.contains(r#"`{"campaign": "spring"}`"#) && !metadata.contains("<name>"), "{metadata}");
    assert_eq!(described("list_calls", "outcome"), "", "its name says it");
}

#[test]
fn an_update_describes_no_field_again() {
    let world = World::new();
    let list = result(&world.mcp(request("tools/list", json!({}))).ok());
    let tool = |name: &str| {
        let mut tools = list["tools"].as_array().unwrap().iter();
        tools.find(|tool| tool["name"] == name).unwrap()["inputSchema"]["properties"]["data"].clone()
    };
    let (creates, updates) = (tool("create_assistant"), tool("update_assistant"));
    assert_eq!(updates["properties"], json!({}));
    let described = creates["properties"].as_object().unwrap().values();
    assert!(described.filter(|field| field["description"].is_string()).count() > 10, "{creates}");
    assert!(updates["description"].as_str().unwrap().contains("create_assistant"), "{updates}");
}

fn lint(schema: &Value, at: &str) {
    const KEYWORDS: [&str; 12] = [
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "description",
        "minimum",
        "maximum",
        "minLength",
        "maxLength",
        "pattern",
        "additionalProperties",
    ];
    let map = schema.as_object().unwrap_or_else(|| panic!("{at}: a schema is an object: {schema}"));
    for keyword in map.keys() {
        assert!(KEYWORDS.contains(&keyword.as_str()), "{at}: `{keyword}` is not supported everywhere");
    }
    let kind =
        schema["type"].as_str().unwrap_or_else(|| panic!("{at}: expected one type, as a string: {schema}"));
    assert!(["object", "array", "string", "integer", "number", "boolean"].contains(&kind), "{at}: {kind}");
    if let Some(values) = schema.get("enum") {
        let values = values.as_array().unwrap();
        assert!(!values.is_empty() && values.iter().all(Value::is_string), "{at}: {values:?}");
    }
    if kind == "array" {
        assert!(schema["items"].is_object(), "{at}: an array needs items");
        lint(&schema["items"], &format!("{at}[]"));
    }
    if kind == "object" {
        assert!(schema["properties"].is_object(), "{at}: an object needs properties");
    }
    if let Some(additional) = schema.get("additionalProperties") {
        assert!(additional.is_boolean(), "{at}: {additional}");
    }
    let properties = schema["properties"].as_object();
    for name in schema["required"].as_array().into_iter().flatten() {
        assert!(properties.is_some_and(|all| all.contains_key(name.as_str().unwrap())), "{at}: {name}");
    }
    for (name, property) in properties.into_iter().flatten() {
        assert!((1..=64).contains(&name.len()), "{at}.{name}");
        assert!(name.chars().all(|c| c.is_ascii_alphanumeric() || "_.-".contains(c)), "{at}.{name}");
        lint(property, &format!("{at}.{name}"));
    }
}

fn no_nulls(value: &Value, at: &str) {
    match value {
        Value::Null => panic!("{at}: clients reject null"),
        Value::Array(items) => items.iter().for_each(|item| no_nulls(item, at)),
        Value::Object(map) => map.iter().for_each(|(name, value)| no_nulls(value, &format!("{at}.{name}"))),
        _ => {}
    }
}
