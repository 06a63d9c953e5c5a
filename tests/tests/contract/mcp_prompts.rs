//! Instructions and prompts: what a model is told, and that it is told of tools which exist.
use std::collections::BTreeSet;

use serde_json::{Value, json};
use sidetone_engine::operations::{self, OPERATIONS};
use sidetone_tests::{Reply, World};

use super::mcp::{request, result};

const NAMES: [&str; 3] = ["improve_assistant", "investigate_call", "write_scenarios"];

fn get(world: &World, params: Value) -> Reply {
    world.mcp(request("prompts/get", params)).ok()
}

fn text(world: &World, name: &str, arguments: Value) -> String {
    let result = result(&get(world, json!({"name": name, "arguments": arguments})));
    let messages = result["messages"].as_array().unwrap();
    assert_eq!((messages.len(), &messages[0]["role"]), (1, &json!("user")), "{result}");
    assert_eq!(messages[0]["content"]["type"], "text", "{result}");
    messages[0]["content"]["text"].as_str().unwrap().to_owned()
}

/// Words that look like the name of a tool.
fn named(text: &str) -> BTreeSet<&str> {
    const VERBS: [&str; 15] = [
        "list",
        "get",
        "create",
        "update",
        "delete",
        "set",
        "start",
        "bind",
        "unbind",
        "restore",
        "test",
        "hang",
        "rotate",
        "revoke",
        "redeliver",
    ];
    let words = text.split(|c: char| !(c.is_ascii_lowercase() || c == '_'));
    words.filter(|word| word.split_once('_').is_some_and(|(verb, _)| VERBS.contains(&verb))).collect()
}

#[track_caller]
fn names_tools(text: &str) {
    let named = named(text);
    assert!(named.len() > 3, "{text}");
    for name in named {
        assert!(
            operations::by_id(name).is_some_and(|operation| operation.is_tool()),
            "no tool {name}: {text}"
        );
    }
}

#[test]
fn the_instructions_name_the_tools_of_the_workflow() {
    let world = World::new();
    let params = json!({"protocolVersion": "2025-11-25", "capabilities": {}});
    let initialized = result(&world.mcp(request("initialize", params)).ok());
    let instructions = initialized["instructions"].as_str().unwrap();
    // Claude Code cuts what is longer.
    assert!(instructions.len() <= 2_048, "{} bytes", instructions.len());
    names_tools(instructions);
    for word in [
        "confirm: true",
        "returns `next`",
        "`data`",
        "details.fields",
        "view: summary",
        "`tool_mocks`",
        "`page`",
    ] {
        assert!(instructions.contains(word), "{word}");
    }
    for prompt in NAMES {
        assert!(instructions.contains(prompt), "{prompt}");
    }
}

#[test]
fn prompts_are_listed_with_their_arguments() {
    let world = World::new();
    let list = result(&world.mcp(request("prompts/list", json!({}))).ok());
    let prompts = list["prompts"].as_array().unwrap();
    assert_eq!(prompts.iter().map(|prompt| prompt["name"].as_str().unwrap()).collect::<Vec<_>>(), NAMES);
    assert_eq!(list.as_object().unwrap().len(), 1, "one page: {list}");
    for prompt in prompts {
        assert!(prompt["title"].is_string() && prompt["description"].is_string(), "{prompt}");
        let arguments = prompt["arguments"].as_array().unwrap();
        assert_eq!(arguments[0]["required"], true, "{prompt}");
        for argument in arguments {
            assert!(argument["name"].is_string() && argument["description"].is_string(), "{argument}");
        }
        // A prompt is no tool: a client shows both by name.
        assert!(OPERATIONS.iter().all(|operation| prompt["name"] != operation.id), "{prompt}");
    }
    let refused = world.mcp(request("prompts/list", json!({"cursor": "x"}))).ok();
    assert_eq!(refused["error"]["code"], -32602);
}

#[test]
fn a_prompt_has_its_arguments_and_names_tools() {
    let world = World::new();
    let improve =
        text(&world, "improve_assistant", json!({"assistant_id": "asst_1", "goal": "shorter calls {goal}"}));
    assert!(
        improve.starts_with("Improve the assistant asst_1. The goal: shorter calls {goal}."),
        "{improve}"
    );
    let by_default = text(&world, "improve_assistant", json!({"assistant_id": "asst_1"}));
    assert!(by_default.contains("asst_1") && !by_default.contains("shorter calls"), "{by_default}");
    let investigate = text(&world, "investigate_call", json!({"call_id": "call_1"}));
    let write = text(
        &world,
        "write_scenarios",
        json!({"assistant_id": " asst_1 ", "count": "3", "focus": "refusals"}),
    );
    assert!(
        write.starts_with("Write 3 scenarios that test the assistant asst_1. The focus: refusals."),
        "{write}"
    );
    for text in [improve, by_default, investigate, write] {
        names_tools(&text);
        assert!(!text.contains("{assistant_id}") && !text.contains("{call_id}"), "{text}");
    }
}

#[test]
fn a_prompt_without_its_arguments_is_refused() {
    let world = World::new();
    let long = "x".repeat(2_001);
    for (params, word) in [
        (json!({"name": "improve_assistant"}), "assistant_id"),
        (json!({"name": "improve_assistant", "arguments": {}}), "assistant_id"),
        (json!({"name": "improve_assistant", "arguments": {"assistant_id": ""}}), "assistant_id"),
        (json!({"name": "improve_assistant", "arguments": {"assistant_id": 7}}), "assistant_id"),
        (json!({"name": "improve_assistant", "arguments": {"assistant_id": "a", "bogus": "b"}}), "bogus"),
        (json!({"name": "improve_assistant", "arguments": {"assistant_id": "a", "goal": long}}), "goal"),
        (json!({"name": "improve_assistant", "arguments": []}), "arguments"),
        (json!({"name": "nope", "arguments": {}}), "nope"),
        (json!({"name": 7}), "name"),
        (json!({}), "name"),
    ] {
        let reply = get(&world, params.clone());
        assert_eq!(reply["error"]["code"], -32602, "{params}");
        assert!(reply["error"]["message"].as_str().unwrap().contains(word), "{params}: {reply:?}");
    }
    let longest = "x".repeat(2_000);
    assert!(
        text(&world, "investigate_call", json!({"call_id": "call_1", "question": longest}))
            .contains(&longest)
    );
}
