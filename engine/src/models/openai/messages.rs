//! Builds the `messages` of a request from a conversation.
use serde_json::{Value, json};

use crate::conversation::{Knowledge, Message};

/// A message with the role `system`.
#[must_use]
pub fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

/// A message with the role `user`.
#[must_use]
pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// The conversation from the assistant's side. Tool calls of one answer and the text before them are one message, as the
/// model produced it; their results follow.
#[must_use]
pub fn for_assistant(history: &[Message]) -> Vec<Value> {
    let mut messages = Vec::new();
    let mut calls = 0;
    let mut rest = history;
    while let Some((first, after)) = rest.split_first() {
        let calls_next = matches!(after.first(), Some(Message::ToolCall { .. }));
        rest = match first {
            Message::User { text } => {
                messages.push(user(text));
                after
            }
            Message::Assistant { text } if calls_next => round(text, after, &mut calls, &mut messages),
            Message::Assistant { text } => {
                messages.push(assistant(text));
                after
            }
            Message::ToolCall { .. } => round("", rest, &mut calls, &mut messages),
            // A result without a preceding call has no representation.
            Message::ToolResult { .. } => after,
        };
    }
    messages
}

/// The conversation from the simulated caller's side: roles are swapped, and tools are left out because a caller does not
/// hear them. The last message is always from the user, so that the model has something to answer.
#[must_use]
pub fn for_caller(history: &[Message]) -> Vec<Value> {
    let mut lines: Vec<(bool, String)> = Vec::new();
    for row in history {
        let (own, text) = match row {
            Message::User { text } => (true, text),
            Message::Assistant { text } => (false, text),
            Message::ToolCall { .. } | Message::ToolResult { .. } => continue,
        };
        match lines.last_mut() {
            // Some servers require alternating roles.
            Some((last, line)) if *last == own => {
                line.push('\n');
                line.push_str(text);
            }
            _ => lines.push((own, text.clone())),
        }
    }
    match lines.last() {
        None => lines.push((false, "(The call is connected. You speak first.)".to_owned())),
        Some((true, _)) => lines.push((false, "(Silence.)".to_owned())),
        Some((false, _)) => {}
    }
    lines.iter().map(|(own, text)| if *own { assistant(text) } else { user(text) }).collect()
}

/// The documents in their order, up to `bytes_max`. A truncated document is marked, so that the model does not take the
/// excerpt for the whole.
#[must_use]
pub fn knowledge_text(knowledge: &[Knowledge], bytes_max: usize) -> String {
    let mut text = String::new();
    let mut left_bytes = bytes_max;
    for document in knowledge {
        let end = document.content.floor_char_boundary(left_bytes);
        // After the first truncated document, later ones get only their name and the note on what is missing.
        left_bytes = if end < document.content.len() { 0 } else { left_bytes - end };
        text.push_str("\n\n## ");
        text.push_str(document.name.trim());
        text.push_str("\n\n");
        text.push_str(&document.content[..end]);
        if end < document.content.len() {
            let missing = document.content.len() - end;
            text.push_str(&format!("\n[The last {missing} bytes of this document are not shown.]"));
        }
    }
    text
}

fn assistant(text: &str) -> Value {
    json!({"role": "assistant", "content": text})
}

/// Adds the calls at the start of `rows`, the text before them, and their results; returns the remaining rows.
fn round<'a>(said: &str, rows: &'a [Message], calls: &mut usize, messages: &mut Vec<Value>) -> &'a [Message] {
    let asked = rows.iter().take_while(|row| matches!(row, Message::ToolCall { .. })).count();
    let (asked, rest) = rows.split_at(asked);
    let answered = rest.iter().take_while(|row| matches!(row, Message::ToolResult { .. })).count();
    let (answered, rest) = rest.split_at(answered);
    let mut tool_calls = Vec::new();
    let mut results = Vec::new();
    for row in asked {
        let Message::ToolCall { id, name, arguments } = row else { continue };
        *calls += 1;
        // A generated id: nine letters and digits are valid on every server.
        let wire_id = format!("call{:05}", *calls);
        tool_calls.push(json!({"id": wire_id, "type": "function", "function": {
            "name": wire_name(name), "arguments": wire_arguments(arguments)}}));
        let result = answered.iter().find_map(|row| match row {
            Message::ToolResult { id: of, text, is_error, .. } if of == id => {
                Some(if *is_error { format!("Error: {text}") } else { text.clone() })
            }
            _ => None,
        });
        // The API requires a result for every call.
        let content = result.unwrap_or_else(|| "Error: there is no result.".to_owned());
        results.push(json!({"role": "tool", "tool_call_id": wire_id, "content": content}));
    }
    let content = if said.trim().is_empty() { Value::Null } else { said.into() };
    messages.push(json!({"role": "assistant", "content": content, "tool_calls": tool_calls}));
    messages.append(&mut results);
    rest
}

