//! `POST /tools/{id}/test`: sends one signed request to a tool, and shows it with its answer.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use super::Tool;
use crate::base::error::{Code, Error, FieldProblem};
use crate::base::ids::ToolTestId;
use crate::base::tool_parameters::ToolParameters;
use crate::live::tool_request;
use crate::operations::context::Context;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::operations::resource::{self, Declared};
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::signing::SecretVersions;
use crate::storage::snapshots::ToolSnapshot;

/// `POST /tools/{id}/test`
pub const OPERATION: Operation = Operation::post("test_tool", "/tools/{id}/test", run!(run))
    .with_effects(Effects::Update)
    .with_success(Success::Ok)
    .reaching_out()
    .docs(
        "Test a tool",
        "Sends one request to the tool's URL now, signed as in a conversation, and returns the request with the answer. \
        The endpoint does its work: a test of a booking tool books. In the body `call.source` is `test` and the other \
        fields of `call` are null. An endpoint that fails or does not answer is a result, not an error.",
    )
    .optional_body::<Body>()
    .returns::<Tested>()
    .errors(&[Code::PrivateTarget, Code::RequestInProgress]);

/// What the tool is called with.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// The arguments; they must fit the tool's `parameters`.
    #[serde(default)]
    arguments: Map<String, Value>,
}

/// What was sent, and what came back.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolTestResult")]
struct Tested {
    /// The request as it was sent.
    request: SentRequest,
    /// The answer; null if there was none.
    response: Option<ReceivedResponse>,
    /// Why a conversation would take this as a failure; null if it would not.
    error: Option<String>,
    /// How long it took, in milliseconds.
    duration_ms: i64,
}

/// A request to a tool.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolTestRequest")]
struct SentRequest {
    /// `POST`, …
    method: String,
    /// The URL, with the arguments of GET and DELETE.
    url: String,
    /// The headers, with the signature.
    headers: BTreeMap<String, String>,
    /// The body; empty for GET and DELETE.
    body: String,
}

/// The answer of a tool.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "ToolTestResponse")]
struct ReceivedResponse {
    /// The HTTP status.
    status: u16,
    /// The body as text.
    body: String,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Body { arguments } = input.body()?;
    let select = sql!(
        format!(
            "SELECT {}, {} FROM tools WHERE workspace_id = :ws AND id = :id",
            Tool::COLUMNS,
            SecretVersions::columns("tools")
        ),
        id = input.path_value()
    );
    let [rows] = context.read_each([select]).await?;
    let row = rows.first().ok_or_else(|| Error::not_found("tool"))?;
    let (current, secrets) = (Tool::read(row)?, SecretVersions::read(row)?);
    let unchanged = resource::unchanged(&current);
    let Tool { id, draft, .. } = current;
    let arguments = Value::Object(arguments);
    let parameters = Value::Object(draft.parameters.clone());
    if let Ok(parameters) = ToolParameters::parse(&parameters)
        && let Err(problems) = parameters.check_arguments(&arguments)
    {
        let problems: Vec<FieldProblem> = problems.into_iter().map(within_arguments).collect();
        return Err(Error::fields(Code::ValidationFailed, &problems).into());
    }
    let tool = ToolSnapshot {
        id,
        name: draft.name,
        url: draft.url,
        method: draft.method,
        description: draft.description,
        parameters: parameters.into(),
        timeout_ms: draft.timeout_ms,
        secret_version: secrets.version,
    };
    let services = context.services.clone();
    let test_id = services.new_id::<ToolTestId>().to_string();
    let call = tool_request::described_test();
    let request = tool_request::request(
        &services,
        &tool,
        secrets,
        &test_id,
        &arguments,
        &call,
        context.workspace_id()?,
    )
    .map_err(|reason| Error::new(Code::PrivateTarget, format!("{reason}.")))?;
    let sent = SentRequest {
        method: request.method.to_owned(),
        url: request.url.clone(),
        headers: request.headers.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect(),
        body: String::from_utf8_lossy(&request.body).into_owned(),
    };
    // Each waits for somebody else's server, with a connection and an address to look up.
    let _place = services.tool_tests().take(context.workspace_id()?, 1, 0).ok_or_else(|| {
        Error::new(
            Code::Unavailable,
            "Too many tests of tools are under way. Try again when they have ended.",
        )
    })?;
    // Stored before the request is sent, so that the audit log has it, and a repeat does not send it again.
    let until = Error::new(
        Code::RequestInProgress,
        "This test is under way. If it stays so for a minute, its result was lost: send another one with another Idempotency-Key.",
    );
    context.commit_intent(Batch::from([unchanged]), &until).await?;
    let clock = &services.ports().clock;
    let began_ms = clock.now_ms();
    let answer = services.ports().http.send(request).await;
    let duration_ms = clock.now_ms() - began_ms;
    let (response, error) = match answer {
        Ok(reply) => {
            let error = (!(200..=299).contains(&reply.status))
                .then(|| format!("the tool answered HTTP {}", reply.status));
            let body = String::from_utf8_lossy(&reply.body).into_owned();
            (Some(ReceivedResponse { status: reply.status, body }), error)
        }
        Err(error) => (None, Some(tool_request::reason(&tool, &error))),
    };
    let output = Output::ok(&Tested { request: sent, response, error, duration_ms })?;
    context.replace_stored_response(Batch::default(), Some(&output)).await?;
    Ok(output)
}

/// The problem of an argument, named as the field of the request that it is.
fn within_arguments(problem: FieldProblem) -> FieldProblem {
    let dot = if problem.field.is_empty() || problem.field.starts_with('[') { "" } else { "." };
    FieldProblem::new(format!("arguments{dot}{}", problem.field), problem.message)
}
