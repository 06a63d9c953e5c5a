//! Derives the tools from the operation table, with the subset of JSON Schema that all models support.
use serde_json::{Map, Value, json};

use crate::interfaces::generated::{RequestSchemas, requests};
use crate::operations::operation::{Effects, Operation, Presence};
use crate::operations::{OPERATIONS, schema};

/// The tool list, as a result of revisions up to 2025-11-25.
pub fn list() -> String {
    let operations = OPERATIONS.iter().filter(|operation| operation.is_tool());
    let tools: Vec<Value> = operations.map(|operation| tool(operation, &requests(operation))).collect();
    json!({ "tools": tools }).to_string()
}

fn tool(operation: &Operation, schemas: &RequestSchemas) -> Value {
    json!({
        "name": operation.id,
        "title": operation.title,
        "description": operation.description,
        "inputSchema": input_schema(operation, schemas),
        "annotations": {
            "title": operation.title,
            "readOnlyHint": operation.effects == Effects::Read,
            "destructiveHint": operation.effects == Effects::Delete,
            "idempotentHint": matches!(operation.effects, Effects::Read | Effects::Replace | Effects::Delete),
            "openWorldHint": operation.reaches_out(),
        },
    })
}

fn input_schema(operation: &Operation, schemas: &RequestSchemas) -> Value {
    let mut properties = Map::new();
    let mut required: Vec<&str> = Vec::new();
    for name in operation.path_names() {
        properties.insert(name.to_owned(), path_value(name));
        required.push(name);
    }
    if let Some(Value::Object(query)) = schemas.query.as_ref().map(schema::for_mcp)
        && let Some(Value::Object(parameters)) = query.get("properties")
    {
        properties.extend(parameters.clone());
    }
    if let (Some(body), Some(shape)) = (&schemas.body, operation.body) {
        properties.insert("data".to_owned(), schema::for_mcp(body));
        if shape.presence != Presence::Optional {
            required.push("data");
        }
    }
    if operation.revision {
        let note = "The revision you read: refused when it is no longer current (If-Match).";
        let revision = json!({"type": "integer", "minimum": 0, "description": note});
        properties.insert("if_revision".to_owned(), revision);
    }
    if operation.takes_idempotency_key() {
        let note =
            "Any text of up to 255 characters: the same call with the same key is done once in 24 hours.";
        let key = json!({"type": "string", "minLength": 1, "maxLength": 255, "description": note});
        properties.insert("idempotency_key".to_owned(), key);
    }
    if operation.spends() {
        let note = "Must be true, and only after the user approved: this can incur usage.";
        properties.insert("confirm".to_owned(), json!({"type": "boolean", "description": note}));
        required.push("confirm");
    }
    json!({
        "type": "object",
        "properties": properties,
        "required": required,
        "additionalProperties": false,
    })
}

/// A path value's schema.
pub fn path_value(name: &str) -> Value {
    match name {
        "number" => json!({
            "type": "string",
            "pattern": crate::base::phone::E164_PATTERN,
            "description": "Phone number in E.164, such as +14155550123.",
        }),
        _ => json!({"type": "string", "description": "Identifier from an earlier answer."}),
    }
}
