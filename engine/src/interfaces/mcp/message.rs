//! Parses JSON-RPC 2.0 messages and rejects everything else.
use serde_json::{Map, Value, json};

use crate::base::error::Error;
use crate::base::ids::RequestId;
use crate::base::json::{self, JsonError};
use crate::interfaces::mcp::Reply;

/// Not JSON.
pub const PARSE_ERROR: i64 = -32700;
/// Not a JSON-RPC request.
pub const INVALID_REQUEST: i64 = -32600;
/// No such method.
pub const METHOD_NOT_FOUND: i64 = -32601;
/// No such tool, or parameters of the wrong form.
pub const INVALID_PARAMS: i64 = -32602;
/// The request failed, or its key is not valid any more.
pub const INTERNAL_ERROR: i64 = -32603;
/// No such resource. Revision 2026-07-28 says [`INVALID_PARAMS`].
pub const RESOURCE_NOT_FOUND: i64 = -32002;
/// A header contradicts the body (2026-07-28).
pub const HEADER_MISMATCH: i64 = -32020;
/// An unsupported protocol version (2026-07-28).
pub const UNSUPPORTED_VERSION: i64 = -32022;

/// A JSON-RPC error.
pub struct Refusal {
    code: i64,
    message: String,
    data: Option<Value>,
}

impl Refusal {
    /// With a code and a message.
    pub fn new(code: i64, message: impl Into<String>) -> Self {
        Self { code, message: message.into(), data: None }
    }

    /// The same with data.
    pub fn with_data(mut self, data: Value) -> Self {
        self.data = Some(data);
        self
    }

    /// For a method that does not exist.
    pub fn unknown_method(method: &str) -> Self {
        let shown: String = method.chars().take(64).collect();
        Self::new(METHOD_NOT_FOUND, format!("Method not found: {shown}"))
    }

    /// For a message of a batch that failed as a whole request would; `data` is the REST error.
    pub fn failed(error: &Error, request_id: &RequestId) -> Self {
        Self::new(INTERNAL_ERROR, error.message.to_string()).with_data(error.to_json(request_id))
    }

    /// With the code of revision 2026-07-28.
    #[must_use]
    pub fn modern(self) -> Self {
        let code = if self.code == RESOURCE_NOT_FOUND { INVALID_PARAMS } else { self.code };
        Self { code, ..self }
    }

    /// As a reply to the request with this id.
    pub(super) fn reply(&self, status: u16, id: &Value) -> Reply {
        let mut error = json!({"code": self.code, "message": self.message});
        if let Some(data) = &self.data {
            error["data"] = data.clone();
        }
        Reply { status, text: json!({"jsonrpc": "2.0", "id": id, "error": error}).to_string() }
    }
}

/// A message from a client.
pub enum Message {
    /// Requires a reply.
    Request(Request),
    /// Takes no reply.
    Notification,
    /// A reply; we never send requests.
    Response,
}

/// A request.
pub struct Request {
    /// A string or an integer, echoed unchanged.
    pub id: Value,
    /// The method.
    pub method: String,
    /// An object; empty if omitted.
    pub params: Value,
}

/// Parses a body. For valid JSON that breaks the stricter rules of REST bodies (duplicate keys, U+0000), it also
/// returns the error for the result of the tool call.
pub fn parse(body: &[u8]) -> Result<(Value, Option<Error>), Refusal> {
    let unreadable = |message: &str| Refusal::new(PARSE_ERROR, format!("Parse error: {message}"));
    match json::read(body) {
        Ok(value) => Ok((value, None)),
        Err(JsonError::Unreadable { message }) => Err(unreadable(&message)),
        Err(JsonError::Refused { field, message }) => {
            let value = serde_json::from_slice(body).map_err(|_| unreadable(&message))?;
            Ok((value, Some(Error::field(as_in_rest(&field), message))))
        }
    }
}

/// The path in a message as REST names it, such as `name` for `params.arguments.data.name`.
fn as_in_rest(field: &str) -> &str {
    let Some(argument) = field.strip_prefix("params.arguments.") else {
        return field;
    };
    match argument.strip_prefix("data") {
        Some(rest) if rest.starts_with('[') => rest,
        Some(rest) => rest.strip_prefix('.').unwrap_or(argument),
        None => argument,
    }
}

impl Message {
    /// Parses one message.
    pub fn read(value: Value) -> Result<Self, Refusal> {
        let invalid = |message: &str| Refusal::new(INVALID_REQUEST, message);
        let Value::Object(mut object) = value else {
            return Err(invalid("A message is a JSON object."));
        };
        if object.get("jsonrpc").and_then(Value::as_str) != Some("2.0") {
            return Err(invalid("`jsonrpc` must be \"2.0\"."));
        }
        let Some(method) = object.remove("method") else {
            if object.contains_key("result") || object.contains_key("error") {
                return Ok(Self::Response);
            }
            return Err(invalid("`method` is missing."));
        };
        let Value::String(method) = method else {
            return Err(invalid("`method` must be a string."));
        };
        let Some(id) = object.remove("id") else {
            return Ok(Self::Notification);
        };
        if !(id.is_string() || id.is_i64() || id.is_u64()) {
            return Err(invalid("`id` must be a string or a whole number."));
        }
        let params = object.remove("params").unwrap_or_else(|| Value::Object(Map::new()));
        if !params.is_object() {
            return Err(invalid("`params` must be an object."));
        }
        Ok(Self::Request(Request { id, method, params }))
    }
}
