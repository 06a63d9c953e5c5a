//! `/docs`: one page made from the OpenAPI document, with no script and nothing loaded from elsewhere.
use std::fmt::Write;

use bytes::Bytes;
use http::{HeaderValue, Response, header};
use serde_json::Value;

/// The colours and typefaces of every page, and what is of this one and of the one at `/`.
pub(super) const STYLE: &str = concat!(include_str!("../base/theme.css"), include_str!("docs.css"));

/// The page's text.
pub fn render(document: &Value) -> String {
    let mut page = format!(
        "<!doctype html><html lang=\"en\"><meta charset=\"utf-8\"><meta name=\"viewport\" content=\"width=device-width,initial-scale=1\">\
         <title>API reference · Sidetone</title><style>{STYLE}</style><header><h1>Sidetone API</h1>\
         <a href=\"/dashboard\">Dashboard</a><a href=\"/openapi.json\">OpenAPI document</a></header><div class=page><nav aria-label=\"Parts\">"
    );
    let tags = document["tags"].as_array().map_or(&[][..], Vec::as_slice);
    for name in tags.iter().map(|tag| text(&tag["name"])).chain(["Errors"]) {
        put(&mut page, format_args!("<a href=\"#{}\">{}</a>", anchor(name), escape(name)));
    }
    put(
        &mut page,
        format_args!(
            "</nav><main><p>{}</p><p>MCP: <code>POST /mcp</code>.</p>",
            prose(text(&document["info"]["description"]))
        ),
    );
    for tag in tags {
        let name = text(&tag["name"]);
        put(
            &mut page,
            format_args!(
                "<h2 id=\"{}\">{}</h2><p class=about>{}</p>",
                anchor(name),
                escape(name),
                prose(text(&tag["description"]))
            ),
        );
        for (path, methods) in document["paths"].as_object().into_iter().flatten() {
            for (method, operation) in methods.as_object().into_iter().flatten() {
                if operation["tags"][0].as_str() == Some(name) {
                    operation_block(&mut page, path, method, operation);
                }
            }
        }
    }
    page.push_str("<h2 id=\"errors\">Errors</h2><p>Every error has one form: <code>{\"error\": {\"code\", \"message\", \"details\", \"request_id\"}}</code>.</p><div class=scroll><table>");
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
    page.push_str("</table></div></main></div></html>");
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
            "<details id=\"{id}\"><summary><b>{}</b> <code>{}</code> <span>{}</span></summary><p>{}</p><p>{tool}</p>",
            method.to_ascii_uppercase(),
            escape(path),
            prose(text(&operation["summary"])),
            prose(text(&operation["description"])),
        ),
    );
    let parameters = operation["parameters"].as_array().map_or(&[][..], Vec::as_slice);
    let body = &operation["requestBody"]["content"]["application/json"]["schema"];
    if !parameters.is_empty() || body.is_object() {
        page.push_str("<div class=scroll><table><tr><th>Field<th>In<th>Type<th>Notes");
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
        page.push_str("</table></div>");
    }
    page.push_str("<div class=scroll><table><tr><th>Status<th>Meaning");
    for (status, response) in operation["responses"].as_object().into_iter().flatten() {
        put(page, format_args!("<tr><td>{status}<td>{}", prose(text(&response["description"]))));
    }
    page.push_str("</table></div></details>");
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

/// The fragment of a part's heading.
fn anchor(name: &str) -> String {
    name.to_ascii_lowercase().replace(' ', "-")
}

fn text(value: &Value) -> &str {
    value.as_str().unwrap_or_default()
}

fn put(page: &mut String, arguments: std::fmt::Arguments<'_>) {
    // Writing to a String cannot fail.
    let _ = page.write_fmt(arguments);
}

pub(super) fn escape(text: &str) -> String {
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
