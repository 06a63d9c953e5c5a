//! Rejects what OpenAI rejects, so that an accepted request is valid.
use std::collections::BTreeSet;

use serde_json::Value;

/// The problem of a request, if any.
pub fn problem(body: &Value) -> Option<String> {
    let Some(messages) = body["messages"].as_array().filter(|messages| !messages.is_empty()) else {
        return Some("'messages' must be a list with at least one message".to_owned());
    };
    if body.get("stream_options").is_some() && body["stream"] != true {
        return Some("'stream_options' is only allowed when 'stream' is enabled".to_owned());
    }
    for tool in body["tools"].as_array().into_iter().flatten() {
        let function = &tool["function"];
        if tool["type"] != "function" || !is_name(&function["name"]) {
            return Some(format!("Invalid tool: {tool}"));
        }
        if function["parameters"]["type"] != "object" || !function["parameters"]["properties"].is_object() {
            return Some(format!("Invalid schema for function {}", function["name"]));
        }
    }
    if body.get("tools").is_some_and(|tools| tools.as_array().is_none_or(Vec::is_empty)) {
        return Some("'tools' must not be empty".to_owned());
    }
    let mut open: BTreeSet<&str> = BTreeSet::new();
    for message in messages {
        let role = message["role"].as_str().unwrap_or_default();
        if role == "tool" {
            let id = message["tool_call_id"].as_str().unwrap_or_default();
            if !open.remove(id) || !message["content"].is_string() {
                return Some("a 'tool' message must answer a preceding 'tool_calls'".to_owned());
            }
            continue;
        }
        if let Some(id) = open.first() {
            return Some(format!("tool_call_id '{id}' has no response message"));
        }
        let calls = message["tool_calls"].as_array();
        match role {
            "system" | "developer" | "user" if message["content"].is_string() => {}
            "assistant" if calls.is_some() || message["content"].is_string() => {}
            _ => return Some(format!("Invalid message: {message}")),
        }
        for call in calls.into_iter().flatten() {
            let function = &call["function"];
            let arguments = function["arguments"].as_str().and_then(|text| serde_json::from_str(text).ok());
            if call["type"] != "function"
                || !is_name(&function["name"])
                || !matches!(arguments, Some(Value::Object(_)))
                || !open.insert(call["id"].as_str().unwrap_or_default())
            {
                return Some(format!("Invalid tool call: {call}"));
            }
        }
    }
    open.first().map(|id| format!("tool_call_id '{id}' has no response message"))
}

fn is_name(value: &Value) -> bool {
    let plain = |c: char| c.is_ascii_alphanumeric() || c == '-' || c == '_';
    value.as_str().is_some_and(|name| (1..=64).contains(&name.len()) && name.chars().all(plain))
}
