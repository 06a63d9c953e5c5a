//! A conversation as `messages`.
use serde_json::{Value, json};

use crate::conversation::{Knowledge, Message};

/// A `system` message.
#[must_use]
pub fn system(text: &str) -> Value {
    json!({"role": "system", "content": text})
}

/// A `user` message.
#[must_use]
pub fn user(text: &str) -> Value {
    json!({"role": "user", "content": text})
}

/// The conversation as the assistant's model sees it. Calls that were asked for together, and what
/// was said before them, are one message, as the model wrote it; their results follow it.
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
            // It answers no call before it: there is no message for that.
            Message::ToolResult { .. } => after,
        };
    }
    messages
}

/// The conversation as the simulated caller's model sees it: the other way round, and without the
/// tools, which a caller hears nothing of. Somebody else always speaks last, or the model would
/// have nothing to answer.
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
            // Some servers insist on turns.
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

/// The documents in full, in their order, as far as `bytes_max` goes. What does not fit is cut off,
/// and the model is told that it is: it should not take what it sees for all there is.
#[must_use]
pub fn knowledge_text(knowledge: &[Knowledge], bytes_max: usize) -> String {
    let mut text = String::new();
    let mut left_bytes = bytes_max;
    for document in knowledge {
        let end = document.content.floor_char_boundary(left_bytes);
        // Behind the first that does not fit, nothing is shown: half a sentence of each helps nobody.
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

/// The calls at the beginning of `rows`, what was said before them, and their results; returns the
/// rows after those.
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
        // An id of our own: nine letters and digits are what every server takes.
        let wire_id = format!("call{:05}", *calls);
        tool_calls.push(json!({"id": wire_id, "type": "function", "function": {
            "name": wire_name(name), "arguments": wire_arguments(arguments)}}));
        let result = answered.iter().find_map(|row| match row {
            Message::ToolResult { id: of, text, is_error, .. } if of == id => {
                Some(if *is_error { format!("Error: {text}") } else { text.clone() })
            }
            _ => None,
        });
        // The API wants a result for every call.
        let content = result.unwrap_or_else(|| "Error: there is no result.".to_owned());
        results.push(json!({"role": "tool", "tool_call_id": wire_id, "content": content}));
    }
    let content = if said.trim().is_empty() { Value::Null } else { said.into() };
    messages.push(json!({"role": "assistant", "content": content, "tool_calls": tool_calls}));
    messages.append(&mut results);
    rest
}

/// A name as the API takes it back: a model may have made one up that is no name.
fn wire_name(name: &str) -> String {
    const NAME_CHARS_MAX: usize = 64;
    let plain = |c: char| if c.is_ascii_alphanumeric() || c == '-' || c == '_' { c } else { '_' };
    let name: String = name.chars().take(NAME_CHARS_MAX).map(plain).collect();
    if name.is_empty() { "unnamed".to_owned() } else { name }
}

/// The arguments as text. Always an object's: some servers read them back, and break on another.
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
    fn calls_of_one_answer_are_one_message() {
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
    fn a_caller_sees_the_other_side() {
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
    fn knowledge_that_does_not_fit_is_cut_and_marked() {
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
