//! `/openapi.json`: the operation table as an OpenAPI 3.1 document.
mod bodies;
mod generators;
mod webhooks;

use std::collections::BTreeMap;

use schemars::SchemaGenerator;
use serde_json::{Map, Value, json};

use self::bodies::Bodies;
use self::webhooks::webhooks;
use crate::base::error::Code;
use crate::base::limits;
use crate::interfaces::docs::Examples;
use crate::interfaces::generated::{RequestSchemas, requests};
use crate::interfaces::mcp::tools::path_value;
use crate::operations::operation::{Operation, Presence, Success};
use crate::operations::{GROUPS, OPERATIONS, schema};

const DESCRIPTION: &str = "Voice assistants as one engine: configure assistants, give them tools and \
    knowledge, bind phone numbers, and test them with simulated callers. Send your workspace API key as \
    `Authorization: Bearer sidetone_…`. Every operation but downloads, streams of events and the pages \
    of the service itself is also an MCP tool of the same name at `/mcp`. Unknown fields and parameters are refused by \
    name. Times are RFC 3339 UTC.";

/// The service of the examples, which are the same wherever the document is served.
const EXAMPLE_URL: &str = "https://voice.example.com";

/// Error codes of every operation.
const COMMON: &[Code] = &[
    Code::Unauthorized,
    Code::RequestTimeout,
    Code::TooManyInvalidCredentials,
    Code::Internal,
    Code::Unavailable,
];
/// Error codes of every operation with a body.
const WITH_BODY: &[Code] =
    &[Code::InvalidJson, Code::BodyTooLarge, Code::UnsupportedMediaType, Code::ValidationFailed];

/// Derives the document.
pub fn document(base_url: &str) -> Value {
    let mut generator = schema::response_generator();
    let mut bodies = Bodies::new();
    let examples = Examples::of_service(EXAMPLE_URL);
    let mut paths: Map<String, Value> = Map::new();
    for operation in OPERATIONS {
        let entry = paths.entry(operation.path).or_insert_with(|| json!({}));
        entry[operation.method.as_str().to_ascii_lowercase()] =
            describe(operation, &requests(operation), &mut generator, &mut bodies, &examples);
    }
    open_paths(&mut paths);
    let mut components = generator.take_definitions(true);
    components.values_mut().for_each(schema::normalise);
    components.insert("Error".to_owned(), error_schema());
    bodies.merge(&mut paths, &mut components);
    share_enums(&mut paths, &components);
    let webhooks = webhooks(&mut components, &examples);
    let tags: Vec<Value> =
        GROUPS.iter().map(|(name, note)| json!({"name": name, "description": note})).collect();
    let mut document = json!({
        "openapi": "3.1.0",
        "info": {
            "title": "Sidetone",
            "version": env!("CARGO_PKG_VERSION"),
            "description": DESCRIPTION,
            "license": {"name": "Apache-2.0", "identifier": "Apache-2.0"},
        },
        "servers": [{"url": base_url}],
        "security": [{"key": []}],
        "tags": tags,
        "paths": paths,
        "webhooks": webhooks,
        "components": {
            "securitySchemes": {"key": {
                "type": "http", "scheme": "bearer",
                "description": "A workspace API key. It has full access to its workspace.",
            }},
            "schemas": components,
        },
    });
    schema::without_max_bytes(&mut document);
    generators::prepare(&mut document);
    document
}

fn describe(
    operation: &Operation,
    requests: &RequestSchemas,
    generator: &mut SchemaGenerator,
    bodies: &mut Bodies,
    examples: &Examples,
) -> Value {
    let mut described = json!({
        "operationId": operation.id,
        "tags": [operation.group],
        "summary": operation.title,
        "description": operation.description,
        "parameters": parameters(operation, requests),
        "responses": responses(operation, requests, generator),
    });
    let example = examples.operation(operation.id);
    if let Some(body) = operation.body {
        described["requestBody"] = json!({
            "required": body.presence != Presence::Optional,
            "content": {"application/json": {"schema": bodies.schema(body)}},
        });
        // An example with an id of somebody else's would be refused.
        if let Some(sent) = example.get("body").filter(|sent| !sent.to_string().contains("_id")) {
            described["requestBody"]["content"]["application/json"]["schema"]["examples"] = json!([sent]);
        }
    }
    if let Some(received) = example.get("response") {
        let status = operation.success.status().to_string();
        described["responses"][status]["content"]["application/json"]["example"] = received.clone();
    }
    described
}

/// Parameters name the enums that are components.
fn share_enums(paths: &mut Map<String, Value>, components: &Map<String, Value>) {
    let operations =
        paths.values_mut().filter_map(Value::as_object_mut).flat_map(|methods| methods.values_mut());
    for operation in operations {
        let parameters = operation.get_mut("parameters").and_then(Value::as_array_mut);
        for parameter in parameters.into_iter().flatten() {
            let schema = &mut parameter["schema"];
            let choices = schema["enum"].as_array().filter(|choices| choices.len() > 1);
            let same = choices.and_then(|choices| {
                components.iter().find(|(_, component)| component["enum"].as_array() == Some(choices))
            });
            if let Some((name, _)) = same {
                *schema = json!({"$ref": format!("#/components/schemas/{name}")});
            }
        }
    }
}

