//! `/`: what this service is and where everything stands; a page for a browser, JSON for a program.
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use serde_json::json;

use crate::base::response::json_response;
use crate::interfaces::docs::{self, STYLE};
use crate::interfaces::mounted::DASHBOARD_PATH;

/// The answer to a request for `/`.
pub fn respond(headers: &HeaderMap, base_url: &str) -> Response<Bytes> {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut response = if accepts.contains("text/html") {
        docs::page(Bytes::from(page(base_url)))
    } else {
        let places = json!({
            "name": "Sidetone",
            "version": env!("CARGO_PKG_VERSION"),
            "dashboard": format!("{base_url}{DASHBOARD_PATH}"),
            "docs": format!("{base_url}/docs"),
            "openapi": format!("{base_url}/openapi.json"),
            "mcp": format!("{base_url}/mcp"),
        });
        json_response(200, Bytes::from(places.to_string()))
    };
    response.headers_mut().insert(header::VARY, HeaderValue::from_static("accept"));
    response
}

fn page(base_url: &str) -> String {
    format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>Sidetone</title><style>{STYLE}</style><main class=home><h1>Sidetone</h1>\
         <p>Voice assistants: configure them, put them on telephone numbers, test them with simulated callers.</p><ul>\
         <li><a href=\"{DASHBOARD_PATH}\">Dashboard</a>Make an assistant, talk to it, see its calls.\
         <li><a href=\"/docs\">API reference</a>Every operation; for programs, the <a href=\"/openapi.json\">OpenAPI document</a>.\
         <li><span>MCP</span>For agents: <code>{}/mcp</code></ul></main></html>",
        docs::escape(base_url)
    )
}
