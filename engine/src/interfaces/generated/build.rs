//! Writes the text that a WebAssembly module embeds: the documents, split into parts that are grouped by operation. The
//! parts of one operation repeat each other, and repetitions within a few kilobytes compress well. A split can be at
//! any position, because parts are only joined again, in their order.
use std::fmt::Write;
use std::ops::Range;

use serde_json::Value;

use crate::interfaces::generated::embedded::{OPENAPI, TOOLS};
use crate::interfaces::generated::{Documents, requests};
use crate::operations::OPERATIONS;
use crate::storage::fault::Fault;

/// A placeholder for the base URL.
const BASE_URL: &str = "https://base-url.invalid";

/// Writes the text for [`Documents::embedded`].
pub fn build() -> Result<String, Fault> {
    let derived = Documents::derived();
    let openapi = derived.openapi(BASE_URL)?;
    let (before_url, after_url) = openapi
        .split_once(&Value::from(BASE_URL).to_string())
        .ok_or_else(|| Fault::Bug("the OpenAPI document has no base URL".to_owned()))?;
    let tools = derived.tools()?;
    let mut documents = [
        Document::cut(OPENAPI, after_url, |id| format!("\"operationId\":\"{id}\"")),
        Document::cut(TOOLS, &tools, |id| format!("{{\"name\":\"{id}\"")),
    ];

    let mut parts = String::new();
    let mut schemas = String::new();
    let before_url = put(&mut parts, before_url);
    for document in &mut documents {
        document.place(0, &mut parts);
    }
    for (at, operation) in OPERATIONS.iter().enumerate() {
        for document in &mut documents {
            document.place(at + 1, &mut parts);
        }
        let requests = requests(operation);
        let query = schema(&mut parts, requests.query);
        let body = schema(&mut parts, requests.body);
        line(&mut schemas, operation.id, &[query, body]);
    }

    let mut index = String::new();
    for document in documents {
        let name = document.name;
        let mut places = document.places();
        if name == OPENAPI {
            places.insert(0, before_url.clone());
        }
        line(&mut index, name, &places);
    }
    Ok(format!("{index}{schemas}\n{parts}"))
}

/// A document and its parts: the part before all operations, then one per operation, in the table's order.
struct Document<'a> {
    name: &'static str,
    text: &'a str,
    parts: Vec<Option<Part>>,
}

struct Part {
    range: Range<usize>,
    place: String,
}

impl<'a> Document<'a> {
    /// Splits where the `mark` of an operation begins. An operation without a mark in the document has no part.
    fn cut(name: &'static str, text: &'a str, mark: impl Fn(&str) -> String) -> Self {
        let found = OPERATIONS.iter().map(|operation| text.find(&mark(operation.id)));
        let starts: Vec<Option<usize>> = [Some(0)].into_iter().chain(found).collect();
        let end = |start: usize| {
            let next = starts.iter().flatten().copied().filter(|other| *other > start).min();
            next.unwrap_or(text.len())
        };
        let part = |start: usize| Part { range: start..end(start), place: String::new() };
        let parts = starts.iter().map(|start| start.map(part)).collect();
        Self { name, text, parts }
    }

    /// Writes one of its parts at the next position.
    fn place(&mut self, at: usize, text: &mut String) {
        if let Some(Some(part)) = self.parts.get_mut(at) {
            part.place = put(text, &self.text[part.range.clone()]);
        }
    }

    /// The positions of its parts, in the document's order.
    fn places(self) -> Vec<String> {
        let mut parts: Vec<Part> = self.parts.into_iter().flatten().collect();
        parts.sort_by_key(|part| part.range.start);
        parts.into_iter().map(|part| part.place).collect()
    }
}

/// A schema's position; the OpenAPI document contains most schemas already.
fn schema(parts: &mut String, schema: Option<Value>) -> String {
    let Some(text) = schema.map(|schema| schema.to_string()) else {
        return "-".to_owned();
    };
    match parts.rfind(&text) {
        Some(start) => format!("{start}+{}", text.len()),
        None => put(parts, &text),
    }
}

fn put(parts: &mut String, part: &str) -> String {
    let start = parts.len();
    parts.push_str(part);
    format!("{start}+{}", part.len())
}

fn line(index: &mut String, name: &str, places: &[String]) {
    // Writing to a String cannot fail.
    let _ = writeln!(index, "{name} {}", places.join(" "));
}
