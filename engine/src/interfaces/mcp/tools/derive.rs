//! Derives the tools from the operation table, with the subset of JSON Schema that all models support.
use serde_json::{Map, Value, json};

use crate::base::ids::prefix;
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
        properties.insert(name.to_owned(), path_value(operation.path, name));
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
        let note = "The revision that you read. If it is no longer current, the call is refused with revision_conflict (If-Match).";
        let revision = json!({"type": "integer", "minimum": 0, "description": note});
        properties.insert("if_revision".to_owned(), revision);
    }
    if operation.takes_idempotency_key() {
        let note = "1 to 255 printable ASCII characters, such as a UUID. Makes retries safe: within 24 hours the same call with the \
             same key is executed once, and a repetition returns the stored response.";
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

/// The schema of a path value.
pub fn path_value(path: &str, name: &str) -> Value {
    if name == "number" {
        return json!({
            "type": "string",
            "pattern": crate::base::phone::E164_PATTERN,
            "description": "Phone number in E.164, such as +14155550123.",
        });
    }
    if name == "revision" {
        return json!({"type": "integer", "minimum": 1, "description": "The number of the revision, as `revision` of the list."});
    }
    json!({"type": "string", "description": id_description(path, name)})
}

/// Describes an id by the collection that stands before it in the path.
fn id_description(path: &str, name: &str) -> String {
    let before = path.split(&format!("/{{{name}}}")).next().unwrap_or_default();
    let (noun, prefix) = match before.rsplit('/').next().unwrap_or_default() {
        "assistants" => ("assistant", prefix::ASSISTANT),
        "tools" => ("tool", prefix::TOOL),
        "knowledge" => ("knowledge document", prefix::DOCUMENT),
        "calls" => ("call", prefix::CALL),
        "webhooks" => ("webhook", prefix::WEBHOOK),
        "deliveries" => ("delivery", prefix::DELIVERY),
        "personas" => ("persona", prefix::PERSONA),
        "scenarios" => ("scenario", prefix::SCENARIO),
        "simulations" => ("simulation", prefix::SIMULATION),
        "runs" => ("simulation run", prefix::RUN),
        "keys" => ("API key", prefix::KEY),
        _ => return "An id, as the service returned it.".to_owned(),
    };
    format!("The id of the {noun}, `{prefix}_…`.")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_described() {
        for operation in OPERATIONS {
            for name in operation.path_names().filter(|name| !["number", "revision"].contains(name)) {
                let description = id_description(operation.path, name);
                assert!(description.contains("_…`"), "{}: {name}: {description}", operation.path);
            }
        }
    }
}
