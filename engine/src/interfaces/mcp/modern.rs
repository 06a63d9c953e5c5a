//! Revision 2026-07-28: no handshake, the protocol version in every request, and headers that repeat parts of the body
//! for proxies.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use http::HeaderMap;
use serde_json::{Value, json};

use crate::base::error::Error;
use crate::base::ids::RequestId;
use crate::interfaces::api::Api;
use crate::interfaces::dispatch;
use crate::interfaces::mcp::features::Scope;
use crate::interfaces::mcp::message::{self, Refusal, Request};
use crate::interfaces::mcp::{
    LEGACY_VERSIONS, MODERN_VERSIONS, Reply, call, features, instructions, result_reply, server_info, tools,
};
use crate::operations::context::Context;
use crate::storage::fault::Fault;

/// The field with the request's protocol revision.
pub const VERSION_KEY: &str = "io.modelcontextprotocol/protocolVersion";
const CAPABILITIES_KEY: &str = "io.modelcontextprotocol/clientCapabilities";
const SERVER_INFO_KEY: &str = "io.modelcontextprotocol/serverInfo";
/// How long a client may cache the tool list, which changes only with the binary.
pub const LIST_TTL_MS: u64 = 300_000;

/// Whether a request's params have the metadata of this revision.
pub fn is_modern(params: &Value) -> bool {
    params["_meta"].get(VERSION_KEY).is_some()
}

/// The error for an unsupported version.
pub fn unsupported(version: &str) -> Refusal {
    let shown: String = version.chars().take(64).collect();
    Refusal::new(message::UNSUPPORTED_VERSION, format!("Unsupported protocol version: {shown}"))
        .with_data(json!({"supported": supported(), "requested": shown}))
}

fn supported() -> Vec<&'static str> {
    MODERN_VERSIONS.iter().chain(LEGACY_VERSIONS).copied().collect()
}

/// The metadata of every result of this revision.
pub fn result_meta() -> Value {
    json!({ SERVER_INFO_KEY: server_info() })
}

/// Answers one request.
pub async fn answer(
    api: &Api,
    context: &mut Context,
    headers: &HeaderMap,
    version_header: Option<&str>,
    request: Request,
    refused: Option<Error>,
    request_id: &RequestId,
) -> Result<Reply, Fault> {
    let id = &request.id;
    if let Err(refusal) = envelope(headers, version_header, &request) {
        dispatch::authenticate(context).await?;
        return Ok(refusal.reply(400, id));
    }
    match request.method.as_str() {
        "tools/call" => match call::call(api, context, &request.params, refused, request_id).await? {
            Ok(result) => Ok(result_reply(id, &result.text(Some(&result_meta())))),
            Err(refusal) => {
                dispatch::authenticate(context).await?;
                Ok(refusal.reply(200, id))
            }
        },
        method => {
            if let Some(result) = features::answer(api, context, &request, request_id).await? {
                dispatch::authenticate(context).await?;
                return Ok(match result {
                    Ok((result, scope)) => result_reply(id, &complete(result, scope).to_string()),
                    Err(refusal) => refusal.modern().reply(200, id),
                });
            }
            dispatch::authenticate(context).await?;
            Ok(match method {
                "server/discover" => result_reply(id, &discover().to_string()),
                "tools/list" => match tools::refuse_cursor(&request.params) {
                    Some(refusal) => refusal.reply(200, id),
                    None => result_reply(id, &api.interfaces().tools()?.modern_list),
                },
                _ => Refusal::unknown_method(method).reply(404, id),
            })
        }
    }
}

/// A result with what this revision adds. What a workspace has may change at any time.
fn complete(mut result: Value, scope: Scope) -> Value {
    let (ttl_ms, name) = match scope {
        Scope::Public => (LIST_TTL_MS, "public"),
        Scope::Private => (0, "private"),
    };
    result["resultType"] = "complete".into();
    result["ttlMs"] = ttl_ms.into();
    result["cacheScope"] = name.into();
    result["_meta"] = result_meta();
    result
}

fn discover() -> Value {
    json!({
        "resultType": "complete",
        "supportedVersions": supported(),
        "capabilities": features::capabilities(),
        "instructions": instructions::INSTRUCTIONS,
        "ttlMs": LIST_TTL_MS,
        "cacheScope": "public",
        "_meta": result_meta(),
    })
}

fn envelope(headers: &HeaderMap, version_header: Option<&str>, request: &Request) -> Result<(), Refusal> {
    let meta = &request.params["_meta"];
    let mismatch = |text: String| Err(Refusal::new(message::HEADER_MISMATCH, text));
    let Some(version) = meta[VERSION_KEY].as_str() else {
        let text = format!("params._meta[\"{VERSION_KEY}\"] must be a string.");
        return Err(Refusal::new(message::INVALID_PARAMS, text));
    };
    if !meta[CAPABILITIES_KEY].is_object() {
        let text = format!("params._meta[\"{CAPABILITIES_KEY}\"] must be an object.");
        return Err(Refusal::new(message::INVALID_PARAMS, text));
    }
    if version_header != Some(version) {
        return mismatch(format!("The header MCP-Protocol-Version must be {version}, as in _meta."));
    }
    if !MODERN_VERSIONS.contains(&version) {
        return Err(unsupported(version));
    }
    if header(headers, "mcp-method").as_deref() != Some(request.method.as_str()) {
        return mismatch("The header Mcp-Method must repeat the method.".to_owned());
    }
    let named = match request.method.as_str() {
        "tools/call" | "prompts/get" => Some(&request.params["name"]),
        "resources/read" => Some(&request.params["uri"]),
        _ => None,
    };
    if let Some(name) = named.and_then(Value::as_str)
        && header(headers, "mcp-name").as_deref() != Some(name)
    {
        return mismatch("The header Mcp-Name must repeat the name in params.".to_owned());
    }
    Ok(())
}

/// The text of a header; `=?base64?…?=` encodes characters that headers do not allow.
fn header(headers: &HeaderMap, name: &str) -> Option<String> {
    let text = headers.get(name)?.to_str().ok()?.trim();
    match text.strip_prefix("=?base64?").and_then(|rest| rest.strip_suffix("?=")) {
        Some(encoded) => String::from_utf8(STANDARD.decode(encoded).ok()?).ok(),
        None => Some(text.to_owned()),
    }
}
