//! Traces of calls.
pub mod otlp;

use std::borrow::Cow;

use super::Port;

/// A host that makes a trace of each call.
pub trait Traces: Port {
    /// A call has ended and is stored. Returns at once.
    fn ended(&self, call: Step);
}

/// A step of a call, or the call, and the steps that it consists of: a span of its trace.
#[derive(Debug, Clone, PartialEq)]
pub struct Step {
    /// By OpenTelemetry's conventions for generative AI, where there is one.
    pub name: Cow<'static, str>,
    /// Whether somebody else is waited for.
    pub is_client: bool,
    /// When it began, in milliseconds since 1970.
    pub start_ms: i64,
    /// When it ended.
    pub end_ms: i64,
    /// What is known of it: nothing that anybody said.
    pub attributes: Vec<(&'static str, Attribute)>,
    /// Why it failed.
    pub failure: Option<String>,
    /// What it consists of.
    pub inner: Vec<Step>,
}

impl Step {
    /// A step without attributes, which did not fail.
    pub fn new(name: impl Into<Cow<'static, str>>, is_client: bool, start_ms: i64, end_ms: i64) -> Self {
        let name = name.into();
        Self { name, is_client, start_ms, end_ms, attributes: Vec::new(), failure: None, inner: Vec::new() }
    }
}

/// The value of an attribute.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Attribute {
    /// A text.
    Text(Cow<'static, str>),
    /// A number.
    Number(i64),
}

impl From<&'static str> for Attribute {
    fn from(text: &'static str) -> Self {
        Self::Text(text.into())
    }
}

impl From<String> for Attribute {
    fn from(text: String) -> Self {
        Self::Text(text.into())
    }
}

impl From<i64> for Attribute {
    fn from(number: i64) -> Self {
        Self::Number(number)
    }
}
