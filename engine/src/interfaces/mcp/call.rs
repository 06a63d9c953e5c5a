//! `tools/call`: converts arguments to an operation's input, and its response to a tool result.
use serde_json::value::RawValue;
use serde_json::{Map, Value, json};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::ids::RequestId;
use crate::base::whole_number;
use crate::interfaces::api::Api;
use crate::interfaces::dispatch::{self, Answer, Raw};
use crate::interfaces::mcp::less;
use crate::interfaces::mcp::message::{self, Refusal};
use crate::operations;
use crate::operations::context::Context;
use crate::operations::operation::{Operation, Presence};
use crate::operations::validate::Strictness;
use crate::storage::fault::Fault;

/// A tool's result: the REST body, or the REST error.
pub struct ToolResult {
    body: String,
    is_error: bool,
    replayed: bool,
    /// What continues a list: the argument `after`.
    next: Option<String>,
    /// How to ask for less, where that is much, and for the rest.
    advice: Option<String>,
}

/// Calls a tool. `refused` is what is wrong with the document as a whole. The outer error is a wrong key or a failure
/// on our side; the inner one says that the message does not call a tool.
pub async fn call(
    api: &Api,
    context: &mut Context,
    params: &Value,
    refused: Option<Error>,
    request_id: &RequestId,
) -> Result<Result<ToolResult, Refusal>, Fault> {
    let Some(name) = params["name"].as_str() else {
        return Ok(Err(Refusal::new(message::INVALID_PARAMS, "params.name must be a string.")));
    };
    let Some(operation) = operations::by_id(name).filter(|operation| operation.is_tool()) else {
        let shown: String = name.chars().take(64).collect();
        return Ok(Err(Refusal::new(message::INVALID_PARAMS, format!("Unknown tool: {shown}"))));
    };
    let arguments = match params.get("arguments") {
        None => Map::new(),
        Some(Value::Object(arguments)) => arguments.clone(),
        Some(Value::String(text)) if text.trim_start().starts_with('{') => {
            match crate::base::json::read(text.as_bytes()) {
                Ok(Value::Object(arguments)) => arguments,
                _ => return Ok(Err(not_an_object())),
            }
        }
        Some(_) => return Ok(Err(not_an_object())),
    };
    let mut ways = None;
    let outcome = match refused.map_or_else(|| raw(operation, arguments), Err) {
        Ok(mut raw) => {
            let query = api.interfaces().schemas(operation)?.query.as_ref();
            less::fill_in(query, &mut raw.query);
            ways = less::ways(query, &raw.query);
            dispatch::dispatch(api, context, operation, raw).await
        }
        Err(error) => dispatch::authenticate(context).await.and_then(|_| Err(error.into())),
    };
    let fault = match outcome {
        Ok(mut answer) => {
            let shorter = answer.body.as_deref().zip(operation.shorter);
            let mut note = None;
            if let Some(shortened) = shorter.and_then(|(body, shorter)| shorter(body)) {
                answer.body = Some(shortened.body);
                note = shortened.note.map(|note| json!({"note": note}).to_string());
            }
            let result = ToolResult::of(answer);
            let advice =
                note.or_else(|| less::advice(result.body.len(), ways.as_deref(), result.next.is_some()));
            return Ok(Ok(ToolResult { advice, ..result }));
        }
        Err(fault) => fault,
    };
    let (error, incident) = fault.split();
    if error.code == Code::Unauthorized {
        return Err(error.into());
    }
    // Any other error is the tool's result: an HTTP error would make clients drop the connection.
    context.incident = context.incident.take().or(incident);
    let body = error.to_json(request_id).to_string();
    Ok(Ok(ToolResult { body, is_error: true, replayed: error.replayed, next: None, advice: None }))
}

fn not_an_object() -> Refusal {
    Refusal::new(message::INVALID_PARAMS, "params.arguments must be an object.")
}

