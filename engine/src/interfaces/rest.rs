//! REST: converts a request to an operation's input, and its output to a response.
use bytes::Bytes;
use http::{HeaderMap, HeaderName, HeaderValue, Method, Response, StatusCode, Uri, header};
use serde_json::{Map, Value};

use crate::base::error::{Code, Error, FieldProblem};
use crate::base::field;
use crate::base::ids::RequestId;
use crate::base::json::{self, JsonError};
use crate::base::response::{
    IDEMPOTENT_REPLAYED, empty_response, error_response, json_response, with_incident,
};
use crate::base::whole_number;
use crate::interfaces::api::Api;
use crate::interfaces::dispatch::{self, Answer, Raw};
use crate::interfaces::host::response_budget;
use crate::interfaces::range::{self, Wanted};
use crate::operations::context::Context;
use crate::operations::following::{Follow, Follower};
use crate::operations::operation::{File, Next, Operation, Success};
use crate::operations::validate::Strictness;
use crate::ports::Incoming;
use crate::ports::blobs::{ByteRange, Slice};
use crate::storage::fault::Fault;

/// Answers a request to a resource route.
pub async fn handle(api: &Api, incoming: &Incoming, now_ms: i64, request_id: &RequestId) -> Response<Bytes> {
    let context = || api.context(incoming.request.headers(), now_ms);
    handle_as(api, incoming, incoming.request.uri().path(), context, now_ms, request_id).await
}

/// Answers a request to the resource route `path` in the name of whoever `context` finds.
pub async fn handle_as(
    api: &Api,
    incoming: &Incoming,
    path: &str,
    context: impl FnOnce() -> Result<Context, Error>,
    now_ms: i64,
    request_id: &RequestId,
) -> Response<Bytes> {
    let request = &incoming.request;
    let route = match api.interfaces().router.find(request.method(), path) {
        Ok(route) => route,
        Err(error) => return error_response(&error, request_id),
    };
    let mut context = match context() {
        Ok(context) => context,
        Err(error) => return error_response(&error, request_id),
    };
    let outcome = match read(route.operation, route.path, request) {
        Ok(raw) => dispatch::dispatch(api, &mut context, route.operation, raw).await,
        Err(error) => Err(after_the_key(&mut context, error).await),
    };
    let mut response = match outcome {
        Ok(mut answer) => {
            let sent = match (answer.file.take(), answer.follow.take()) {
                (Some(file), _) => Ok(send(*file, request.method(), request.headers(), request_id)),
                (None, Some(follow)) => events(&context, follow, request.method()),
                (None, None) => Ok(respond(answer, &api.services().config().base_url, request.uri())),
            };
            match sent {
                Ok(response) => with_incident(response, context.take_incident()),
                Err(fault) => api.refuse(fault, incoming, now_ms, request_id),
            }
        }
        Err(fault) => api.refuse(fault, incoming, now_ms, request_id),
    };
    response_budget::answered(&mut response, &context);
    response
}

/// A bad key is reported before a malformed request.
async fn after_the_key(context: &mut Context, error: Error) -> Fault {
    match dispatch::authenticate(context).await {
        Ok(_) => error.into(),
        Err(fault) => fault,
    }
}

fn read(
    operation: &'static Operation,
    path: Vec<String>,
    request: &http::Request<Bytes>,
) -> Result<Raw, Error> {
    let headers = request.headers();
    Ok(Raw {
        path,
        query: query(request.uri().query().unwrap_or_default())?,
        body: match operation.body {
            Some(_) => Some(body(operation, headers, request.body())?),
            None => None,
        },
        if_revision: if operation.revision { if_match(headers)? } else { None },
        idempotency_key: match headers.get("idempotency-key") {
            Some(key) if operation.takes_idempotency_key() => {
                Some(String::from_utf8_lossy(key.as_bytes()).into_owned())
            }
            _ => None,
        },
        after_event: if operation.success == Success::Events { last_event_id(headers)? } else { 0 },
        strictness: Strictness::Strict,
        problems: Vec::new(),
    })
}

