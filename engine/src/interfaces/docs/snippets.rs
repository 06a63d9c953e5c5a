//! A request in several languages, in tabs that are radio buttons: they need no script, and arrow keys move between them.
use maud::{Markup, html};
use serde_json::{Map, Value, json};

use super::json::{Words, pretty, written};
use super::list;
use super::words::text;
use crate::operations::operation::{Operation, Success};

/// The languages, with their names.
const LANGUAGES: [(&str, &str); 4] =
    [("curl", "curl"), ("ts", "TypeScript"), ("py", "Python"), ("mcp", "MCP")];

/// A request to this service.
pub(super) struct Request<'a> {
    pub(super) operation: &'a Operation,
    pub(super) described: &'a Value,
    pub(super) url: String,
    pub(super) example: &'a Value,
}

/// The request in all languages.
pub(super) fn tabs(request: &Request<'_>) -> Markup {
    let mcp = mcp(request);
    let texts = [Some(curl(request)), Some(typescript(request)), Some(python(request)), mcp];
    let panes = LANGUAGES.into_iter().zip(texts).filter_map(|(language, text)| Some((language, text?)));
    of(request.operation.id, "Request", &panes.collect::<Vec<_>>())
}

/// Tabs with these texts. The first is open.
pub(super) fn of(id: &str, title: &str, panes: &[((&str, &str), String)]) -> Markup {
    html! {
        div.tabs {
            fieldset {
                legend { (title) }
                @for (place, ((value, name), _)) in panes.iter().enumerate() {
                    label {
                        input type="radio" name={ "in-" (id) } value=(value) checked[place == 0];
                        span { (name) }
                    }
                }
            }
            @for ((value, _), text) in panes { pre data-in=(value) { code { (text) } } }
        }
    }
}

/// Whether the response is a stream, a file or nothing that can be read.
fn success(request: &Request<'_>) -> Success {
    request.operation.success
}

fn method<'a>(request: &Request<'a>) -> &'a str {
    request.operation.method.as_str()
}

fn curl(request: &Request<'_>) -> String {
    let verb = match method(request) {
        "GET" => String::new(),
        other => format!("-X {other} "),
    };
    let more = match success(request) {
        Success::Events => "-N ",
        Success::Audio => "-o recording.wav ",
        _ => "",
    };
    let url =
        if request.url.contains(['?', '&']) { format!("'{}'", request.url) } else { request.url.clone() };
    let mut text = format!("curl {verb}{more}{url} \\\n  -H \"Authorization: Bearer $SIDETONE_KEY\"");
    if let Some(body) = request.example.get("body") {
        let body = pretty(body).replace('\'', "'\\''");
        text.push_str(&format!(" \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"));
    }
    text
}

fn typescript(request: &Request<'_>) -> String {
    let key = "\"Bearer \" + process.env.SIDETONE_KEY";
    let mut text = format!("const reply = await fetch(\"{}\", {{\n", request.url);
    if method(request) != "GET" {
        text.push_str(&format!("  method: \"{}\",\n", method(request)));
    }
    match request.example.get("body") {
        Some(body) => text.push_str(&format!(
            "  headers: {{\n    Authorization: {key},\n    \"Content-Type\": \"application/json\",\n  }},\n  body: JSON.stringify({}),\n}});\n",
            written(body, Words::Json, 2)
        )),
        None => text.push_str(&format!("  headers: {{ Authorization: {key} }},\n}});\n")),
    }
    text.push_str(match success(request) {
        Success::Ok | Success::Created => "console.log(await reply.json());",
        Success::Empty => "console.log(reply.status); // 204",
        Success::Audio => "await writeFile(\"recording.wav\", Buffer.from(await reply.arrayBuffer()));",
        Success::Events => {
            "for await (const text of reply.body.pipeThrough(new TextDecoderStream())) {\n  process.stdout.write(text);\n}"
        }
    });
    text
}

fn python(request: &Request<'_>) -> String {
    let mut text = format!(
        "import os, requests\n\nreply = requests.{}(\n    \"{}\",\n    headers={{\"Authorization\": \"Bearer \" + os.environ[\"SIDETONE_KEY\"]}},\n",
        method(request).to_ascii_lowercase(),
        request.url
    );
    if let Some(body) = request.example.get("body") {
        text.push_str(&format!("    json={},\n", written(body, Words::Python, 4)));
    }
    if success(request) == Success::Events {
        text.push_str("    stream=True,\n");
    }
    text.push_str(")\n");
    text.push_str(match success(request) {
        Success::Ok | Success::Created => "print(reply.json())",
        Success::Empty => "print(reply.status_code)  # 204",
        Success::Audio => "open(\"recording.wav\", \"wb\").write(reply.content)",
        Success::Events => "for line in reply.iter_lines(decode_unicode=True):\n    print(line)",
    });
    text
}

/// The call of the tool of the same name. `None` for files and streams.
fn mcp(request: &Request<'_>) -> Option<String> {
    if !request.operation.is_tool() {
        return None;
    }
    let example = request.example;
    let mut arguments: Map<String, Value> = example["path"].as_object().cloned().unwrap_or_default();
    let query = form_urlencoded::parse(text(&example["query"]).as_bytes());
    arguments.extend(query.map(|(name, value)| {
        let value = typed(request.described, &name, &value);
        (name.into_owned(), value)
    }));
    // The number of a revision, too.
    for (name, value) in &mut arguments {
        if let Value::String(text) = value {
            *value = typed(request.described, name, text);
        }
    }
    if let Some(body) = example.get("body").filter(|_| request.operation.body.is_some()) {
        arguments.insert("data".to_owned(), body.clone());
    }
    if request.operation.spends() {
        arguments.insert("confirm".to_owned(), true.into());
    }
    let params = json!({"name": request.operation.id, "arguments": arguments});
    Some(pretty(&json!({"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": params})))
}

/// A value of the path or query, as MCP takes it.
fn typed(described: &Value, name: &str, value: &str) -> Value {
    let parameter = list(&described["parameters"]).iter().find(|parameter| parameter["name"] == name);
    match parameter.map(|parameter| text(&parameter["schema"]["type"])) {
        Some("integer" | "number" | "boolean") => {
            serde_json::from_str(value).unwrap_or_else(|_| value.into())
        }
        _ => value.into(),
    }
}
