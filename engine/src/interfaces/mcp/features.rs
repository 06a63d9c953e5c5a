//! What the server offers in both eras: tools, prompts and resources.
use serde_json::{Value, json};

use crate::base::ids::RequestId;
use crate::interfaces::api::Api;
use crate::interfaces::mcp::message::{Refusal, Request};
use crate::interfaces::mcp::{prompts, resources, tools};
use crate::operations::context::Context;
use crate::storage::fault::Fault;

/// The `capabilities` of `initialize` and `server/discover`.
pub(super) fn capabilities() -> Value {
    json!({"tools": {}, "prompts": {}, "resources": {}})
}

/// Whether a result may be kept and shared by a client: it is the same for every key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Scope {
    /// It is, and changes only with the binary.
    Public,
    /// It has a workspace's data.
    Private,
}

/// The result of a request for prompts or resources; `None` for other methods.
pub(super) async fn answer(
    api: &Api,
    context: &mut Context,
    request: &Request,
    request_id: &RequestId,
) -> Result<Option<Result<(Value, Scope), Refusal>>, Fault> {
    let params = &request.params;
    let public = |result: Value| (result, Scope::Public);
    let private = |result: Value| (result, Scope::Private);
    Ok(Some(match request.method.as_str() {
        "prompts/list" => one_page(params, prompts::list).map(public),
        "prompts/get" => prompts::get(params).map(public),
        "resources/templates/list" => one_page(params, resources::templates).map(public),
        "resources/list" => resources::list(api, context, params, request_id).await?.map(private),
        "resources/read" => resources::content(api, context, params, request_id).await?.map(private),
        _ => return Ok(None),
    }))
}

fn one_page(params: &Value, list: fn() -> Value) -> Result<Value, Refusal> {
    tools::refuse_cursor(params).map_or_else(|| Ok(list()), Err)
}
