//! One call of a tool: a signed request to the owner's endpoint.
use bytes::Bytes;
use serde_json::{Value, json};

use crate::base::ids::WorkspaceId;
use crate::base::limits::TOOL_RESPONSE_BYTES_MAX;
use crate::base::targets::PublicUrl;
use crate::ports::statement::{Rows, Statement};
use crate::ports::{DatabaseError, Egress, HttpError, HttpRequest, Party, PartyKind};
use crate::services::Services;
use crate::storage::calls::NewCall;
use crate::storage::signing::{SecretOwner, SecretVersions, Signed};
use crate::storage::snapshots::{ToolMethod, ToolSnapshot};

/// Reads the signing secrets. A conversation uses the tool's configuration from its start, but a secret that was
/// rotated since must not sign after its overlap.
pub(super) fn secrets(tool: &ToolSnapshot, workspace_id: &WorkspaceId) -> Statement {
    SecretVersions::select(SecretOwner::Tool(&tool.id)).in_workspace(workspace_id)
}

/// Reads the rows of [`secrets`]; for a deleted tool, returns the version from the start of the conversation.
pub(super) fn read_secrets(
    tool: &ToolSnapshot,
    rows: Option<&Rows>,
) -> Result<SecretVersions, DatabaseError> {
    match rows.and_then(Rows::first) {
        Some(row) => SecretVersions::read_or(row, tool.secret_version),
        None => Err(DatabaseError::Shape("a call is in no workspace".to_owned())),
    }
}

/// Calls the tool with arguments that fit its parameters, which the conversation has checked. Returns its response as
/// text, or the reason of its failure. `id` is the same in every retry, so
/// that the endpoint can recognise a repetition.
pub(super) async fn call(
    services: &Services,
    tool: &ToolSnapshot,
    secrets: SecretVersions,
    id: &str,
    arguments: &Value,
    call: &NewCall,
) -> Result<String, String> {
    let request = request(services, tool, secrets, id, arguments, &described(call), &call.workspace_id)?;
    let reply = services.ports().http.send(request).await.map_err(|error| reason(tool, &error))?;
    match reply.status {
        200..=299 => Ok(String::from_utf8_lossy(&reply.body).into_owned()),
        status => Err(format!("the tool answered HTTP {status}")),
    }
}

/// Why a request has no answer.
pub(crate) fn reason(tool: &ToolSnapshot, error: &HttpError) -> String {
    match error {
        HttpError::Timeout => format!("the tool did not answer within {} ms", tool.deadline_ms()),
        HttpError::Refused => "the tool's address is not public".to_owned(),
        HttpError::TooLarge(_) => format!("the tool's answer is larger than {TOOL_RESPONSE_BYTES_MAX} bytes"),
        HttpError::Failed(_) => "the tool could not be reached".to_owned(),
    }
}

/// What the request says of its call.
fn described(call: &NewCall) -> Value {
    json!({
        "id": call.id,
        "source": call.source.as_str(),
        "from": call.from,
        "to": call.to,
        "assistant_id": call.assistant_id,
        "assistant_revision": call.assistant_revision,
        "metadata": call.metadata,
    })
}

/// What the request of a test says instead, for there is no call.
pub(crate) fn described_test() -> Value {
    json!({
        "id": null, "source": "test", "from": null, "to": null, "assistant_id": null, "assistant_revision": null,
        "metadata": {},
    })
}

/// The signed request. `call` describes the conversation, as the receiver gets it.
pub(crate) fn request(
    services: &Services,
    tool: &ToolSnapshot,
    secrets: SecretVersions,
    id: &str,
    arguments: &Value,
    call: &Value,
    workspace_id: &WorkspaceId,
) -> Result<HttpRequest, String> {
    let config = services.config();
    let target = PublicUrl::parse(&tool.url, config.allow_private_targets)
        .map_err(|_| "the tool's address is not public".to_owned())?;
    let mut url = target.url().clone();
    let body = match tool.method {
        ToolMethod::Get | ToolMethod::Delete => {
            let mut query = url.query_pairs_mut();
            for (name, value) in arguments.as_object().into_iter().flatten() {
                match value {
                    Value::String(text) => query.append_pair(name, text),
                    other => query.append_pair(name, &other.to_string()),
                };
            }
            drop(query);
            Bytes::new()
        }
        ToolMethod::Post | ToolMethod::Put | ToolMethod::Patch => Bytes::from(
            json!({
                "id": id,
                "type": "tool.call",
                "tool": {"name": tool.name},
                "arguments": arguments,
                "call": call,
            })
            .to_string(),
        ),
    };
    let now_ms = services.ports().clock.now_ms();
    let message = Signed { id, now_ms, body: &body };
    let signatures = secrets.signatures(&config.secret, SecretOwner::Tool(&tool.id), &message);
    let mut headers = vec![
        ("user-agent", concat!("Sidetone/", env!("CARGO_PKG_VERSION")).to_owned()),
        ("idempotency-key", id.to_owned()),
        ("webhook-id", id.to_owned()),
        ("webhook-timestamp", message.timestamp_s().to_string()),
        ("webhook-signature", signatures),
    ];
    if !body.is_empty() {
        headers.push(("content-type", "application/json".to_owned()));
    }
    Ok(HttpRequest {
        method: tool.method.as_str(),
        url: url.into(),
        headers,
        body,
        deadline_ms: tool.deadline_ms().unsigned_abs(),
        response_bytes_max: TOOL_RESPONSE_BYTES_MAX,
        egress: if config.allow_private_targets { Egress::Operator } else { Egress::Public },
        party: Party::of_workspace(PartyKind::Tool, workspace_id),
        expected: &[],
    })
}
