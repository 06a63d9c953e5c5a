//! The OpenAPI document for tools that only know OpenAPI 3.0. A schema of 3.1 is JSON Schema, a schema of 3.0 nearly so.
use serde_json::{Map, Value, json};

/// Rewrites a document of OpenAPI 3.1. What 3.0 has no words for is left out: `propertyNames`, and `webhooks`, whose bodies
/// stay as components.
pub(super) fn from_3_1(mut document: Value) -> Value {
    if let Some(object) = document.as_object_mut() {
        object.remove("webhooks");
        object.insert("openapi".to_owned(), "3.0.3".into());
    }
    if let Some(license) = document.pointer_mut("/info/license").and_then(Value::as_object_mut) {
        license.remove("identifier");
    }
    rewrite(&mut document);
    document
}

fn rewrite(value: &mut Value) {
    match value {
        Value::Array(items) => items.iter_mut().for_each(rewrite),
        Value::Object(object) => {
            rewrite_keywords(object);
            for (name, child) in object {
                match (name.as_str(), child) {
                    // Values, which may look like schemas.
                    ("example" | "default" | "enum", _) => {}
                    // Its fields are names of the service's own, not keywords.
                    ("properties", Value::Object(properties)) => properties.values_mut().for_each(rewrite),
                    (_, child) => rewrite(child),
                }
            }
        }
        _ => {}
    }
}

fn rewrite_keywords(object: &mut Map<String, Value>) {
    object.remove("propertyNames");
    if let Some(Value::Array(kinds)) = object.get("type") {
        let nullable = kinds.iter().any(|kind| kind == "null");
        let mut others = kinds.iter().filter(|kind| *kind != "null").cloned();
        // 3.0 has one type or any.
        match (others.next(), others.next()) {
            (Some(kind), None) => object.insert("type".to_owned(), kind),
            _ => object.remove("type"),
        };
        if nullable {
            object.insert("nullable".to_owned(), true.into());
        }
    }
    if let Some(Value::Array(mut branches)) = object.remove("anyOf") {
        let count = branches.len();
        branches.retain(|branch| branch["type"] != "null");
        if branches.len() < count {
            object.insert("nullable".to_owned(), true.into());
        }
        branches.iter_mut().for_each(only_the_reference);
        let word = if branches.len() == 1 { "allOf" } else { "anyOf" };
        object.insert(word.to_owned(), branches.into());
    }
    if let Some(value) = object.remove("const") {
        object.insert("enum".to_owned(), json!([value]));
    }
    if object.get("examples").is_some_and(Value::is_array)
        && let Some(Value::Array(examples)) = object.remove("examples")
        && let Some(first) = examples.into_iter().next()
    {
        object.insert("example".to_owned(), first);
    }
    // What stands beside a reference does not count in 3.0.
    if object.len() > 1
        && let Some(place) = object.remove("$ref")
    {
        object.insert("allOf".to_owned(), json!([{"$ref": place}]));
    }
}

/// A description of a branch would make a schema without a name of it.
fn only_the_reference(branch: &mut Value) {
    if let Some(place) = branch.get("$ref") {
        *branch = json!({"$ref": place});
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn of_schema(schema: Value) -> Value {
        from_3_1(json!({"openapi": "3.1.0", "schema": schema}))["schema"].take()
    }

    #[test]
    fn schemas_are_said_in_the_words_of_3_0() {
        let reference = json!({"$ref": "#/components/schemas/Call"});
        let described = json!({"$ref": "#/components/schemas/Call", "description": "The call."});
        for (schema, expected) in [
            (json!({"type": "string"}), json!({"type": "string"})),
            (json!({"type": ["string", "null"]}), json!({"type": "string", "nullable": true})),
            (json!({"type": ["string", "integer", "null"]}), json!({"nullable": true})),
            (
                json!({"anyOf": [reference, {"type": "null"}]}),
                json!({"allOf": [reference], "nullable": true}),
            ),
            (
                json!({"anyOf": [described, {"type": "string"}]}),
                json!({"anyOf": [reference, {"type": "string"}]}),
            ),
            (json!({"items": {"const": 1}}), json!({"items": {"enum": [1]}})),
            (json!({"examples": ["a", "b"]}), json!({"example": "a"})),
            (described, json!({"description": "The call.", "allOf": [reference]})),
            (reference.clone(), reference),
            (json!({"propertyNames": {"maxLength": 9}, "maxProperties": 2}), json!({"maxProperties": 2})),
        ] {
            assert_eq!(of_schema(schema.clone()), expected, "{schema}");
        }
    }

    #[test]
    fn names_of_fields_and_values_stay() {
        let names = json!({"properties": {
            "const": {"type": "string"}, "examples": {"type": "array", "items": {}},
            "propertyNames": {"type": "string"}, "properties": {"type": "string"}, "$ref": {"type": "string"},
        }});
        let values = json!({
            "default": {"type": ["string", "null"], "const": 1}, "example": {"$ref": "x", "examples": []},
            "enum": [{"const": 1}],
        });
        for schema in [names, values] {
            assert_eq!(of_schema(schema.clone()), schema);
        }
    }
}
