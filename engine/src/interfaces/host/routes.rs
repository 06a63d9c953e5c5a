//! Which part of the service answers a request.
use bytes::Bytes;
use http::{Method, Response, StatusCode};

use crate::base::ids::RequestId;
use crate::base::response::{
    empty_response, error_response, json_response, method_not_allowed, with_incident,
};
use crate::interfaces::api::Api;
use crate::interfaces::{docs, home, mcp, mounted, rest};
use crate::live::{self, telephony};
use crate::ports::{Incoming, NotWritable};
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
        "/openapi.json" => {
            Some(document(|text| json_response(200, text), api.interfaces().openapi(), request_id))
        }
        "/docs" => Some(document(docs::page, api.interfaces().docs(), request_id)),
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
    if path.starts_with(telephony::PATH) {
        return telephony::callbacks::handle(services, incoming, request_id).await;
    }
    if mounted::is_dashboard(path) {
        return (api.dashboard())(api, incoming, now_ms, request_id).await;
    }
    if path == "/mcp" {
        return mcp::handle(api, incoming, now_ms, request_id).await;
    }
    rest::handle(api, incoming, now_ms, request_id).await
}

fn document(
    respond: impl FnOnce(Bytes) -> Response<Bytes>,
    text: Result<Bytes, Fault>,
    request_id: &RequestId,
) -> Response<Bytes> {
    match text {
        Ok(text) => respond(text),
        Err(fault) => fault.into_response(request_id),
    }
}

/// The service is up when its storage answers.
async fn health(api: &Api) -> Response<Bytes> {
    let probe = vec![crate::sql!("SELECT 1 AS up")];
    match api.services().ports().database.read(probe).await {
        Ok(_) => json_response(200, Bytes::from_static(br#"{"status":"ok"}"#)),
        Err(error) => {
            let response = json_response(503, Bytes::from_static(br#"{"status":"unavailable"}"#));
            with_incident(response, Some(format!("{error:?}")))
        }
    }
}

/// The service is ready when its storage takes writes. A full disk is no reason to restart it: reads and deletes work.
async fn ready(api: &Api) -> Response<Bytes> {
    match api.services().ports().database.takes_writes().await {
        Ok(()) => json_response(200, Bytes::from_static(br#"{"status":"ready"}"#)),
        Err(NotWritable { reason, detail }) => {
            let body = serde_json::json!({"status": "unavailable", "reason": reason});
            with_incident(json_response(503, Bytes::from(body.to_string())), Some(detail))
        }
    }
}
