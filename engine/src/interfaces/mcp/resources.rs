//! `resources/list`, `resources/templates/list` and `resources/read`: guides, assistants and the latest calls, for clients that
//! let people pick what a model sees. A resource is what the REST read returns, byte for byte.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde_json::{Map, Value, json};

use crate::base::error::{Code, Error};
use crate::base::ids::RequestId;
use crate::base::limits::{MCP_RESOURCE_CALL_PAGES_MAX, MCP_RESOURCES_PER_PAGE};
use crate::interfaces::api::Api;
use crate::interfaces::dispatch::{self, Answer, Raw};
use crate::interfaces::mcp::message::{self, Refusal};
use crate::operations;
use crate::operations::context::Context;
use crate::operations::validate::Strictness;
use crate::storage::fault::Fault;

const GUIDES: &str = "sidetone://guides/";
const ASSISTANTS: &str = "sidetone://assistants/";
const CALLS: &str = "sidetone://calls/";
const JSON: &str = "application/json";
const MARKDOWN: &str = "text/markdown";

/// A guide: its name, its title, and its text.
type Guide = (&'static str, &'static str, &'static str);

macro_rules! guide {
    ($name:literal, $title:literal) => {
        ($name, $title, include_str!(concat!("../../../../docs/", $name, ".md")))
    };
}

/// The guides that help to use the service. Those for its operator are left out: a Worker has to carry each.
const GUIDE_PAGES: &[Guide] = &[
    guide!("assistants-and-knowledge", "Assistants and knowledge"),
    guide!("tools", "Tools"),
    guide!("testing", "Testing"),
    guide!("calls", "Calls"),
    guide!("webhooks", "Webhooks"),
    guide!("rest-api", "REST API"),
];

/// Where a list continues.
enum Place {
    /// With the guides, then the assistants.
    Beginning,
    /// With the assistants after a cursor of their list.
    Assistants(String),
    /// With a page of the latest calls.
    Calls(usize),
}

impl Place {
    fn read(params: &Value) -> Result<Self, Refusal> {
        let Some(cursor) = params.get("cursor") else {
            return Ok(Self::Beginning);
        };
        let text = cursor.as_str().and_then(|text| URL_SAFE_NO_PAD.decode(text).ok());
        let text = text.and_then(|bytes| String::from_utf8(bytes).ok()).unwrap_or_default();
        let place = match text.split_once('/') {
            Some(("assistants", after)) => Some(Self::Assistants(after.to_owned())),
            Some(("calls", page)) => page
                .parse()
                .ok()
                .filter(|page| (1..=MCP_RESOURCE_CALL_PAGES_MAX).contains(page))
                .map(Self::Calls),
            _ => None,
        };
        let unknown = "Unknown cursor: take `nextCursor` unchanged from the previous result.";
        place.ok_or_else(|| Refusal::new(message::INVALID_PARAMS, unknown))
    }

    fn cursor(&self) -> Option<String> {
        match self {
            Self::Beginning => None,
            Self::Assistants(after) => Some(URL_SAFE_NO_PAD.encode(format!("assistants/{after}"))),
            Self::Calls(page) => Some(URL_SAFE_NO_PAD.encode(format!("calls/{page}"))),
        }
    }
}

/// What a read answers; the inner error goes to the client.
type Read<T> = Result<Result<T, Refusal>, Fault>;

/// The result of `resources/list`: the guides, all assistants, and the latest calls.
pub(super) async fn list(
    api: &Api,
    context: &mut Context,
    params: &Value,
    request_id: &RequestId,
) -> Read<Value> {
    let place = match Place::read(params) {
        Ok(place) => place,
        Err(refusal) => return Ok(Err(refusal)),
    };
    let mut resources = Vec::new();
    if matches!(place, Place::Beginning) {
        let guide = |(name, title, text): &Guide| json!({"uri": format!("{GUIDES}{name}"), "name": name, "title": title, "mimeType": MARKDOWN, "size": text.len()});
        resources.extend(GUIDE_PAGES.iter().map(guide));
    }
    let limit = ("limit", json!(MCP_RESOURCES_PER_PAGE));
    let next = match place {
        Place::Calls(page) => {
            let query = [limit, ("page", json!(page)), ("view", json!("summary"))];
            let answer = match read(api, context, "list_calls", None, &query, request_id).await? {
                Ok(answer) => answer,
                Err(refusal) => return Ok(Err(refusal)),
            };
            let list = parsed(&answer)?;
            resources.extend(list["calls"].as_array().into_iter().flatten().map(call));
            let more = answer.next.is_some() && page < MCP_RESOURCE_CALL_PAGES_MAX;
            more.then_some(Place::Calls(page + 1))
        }
        Place::Beginning | Place::Assistants(_) => {
            let mut query = vec![limit];
            if let Place::Assistants(after) = place {
                query.push(("after", after.into()));
            }
            let answer = match read(api, context, "list_assistants", None, &query, request_id).await? {
                Ok(answer) => answer,
                Err(refusal) => return Ok(Err(refusal)),
            };
            resources.extend(parsed(&answer)?.as_array().into_iter().flatten().map(assistant));
            Some(answer.next.map_or(Place::Calls(1), |next| Place::Assistants(next.value)))
        }
    };
    let mut result = json!({ "resources": resources });
    if let Some(cursor) = next.and_then(|place| place.cursor()) {
        result["nextCursor"] = cursor.into();
    }
    Ok(Ok(result))
}

fn assistant(assistant: &Value) -> Value {
    let id = assistant["id"].as_str().unwrap_or_default();
    json!({"uri": format!("{ASSISTANTS}{id}"), "name": id, "title": assistant["name"], "mimeType": JSON})
}

fn call(call: &Value) -> Value {
    let text = |name: &str| call[name].as_str().unwrap_or_default();
    let id = text("id");
    let title = format!(
        "{} call of {}, {}",
        text("source"),
        text("started_at"),
        match text("outcome") {
            "" => text("status"),
            outcome => outcome,
        }
    );
    json!({"uri": format!("{CALLS}{id}"), "name": id, "title": title, "mimeType": JSON})
}

/// The result of `resources/templates/list`.
pub(super) fn templates() -> Value {
    json!({"resourceTemplates": [
        {"uriTemplate": format!("{ASSISTANTS}{{id}}"), "name": "assistant", "title": "An assistant", "mimeType": JSON,
         "description": "An assistant's configuration, as get_assistant returns it."},
        {"uriTemplate": format!("{CALLS}{{id}}"), "name": "call", "title": "A call", "mimeType": JSON,
         "description": "A call with its transcript, as get_call returns it."},
        {"uriTemplate": format!("{GUIDES}{{name}}"), "name": "guide", "title": "A guide", "mimeType": MARKDOWN,
         "description": "A page of the documentation."},
    ]})
}

/// The result of `resources/read`.
pub(super) async fn content(
    api: &Api,
    context: &mut Context,
    params: &Value,
    request_id: &RequestId,
) -> Read<Value> {
    let Some(uri) = params["uri"].as_str() else {
        return Ok(Err(Refusal::new(message::INVALID_PARAMS, "params.uri must be a string.")));
    };
    let of = |kind: &str, text: &str| json!({"contents": [{"uri": uri, "mimeType": kind, "text": text}]});
    if let Some(name) = uri.strip_prefix(GUIDES) {
        let guide = GUIDE_PAGES.iter().find(|(known, _, _)| *known == name);
        return Ok(guide.map(|(_, _, text)| of(MARKDOWN, text)).ok_or_else(|| unknown(uri)));
    }
    let (operation, id) = match (uri.strip_prefix(ASSISTANTS), uri.strip_prefix(CALLS)) {
        (Some(id), _) => ("get_assistant", id),
        (_, Some(id)) => ("get_call", id),
        _ => return Ok(Err(unknown(uri))),
    };
    let answer = read(api, context, operation, Some((id, uri)), &[], request_id).await?;
    Ok(answer.map(|answer| of(JSON, answer.body.as_deref().unwrap_or_default())))
}

fn unknown(uri: &str) -> Refusal {
    let shown: String = uri.chars().take(200).collect();
    Refusal::new(message::RESOURCE_NOT_FOUND, format!("Resource not found: {shown}"))
}

/// Runs an operation that reads. `of` is the id in its path, and the resource that it is.
async fn read(
    api: &Api,
    context: &mut Context,
    operation: &'static str,
    of: Option<(&str, &str)>,
    query: &[(&str, Value)],
    request_id: &RequestId,
) -> Read<Answer> {
    let operation =
        operations::by_id(operation).ok_or_else(|| Fault::Bug(format!("{operation} is not in the table")))?;
    let raw = Raw {
        path: of.iter().map(|(id, _)| (*id).to_owned()).collect(),
        query: query.iter().map(|(name, value)| ((*name).to_owned(), value.clone())).collect::<Map<_, _>>(),
        body: None,
        if_revision: None,
        idempotency_key: None,
        after_event: 0,
        strictness: Strictness::Strict,
        problems: Vec::new(),
    };
    let fault = match dispatch::dispatch(api, context, operation, raw).await {
        Ok(answer) => return Ok(Ok(answer)),
        Err(fault) => fault,
    };
    let (error, incident) = fault.split();
    context.incident = context.incident.take().or(incident);
    match (error.code, of) {
        (Code::Unauthorized, _) => Err(error.into()),
        (Code::NotFound, Some((_, uri))) => Ok(Err(unknown(uri))),
        (Code::ValidationFailed, None) => Ok(Err(wrong_cursor(&error))),
        _ => Ok(Err(Refusal::failed(&error, request_id))),
    }
}

fn wrong_cursor(error: &Error) -> Refusal {
    Refusal::new(message::INVALID_PARAMS, format!("Unknown cursor: {}", error.message))
}

fn parsed(answer: &Answer) -> Result<Value, Fault> {
    serde_json::from_str(answer.body.as_deref().unwrap_or("null"))
        .map_err(|error| Fault::Bug(format!("a list is not JSON: {error}")))
}
