//! The schemas of request and response types, in the three dialects they are needed in: for checking input, for
//! OpenAPI 3.1, and for MCP clients, whose models accept only a small part.
use schemars::SchemaGenerator;
use schemars::generate::SchemaSettings;
use serde_json::{Map, Value, json};

use crate::operations::schema::{MAX_BYTES, SchemaOf};

/// The schema that requests are checked against: without references.
pub fn request(schema: SchemaOf, partial: bool) -> Value {
    let mut generator = SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.inline_subschemas = true;
            settings.meta_schema = None;
        })
        .for_deserialize()
        .into_generator();
    let mut value = schema(&mut generator).to_value();
    normalise(&mut value);
    if partial {
        without_requirements(&mut value);
    }
    value
}

/// A generator for response schemas that collects named ones under `#/components/schemas`.
pub fn response_generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .for_serialize()
        .into_generator()
}

/// A generator for request schemas that collects named ones in the same place.
pub fn request_generator() -> SchemaGenerator {
    SchemaSettings::draft2020_12()
        .with(|settings| {
            settings.definitions_path = "/components/schemas".into();
            settings.meta_schema = None;
        })
        .for_deserialize()
        .into_generator()
}

/// A request's body as a document shows it: what is within it is named.
pub fn documented_request(schema: SchemaOf, partial: bool, generator: &mut SchemaGenerator) -> Value {
    let mut value = schema(generator).to_value();
    let name = value["$ref"].as_str().and_then(|place| place.rsplit('/').next());
    if let Some(whole) = name.and_then(|name| generator.definitions().get(name)) {
        value = whole.clone();
    }
    normalise(&mut value);
    if partial {
        without_requirements(&mut value);
    }
    value
}

/// A PATCH may leave every field out, which then keeps its value.
fn without_requirements(body: &mut Value) {
    if let Some(object) = body.as_object_mut() {
        object.remove("required");
        for property in properties_mut(object) {
            property.remove("default");
        }
    }
}

/// Removes schemars' redundant keywords, and writes enums and nullable values in one form.
pub fn normalise(schema: &mut Value) {
    let Value::Object(object) = schema else {
        return;
    };
    object.remove("title");
    if object.get("format").and_then(Value::as_str) != Some("date-time") {
        object.remove("format");
    }
    let default = object.get("default");
    // An empty default with a minimum length means "the server's default": no client can send it.
    let unusable = default == Some(&json!("")) && object.contains_key("minLength");
    if default == Some(&Value::Null) || unusable {
        object.remove("default");
    }
    merge_null_branch(object);
    merge_const_branches(object);
    if let Some(Value::String(text)) = object.get_mut("description") {
        *text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    }
    for (name, child) in object.iter_mut() {
        match (name.as_str(), child) {
            ("properties" | "$defs", Value::Object(children)) => {
                children.values_mut().for_each(normalise);
            }
            // Not every generator knows that `true` is a schema, too.
            ("items", child) if *child == Value::Bool(true) => *child = json!({}),
            ("items" | "additionalProperties", child) => normalise(child),
            ("anyOf" | "oneOf" | "allOf", Value::Array(branches)) => {
                branches.iter_mut().for_each(normalise);
            }
            _ => {}
        }
    }
}

/// Removes [`MAX_BYTES`] from every schema in a document.
pub fn without_max_bytes(document: &mut Value) {
    match document {
        Value::Object(object) => {
            object.remove(MAX_BYTES);
            object.values_mut().for_each(without_max_bytes);
        }
        Value::Array(items) => items.iter_mut().for_each(without_max_bytes),
        _ => {}
    }
}

/// `anyOf: [X, null]` → X that may be null.
fn merge_null_branch(object: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = object.get("anyOf") else {
        return;
    };
    let null = json!({"type": "null"});
    let [Value::Object(inner), other] = branches.as_slice() else {
        return;
    };
    if *other != null || inner.contains_key("$ref") {
        return;
    }
    let mut inner = inner.clone();
    merge_const_branches(&mut inner);
    if let Some(Value::String(kind)) = inner.get("type").cloned() {
        inner.insert("type".to_owned(), json!([kind, "null"]));
    }
    if let Some(Value::Array(values)) = inner.get_mut("enum") {
        values.push(Value::Null);
    }
    object.remove("anyOf");
    for (name, value) in inner {
        object.entry(name).or_insert(value);
    }
}

/// `oneOf: [{const: a, description}, …]` → `enum: [a, …]` with the descriptions gathered.
fn merge_const_branches(object: &mut Map<String, Value>) {
    let Some(Value::Array(branches)) = object.get("oneOf") else {
        return;
    };
    let mut values = Vec::new();
    let mut notes = Vec::new();
    for branch in branches {
        if let Some(value) = branch.get("const") {
            values.push(value.clone());
            if let (Some(name), Some(note)) =
                (value.as_str(), branch.get("description").and_then(Value::as_str))
            {
                notes.push(format!("`{name}`: {note}"));
            }
        } else if let Some(Value::Array(several)) = branch.get("enum") {
            values.extend(several.iter().cloned());
        } else {
            return;
        }
    }
    object.remove("oneOf");
    object.insert("type".to_owned(), "string".into());
    object.insert("enum".to_owned(), values.into());
    if !notes.is_empty() {
        let before = object.get("description").and_then(Value::as_str).unwrap_or_default();
        object.insert("description".to_owned(), format!("{before} {}", notes.join(" ")).into());
    }
}

fn properties_mut(object: &mut Map<String, Value>) -> impl Iterator<Item = &mut Map<String, Value>> {
    object
        .get_mut("properties")
        .and_then(Value::as_object_mut)
        .into_iter()
        .flat_map(|properties| properties.values_mut().filter_map(Value::as_object_mut))
}

/// The same schema as MCP clients' models take it: a single string `type` everywhere, no `$ref`,
/// no `oneOf`, no nullable types (null is still accepted where it has a meaning), no bounds on the
/// length of lists (descriptions say those that matter).
pub fn for_mcp(schema: &Value) -> Value {
    let Value::Object(object) = schema else {
        return json!({"type": "object", "properties": {}});
    };
    let mut slim = Map::new();
    for (name, value) in object {
        match (name.as_str(), value) {
            ("type", Value::Array(kinds)) => {
                let kind = kinds.iter().find(|kind| *kind != "null").cloned();
                slim.insert(name.clone(), kind.unwrap_or_else(|| "string".into()));
            }
            ("enum", Value::Array(values)) => {
                let named: Vec<Value> = values.iter().filter(|value| value.is_string()).cloned().collect();
                slim.insert(name.clone(), named.into());
            }
            ("properties", Value::Object(children)) => {
                let children: Map<String, Value> =
                    children.iter().map(|(name, child)| (name.clone(), for_mcp(child))).collect();
                slim.insert(name.clone(), children.into());
            }
            ("items", child) => {
                slim.insert(name.clone(), for_mcp(child));
            }
            // Some clients take no schema here.
            ("additionalProperties", Value::Object(_)) => {
                slim.insert(name.clone(), true.into());
            }
            ("description", Value::String(text)) => {
                slim.insert(name.clone(), text.trim().into());
            }
            (
                "type"
                | "required"
                | "minimum"
                | "maximum"
                | "minLength"
                | "maxLength"
                | "pattern"
                | "additionalProperties",
                value,
            ) => {
                slim.insert(name.clone(), value.clone());
            }
            _ => {}
        }
    }
    if slim.get("type").and_then(Value::as_str) == Some("object") {
        slim.entry("properties").or_insert_with(|| json!({}));
    }
    slim.into()
}
