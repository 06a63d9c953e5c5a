//! `/docs`: one page made from the OpenAPI document, with no script and nothing loaded from elsewhere.
use std::fmt::Write;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use serde_json::Value;

const STYLE: &str = "body{font:16px/1.5 system-ui,sans-serif;max-width:60rem;margin:2rem auto;padding:0 1rem;color:#1c2430;background:#fff}\
h2{margin-top:2.5rem;border-bottom:2px solid #d6dde6}details{border:1px solid #d6dde6;border-radius:6px;margin:.5rem 0;padding:.4rem .8rem}\
summary{cursor:pointer}code{font:14px ui-monospace,monospace;background:#f1f4f8;padding:.1rem .3rem;border-radius:3px}\
b.m{display:inline-block;min-width:4.2rem}table{border-collapse:collapse;width:100%;margin:.5rem 0}td,th{text-align:left;vertical-align:top;\
padding:.25rem .5rem;border-bottom:1px solid #e6ebf1}th{font-weight:600}@media(prefers-color-scheme:dark){body{background:#12161c;color:#dbe3ec}\
code{background:#1e2630}details,h2,td,th{border-color:#2c3642}}";

/// The page's text.
pub fn render(document: &Value) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width\">\
         <title>Sidetone API</title><style>{STYLE}</style><h1>Sidetone API</h1><p>{}</p>\
         <p>Machine-readable: <a href=\"/openapi.json\">/openapi.json</a>. MCP: <code>POST /mcp</code>.</p>",
        prose(text(&document["info"]["description"])),
    );
    for tag in document["tags"].as_array().into_iter().flatten() {
        let name = text(&tag["name"]);
        put(&mut page, format_args!("<h2>{}</h2><p>{}</p>", escape(name), prose(text(&tag["description"]))));
        for (path, methods) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                if operation["tags"][0].as_str() == Some(name) {
                    operation_block(&mut page, path, method, operation);
                }
            }
        }
    }
    page.push_str("<h2>Errors</h2><p>Every error has one form: <code>{\"error\": {\"code\", \"message\", \"details\", \"request_id\"}}</code>.</p><table>");
    for code in crate::base::error::Code::ALL {
        put(
            &mut page,
            format_args!(
                "<tr><td>{}<td><code>{}</code><td>{}",
                code.status(),
                code.as_str(),
                prose(code.meaning())
            ),
        );
    }
    page.push_str("</table></html>");
    page
}

/// The page as a response.
pub fn page(html: Bytes) -> Response<Bytes> {
    let mut response = Response::new(html);
    let headers = response.headers_mut();
    headers.insert(header::CONTENT_TYPE, HeaderValue::from_static("text/html; charset=utf-8"));
    headers.insert(
        header::CONTENT_SECURITY_POLICY,
        HeaderValue::from_static("default-src 'none'; style-src 'unsafe-inline'; frame-ancestors 'none'"),
    );
    response
}

fn operation_block(page: &mut String, path: &str, method: &str, operation: &Value) {
    let id = escape(text(&operation["operationId"]));
    let tool = match operation["responses"]["206"].is_object() {
        true => "No MCP tool: this is a file.".to_owned(),
        false => format!("MCP tool: <code>{id}</code>"),
    };
    put(
        page,
        format_args!(
            "<details id=\"{id}\"><summary><b class=m>{}</b> <code>{}</code> {}</summary><p>{}</p><p>{tool}</p>",
            method.to_ascii_uppercase(),
            escape(path),
            prose(text(&operation["summary"])),
            prose(text(&operation["description"])),
        ),
    );
    let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !parameters.is_empty() || body.is_object() {
        page.push_str("<table><tr><th>Field<th>In<th>Type<th>Notes");
        for parameter in parameters {
            let required = parameter["required"] == true;
            row(
                page,
                text(&parameter["name"]),
                text(&parameter["in"]),
                required,
                &parameter["schema"],
                text(&parameter["description"]),
            );
        }
        let required = body["required"].as_array().map_or(&[][..], Vec::as_slice);
        for (name, property) in body["properties"].as_object().into_iter().flatten() {
            let required = required.iter().any(|value| value == name.as_str());
            row(page, name, "body", required, property, text(&property["description"]));
        }
        page.push_str("</table>");
    }
    page.push_str("<table><tr><th>Status<th>Meaning");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        put(page, format_args!("<tr><td>{status}<td>{}", prose(text(&response["description"]))));
    }
    page.push_str("</table></details>");
}

fn row(page: &mut String, name: &str, place: &str, required: bool, schema: &Value, note: &str) {
    let kind = match &schema["type"] {
        Value::String(kind) => kind.clone(),
        Value::Array(kinds) => kinds.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any".to_owned(),
    };
    let note = if note.is_empty() { text(&schema["description"]) } else { note };
    let mut limits = Vec::new();
    for (keyword, word) in [
        ("minLength", "at least characters:"),
        ("maxLength", "at most characters:"),
        ("minimum", "at least"),
        ("maximum", "at most"),
        ("maxItems", "at most items:"),
        ("default", "default"),
        ("enum", "one of"),
        ("pattern", "form"),
    ] {
        // The description of a text that is limited in bytes says so; `maxLength` counts characters.
        if keyword == "maxLength" && note.contains("bytes") {
            continue;
        }
        if let Some(value) = schema.get(keyword) {
            limits.push(format!("{word} {value}"));
        }
    }
    put(
        page,
        format_args!(
            "<tr><td><code>{}</code>{}<td>{place}<td>{kind}<td>{} {}",
            escape(name),
            if required { " (required)" } else { "" },
            prose(note),
            escape(&limits.join("; ")),
        ),
    );
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn put(page: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = page.write_fmt(arguments);
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;").replace('"', "&quot;")
}

/// Escaped text with `inline code` as elements. A backtick without a partner stays as it is.
fn prose(text: &str) -> String {
    let mut html = String::new();
    let mut rest = text;
    while let Some((before, after)) = rest.split_once('`')
        && let Some((code, after)) = after.split_once('`')
    {
        put(&mut html, format_args!("{}<code>{}</code>", escape(before), escape(code)));
        rest = after;
    }
    html.push_str(&escape(rest));
    html
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn inline_code_is_an_element_and_everything_is_escaped() {
        for (text, html) in [
            ("plain <b>", "plain &lt;b&gt;"),
            ("`a` and `b`", "<code>a</code> and <code>b</code>"),
            ("`3` or `\"3\"`.", "<code>3</code> or <code>&quot;3&quot;</code>."),
            ("`<script>` & `x", "<code>&lt;script&gt;</code> &amp; `x"),
            ("``", "<code></code>"),
            ("`", "`"),
        ] {
            assert_eq!(prose(text), html, "{text}");
        }
    }

    #[test]
    fn no_backtick_is_left_in_the_page() {
        let page = render(&crate::interfaces::openapi::document(""));
        assert!(page.lines().all(|line| !line.contains('`')));
    }

    #[test]
    fn a_limit_in_bytes_is_not_shown_in_characters() {
        let mut page = String::new();
        let text = |note: &str| json!({"type": "string", "maxLength": 9, "description": note});
        row(&mut page, "content", "body", true, &text("At most 9 bytes."), "");
        assert!(!page.contains("characters"), "{page}");
        row(&mut page, "name", "body", true, &text("A name."), "");
        assert!(page.contains("at most characters: 9"), "{page}");
    }
}
