//! A tool called during a conversation: one signed request to the user's endpoint.
use bytes::Bytes;
use serde_json::{Value, json};

use crate::base::error::FieldProblem;
use crate::base::limits::TOOL_RESPONSE_BYTES_MAX;
use crate::base::targets::PublicUrl;
use crate::base::tool_parameters::ToolParameters;
use crate::ports::statement::{Rows, Statement};
use crate::ports::{DatabaseError, Egress, HttpError, HttpRequest};
use crate::services::Services;
use crate::sql;
use crate::storage::signing::{SecretKind, SecretVersions, Signed};
use crate::storage::snapshots::{ToolMethod, ToolSnapshot};

/// Who is calling, as the endpoint is told.
pub struct Conversation<'a> {
    /// The run's or the call's id.
    pub id: &'a str,
    /// `simulation`, …
    pub source: &'a str,
    /// The number that calls, where there is a telephone.
    pub from: Option<&'a str>,
    /// The number that is called.
    pub to: Option<&'a str>,
    /// The assistant.
    pub assistant_id: &'a str,
    /// The revision it runs with.
    pub assistant_revision: i64,
}

/// Reads which secrets sign at this moment: a run keeps the tool as it was, but a secret that was
/// rotated since must not sign any longer than its overlap. Goes into a batch that is made anyway.
pub fn secrets(tool: &ToolSnapshot, workspace_id: &str) -> Statement {
    sql!(
        "SELECT secret_version, old_secret_until FROM tools WHERE workspace_id = ?1 AND id = ?2",
        workspace_id,
        &tool.id
    )
}

/// What [`secrets`] found; of a tool that was deleted, what the run was started with.
pub fn read_secrets(tool: &ToolSnapshot, rows: Option<&Rows>) -> Result<SecretVersions, DatabaseError> {
    match rows.and_then(Rows::first) {
        Some(row) => SecretVersions::read(row),
        None => Ok(SecretVersions { version: tool.secret_version, old_until_ms: None }),
    }
}

/// Calls the tool: its answer as text, or why there is none. `call_id` is the same in every try of
/// the same call, so that the endpoint can do it once.
pub async fn call(
    services: &Services,
    tool: &ToolSnapshot,
    secrets: SecretVersions,
    call_id: &str,
    arguments: &Value,
    conversation: &Conversation<'_>,
) -> Result<String, String> {
    check_arguments(tool, arguments)?;
    let request = request(services, tool, secrets, call_id, arguments, conversation)?;
    match services.ports().http.send(request).await {
        Ok(reply) => {
            let text = String::from_utf8_lossy(&reply.body).into_owned();
            match reply.status {
                200..=299 => Ok(text),
                status => Err(format!("the tool answered HTTP {status}")),
            }
        }
        Err(HttpError::Timeout) => Err(format!("the tool did not answer within {} ms", tool.timeout_ms)),
        Err(HttpError::Refused) => Err("the tool's address is not public".to_owned()),
        Err(HttpError::TooLarge(_)) => {
            Err(format!("the tool's answer is larger than {TOOL_RESPONSE_BYTES_MAX} bytes"))
        }
        Err(HttpError::Failed(_)) => Err("the tool could not be reached".to_owned()),
    }
}

fn check_arguments(tool: &ToolSnapshot, arguments: &Value) -> Result<(), String> {
    let joined = |problems: Vec<FieldProblem>| {
        let all: Vec<String> =
            problems.iter().map(|problem| format!("{} {}", problem.field, problem.message)).collect();
        format!("the arguments do not fit the tool's parameters: {}", all.join("; "))
    };
    ToolParameters::parse(&tool.parameters).map_err(joined)?.check_arguments(arguments).map_err(joined)
}

fn request(
    services: &Services,
    tool: &ToolSnapshot,
    secrets: SecretVersions,
    call_id: &str,
    arguments: &Value,
    conversation: &Conversation<'_>,
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
                "id": call_id,
                "type": "tool.call",
                "tool": {"name": tool.name},
                "arguments": arguments,
                "call": {
                    "id": conversation.id,
                    "source": conversation.source,
                    "from": conversation.from,
                    "to": conversation.to,
                    "assistant_id": conversation.assistant_id,
                    "assistant_revision": conversation.assistant_revision,
                },
            })
            .to_string(),
        ),
    };
    let now_ms = services.ports().clock.now_ms();
    let message = Signed { id: call_id, now_ms, body: &body };
    let signatures = secrets.signatures(&config.secret, SecretKind::Tool, &tool.id, &message);
    let mut headers = vec![
        ("user-agent", concat!("Sidetone/", env!("CARGO_PKG_VERSION")).to_owned()),
        ("idempotency-key", call_id.to_owned()),
        ("webhook-id", call_id.to_owned()),
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
        deadline_ms: u64::try_from(tool.timeout_ms).unwrap_or_default(),
        response_bytes_max: TOOL_RESPONSE_BYTES_MAX,
        egress: if config.allow_private_targets { Egress::Operator } else { Egress::Public },
    })
}
