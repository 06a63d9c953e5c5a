//! What requests of a move have in common: which step a path asks for, bodies, and answers.
use bytes::Bytes;
use http::{Request, Response};
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::base::error::{Code, Error};
use crate::base::ids::{Id as _, RequestId, WorkspaceId};
use crate::base::json;
use crate::base::response::{json_response, method_not_allowed};
use crate::interfaces::host::Answered;
use crate::interfaces::rest::{is_json, json_error};
use crate::storage::fault::Fault;
use crate::storage::moves::Refusal;

/// The answer to a request, and what the log says of it.
pub(super) struct Answer {
    /// The step, such as `export_part`; `None`: the path asks for none.
    pub operation: Option<&'static str>,
    /// The workspace, if the path has the id of one.
    pub workspace_id: Option<WorkspaceId>,
    /// What came of it.
    pub outcome: Result<Response<Bytes>, Fault>,
}

impl Answer {
    /// To a path that asks for nothing.
    pub(super) fn unknown() -> Self {
        Self::refused(Error::new(Code::NotFound, "There is no such step of a move."))
    }

    /// To a request that asks for no step.
    pub(super) fn refused(error: Error) -> Self {
        Self { operation: None, workspace_id: None, outcome: Err(error.into()) }
    }

    /// The response, with what the log says of it.
    pub(super) fn into_response(self, request: &Request<Bytes>, request_id: &RequestId) -> Response<Bytes> {
        let Self { operation, workspace_id, outcome } = self;
        let mut response = outcome.unwrap_or_else(|fault| fault.into_response(request_id));
        let has_written = !request.method().is_safe();
        response.extensions_mut().insert(Answered { workspace: workspace_id, operation, has_written });
        response
    }
}

/// A step that can be asked of a workspace: the rest of the path, the method, what the log calls it, and the step.
pub(super) type Offered<S> = (&'static str, &'static str, &'static str, S);

/// What a request asks for.
pub(super) struct Asked<S> {
    pub step: S,
    pub workspace_id: WorkspaceId,
    operation: &'static str,
}

impl<S: Copy> Asked<S> {
    /// Reads a request for one of these steps.
    pub(super) fn read(
        steps: &[Offered<S>],
        request: &Request<Bytes>,
        workspace_id: &str,
        rest: &[&str],
    ) -> Result<Self, Error> {
        let (operation, step) = step(steps, request, rest)?;
        Ok(Self { step, workspace_id: workspace(workspace_id)?, operation })
    }

    /// The answer to it.
    pub(super) fn answer(self, outcome: Result<Response<Bytes>, Fault>) -> Answer {
        Answer { operation: Some(self.operation), workspace_id: Some(self.workspace_id), outcome }
    }
}

/// The step that a method and the rest of a path ask for, and what the log calls it.
fn step<S: Copy>(
    steps: &[Offered<S>],
    request: &Request<Bytes>,
    rest: &[&str],
) -> Result<(&'static str, S), Error> {
    let rest = rest.join("/");
    let here: Vec<_> = steps.iter().filter(|(place, ..)| *place == rest).collect();
    if here.is_empty() {
        return Err(Error::new(Code::NotFound, "There is no such step of a move."));
    }
    let asked = request.method().as_str();
    match here.iter().find(|(_, method, ..)| *method == asked) {
        Some((_, _, operation, step)) => Ok((operation, *step)),
        None => {
            let allow: Vec<&str> = here.iter().map(|(_, method, ..)| *method).collect();
            Err(method_not_allowed(&allow.join(", ")))
        }
    }
}

/// The workspace that a path names.
pub(super) fn workspace(text: &str) -> Result<WorkspaceId, Error> {
    let id = WorkspaceId::from_stored(text);
    // It becomes a part of the names of triggers.
    if id.to_bytes().is_some() { Ok(id) } else { Err(no_workspace()) }
}

fn no_workspace() -> Error {
    let message = "No workspace has this id. `GET /operator/workspaces?named=…` finds one by its id or name.";
    Error::new(Code::NotFound, message)
}

/// The body as JSON; an empty one is an empty object.
pub(super) fn body<T: DeserializeOwned>(request: &Request<Bytes>) -> Result<T, Error> {
    let value = if request.body().is_empty() {
        Value::Object(Map::new())
    } else if is_json(request.headers()) {
        json::read(request.body()).map_err(json_error)?
    } else {
        let message = "Send the body as JSON, with the header `Content-Type: application/json`.";
        return Err(Error::new(Code::UnsupportedMediaType, message));
    };
    serde_json::from_value(value).map_err(|error| Error::field("body", error.to_string()))
}

/// The value of a parameter of the query.
pub(super) fn parameter(request: &Request<Bytes>, name: &str) -> Option<String> {
    let query = request.uri().query().unwrap_or_default();
    let mut pairs = form_urlencoded::parse(query.as_bytes());
    pairs.find(|(known, _)| known == name).map(|(_, value)| value.into_owned())
}

/// 200 with this body.
pub(super) fn ok(body: &Value) -> Response<Bytes> {
    json_response(200, body.to_string().into())
}

/// Why a step is not made, for the operator.
pub(super) fn refused(refusal: Refusal) -> Fault {
    match refusal {
        Refusal::NoWorkspace => no_workspace().into(),
        other => other.error().into(),
    }
}