/// Makes a name valid for the API: a model may have invented one that is not.
fn wire_name(name: &str) -> String {
    const NAME_CHARS_MAX: usize = 64;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let name: String = name.chars().take(NAME_CHARS_MAX).map(plain).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// The arguments as text, always of an object: some servers parse them and fail on anything else.
fn wire_arguments(arguments: &Value) -> String {
    if arguments.is_object() {
        return arguments.to_string();
    }
    json!({ "unreadable": arguments }).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn calls_of_one_answer_form_one_message() {
        let history = [
            said_by_user("Two things."),
            said("One moment."),
            call("a", "f", json!({"x": 1})),
            call("b", "no such!", json!("{")),
            result("b", "no such tool", true),
            result("a", "7", false),
            call("c", "f", json!({})),
            result("c", "8", false),
            said("It is 8."),
        ];
        assert_eq!(
            json!(for_assistant(&history)),
            json!([
                {"role": "user", "content": "Two things."},
                {"role": "assistant", "content": "One moment.", "tool_calls": [
                    {"id": "call00001", "type": "function", "function": {"name": "f", "arguments": "{\"x\":1}"}},
                    {"id": "call00002", "type": "function", "function":
                        {"name": "no_such_", "arguments": "{\"unreadable\":\"{\"}"}}]},
                {"role": "tool", "tool_call_id": "call00001", "content": "7"},
                {"role": "tool", "tool_call_id": "call00002", "content": "Error: no such tool"},
                {"role": "assistant", "content": null, "tool_calls": [
                    {"id": "call00003", "type": "function", "function": {"name": "f", "arguments": "{}"}}]},
                {"role": "tool", "tool_call_id": "call00003", "content": "8"},
                {"role": "assistant", "content": "It is 8."}
            ])
        );
    }

    #[test]
    fn every_call_has_a_result_and_every_result_a_call() {
        let messages = for_assistant(&[result("x", "?", false), call("a", "f", json!({}))]);
        assert_eq!(messages.len(), 2);
        assert_eq!(messages[1]["content"], "Error: there is no result.");
    }

    #[test]
    fn the_caller_sees_swapped_roles() {
        let history = [
            said("Shop, hello!"),
            said_by_user("Hi."),
            said("One moment."),
            call("a", "f", json!({})),
            result("a", "7", false),
            said("It is 7."),
        ];
        assert_eq!(
            json!(for_caller(&history)),
            json!([{"role": "user", "content": "Shop, hello!"}, {"role": "assistant", "content": "Hi."},
                {"role": "user", "content": "One moment.\nIt is 7."}])
        );
        assert_eq!(for_caller(&history[..2])[2]["role"], "user");
        assert_eq!(for_caller(&[])[0]["role"], "user");
    }

    #[test]
    fn knowledge_is_truncated_and_marked() {
        let document = |name: &str, content: &str| Knowledge { name: name.into(), content: content.into() };
        let knowledge = [document("A", "ééé"), document("B", "bb")];
        assert_eq!(knowledge_text(&knowledge, 8), "\n\n## A\n\nééé\n\n## B\n\nbb");
        assert_eq!(
            knowledge_text(&knowledge, 5),
            "\n\n## A\n\néé\n[The last 2 bytes of this document are not shown.]\n\n## B\n\n\n[The last 2 bytes \
             of this document are not shown.]"
        );
    }

    fn said_by_user(text: &str) -> Message {
        Message::User { text: text.into() }
    }

    fn said(text: &str) -> Message {
        Message::Assistant { text: text.into() }
    }

    fn call(id: &str, name: &str, arguments: Value) -> Message {
        Message::ToolCall { id: id.into(), name: name.into(), arguments }
    }

    fn result(id: &str, text: &str, is_error: bool) -> Message {
        Message::ToolResult { id: id.into(), name: "f".into(), text: text.into(), is_error }
    }
}