/// Sorts arguments into path, query, body and the reserved ones.
fn raw(operation: &'static Operation, mut arguments: Map<String, Value>) -> Result<Raw, Error> {
    let is_confirmed = operation.spends() && arguments.remove("confirm") == Some(Value::Bool(true));
    if operation.spends() && !is_confirmed && !is_trial(&arguments) {
        let message = "This can incur usage. Ask the user, then call again with `confirm: true` (a boolean).";
        return Err(Error::new(Code::ConfirmationRequired, message));
    }
    let mut problems = Vec::new();
    let mut path = Vec::new();
    for name in operation.path_names() {
        match arguments.remove(name) {
            Some(Value::String(text)) => path.push(text),
            Some(Value::Number(number)) if name == "revision" && number.is_u64() => {
                path.push(number.to_string())
            }
            Some(_) if name == "revision" => problems.push(FieldProblem::new(name, "must be a whole number")),
            Some(_) => problems.push(FieldProblem::new(name, "must be a string")),
            None => problems.push(FieldProblem::new(name, "is required")),
        }
    }
    let if_revision = match arguments.remove("if_revision") {
        Some(value) if operation.revision => match whole_number::revision(&value) {
            Some(revision) => Some(revision),
            None => {
                problems.push(FieldProblem::new("if_revision", "must be a whole number"));
                None
            }
        },
        Some(_) => {
            problems.push(FieldProblem::new("if_revision", "is not taken by this tool"));
            None
        }
        None => None,
    };
    let idempotency_key = match arguments.remove("idempotency_key") {
        Some(Value::String(key)) if operation.takes_idempotency_key() => Some(key),
        Some(_) => {
            problems.push(FieldProblem::new(
                "idempotency_key",
                "must be a string, and is taken only by tools that create or start something",
            ));
            None
        }
        None => None,
    };
    let body = match (operation.body, arguments.remove("data")) {
        (Some(_), Some(data)) => Some(data),
        (Some(body), None) => {
            if body.presence == Presence::Partial {
                problems.push(FieldProblem::new("data", "is required: an object with the fields to change"));
            }
            Some(Value::Object(Map::new()))
        }
        (None, Some(_)) => {
            problems.push(FieldProblem::new("data", "is not taken by this tool"));
            None
        }
        (None, None) => None,
    };
    // What is left are query values; unknown ones are refused there, by name.
    let (query, strictness) = (arguments, Strictness::Coerce);
    Ok(Raw { path, query, body, if_revision, idempotency_key, after_event: 0, strictness, problems })
}

/// Whether nothing will be started, only checked. A tool that knows no such argument refuses it.
fn is_trial(arguments: &Map<String, Value>) -> bool {
    match arguments.get("dry_run") {
        Some(Value::Bool(is_trial)) => *is_trial,
        Some(Value::String(text)) => text == "true",
        _ => false,
    }
}

impl ToolResult {
    fn of(answer: Answer) -> Self {
        let body = answer.body.unwrap_or_else(|| "{}".to_owned());
        // The other lists say in their bodies how many pages there are.
        let next = answer.next.filter(|next| next.parameter == "after").map(|next| next.value);
        Self { body, is_error: false, replayed: answer.replayed, next, advice: None }
    }

    /// As a JSON-RPC result: the REST JSON as text, and the same as structured content
    /// (lists wrapped, since clients take only objects). Where a list continues is beside its items, and
    /// in a second text for clients that show only texts; advice is the last text. `modern` is the metadata of revision 2026-07-28.
    pub fn text(&self, modern: Option<&Value>) -> String {
        let mut result = Map::new();
        if modern.is_some() {
            result.insert("resultType".to_owned(), "complete".into());
        }
        let mut content = vec![json!({"type": "text", "text": self.body})];
        let next = self.next.as_ref().map(|next| json!({ "next": next }).to_string());
        content.extend(next.as_ref().map(|next| json!({"type": "text", "text": next})));
        content.extend(self.advice.as_ref().map(|advice| json!({"type": "text", "text": advice})));
        result.insert("content".to_owned(), content.into());
        result.insert("isError".to_owned(), self.is_error.into());
        let mut meta = modern.cloned();
        if self.replayed {
            meta.get_or_insert_with(|| json!({}))["sidetone/idempotent-replayed"] = true.into();
        }
        if let Some(meta) = meta {
            result.insert("_meta".to_owned(), meta);
        }
        let mut text = Value::Object(result).to_string();
        text.pop();
        text.push_str(",\"structuredContent\":");
        // The body is JSON already: it goes in as it is, without being read again.
        if self.body.starts_with('[') {
            text.push_str("{\"items\":");
            text.push_str(&self.body);
            match next.as_deref().and_then(|next| next.strip_prefix('{')) {
                Some(next) => text.extend([",", next]),
                None => text.push('}'),
            }
        } else {
            text.push_str(&self.body);
        }
        text.push('}');
        debug_assert!(serde_json::from_str::<&RawValue>(&text).is_ok());
        text
    }
}
