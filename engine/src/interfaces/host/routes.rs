//! Which part of the service answers a request.
use bytes::Bytes;
use http::{HeaderValue, Method, Response, StatusCode, header};

use crate::base::ids::RequestId;
use crate::base::response::{empty_response, error_response, json_response, method_not_allowed};
use crate::interfaces::api::Api;
use crate::interfaces::host::{metrics, probes};
use crate::interfaces::{Document, docs, home, mcp, mounted, moves, range, rest};
use crate::live::{self, telephony};
use crate::ports::Incoming;
use crate::storage::fault::Fault;

/// Answers a request with its complete body.
pub(crate) async fn respond(api: &Api, incoming: &Incoming, request_id: &RequestId) -> Response<Bytes> {
    let services = api.services();
    let now_ms = services.ports().clock.now_ms();
    let path = incoming.request.uri().path();
    let is_read = matches!(*incoming.request.method(), Method::GET | Method::HEAD);
    let open = match path {
        "/" => Some(home::respond(incoming.request.headers(), &services.config().base_url)),
        // Browsers ask for it on pages that name no icon.
        "/favicon.ico" => Some(empty_response(StatusCode::NO_CONTENT)),
        // They ask the databases.
        "/healthz" | "/readyz" if !is_read => return only_get(request_id),
        "/healthz" => Some(probes::health(api, now_ms).await),
        "/readyz" => Some(probes::ready(api, now_ms).await),
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
        return if is_read { response } else { only_get(request_id) };
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

fn only_get(request_id: &RequestId) -> Response<Bytes> {
    error_response(&method_not_allowed("GET"), request_id)
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