fn parameters(operation: &Operation, requests: &RequestSchemas) -> Value {
    let mut parameters = Vec::new();
    for name in operation.path_names() {
        let schema = path_value(operation.path, name);
        parameters.push(json!({"name": name, "in": "path", "required": true, "schema": schema}));
    }
    let query = requests.query.as_ref().and_then(|query| query["properties"].as_object());
    for (name, property) in query.into_iter().flatten() {
        let mut property = property.clone();
        let note = property.as_object_mut().and_then(|object| object.remove("description"));
        let is_object = property["type"] == "object";
        let mut parameter = json!({"name": name, "in": "query", "description": note, "schema": property});
        if is_object {
            parameter["style"] = "deepObject".into();
            parameter["explode"] = true.into();
        }
        parameters.push(parameter);
    }
    if operation.revision {
        parameters.push(json!({
            "name": "If-Match", "in": "header",
            "description": "The revision that you read, as `3` or `\"3\"`. If it is no longer current, the request is refused with 409.",
            "schema": {"type": "string", "pattern": "^(0|[1-9][0-9]{0,14}|\"(0|[1-9][0-9]{0,14})\")$"},
        }));
    }
    if operation.success == Success::Audio {
        parameters.push(json!({
            "name": "Range", "in": "header",
            "description": "One range of bytes, such as `bytes=0-65535`, `bytes=65536-` or `bytes=-1000`. A request for \
                several ranges, or with an invalid range, gets the complete recording.",
            "schema": {"type": "string"},
        }));
        parameters.push(json!({
            "name": "If-Range", "in": "header",
            "description": "The ETag of the part that you already have. If the recording has changed since, you get the complete recording.",
            "schema": {"type": "string"},
        }));
        parameters.push(json!({
            "name": "If-None-Match", "in": "header",
            "description": "The ETag of the recording that you already have. If it has not changed since, you get 304 and no body.",
            "schema": {"type": "string"},
        }));
    }
    if operation.success == Success::Events {
        parameters.push(json!({
            "name": "Last-Event-ID", "in": "header",
            "description": "The `id` of the last event that you have received: the stream begins after it.",
            "schema": {"type": "string", "pattern": "^(0|[1-9][0-9]{0,14})?$"},
        }));
    }
    if operation.takes_idempotency_key() {
        parameters.push(json!({
            "name": "Idempotency-Key", "in": "header",
            "description": "Makes retries safe: within 24 hours the same request with the same key is executed once. A \
                repetition returns the stored response with `Idempotent-Replayed: true`.",
            "schema": {"type": "string", "minLength": 1,
                "maxLength": limits::IDEMPOTENCY_KEY_CHARS_MAX, "pattern": "^[ -~]+$"},
        }));
    }
    parameters.into()
}

fn responses(operation: &Operation, requests: &RequestSchemas, generator: &mut SchemaGenerator) -> Value {
    let mut responses = Map::new();
    let mut success = json!({"description": match operation.success {
        Success::Ok => "Success. The body is the result.",
        Success::Created => "Success: something was created or started. The body describes it.",
        Success::Empty => "Success. The response has no body.",
        Success::Audio => "The complete recording, a WAV file.",
        Success::Events => "The events, each with `id`, `event` and `data` (JSON), as they come. Comments (lines that begin with a colon) keep the connection alive.",
    }});
    let mut revised = false;
    if let Some(response) = operation.response {
        let mut body = response(generator).to_value();
        schema::normalise(&mut body);
        revised = body["$ref"] == "#/components/schemas/Assistant";
        success["content"] = json!({"application/json": {"schema": body}});
    }
    success["headers"] = success_headers(operation, requests, revised);
    if operation.success == Success::Audio {
        success["content"] = json!({"audio/wav": {"schema": {"type": "string", "format": "binary"}}});
        let mut part = success.clone();
        part["description"] = "The requested range of the recording.".into();
        part["headers"]["Content-Range"] = json!({"description": "The first and last byte of the range, and the size of the recording.", "schema": {"type": "string"}});
        responses.insert("206".to_owned(), part);
        responses.insert(
            "304".to_owned(),
            json!({"description": "The recording has not changed. Without a body."}),
        );
    }
    if operation.success == Success::Events {
        success["content"] = json!({"text/event-stream": {"schema": {}}});
        responses.insert(
            "204".to_owned(),
            json!({"description": "It has ended, and `Last-Event-ID` is its last event. Without a body."}),
        );
    }
    responses.insert(operation.success.status().to_string(), success);
    responses.sort_keys();

    let mut by_status: BTreeMap<u16, Vec<Code>> = BTreeMap::new();
    let with_body: &[Code] = if operation.body.is_some() { WITH_BODY } else { &[] };
    let with_query: &[Code] = &[Code::ValidationFailed];
    let with_path: &[Code] = if operation.path.contains('{') { &[Code::NotFound] } else { &[] };
    let with_query_values: &[Code] = if operation.query.is_some() { &[Code::InvalidParameter] } else { &[] };
    let with_revision: &[Code] =
        if operation.revision { &[Code::InvalidIfMatch, Code::RevisionConflict] } else { &[] };
    let with_key: &[Code] = if operation.takes_idempotency_key() {
        &[Code::InvalidParameter, Code::IdempotencyKeyReused]
    } else {
        &[]
    };
    for code in [
        COMMON,
        with_body,
        with_query,
        with_query_values,
        with_path,
        with_revision,
        with_key,
        operation.errors,
    ]
    .concat()
    {
        let codes = by_status.entry(code.status()).or_default();
        if !codes.contains(&code) {
            codes.push(code);
        }
    }
    for (status, codes) in by_status {
        let notes: Vec<String> =
            codes.iter().map(|code| format!("`{}`: {}", code.as_str(), code.meaning())).collect();
        responses.insert(
            status.to_string(),
            json!({
                "description": notes.join(" "),
                "content": {"application/json": {"schema": {"$ref": "#/components/schemas/Error"}}},
            }),
        );
    }
    responses.into()
}

