//! JSON as people write it: what fits in a line is in a line. And the same as a literal of Python.
use maud::{Markup, html};
use serde_json::Value;

/// Characters of a line, its indentation included.
const WIDTH: usize = 68;
const STEP: usize = 2;
/// Lines of a text that are shown at once, as the stylesheet says.
const LINES_MAX: usize = 26;

/// How the words of a value are written.
#[derive(Clone, Copy, PartialEq)]
pub(super) enum Words {
    Json,
    Python,
}

/// The value, its first line not indented and the others by `indent` more than they need.
pub(super) fn written(value: &Value, words: Words, indent: usize) -> String {
    let mut text = String::new();
    write(&mut text, value, words, indent, indent);
    text
}

/// A text that is shown: a long one scrolls in its place, with the keyboard too.
pub(super) fn block(text: &str) -> Markup {
    let long = text.lines().count() > LINES_MAX;
    html! { pre tabindex=[long.then_some("0")] { code { (text) } } }
}

/// The same as JSON.
pub(super) fn pretty(value: &Value) -> String {
    written(value, Words::Json, 0)
}

fn write(text: &mut String, value: &Value, words: Words, indent: usize, column: usize) {
    let line = in_a_line(value, words);
    let (open, close, count) = match value {
        Value::Array(items) => ('[', ']', items.len()),
        Value::Object(fields) => ('{', '}', fields.len()),
        _ => return text.push_str(&line),
    };
    if count == 0 || column + line.chars().count() <= WIDTH {
        return text.push_str(&line);
    }
    text.push(open);
    let inner = indent + STEP;
    let mut put = |place: usize, name: Option<&str>, item: &Value| {
        text.push_str(if place == 0 { "\n" } else { ",\n" });
        text.extend(std::iter::repeat_n(' ', inner));
        let before = name.map(|name| format!("{}: ", word(name))).unwrap_or_default();
        text.push_str(&before);
        write(text, item, words, inner, inner + before.chars().count());
    };
    match value {
        Value::Array(items) => items.iter().enumerate().for_each(|(place, item)| put(place, None, item)),
        Value::Object(fields) => {
            fields.iter().enumerate().for_each(|(place, (name, item))| put(place, Some(name), item));
        }
        _ => {}
    }
    text.push('\n');
    text.extend(std::iter::repeat_n(' ', indent));
    text.push(close);
}

fn in_a_line(value: &Value, words: Words) -> String {
    match value {
        Value::Array(items) => {
            let items: Vec<String> = items.iter().map(|item| in_a_line(item, words)).collect();
            format!("[{}]", items.join(", "))
        }
        Value::Object(fields) => {
            let fields: Vec<String> = fields
                .iter()
                .map(|(name, item)| format!("{}: {}", word(name), in_a_line(item, words)))
                .collect();
            format!("{{{}}}", fields.join(", "))
        }
        Value::Null if words == Words::Python => "None".to_owned(),
        Value::Bool(true) if words == Words::Python => "True".to_owned(),
        Value::Bool(false) if words == Words::Python => "False".to_owned(),
        other => other.to_string(),
    }
}

/// A text is written alike in JSON, JavaScript and Python.
fn word(name: &str) -> String {
    Value::from(name).to_string()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn what_fits_in_a_line_is_in_a_line() {
        let value = json!({"a": [1, 2], "b": {"c": null, "d": true}, "e": []});
        assert_eq!(pretty(&value), r#"{"a": [1, 2], "b": {"c": null, "d": true}, "e": []}"#);
        let long = json!({"name": "x".repeat(60), "list": ["y".repeat(40), "z".repeat(40)], "no": false});
        let (x, y, z) = ("x".repeat(60), "y".repeat(40), "z".repeat(40));
        assert_eq!(
            pretty(&long),
            format!(
                "{{\n  \"name\": \"{x}\",\n  \"list\": [\n    \"{y}\",\n    \"{z}\"\n  ],\n  \"no\": false\n}}"
            )
        );
        assert_eq!(serde_json::from_str::<Value>(&pretty(&long)).unwrap(), long);
    }

    #[test]
    fn python_has_its_own_words() {
        assert_eq!(
            written(&json!([null, true, false, "true"]), Words::Python, 0),
            r#"[None, True, False, "true"]"#
        );
    }
}
