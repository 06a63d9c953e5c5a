//! Operations at the command line of the service: checked, run and recorded in the audit log as over REST and MCP.
use serde_json::{Map, Value};

use crate::base::ids::WorkspaceId;
use crate::interfaces::api::Api;
use crate::interfaces::dispatch::{Raw, dispatch};
use crate::operations;
use crate::operations::context::{Context, Principal};
use crate::operations::validate::Strictness;
use crate::storage::fault::Fault;

/// Runs the operation with this id in a workspace; returns the response's body, null if it has none.
pub(crate) async fn run(
    api: &Api,
    workspace_id: &WorkspaceId,
    id: &str,
    path: Vec<String>,
    body: Option<Map<String, Value>>,
) -> Result<Value, Fault> {
    let operation =
        operations::by_id(id).ok_or_else(|| Fault::Bug(format!("{id} is no operation of this version")))?;
    let raw = Raw {
        path,
        query: Map::new(),
        body: body.map(Value::Object),
        if_revision: None,
        idempotency_key: None,
        after_event: 0,
        strictness: Strictness::Strict,
        problems: Vec::new(),
    };
    let services = api.services();
    let mut context =
        Context::new(services.clone(), services.now().ms(), Principal::Operator(workspace_id.clone()));
    let answer = dispatch(api, &mut context, operation, raw).await?;
    let body = answer.body.as_deref().map_or(Ok(Value::Null), serde_json::from_str);
    body.map_err(|error| Fault::Bug(format!("the response of {id}: {error}")))
}