/// Ids of events have at most 15 digits.
const LAST_EVENT_ID_END: i64 = 1_000_000_000_000_000;

/// The id of the last event that the client has; 0 without one.
fn last_event_id(headers: &HeaderMap) -> Result<i64, Error> {
    // Some hosts drop empty headers.
    let value = headers.get("last-event-id").filter(|value| !value.is_empty());
    let Some(value) = value else { return Ok(0) };
    match value.to_str().ok().and_then(|text| whole_number::revision(&text.trim().into())) {
        Some(id) if id < LAST_EVENT_ID_END => Ok(id),
        _ => {
            let message = "takes the `id` of an event that you have received, such as 7";
            Err(Error::fields(Code::InvalidParameter, &[FieldProblem::new("Last-Event-ID", message)]))
        }
    }
}

fn query(text: &str) -> Result<Map<String, Value>, Error> {
    let mut map = Map::new();
    let mut problems = Vec::new();
    for (name, value) in form_urlencoded::parse(text.as_bytes()) {
        if map.contains_key(name.as_ref()) {
            problems.push(FieldProblem::new(field::shortened(&name), "is given twice; give it once"));
        }
        map.insert(name.into_owned(), Value::String(value.into_owned()));
    }
    if problems.is_empty() { Ok(map) } else { Err(Error::fields(Code::InvalidParameter, &problems)) }
}

fn body(operation: &Operation, headers: &HeaderMap, bytes: &[u8]) -> Result<Value, Error> {
    if bytes.is_empty() {
        if operation.body_may_be_empty() {
            return Ok(Value::Object(Map::new()));
        }
        let message = "The body is empty. Send a JSON object with the fields of this operation.";
        return Err(Error::new(Code::InvalidJson, message));
    }
    if !is_json(headers) {
        let message = "Send the body as JSON, with the header `Content-Type: application/json`.";
        return Err(Error::new(Code::UnsupportedMediaType, message));
    }
    match json::read(bytes) {
        Ok(value @ Value::Object(_)) => Ok(value),
        Ok(_) => Err(Error::field("body", "must be a JSON object")),
        Err(error) => Err(json_error(error)),
    }
}

/// 400 for invalid JSON, 422 for JSON that violates one of our rules.
pub fn json_error(error: JsonError) -> Error {
    match error {
        JsonError::Unreadable { message } => {
            Error::new(Code::InvalidJson, format!("The body is not valid JSON: {message}"))
        }
        JsonError::Refused { field, message } => Error::field(field, message),
    }
}

/// Whether the body is declared as JSON in UTF-8.
pub fn is_json(headers: &HeaderMap) -> bool {
    let Some(value) = headers.get(header::CONTENT_TYPE).and_then(|value| value.to_str().ok()) else {
        return false;
    };
    let mut parts = value.split(';').map(str::trim);
    let json = parts.next().is_some_and(|kind| kind.eq_ignore_ascii_case("application/json"));
    let utf8 = parts.all(|parameter| match parameter.split_once('=') {
        Some((name, charset)) if name.trim().eq_ignore_ascii_case("charset") => {
            charset.trim().trim_matches('"').eq_ignore_ascii_case("utf-8")
        }
        _ => true,
    });
    json && utf8
}

fn if_match(headers: &HeaderMap) -> Result<Option<i64>, Error> {
    let Some(value) = headers.get(header::IF_MATCH) else {
        return Ok(None);
    };
    let text = value.to_str().unwrap_or_default().trim();
    let bare = text
        .strip_prefix('"')
        .map_or(Some(text), |rest| rest.strip_suffix('"'))
        .and_then(|text| whole_number::revision(&text.into()));
    match bare {
        Some(revision) => Ok(Some(revision)),
        None => {
            Err(Error::new(Code::InvalidIfMatch, "If-Match takes the revision you read, as `3` or `\"3\"`."))
        }
    }
}

