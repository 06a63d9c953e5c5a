//! Which part of the service answers a request.
use bytes::Bytes;
use futures_util::future::join_all;
use http::{HeaderValue, Method, Response, StatusCode, header};

use crate::base::ids::RequestId;
use crate::base::response::{
    empty_response, error_response, json_response, method_not_allowed, with_incident,
};
use crate::interfaces::api::Api;
use crate::interfaces::host::metrics;
use crate::interfaces::{Document, docs, home, mcp, mounted, moves, range, rest};
use crate::live::{self, telephony};
use crate::ports::{Incoming, NotWritable};
use crate::services::Sharding;
use crate::storage::fault::Fault;

/// Answers a request with its complete body.
pub(crate) async fn respond(api: &Api, incoming: &Incoming, request_id: &RequestId) -> Response<Bytes> {
    let services = api.services();
    let now_ms = services.ports().clock.now_ms();
    let path = incoming.request.uri().path();
    let open = match path {
        "/" => Some(home::respond(incoming.request.headers(), &services.config().base_url)),
        // Browsers ask for it on pages that name no icon.
        "/favicon.ico" => Some(empty_response(StatusCode::NO_CONTENT)),
        "/healthz" => Some(health(api).await),
        "/readyz" => Some(ready(api).await),
        "/metrics" => metrics::respond(api, incoming, now_ms, request_id).await,
        "/openapi.json" => {
            let respond = |text| json_response(200, text);
            Some(document(incoming, respond, api.interfaces().openapi(), request_id))
        }
        "/openapi-3.0.json" => {
            let respond = |text| json_response(200, text);
            Some(document(incoming, respond, api.interfaces().openapi_3_0(), request_id))
        }
        "/docs" => Some(document(incoming, docs::page, api.interfaces().docs(), request_id)),
        live::PAGE_PATH => Some(live::page::response(services.config())),
        live::WORKLETS_PATH => Some(live::page::worklets()),
        _ => None,
    };
    if let Some(response) = open {
        return match *incoming.request.method() {
            Method::GET | Method::HEAD => response,
            _ => error_response(&method_not_allowed("GET"), request_id),
        };
    }
    if path == live::SOCKET_PATH {
        return live::handshake::without_upgrade(services, incoming, now_ms, request_id).await;
    }
    if path == live::RESTART_PATH {
        return live::restart::respond(services, incoming, now_ms, request_id).await;
    }
    if path.starts_with(telephony::PATH) {
        return telephony::callbacks::handle(services, incoming, request_id).await;
    }
    if mounted::is_dashboard(path) {
        return (api.dashboard())(api, incoming, now_ms, request_id).await;
    }
    if path == "/mcp" {
        return mcp::handle(api, incoming, now_ms, request_id).await;
    }
    if path.starts_with(moves::PATH) {
        return moves::handle(api, incoming, now_ms, request_id).await;
    }
    rest::handle(api, incoming, now_ms, request_id).await
}

/// The route of a path that belongs to nothing.
pub(super) const OTHER: &str = "other";

/// The route of a path, for the log and for counting: one of a fixed list, whatever is asked for.
pub(super) fn route(api: &Api, path: &str) -> &'static str {
    const FIXED: [&str; 14] = [
        "/",
        "/favicon.ico",
        "/healthz",
        "/readyz",
        "/metrics",
        "/openapi.json",
        "/openapi-3.0.json",
        "/docs",
        "/mcp",
        live::PAGE_PATH,
        live::WORKLETS_PATH,
        live::SOCKET_PATH,
        live::RESTART_PATH,
        mounted::DASHBOARD_PATH,
    ];
    if let Some(fixed) = FIXED.iter().find(|fixed| **fixed == path) {
        return fixed;
    }
    if path.starts_with(telephony::PATH) {
        return telephony::PATH;
    }
    if mounted::is_dashboard(path) {
        return mounted::DASHBOARD_PATH;
    }
    if path.starts_with(moves::PATH) {
        return moves::PATH;
    }
    api.interfaces().router.pattern(path).unwrap_or(OTHER)
}

/// A document that anybody may read: whoever has it already is told so in a few bytes.
fn document(
    incoming: &Incoming,
    respond: impl FnOnce(Bytes) -> Response<Bytes>,
    document: Result<&Document, Fault>,
    request_id: &RequestId,
) -> Response<Bytes> {
    let Document { text, etag } = match document {
        Ok(document) => document,
        Err(fault) => return fault.into_response(request_id),
    };
    let opaque = etag.to_str().unwrap_or_default().trim_start_matches("W/");
    let mut response = match range::has_already(incoming.request.headers(), opaque) {
        true => empty_response(StatusCode::NOT_MODIFIED),
        false => respond(text.clone()),
    };
    let headers = response.headers_mut();
    headers.insert(header::ETAG, etag.clone());
    headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-cache"));
    response
}

/// The service is up when its storage answers.
async fn health(api: &Api) -> Response<Bytes> {
    let services = api.services();
    let every = services.on_every_shard();
    let directory = services.sharding().map(Sharding::directory);
    let databases = every.iter().map(|one| &*one.ports().database).chain(directory);
    let probes = databases.map(|database| database.read(vec![crate::sql!("SELECT 1 AS up")]));
    match join_all(probes).await.into_iter().collect::<Result<Vec<_>, _>>() {
        Ok(_) => json_response(200, Bytes::from_static(br#"{"status":"ok"}"#)),
        Err(error) => {
            let response = json_response(503, Bytes::from_static(br#"{"status":"unavailable"}"#));
            with_incident(response, Some(format!("{error:?}")))
        }
    }
}

/// The service is ready when its storage takes writes, and it does not stop. A full disk is no reason to restart it: reads
/// and deletes work.
async fn ready(api: &Api) -> Response<Bytes> {
    let services = api.services();
    let ready = match services.stopping().has_begun() {
        true => Err(NotWritable { reason: "the service stops", detail: "the service stops".to_owned() }),
        false => {
            let every = services.on_every_shard();
            let writes = every.iter().map(|one| one.ports().database.takes_writes());
            match join_all(writes).await.into_iter().collect::<Result<(), NotWritable>>() {
                Ok(()) => services.directory_takes_writes().await,
                refused => refused,
            }
        }
    };
    match ready {
        Ok(()) => json_response(200, Bytes::from_static(br#"{"status":"ready"}"#)),
        Err(NotWritable { reason, detail }) => {
            let body = serde_json::json!({"status": "unavailable", "reason": reason});
            with_incident(json_response(503, Bytes::from(body.to_string())), Some(detail))
        }
    }
}
