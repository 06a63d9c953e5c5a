//! Traces of calls.
use serde_json::Value;

use super::Port;

/// A host that makes a trace of each call.
pub trait Traces: Port {
    /// A call has ended and is stored; `call` is what `GET /calls/{id}` says of it. Returns at once.
    fn ended(&self, workspace_id: &str, call: &Value);
}
