//! MCP on one URL, for clients that start with `initialize` (2024-11-05 to 2025-11-25) and clients that send the
//! protocol version in every request (2026-07-28). There are no sessions, and responses are JSON only. Sources: the
//! specification's transport and lifecycle pages of each revision.
mod call;
mod features;
mod instructions;
mod less;
mod message;
mod modern;
mod prompts;
mod resources;
pub(crate) mod tools;

use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Method, Response, StatusCode, header};
use serde_json::{Value, json};

use crate::base::error::{Code, Error};
use crate::base::ids::RequestId;
use crate::base::limits::{MCP_BATCH_MESSAGES_MAX, MCP_BATCH_REPLIES_BYTES_MAX};
use crate::base::response::{
    empty_response, error_response, json_response, method_not_allowed, with_incident,
};
use crate::base::yielding::yield_now;
use crate::interfaces::api::Api;
use crate::interfaces::host::response_budget;
use crate::interfaces::mcp::message::{Message, Refusal};
use crate::interfaces::{dispatch, rest};
use crate::operations::context::Context;
use crate::ports::Incoming;
use crate::storage::fault::Fault;

/// Revisions with an `initialize` handshake, newest first.
const LEGACY_VERSIONS: &[&str] = &["2025-11-25", "2025-06-18", "2025-03-26", "2024-11-05"];
/// Revisions without one.
const MODERN_VERSIONS: &[&str] = &["2026-07-28"];
/// The revision that the specification assumes without a version header.
const ASSUMED_VERSION: &str = "2025-03-26";
const VERSION_HEADER: &str = "mcp-protocol-version";

/// One JSON-RPC reply: its HTTP status and its text.
pub(crate) struct Reply {
    status: u16,
    text: String,
}

/// Answers a request to `/mcp`.
pub async fn handle(api: &Api, incoming: &Incoming, now_ms: i64, request_id: &RequestId) -> Response<Bytes> {
    let headers = incoming.request.headers();
    let origin = match allowed_origin(api, headers) {
        Ok(origin) => origin,
        Err(error) => return error_response(&error, request_id),
    };
    let mut response = match *incoming.request.method() {
        Method::OPTIONS => empty_response(StatusCode::NO_CONTENT),
        Method::POST => post(api, incoming, now_ms, request_id).await,
        _ => error_response(&method_not_allowed("POST"), request_id),
    };
    if let Some(origin) = origin {
        allow_origin(response.headers_mut(), origin);
    }
    response
}

/// Whether the key of a request to `/mcp` is looked up: the others are answered without it.
pub(crate) fn takes_key(api: &Api, request: &http::Request<Bytes>) -> bool {
    *request.method() == Method::POST && allowed_origin(api, request.headers()).is_ok()
}

async fn post(api: &Api, incoming: &Incoming, now_ms: i64, request_id: &RequestId) -> Response<Bytes> {
    let headers = incoming.request.headers();
    let mut context = match api.context(headers, now_ms) {
        Ok(context) => context,
        Err(error) => return error_response(&error, request_id),
    };
    let outcome = if rest::is_json(headers) {
        answer(api, &mut context, headers, incoming.request.body(), request_id).await
    } else {
        let message = "Send JSON-RPC with the header `Content-Type: application/json`.";
        match dispatch::authenticate(&mut context).await {
            Ok(_) => Err(Error::new(Code::UnsupportedMediaType, message).into()),
            Err(fault) => Err(fault),
        }
    };
    let mut response = match outcome {
        Ok(Some(reply)) => {
            let response = json_response(reply.status, Bytes::from(reply.text));
            with_incident(response, context.take_incident())
        }
        Ok(None) => empty_response(StatusCode::ACCEPTED),
        Err(fault) => api.refuse(fault, incoming, now_ms, request_id),
    };
    response_budget::answered(&mut response, &context);
    response
}

