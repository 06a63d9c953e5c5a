//! What the log says of a request.
use std::borrow::Cow;
use std::fmt;
use std::net::IpAddr;

use http::{Method, StatusCode};

use crate::base::ids::WorkspaceId;
use crate::interfaces::host::prepared_response::RequestTrace;
use crate::live::telephony::without_token;

/// The log record of a request, without keys, tokens, queries and bodies.
#[derive(Debug, Clone)]
pub struct LogRecord {
    trace: RequestTrace,
    status: StatusCode,
    answered: Answered,
    incident: Option<String>,
    note: Option<String>,
}

/// An extension of a response: for whom it was answered, and what was asked.
#[derive(Debug, Clone, Default)]
pub(crate) struct Answered {
    /// `None` without a valid key or session.
    pub(crate) workspace: Option<WorkspaceId>,
    /// The operation, such as `create_assistant`; `None` for what is no operation.
    pub(crate) operation: Option<&'static str>,
    /// Whether the request has changed something.
    pub(crate) has_written: bool,
}

impl LogRecord {
    pub(super) fn new(
        trace: RequestTrace,
        status: StatusCode,
        answered: Answered,
        incident: Option<String>,
        note: Option<String>,
    ) -> Self {
        Self { trace, status, answered, incident, note }
    }

    /// The id, which the client also receives.
    pub fn request_id(&self) -> &str {
        &self.trace.request_id
    }

    /// The method of the request.
    pub fn method(&self) -> &Method {
        &self.trace.method
    }

    /// The path, without a token.
    pub fn path(&self) -> Cow<'_, str> {
        without_token(self.trace.uri.path())
    }

    /// The route, such as `/assistants/{id}`: one of a fixed list, so that requests can be counted by it.
    pub fn route(&self) -> &'static str {
        self.trace.route
    }

    /// The operation that was run, such as `create_assistant`; over MCP, the last one.
    pub fn operation(&self) -> Option<&'static str> {
        self.answered.operation
    }

    /// The workspace of the key or the session.
    pub fn workspace(&self) -> Option<&str> {
        self.answered.workspace.as_deref()
    }

    /// The last four characters of the API key, as in the list of keys.
    pub fn key_last_four(&self) -> Option<&str> {
        self.trace.key_last_four.as_ref().and_then(|four| std::str::from_utf8(four).ok())
    }

    /// The client's address; of an IPv6 address, its network.
    pub fn address(&self) -> Option<IpAddr> {
        self.trace.address
    }

    /// The status of the response.
    pub fn status(&self) -> StatusCode {
        self.status
    }

    /// Whether a machine asks this every few seconds, so that it would fill the log.
    pub fn is_probe(&self) -> bool {
        matches!(self.trace.route, "/healthz" | "/readyz" | "/metrics")
    }

    /// What the operator has to know, if anything. Log it in any case.
    pub fn note(&self) -> Option<&str> {
        self.note.as_deref()
    }

    /// The internal error, if any. Log a record with one as an error.
    pub fn incident(&self) -> Option<&str> {
        self.incident.as_deref()
    }
}

impl fmt::Display for LogRecord {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (request_id, method, path) = (self.request_id(), self.method(), self.path());
        let status = self.status.as_u16();
        match &self.incident {
            Some(detail) => {
                write!(f, "a request failed on our side: {request_id} {method} {path} {status}: {detail}")
            }
            None => write!(f, "{request_id} {method} {path} {status}"),
        }
    }
}
