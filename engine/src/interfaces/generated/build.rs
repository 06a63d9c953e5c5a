//! Writes the text that a WebAssembly module embeds: the documents, split into parts that are grouped by operation, of which
//! each is there once. A split can be at any position, because parts are only joined again, in their order.
use std::fmt::Write;
use std::ops::Range;

use serde_json::Value;

use crate::interfaces::generated::embedded::{OPENAPI, TOOLS};
use crate::interfaces::generated::parts::Parts;
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

    let mut parts = Parts::default();
    let mut schemas = String::new();
    let before_url = parts.put(before_url);
    for document in &mut documents {
        document.place(0, &mut parts);
    }
    for (at, operation) in OPERATIONS.iter().enumerate() {
        // Schemas first: each is read from one place, and the documents have them, too.
        let requests = requests(operation);
        let query = schema(&mut parts, requests.query);
        let body = schema(&mut parts, requests.body);
        line(&mut schemas, operation.id, &[query, body]);
        for document in &mut documents {
            document.place(at + 1, &mut parts);
        }
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
    Ok(format!("{index}{schemas}\n{}", parts.as_str()))
}

/// A document and its parts: the part before all operations, then one per operation, in the table's order.
struct Document<'a> {
    name: &'static str,
    text: &'a str,
    parts: Vec<Option<Part>>,
}

struct Part {
    range: Range<usize>,
    places: Vec<String>,
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
        let part = |start: usize| Part { range: start..end(start), places: Vec::new() };
        let parts = starts.iter().map(|start| start.map(part)).collect();
        Self { name, text, parts }
    }

    /// Writes what is new in one of its parts.
    fn place(&mut self, at: usize, parts: &mut Parts) {
        if let Some(Some(part)) = self.parts.get_mut(at) {
            part.places = parts.put_new(&self.text[part.range.clone()]);
        }
    }

    /// The positions of its parts, in the document's order.
    fn places(self) -> Vec<String> {
        let mut parts: Vec<Part> = self.parts.into_iter().flatten().collect();
        parts.sort_by_key(|part| part.range.start);
        parts.into_iter().flat_map(|part| part.places).collect()
    }
}

/// A schema's position; `-` for none.
fn schema(parts: &mut Parts, schema: Option<Value>) -> String {
    schema.map_or_else(|| "-".to_owned(), |schema| parts.put(&schema.to_string()))
}

fn line(index: &mut String, name: &str, places: &[String]) {
    // Writing to a String cannot fail.
    let _ = writeln!(index, "{name} {}", places.join(" "));
}