/// `Ok(None)` is a 202; an `Err` is an HTTP error with the REST envelope (a bad key).
async fn answer(
    api: &Api,
    context: &mut Context,
    headers: &HeaderMap,
    body: &[u8],
    request_id: &RequestId,
) -> Result<Option<Reply>, Fault> {
    let (parsed, refused) = match message::parse(body) {
        Ok(parsed) => parsed,
        Err(refusal) => {
            dispatch::authenticate(context).await?;
            return Ok(Some(refusal.reply(400, &Value::Null)));
        }
    };
    let version = headers.get(VERSION_HEADER).map(|value| value.to_str().unwrap_or("?").trim());
    match parsed {
        Value::Array(messages) => {
            dispatch::authenticate(context).await?;
            batch(api, context, messages, refused, version, request_id).await
        }
        single => match Message::read(single) {
            Err(refusal) => {
                dispatch::authenticate(context).await?;
                Ok(Some(refusal.reply(400, &Value::Null)))
            }
            Ok(Message::Response | Message::Notification) => {
                dispatch::authenticate(context).await?;
                Ok(None)
            }
            Ok(Message::Request(request)) => {
                if modern::is_modern(&request.params) {
                    return modern::answer(api, context, headers, version, request, refused, request_id)
                        .await
                        .map(Some);
                }
                if let Some(refusal) = misplaced_version(&request, version) {
                    dispatch::authenticate(context).await?;
                    return Ok(Some(refusal.reply(400, &request.id)));
                }
                legacy(api, context, request, refused, request_id).await.map(Some)
            }
        },
    }
}

/// The error for a version header that contradicts a request without modern metadata.
fn misplaced_version(request: &message::Request, version: Option<&str>) -> Option<Refusal> {
    let version = version?;
    if MODERN_VERSIONS.contains(&version) {
        return Some(if request.method == "initialize" {
            Refusal::new(
                message::HEADER_MISMATCH,
                "`initialize` belongs to revisions before 2026-07-28: leave MCP-Protocol-Version out.",
            )
        } else {
            Refusal::new(
                message::INVALID_PARAMS,
                format!("params._meta[\"{}\"] is missing.", modern::VERSION_KEY),
            )
        });
    }
    (!LEGACY_VERSIONS.contains(&version)).then(|| modern::unsupported(version))
}

async fn legacy(
    api: &Api,
    context: &mut Context,
    request: message::Request,
    refused: Option<Error>,
    request_id: &RequestId,
) -> Result<Reply, Fault> {
    let id = &request.id;
    match request.method.as_str() {
        "tools/call" => match call::call(api, context, &request.params, refused, request_id).await? {
            Ok(result) => Ok(result_reply(id, &result.text(None))),
            Err(refusal) => {
                dispatch::authenticate(context).await?;
                Ok(refusal.reply(200, id))
            }
        },
        method => {
            if let Some(result) = features::answer(api, context, &request, request_id).await? {
                // The key may not have been looked up: not every answer needs storage.
                dispatch::authenticate(context).await?;
                return Ok(match result {
                    Ok((result, _)) => result_reply(id, &result.to_string()),
                    Err(refusal) => refusal.reply(200, id),
                });
            }
            dispatch::authenticate(context).await?;
            Ok(match method {
                "initialize" => result_reply(id, &initialize(&request.params).to_string()),
                "ping" => result_reply(id, "{}"),
                "tools/list" => match tools::refuse_cursor(&request.params) {
                    Some(refusal) => refusal.reply(200, id),
                    None => result_reply(id, &api.interfaces().tools()?.legacy_list),
                },
                _ => Refusal::unknown_method(method).reply(200, id),
            })
        }
    }
}

