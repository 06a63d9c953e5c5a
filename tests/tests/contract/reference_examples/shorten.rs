//! Examples are to be read: long lists and texts are cut, and secrets too.
use serde_json::{Map, Value};

/// Items of a list that stay.
const ITEMS: usize = 2;
/// The same where each is a number or a word.
const SIMPLE_ITEMS: usize = 8;
/// Rows of a transcript that stay: a question, what it leads to and the answer.
const ROWS: usize = 4;
/// Characters of a text that stay.
const CHARS: usize = 240;
/// Characters of a secret that stay: its form.
const SECRET_CHARS: usize = 10;
/// Characters of the data of an event in a stream.
const DATA_CHARS: usize = 300;

/// The same, short.
pub(super) fn shortened(value: &Value) -> Value {
    match value {
        Value::Object(fields) => fields.iter().map(field).collect::<Map<_, _>>().into(),
        Value::Array(items) => items.iter().take(most(items)).map(shortened).collect::<Vec<_>>().into(),
        Value::String(text) => cut(text, CHARS).into(),
        other => other.clone(),
    }
}

fn field((name, value): (&String, &Value)) -> (String, Value) {
    let value = match (name.as_str(), value) {
        ("signing_secret" | "key", Value::String(secret)) => cut(secret, SECRET_CHARS).into(),
        // Every call repeats its turns.
        ("transcript", Value::Array(rows)) => {
            rows.iter().take(ROWS).map(shortened).collect::<Vec<_>>().into()
        }
        (_, value) => shortened(value),
    };
    (name.clone(), value)
}

fn most(items: &[Value]) -> usize {
    if items.iter().any(|item| item.is_object() || item.is_array()) { ITEMS } else { SIMPLE_ITEMS }
}

fn cut(text: &str, chars: usize) -> String {
    match text.char_indices().nth(chars) {
        Some((end, _)) => format!("{}…", &text[..end]),
        None => text.to_owned(),
    }
}

/// A stream of events: the first of each kind.
pub(super) fn shortened_stream(body: &[u8]) -> String {
    let text = String::from_utf8_lossy(body);
    let mut kinds = Vec::new();
    let mut events = Vec::new();
    for event in text.split("\n\n") {
        let Some(kind) = event.lines().find(|line| line.starts_with("event:")) else { continue };
        if kinds.contains(&kind) {
            continue;
        }
        kinds.push(kind);
        let lines: Vec<String> = event.lines().map(|line| cut(line, DATA_CHARS)).collect();
        events.push(lines.join("\n"));
    }
    events.join("\n\n") + "\n"
}