/// The head of a response whose body is a blob or a part of one; the host streams the body.
fn send(file: File, method: &Method, headers: &HeaderMap, request_id: &RequestId) -> Response<Bytes> {
    let File { file, size_bytes: size, etag, media_type, name } = file;
    let whole = ByteRange { first: 0, bytes: size };
    let (status, range) = match range::wanted(method, headers, size, &etag) {
        Wanted::Whole => (StatusCode::OK, whole),
        Wanted::Part(part) => (StatusCode::PARTIAL_CONTENT, part),
        Wanted::Unchanged => {
            let mut response = empty_response(StatusCode::NOT_MODIFIED);
            set(&mut response, header::ETAG, &etag);
            return response;
        }
        Wanted::Nothing => {
            let message =
                format!("The recording has {size} bytes. Ask for a range that begins before its end.");
            let error = Error::new(Code::RangeNotSatisfiable, message);
            let mut response = error_response(&error, request_id);
            set(&mut response, header::CONTENT_RANGE, &format!("bytes */{size}"));
            return response;
        }
    };
    let mut response = empty_response(status);
    response.headers_mut().insert(header::ACCEPT_RANGES, HeaderValue::from_static("bytes"));
    response.headers_mut().insert(header::CONTENT_TYPE, HeaderValue::from_static(media_type));
    set(&mut response, header::CONTENT_LENGTH, &range.bytes.to_string());
    set(&mut response, header::CONTENT_DISPOSITION, &format!("attachment; filename=\"{name}\""));
    set(&mut response, header::ETAG, &etag);
    if status == StatusCode::PARTIAL_CONTENT {
        let last = range.first + range.bytes - 1;
        set(&mut response, header::CONTENT_RANGE, &format!("bytes {}-{last}/{size}", range.first));
    }
    if *method == Method::GET && range.bytes > 0 {
        response.extensions_mut().insert(Slice { file, range });
    }
    response
}

/// The head of a response whose body is a stream of events.
fn events(context: &Context, follow: Follow, method: &Method) -> Result<Response<Bytes>, Fault> {
    let mut response = empty_response(StatusCode::OK);
    set(&mut response, header::CONTENT_TYPE, "text/event-stream");
    // nginx would keep the events until it has a buffer of them.
    set(&mut response, HeaderName::from_static("x-accel-buffering"), "no");
    if *method == Method::GET {
        response.extensions_mut().insert(Follower::admit(context, follow)?);
    }
    Ok(response)
}

fn set(response: &mut Response<Bytes>, name: HeaderName, value: &str) {
    if let Ok(value) = HeaderValue::from_str(value) {
        response.headers_mut().insert(name, value);
    }
}

fn respond(answer: Answer, base_url: &str, uri: &Uri) -> Response<Bytes> {
    let Answer { status, body, etag, replayed, next, file: _, follow: _, reveals: _ } = answer;
    let mut response = match body {
        Some(body) => json_response(status, Bytes::from(body)),
        None => empty_response(StatusCode::NO_CONTENT),
    };
    if let Some(revision) = etag
        && let Ok(etag) = HeaderValue::from_str(&format!("\"{revision}\""))
    {
        response.headers_mut().insert(header::ETAG, etag);
    }
    if let Some(next) = next {
        set(&mut response, header::LINK, &link(base_url, uri, &next));
    }
    if replayed {
        response.headers_mut().insert(IDEMPOTENT_REPLAYED, HeaderValue::from_static("true"));
    }
    response
}

/// The request for the next part of a list (RFC 8288): the same one with another position.
fn link(base_url: &str, uri: &Uri, next: &Next) -> String {
    let mut query = form_urlencoded::Serializer::new(String::new());
    let sent = form_urlencoded::parse(uri.query().unwrap_or_default().as_bytes());
    query.extend_pairs(sent.filter(|(name, _)| name != next.parameter));
    query.append_pair(next.parameter, &next.value);
    format!("<{base_url}{}?{}>; rel=\"next\"", uri.path(), query.finish())
}