/// Answers a batch, or rejects it as a whole before running any request. `Ok(None)` if no message requires a reply.
async fn batch(
    api: &Api,
    context: &mut Context,
    messages: Vec<Value>,
    refused: Option<Error>,
    version: Option<&str>,
    request_id: &RequestId,
) -> Result<Option<Reply>, Fault> {
    let refuse =
        |message: &str| Ok(Some(Refusal::new(message::INVALID_REQUEST, message).reply(400, &Value::Null)));
    if version.unwrap_or(ASSUMED_VERSION) != ASSUMED_VERSION {
        return refuse("JSON-RPC batches exist only in revision 2025-03-26: send one message.");
    }
    if messages.is_empty() || messages.len() > MCP_BATCH_MESSAGES_MAX {
        return refuse(&format!("A batch holds 1 to {MCP_BATCH_MESSAGES_MAX} messages."));
    }
    if messages.iter().any(|message| modern::is_modern(&message["params"])) {
        return refuse("Revision 2026-07-28 has no batches: send one message.");
    }
    if let Some(error) = refused {
        return refuse(&error.message);
    }
    let mut replies: Vec<String> = Vec::new();
    for message in messages {
        let replied_bytes: usize = replies.iter().map(String::len).sum();
        match Message::read(message) {
            Err(refusal) => replies.push(refusal.reply(400, &Value::Null).text),
            Ok(Message::Response | Message::Notification) => {}
            Ok(Message::Request(request)) if replied_bytes > MCP_BATCH_REPLIES_BYTES_MAX => {
                let message =
                    "Not done: the answers before it are too large for one batch. Send it by itself.";
                replies.push(Refusal::new(message::INVALID_REQUEST, message).reply(200, &request.id).text);
            }
            Ok(Message::Request(request)) => {
                // Others need not wait for the whole batch.
                yield_now().await;
                context.next_message();
                let id = request.id.clone();
                let reply = match legacy(api, context, request, None, request_id).await {
                    Ok(reply) => reply,
                    // Nothing was done yet, so the batch is refused like a single request.
                    Err(fault) if replies.is_empty() => return Err(fault),
                    // The messages before it may have had effects: their replies must arrive.
                    Err(fault) => {
                        let (error, incident) = fault.split();
                        context.incident = context.incident.take().or(incident);
                        Refusal::failed(&error, request_id).reply(200, &id)
                    }
                };
                replies.push(reply.text);
            }
        }
    }
    if replies.is_empty() {
        return Ok(None);
    }
    Ok(Some(Reply { status: 200, text: format!("[{}]", replies.join(",")) }))
}

fn initialize(params: &Value) -> Value {
    let asked = params["protocolVersion"].as_str().unwrap_or_default();
    let version = LEGACY_VERSIONS.iter().find(|known| **known == asked).unwrap_or(&LEGACY_VERSIONS[0]);
    json!({
        "protocolVersion": version,
        "capabilities": features::capabilities(),
        "serverInfo": server_info(),
        "instructions": instructions::INSTRUCTIONS,
    })
}

fn server_info() -> Value {
    json!({"name": "sidetone", "title": "Sidetone", "version": env!("CARGO_PKG_VERSION")})
}

fn result_reply(id: &Value, result: &str) -> Reply {
    Reply { status: 200, text: format!(r#"{{"jsonrpc":"2.0","id":{id},"result":{result}}}"#) }
}

/// Without an Origin, the client is not a browser. An Origin must be our own or local to the user's machine; otherwise
/// any page could drive a server that listens there (DNS rebinding).
fn allowed_origin<'a>(api: &Api, headers: &'a HeaderMap) -> Result<Option<&'a HeaderValue>, Error> {
    let Some(origin) = headers.get(header::ORIGIN) else {
        return Ok(None);
    };
    let ours = url::Url::parse(&api.services().config().base_url).ok().map(|url| url.origin());
    let theirs = origin.to_str().ok().filter(|text| !text.contains('%'));
    let theirs = theirs.and_then(|text| url::Url::parse(text).ok());
    let local = |url: &url::Url| match url.host() {
        Some(url::Host::Domain(name)) => name == "localhost",
        Some(url::Host::Ipv4(address)) => address.is_loopback(),
        Some(url::Host::Ipv6(address)) => address.is_loopback(),
        None => false,
    };
    match theirs {
        Some(url) if Some(url.origin()) == ours || local(&url) => Ok(Some(origin)),
        _ => Err(Error::new(
            Code::ForbiddenOrigin,
            "Pages of this origin may not call the MCP server. Call it from a server or a desktop client.",
        )),
    }
}

fn allow_origin(headers: &mut HeaderMap, origin: &HeaderValue) {
    headers.insert(header::ACCESS_CONTROL_ALLOW_ORIGIN, origin.clone());
    headers.insert(header::VARY, HeaderValue::from_static("Origin"));
    headers.insert(header::ACCESS_CONTROL_ALLOW_METHODS, HeaderValue::from_static("POST, OPTIONS"));
    headers.insert(
        header::ACCESS_CONTROL_ALLOW_HEADERS,
        HeaderValue::from_static(
            "Authorization, Content-Type, Accept, MCP-Protocol-Version, Mcp-Method, Mcp-Name, \
             Mcp-Session-Id, Last-Event-ID",
        ),
    );
    headers.insert(header::ACCESS_CONTROL_EXPOSE_HEADERS, HeaderValue::from_static("X-Request-Id"));
    headers.insert(header::ACCESS_CONTROL_MAX_AGE, HeaderValue::from_static("600"));
}
