//! The JSON Schema of a tool's arguments, and the validation of arguments against it.
//!
//! Supports drafts 2020-12 (the default), 2019-09 and 7 within one document: every `$ref` starts with `#`, and `$id` is
//! allowed at the root only. `format` and the `content…` keywords are annotations, as the drafts define them, and are not
//! checked. Schemas are untrusted, so everything they can make grow is bounded: size, depth, patterns, and the steps of one
//! validation. The existing libraries need randomness, and with them `anyOf` over `$ref` doubles the work at every level.

mod canonical;
mod compile;
mod evaluate;
mod number;
mod pattern;
mod schema;

use std::fmt;
use std::io;

use serde_json::Value;

use crate::base::field::FieldProblem;
use schema::Schema;

/// Size of a schema, as compact JSON.
pub const TOOL_PARAMETERS_BYTES_MAX: usize = 32 * 1024;

/// Deepest nesting of arrays and objects in a schema.
pub const TOOL_PARAMETERS_DEPTH_MAX: usize = 64;

/// Deepest nesting of arrays and objects in arguments.
pub const ARGUMENTS_DEPTH_MAX: usize = 64;

/// Most problems in one result.
pub const PROBLEMS_MAX: usize = 16;

/// A compiled, valid schema.
#[derive(Clone)]
pub struct ToolParameters {
    document: Value,
    schema: Schema,
}

impl ToolParameters {
    /// Accepts an object schema that is valid in its draft and can be validated in bounded time. Paths are relative to the schema.
    pub fn parse(document: &Value) -> Result<Self, Vec<FieldProblem>> {
        Self::compile(document, false)
    }

    /// The schema of a tool in use, which [`Self::parse`] accepted: only what its arguments meet is compiled. A conversation
    /// does this for each call, and a schema can have many large patterns.
    pub fn parse_accepted(document: &Value) -> Result<Self, Vec<FieldProblem>> {
        Self::compile(document, true)
    }

    fn compile(document: &Value, was_checked: bool) -> Result<Self, Vec<FieldProblem>> {
        if !is_within_depth(document, TOOL_PARAMETERS_DEPTH_MAX) {
            return Err(whole(format!(
                "is nested deeper than {TOOL_PARAMETERS_DEPTH_MAX} levels; make it flatter"
            )));
        }
        if serialised_bytes(document) > TOOL_PARAMETERS_BYTES_MAX {
            return Err(whole(format!(
                "is larger than {TOOL_PARAMETERS_BYTES_MAX} bytes as JSON; make it smaller"
            )));
        }
        let Some(object) = document.as_object() else {
            return Err(whole("must be a JSON Schema object with \"type\": \"object\""));
        };
        if object.get("type").and_then(Value::as_str) != Some("object") {
            let message = "must be \"object\", because a tool's arguments have names".to_owned();
            return Err(vec![FieldProblem { field: "type".to_owned(), message }]);
        }
        let schema = compile::compile(document, was_checked)?;
        Ok(Self { document: document.clone(), schema })
    }

    /// Validates the arguments of a tool call. Paths are relative to the arguments.
    pub fn check_arguments(&self, arguments: &Value) -> Result<(), Vec<FieldProblem>> {
        if !is_within_depth(arguments, ARGUMENTS_DEPTH_MAX) {
            return Err(whole(format!(
                "is nested deeper than {ARGUMENTS_DEPTH_MAX} levels; make it flatter"
            )));
        }
        evaluate::check(&self.schema, arguments)
    }

    /// The original document.
    pub fn as_value(&self) -> &Value {
        &self.document
    }
}

impl fmt::Debug for ToolParameters {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ToolParameters({})", self.document)
    }
}

impl PartialEq for ToolParameters {
    fn eq(&self, other: &Self) -> bool {
        self.document == other.document
    }
}

fn whole(message: impl Into<String>) -> Vec<FieldProblem> {
    vec![FieldProblem { field: String::new(), message: message.into() }]
}

fn is_within_depth(value: &Value, levels: usize) -> bool {
    match value {
        Value::Array(items) => levels > 0 && items.iter().all(|item| is_within_depth(item, levels - 1)),
        Value::Object(members) => {
            levels > 0 && members.values().all(|member| is_within_depth(member, levels - 1))
        }
        _ => true,
    }
}

fn serialised_bytes(value: &Value) -> usize {
    let mut counter = Counter(0);
    match serde_json::to_writer(&mut counter, value) {
        Ok(()) => counter.0,
        Err(_) => usize::MAX,
    }
}

struct Counter(usize);

impl io::Write for Counter {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

#[cfg(test)]
mod tests;