fn success_headers(operation: &Operation, requests: &RequestSchemas, revised: bool) -> Value {
    let mut headers = json!({"X-Request-Id": {"description": "The id of the request, as in the server's log.", "schema": {"type": "string"}}});
    if revised {
        headers["ETag"] = json!({"description": "The revision of the assistant, for `If-Match`.", "schema": {"type": "string"}});
    }
    let query = requests.query.as_ref().and_then(|query| query["properties"].as_object());
    if query.is_some_and(|query| query.contains_key("after") || query.contains_key("page")) {
        headers["Link"] = json!({"description": "`<URL>; rel=\"next\"`: the next part of the list (RFC 8288). Missing at the end of the list.", "schema": {"type": "string"}});
    }
    if operation.success == Success::Audio {
        headers["Accept-Ranges"] = json!({"schema": {"const": "bytes"}});
        headers["ETag"] = json!({"description": "Identifies this version of the recording, for `If-Range` and `If-None-Match`.", "schema": {"type": "string"}});
    }
    if operation.takes_idempotency_key() {
        headers["Idempotent-Replayed"] = json!({
            "description": "`true` when the response repeats that of an earlier request with the same Idempotency-Key.", "schema": {"type": "string"}
        });
    }
    headers
}

/// The routes without a key that are not operations.
fn open_paths(paths: &mut Map<String, Value>) {
    for (path, id, title, answer, kind) in [
        ("/healthz", "health", "Whether the service is up", "The service is up.", "application/json"),
        ("/readyz", "ready", "Whether storage takes writes", "It does.", "application/json"),
        ("/openapi.json", "openapi", "This document", "The OpenAPI document.", "application/json"),
        (
            "/openapi-3.0.json",
            "openapi_3_0",
            "This document as OpenAPI 3.0",
            "The document, without `webhooks`.",
            "application/json",
        ),
        ("/docs", "docs", "The documentation page", "The documentation page.", "text/html"),
        (
            "/voice-test",
            "voice_test",
            "The page that a test token opens",
            "The page for a test conversation.",
            "text/html",
        ),
    ] {
        let schema = if kind == "text/html" { json!({"type": "string"}) } else { json!({"type": "object"}) };
        let content = json!({kind: {"schema": schema}});
        let mut responses = json!({"200": {"description": answer, "content": content}});
        let unavailable = match path {
            "/healthz" => Some("The service cannot reach its database."),
            "/readyz" => {
                Some("It does not; `reason` says why. Reads, and deletes on a full disk, still work.")
            }
            _ => None,
        };
        if let Some(description) = unavailable {
            responses["503"] = json!({"description": description, "content": content});
        }
        paths.insert(
            path.to_owned(),
            json!({"get": {
                "operationId": id, "tags": ["Service"], "summary": title, "security": [],
                "responses": responses,
            }}),
        );
    }
}

fn error_schema() -> Value {
    let codes: Vec<&str> = Code::ALL.iter().map(|code| code.as_str()).collect();
    json!({
        "type": "object",
        "description": "The body of every error response.",
        "required": ["error"],
        "properties": {"error": {
            "type": "object",
            "required": ["code", "message", "request_id"],
            "properties": {
                "code": {"type": "string", "enum": codes},
                "message": {"type": "string", "description": "What is wrong and how to correct it."},
                "details": {"type": "object", "description": "Details for programs. `fields` lists every wrong field as `{field, message}`; some codes have details of their own."},
                "request_id": {"type": "string", "description": "The id of the request, as in `X-Request-Id` and in the server's log."},
            },
        }},
    })
}
