//! Derives the tools from the operation table, with the subset of JSON Schema that all models support.
use serde_json::{Map, Value, json};

use crate::interfaces::generated::{RequestSchemas, requests};
use crate::interfaces::mcp::tools::brief;
use crate::operations::OPERATIONS;
use crate::operations::id_kinds::Kind;
use crate::operations::operation::{Effects, Operation, Presence};

/// The tool list, as a result of revisions up to 2025-11-25.
pub fn list() -> String {
    let operations = OPERATIONS.iter().filter(|operation| operation.is_tool());
    let mut said = brief::Said::new();
    let tools: Vec<Value> = operations
        .map(|operation| {
            let mut tool = tool(operation, &requests(operation));
            brief::refer(&mut tool["inputSchema"], operation.id, &mut said);
            tool
        })
        .collect();
    json!({ "tools": tools }).to_string()
}

fn tool(operation: &Operation, schemas: &RequestSchemas) -> Value {
    json!({
        "name": operation.id,
        "title": operation.title,
        "description": brief::description(operation.description),
        "inputSchema": input_schema(operation, schemas),
        "annotations": {
            "readOnlyHint": operation.effects == Effects::Read,
            "destructiveHint": operation.destroys(),
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
    if let Some(Value::Object(query)) = schemas.query.as_ref().map(brief::field)
        && let Some(Value::Object(parameters)) = query.get("properties")
    {
        let parameters =
            parameters.iter().map(|(name, parameter)| (name.clone(), query_parameter(name, parameter)));
        properties.extend(parameters);
    }
    if let (Some(body), Some(shape)) = (&schemas.body, operation.body) {
        properties.insert("data".to_owned(), brief::body(operation, body, shape.presence));
        if shape.presence != Presence::Optional {
            required.push("data");
        }
    }
    if operation.revision {
        let note = "The revision you read";
        let revision = json!({"type": "integer", "minimum": 0, "description": note});
        properties.insert("if_revision".to_owned(), revision);
    }
    if operation.takes_idempotency_key() {
        // The server's instructions say what it is for.
        properties.insert("idempotency_key".to_owned(), json!({"type": "string"}));
    }
    if operation.spends() {
        let note = "True only after the user approved the usage";
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

/// A query parameter in the words of MCP. Those of lists are in so many tools that they have few.
fn query_parameter(name: &str, parameter: &Value) -> Value {
    let mut parameter = parameter.clone();
    match name {
        "after" => parameter["description"] = "`next` of the previous result".into(),
        "limit" => drop_keywords(&mut parameter, &["description", "minimum"]),
        "page" => drop_keywords(&mut parameter, &["description", "minimum", "maximum"]),
        // In an address they are written differently.
        "metadata" => {
            parameter["description"] =
                "Calls with all of these entries, at most 5, such as `{\"campaign\": \"spring\"}`".into();
        }
        "passed" => parameter["description"] = "`null`: not over, or not decided".into(),
        _ => {}
    }
    parameter
}

fn drop_keywords(schema: &mut Value, keywords: &[&str]) {
    for keyword in keywords {
        schema.as_object_mut().and_then(|object| object.remove(*keyword));
    }
}

/// The schema of a path value.
pub fn path_value(path: &str, name: &str) -> Value {
    if name == "number" {
        return json!({
            "type": "string",
            "pattern": crate::base::phone::E164_PATTERN,
            "description": "E.164, such as +14155550123",
        });
    }
    if name == "revision" {
        return json!({"type": "integer", "minimum": 1, "description": "`revision` of the list"});
    }
    if name == "hash" {
        return json!({"type": "string", "description": "`snapshot` of a run or call"});
    }
    json!({"type": "string", "description": id_description(path, name)})
}

/// Describes an id by what it begins with.
fn id_description(path: &str, name: &str) -> String {
    match Kind::in_path(path, name) {
        Some(kind) => format!("`{}_…`", kind.prefix),
        None => "An id, as the service returned it".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_id_is_described() {
        for operation in OPERATIONS {
            for name in operation.path_names().filter(|name| !["number", "revision", "hash"].contains(name)) {
                let description = id_description(operation.path, name);
                assert!(description.contains("_…`"), "{}: {name}: {description}", operation.path);
            }
        }
    }
}
