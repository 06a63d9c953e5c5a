//! `/`: what this service is and where everything stands; a page for a browser, JSON for a program.
use bytes::Bytes;
use http::{HeaderMap, HeaderValue, Response, header};
use maud::html;
use serde_json::json;

use crate::base::response::json_response;
use crate::interfaces::docs::{brand, page, shell};
use crate::interfaces::mounted::DASHBOARD_PATH;

/// The answer to a request for `/`.
pub fn respond(headers: &HeaderMap, base_url: &str) -> Response<Bytes> {
    let accepts = headers.get(header::ACCEPT).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let mut response = if accepts.contains("text/html") {
        page(Bytes::from(welcome(base_url)))
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

fn welcome(base_url: &str) -> String {
    let body = html! {
        main.home {
            (brand())
            h1 { "Assistants that answer the telephone" }
            p { "Configure them, put them on numbers, and test them with simulated callers. You see every call as it was heard." }
            ul {
                li { a href=(DASHBOARD_PATH) { "Dashboard" } "Make an assistant, talk to it, read its calls." }
                li { a href="/docs" { "API reference" } "Every operation with an example; for programs, the " a href="/openapi.json" { "OpenAPI document" } "." }
                li { span { "MCP" } "For agents: " code { (base_url) "/mcp" } }
            }
        }
    };
    shell("Sidetone", &body)
}
