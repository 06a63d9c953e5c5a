//! What generators of code need, and other readers do not.
use std::collections::BTreeMap;

use serde_json::{Map, Value};

/// The defaults of each component's properties.
type Known = BTreeMap<String, Map<String, Value>>;

/// Removes the default of an object where its properties say the same: some generators cannot write an object with fields.
/// Marks integers that may be larger than 32 bits, which generators take all others for.
pub(super) fn prepare(document: &mut Value) {
    let components = document["components"]["schemas"].as_object().into_iter().flatten();
    let known = components.filter_map(|(name, schema)| Some((name.clone(), defaults(schema)?))).collect();
    walk(document, &known);
}

/// What an object is by default, property by property; null where a property says nothing.
fn defaults(schema: &Value) -> Option<Map<String, Value>> {
    let properties = schema.get("properties")?.as_object()?;
    let default = |property: &Value| property.get("default").cloned().unwrap_or_default();
    Some(properties.iter().map(|(name, property)| (name.clone(), default(property))).collect())
}

fn walk(value: &mut Value, known: &Known) {
    let (repeated, large) = (is_repeated(value, known), is_large(value));
    if let Some(schema) = value.as_object_mut() {
        if repeated {
            schema.remove("default");
        }
        if large {
            schema.insert("format".to_owned(), "int64".into());
        }
    }
    match value {
        Value::Array(items) => items.iter_mut().for_each(|item| walk(item, known)),
        Value::Object(object) => {
            for (name, child) in object {
                match (name.as_str(), child) {
                    ("default" | "example" | "examples", _) => {}
                    ("properties", Value::Object(properties)) => {
                        properties.values_mut().for_each(|property| walk(property, known));
                    }
                    (_, child) => walk(child, known),
                }
            }
        }
        _ => {}
    }
}

fn is_repeated(schema: &Value, known: &Known) -> bool {
    let Some(Value::Object(default)) = schema.get("default") else {
        return false;
    };
    let own = defaults(schema);
    let place = schema.get("$ref").and_then(Value::as_str).and_then(|place| place.rsplit('/').next());
    own.as_ref().or_else(|| known.get(place?)) == Some(default)
}

fn is_large(schema: &Value) -> bool {
    let is_integer = match schema.get("type") {
        Some(Value::Array(kinds)) => kinds.iter().any(|kind| kind == "integer"),
        kind => kind.is_some_and(|kind| kind == "integer"),
    };
    let most = schema.get("maximum").and_then(Value::as_i64);
    is_integer && most.is_none_or(|most| most > i64::from(i32::MAX))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_default_goes_only_where_the_properties_tell_it() {
        let speed =
            json!({"speed": {"type": "number", "default": 1.0}, "noise": {"type": ["integer", "null"]}});
        let repeated = json!({"speed": 1.0, "noise": null});
        let other = json!({"speed": 2.0, "noise": null});
        for (schema, stays) in [
            (json!({"properties": speed, "default": repeated}), false),
            (json!({"properties": speed, "default": other}), true),
            (json!({"$ref": "#/components/schemas/Speech", "default": repeated}), false),
            (json!({"$ref": "#/components/schemas/Speech", "default": other}), true),
            (json!({"$ref": "#/components/schemas/Mode", "default": "chat"}), true),
            (json!({"type": "object", "default": {}}), true),
        ] {
            let mut document = json!({
                "components": {"schemas": {"Speech": {"properties": speed}, "Mode": {"enum": ["chat"]}}},
                "body": {"properties": {"default": schema}},
            });
            prepare(&mut document);
            let left = &document["body"]["properties"]["default"];
            assert_eq!(left.get("default").is_some(), stays, "{schema}");
        }
    }

    #[test]
    fn an_integer_is_large_unless_its_maximum_says_otherwise() {
        for (schema, large) in [
            (json!({"type": "integer"}), true),
            (json!({"type": ["integer", "null"], "maximum": 2_147_483_648_u64}), true),
            (json!({"type": ["integer", "null"], "maximum": 2_147_483_647}), false),
            (json!({"type": "number"}), false),
            (json!({"enum": ["integer"]}), false),
        ] {
            let mut document = json!({"items": schema});
            prepare(&mut document);
            assert_eq!(document["items"]["format"] == "int64", large, "{schema}");
        }
    }
}
