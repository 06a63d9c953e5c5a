//! What the service really answered and sent, recorded by the contract suite.
use serde_json::Value;

use crate::live::socket_origin;

/// The recording. The test `reference_examples` compares it with what the service says, and writes it.
const RECORDED: &str = include_str!("examples.json");
/// The address of the service that was recorded, and that of its sockets.
const RECORDED_URL: &str = "http://sandbox.example";
const RECORDED_SOCKETS: &str = "ws://sandbox.example";

/// The examples, as if this service had been recorded.
pub(in crate::interfaces) struct Examples(Value);

impl Examples {
    /// Reads them. What the page shows of a file that is no JSON is nothing; tests see to it that it is.
    pub(in crate::interfaces) fn of_service(base_url: &str) -> Self {
        let mut all = serde_json::from_str(RECORDED).unwrap_or_default();
        rename(&mut all, base_url);
        Self(all)
    }

    /// An operation's call: `path`, `query`, `body`, `status`, and `response` or `stream`.
    pub(in crate::interfaces) fn operation(&self, id: &str) -> &Value {
        &self.0["operations"][id]
    }

    /// The body of an event.
    pub(in crate::interfaces) fn event(&self, kind: &str) -> &Value {
        &self.0["events"][kind]
    }

    /// A delivery without its body: `method`, `url` and `headers`.
    pub(super) fn delivery(&self) -> &Value {
        &self.0["event"]
    }

    /// A tool's request: the same with `body`, and the tool's `answer`.
    pub(super) fn tool(&self) -> &Value {
        &self.0["tool"]
    }

    /// The body of an error.
    pub(super) fn error(&self) -> &Value {
        &self.0["error"]
    }
}

fn rename(value: &mut Value, base_url: &str) {
    match value {
        Value::String(text) if text.contains(RECORDED_URL) => *text = text.replace(RECORDED_URL, base_url),
        Value::String(text) if text.contains(RECORDED_SOCKETS) => {
            *text = text.replace(RECORDED_SOCKETS, &socket_origin(base_url));
        }
        Value::Array(items) => items.iter_mut().for_each(|item| rename(item, base_url)),
        Value::Object(fields) => fields.values_mut().for_each(|field| rename(field, base_url)),
        _ => {}
    }
}
