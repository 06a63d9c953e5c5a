//! Formats a tool's result as spoken text.
use serde_json::Value;

use super::super::phrases::spoken_name;
use crate::base::text::{collapse_whitespace, truncate};
use crate::conversation::Message;

/// Bytes of one spoken result.
const SPOKEN_BYTES_MAX: usize = 800;
/// Bytes of JSON that are parsed; a longer result is spoken as plain text, truncated.
const JSON_BYTES_MAX: usize = 65_536;
/// Bytes of the name of one value.
const NAME_BYTES_MAX: usize = 200;
/// Deepest nesting that is spoken.
const DEPTH_MAX: usize = 4;

#[derive(Debug, Clone, Copy)]
pub(super) struct ToolResult<'a> {
    name: &'a str,
    text: &'a str,
    is_error: bool,
}

/// The results after the last line of either side.
pub(super) fn since_last_call(history: &[Message]) -> Vec<ToolResult<'_>> {
    let mut results: Vec<_> = history
        .iter()
        .rev()
        .take_while(|row| matches!(row, Message::ToolCall { .. } | Message::ToolResult { .. }))
        .filter_map(|row| match row {
            Message::ToolResult { name, text, is_error, .. } => {
                Some(ToolResult { name, text, is_error: *is_error })
            }
            _ => None,
        })
        .collect();
    results.reverse();
    results
}

/// The results as sentences.
pub(super) fn spoken(results: &[ToolResult<'_>]) -> String {
    let sentences: Vec<_> = results.iter().map(sentence).collect();
    sentences.join(" ")
}

fn sentence(result: &ToolResult<'_>) -> String {
    let text = readable(result.text);
    let text = text.trim_end_matches('.');
    match (result.is_error, text) {
        (false, "") => "It is done.".to_owned(),
        (false, text) => ended(&capitalised(text)),
        (true, "") => format!("I could not {} and was not told why.", spoken_name(result.name)),
        (true, text) => {
            ended(&format!("I could not {} because {}", spoken_name(result.name), uncapitalised(text)))
        }
    }
}

/// JSON flattened to "key: value"; other text on one line.
fn readable(text: &str) -> String {
    let json = Some(text).filter(|text| text.len() <= JSON_BYTES_MAX);
    let value = json.and_then(|text| serde_json::from_str::<Value>(text).ok());
    let text = match value {
        Some(value) => {
            let mut out = String::new();
            flatten(&value, "", 0, &mut out);
            out
        }
        None => collapse_whitespace(text),
    };
    truncate(text, SPOKEN_BYTES_MAX)
}

fn flatten(value: &Value, name: &str, depth: usize, out: &mut String) {
    // The rest would be truncated anyway.
    if out.len() > SPOKEN_BYTES_MAX {
        return;
    }
    let scalar = match value {
        Value::Null => None,
        Value::Bool(true) => Some("yes".to_owned()),
        Value::Bool(false) => Some("no".to_owned()),
        Value::Number(number) => Some(number.to_string()),
        Value::String(text) => Some(collapse_whitespace(text)).filter(|text| !text.is_empty()),
        _ if depth >= DEPTH_MAX => Some("…".to_owned()),
        Value::Array(items) => return list(items, name, depth, out),
        Value::Object(fields) => {
            for (key, value) in fields {
                let key = collapse_whitespace(&format!("{name} {}", spoken_name(key)));
                // The name is repeated for every value below it, so it must be short.
                let key = truncate(key, NAME_BYTES_MAX);
                flatten(value, &key, depth + 1, out);
            }
            return;
        }
    };
    if let Some(scalar) = scalar {
        if !out.is_empty() {
            out.push_str(", ");
        }
        if !name.is_empty() {
            out.push_str(name);
            out.push_str(": ");
        }
        out.push_str(&scalar);
    }
}

/// The name once for a list of scalars, and once per item for objects.
fn list(items: &[Value], name: &str, depth: usize, out: &mut String) {
    for (place, item) in items.iter().enumerate() {
        let name = if place > 0 && !item.is_object() { "" } else { name };
        flatten(item, name, depth + 1, out);
    }
}

fn capitalised(text: &str) -> String {
    let mut chars = text.chars();
    match chars.next() {
        Some(first) => first.to_uppercase().chain(chars).collect(),
        None => String::new(),
    }
}

/// A reason as it continues a sentence: `The key is wrong` begins in lower case, `HTTP 500` and `I` do not.
fn uncapitalised(text: &str) -> String {
    let mut chars = text.chars();
    match (chars.next(), chars.clone().next()) {
        (Some(first), Some(second)) if first.is_uppercase() && second.is_lowercase() => {
            first.to_lowercase().chain(chars).collect()
        }
        _ => text.to_owned(),
    }
}

fn ended(text: &str) -> String {
    if text.ends_with(['.', '!', '?', '…']) { text.to_owned() } else { format!("{text}.") }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn json_becomes_readable() {
        for (text, expected) in [
            (
                r#"{"order_status":"sent","items":2,"gift":false,"note":null}"#,
                "Order status: sent, items: 2, gift: no.",
            ),
            (r#"{"address":{"city":"Paris","zip":"75001"}}"#, "Address city: Paris, address zip: 75001."),
            (r#"["red","blue"]"#, "Red, blue."),
            (r#"{"sizes":[1,2]}"#, "Sizes: 1, 2."),
            (r#"{"rows":[{"a":1},{"a":2}]}"#, "Rows a: 1, rows a: 2."),
            (r#""Done!""#, "Done!"),
            ("true", "Yes."),
            ("plain  text.\n", "Plain text."),
            ("", "It is done."),
            ("{}", "It is done."),
            ("{broken", "{broken."),
            ("ünïcode", "Ünïcode."),
        ] {
            assert_eq!(say(text, false), expected, "{text}");
        }
    }

    #[test]
    fn failures_are_reported() {
        assert_eq!(say("no answer in 5 s.", true), "I could not book table because no answer in 5 s.");
        assert_eq!(
            say(r#"{"message":"fully booked"}"#, true),
            "I could not book table because message: fully booked."
        );
        assert_eq!(say(" ", true), "I could not book table and was not told why.");
    }

    #[test]
    fn long_and_deep_results_are_truncated() {
        let deep = format!("{}1{}", r#"{"a":"#.repeat(100), "}".repeat(100));
        assert_eq!(say(&deep, false), "A a a a: …");
        let long = format!("[{}1]", "1,".repeat(20_000));
        assert!(say(&long, false).len() <= SPOKEN_BYTES_MAX + 4);
        assert!(say(&"é".repeat(100_000), false).ends_with('…'));
    }

    proptest! {
        #[test]
        fn every_result_gives_text(text in ".{0,80}", is_error: bool) {
            prop_assert!(!say(&text, is_error).trim().is_empty());
        }
    }

    fn say(text: &str, is_error: bool) -> String {
        spoken(&[ToolResult { name: "bookTable", text, is_error }])
    }
}
