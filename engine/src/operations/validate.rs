//! Checks a request against its schema and names every field that is wrong.
//!
//! Our own schemas use few keywords, and only those are supported here; [`crate::base::tool_parameters`] checks the JSON
//! Schemas that users write. Unlike a general validator, this one explains in the API's terms what to change, and it
//! converts what MCP clients are known to send (numbers, objects and lists as strings) into what the schema asks for.
use serde_json::{Map, Number, Value};

use crate::base::error::{Code, Error, FieldProblem, PROBLEMS_MAX};
use crate::base::limits::INTEGER_MAX;
use crate::base::whole_number;

/// Whether values that were sent as strings are turned into what the schema asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// REST: a string is a string.
    Strict,
    /// MCP: `"5"` is 5 where an integer is expected, `"{…}"` an object, `"true"` true.
    Coerce,
}

/// Checks `value` in place; an error names every field that breaks a rule.
pub fn check(schema: &Value, value: &mut Value, strictness: Strictness) -> Result<(), Error> {
    let mut problems = Vec::new();
    walk(schema, value, "", strictness, &mut problems);
    refuse(&problems)
}

/// `Ok` without problems, else 422 with all of them.
pub fn refuse(problems: &[FieldProblem]) -> Result<(), Error> {
    match problems {
        [] => Ok(()),
        some => Err(Error::fields(Code::ValidationFailed, some)),
    }
}

fn walk(
    schema: &Value,
    value: &mut Value,
    path: &str,
    strictness: Strictness,
    problems: &mut Vec<FieldProblem>,
) {
    if problems.len() >= PROBLEMS_MAX {
        return;
    }
    let kinds = kinds_of(schema);
    if strictness == Strictness::Coerce {
        coerce(&kinds, value);
    }
    if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(kind, value)) {
        let name = if path.is_empty() { "body" } else { path };
        let expected = kinds.iter().map(|kind| with_article(kind)).collect::<Vec<_>>().join(" or ");
        problems.push(FieldProblem::new(name, format!("must be {expected}, not {}", kind_name(value))));
        return;
    }
    match value {
        Value::Object(map) => walk_object(schema, map, path, strictness, problems),
        Value::Array(items) => walk_array(schema, items, path, strictness, problems),
        Value::String(text) => check_text(schema, text, path, problems),
        Value::Number(number) => check_number(schema, &kinds, number, path, problems),
        Value::Null | Value::Bool(_) => {}
    }
}

fn walk_object(
    schema: &Value,
    map: &mut Map<String, Value>,
    path: &str,
    strictness: Strictness,
    problems: &mut Vec<FieldProblem>,
) {
    let empty = Map::new();
    let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
    for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
        if let Some(name) = required.as_str()
            && !map.contains_key(name)
        {
            problems.push(FieldProblem::new(join(path, name), "is required"));
        }
    }
    let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
    for (name, value) in map.iter_mut() {
        if problems.len() >= PROBLEMS_MAX {
            return;
        }
        match properties.get(name) {
            Some(property) => walk(property, value, &join(path, name), strictness, problems),
            None if closed => problems
                .push(FieldProblem::new(join(path, &shortened(name)), unknown_field(name, properties))),
            None => {}
        }
    }
}

fn walk_array(
    schema: &Value,
    items: &mut [Value],
    path: &str,
    strictness: Strictness,
    problems: &mut Vec<FieldProblem>,
) {
    let count = items.len() as u64;
    if let Some(least) = schema.get("minItems").and_then(Value::as_u64)
        && count < least
    {
        problems.push(FieldProblem::new(path, format!("needs at least {least}, has {count}")));
    }
    if let Some(most) = schema.get("maxItems").and_then(Value::as_u64)
        && count > most
    {
        problems.push(FieldProblem::new(path, format!("takes at most {most}, has {count}")));
        return;
    }
    if let Some(item) = schema.get("items") {
        for (at, value) in items.iter_mut().enumerate() {
            walk(item, value, &format!("{path}[{at}]"), strictness, problems);
        }
    }
}

fn check_text(schema: &Value, text: &str, path: &str, problems: &mut Vec<FieldProblem>) {
    if let Some(Value::Array(allowed)) = schema.get("enum") {
        if !allowed.iter().any(|value| value.as_str() == Some(text)) {
            let names: Vec<&str> = allowed.iter().filter_map(Value::as_str).collect();
            problems.push(FieldProblem::new(path, format!("must be one of: {}", names.join(", "))));
        }
        return;
    }
    let (least, most) = (schema.get("minLength"), schema.get("maxLength"));
    if least.is_none() && most.is_none() {
        return;
    }
    let length = text.chars().count() as u64;
    if let Some(least) = least.and_then(Value::as_u64)
        && length < least
    {
        let message = match length {
            0 => "must not be empty".to_owned(),
            _ => format!("must have at least {least} characters, has {length}"),
        };
        problems.push(FieldProblem::new(path, message));
    }
    if let Some(most) = most.and_then(Value::as_u64)
        && length > most
    {
        problems.push(FieldProblem::new(path, format!("must have at most {most} characters, has {length}")));
    }
}

fn check_number(
    schema: &Value,
    kinds: &[&str],
    number: &mut Number,
    path: &str,
    problems: &mut Vec<FieldProblem>,
) {
    if kinds.contains(&"integer")
        && let Some(whole) = whole_number::from_number(number)
    {
        *number = whole.into();
    }
    let Some(value) = number.as_f64() else { return };
    if let Some(least) = schema.get("minimum").and_then(Value::as_f64)
        && value < least
    {
        problems.push(FieldProblem::new(path, format!("must be at least {least}")));
    }
    if let Some(most) = schema.get("maximum").and_then(Value::as_f64)
        && value > most
    {
        problems.push(FieldProblem::new(path, format!("must be at most {most}")));
    }
}

fn kinds_of(schema: &Value) -> Vec<&str> {
    match schema.get("type") {
        Some(Value::String(kind)) => vec![kind],
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    }
}

fn is_kind(kind: &str, value: &Value) -> bool {
    match kind {
        "object" => value.is_object(),
        "array" => value.is_array(),
        "string" => value.is_string(),
        "boolean" => value.is_boolean(),
        "null" => value.is_null(),
        "number" => value.is_number(),
        "integer" => {
            let whole = value.as_number().and_then(whole_number::from_number);
            whole.is_some_and(|whole| whole.unsigned_abs() <= INTEGER_MAX.unsigned_abs())
        }
        _ => true,
    }
}

fn kind_name(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(number) if number.is_f64() => "a number with a fraction or out of range",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

fn with_article(kind: &str) -> &'static str {
    match kind {
        "object" => "an object",
        "array" => "a list",
        "string" => "a string",
        "boolean" => "true or false",
        "integer" => "a whole number",
        "number" => "a number",
        _ => "null",
    }
}

/// What was meant by a string where the schema wants something else; otherwise unchanged.
fn coerce(kinds: &[&str], value: &mut Value) {
    let Value::String(text) = value else { return };
    if kinds.contains(&"string") {
        return;
    }
    let meant = if kinds.contains(&"integer") {
        whole_number::from_text(text).map(Value::from)
    } else if kinds.contains(&"boolean") {
        match text.as_str() {
            "true" => Some(Value::Bool(true)),
            "false" => Some(Value::Bool(false)),
            _ => None,
        }
    } else if kinds.contains(&"object") || kinds.contains(&"array") {
        crate::base::json::read(text.as_bytes())
            .ok()
            .filter(|parsed| kinds.iter().any(|kind| is_kind(kind, parsed)))
    } else {
        None
    };
    if let Some(meant) = meant {
        *value = meant;
    }
}

fn unknown_field(name: &str, properties: &Map<String, Value>) -> String {
    let near = properties.keys().find(|known| {
        known.eq_ignore_ascii_case(name)
            || known.replace('_', "") == name.replace(['_', '-'], "").to_ascii_lowercase()
    });
    match near {
        Some(known) => format!("is not a field; did you mean `{known}`?"),
        None if properties.is_empty() => "is not a field; no fields are accepted".to_owned(),
        None => {
            let names: Vec<&str> = properties.keys().map(String::as_str).collect();
            format!("is not a field; fields are: {}", names.join(", "))
        }
    }
}

fn join(path: &str, name: &str) -> String {
    if path.is_empty() { name.to_owned() } else { format!("{path}.{name}") }
}

/// A client's own field name, kept short in the answer.
fn shortened(name: &str) -> String {
    const SHOWN_CHARS_MAX: usize = 64;
    match name.char_indices().nth(SHOWN_CHARS_MAX) {
        Some((at, _)) => format!("{}…", &name[..at]),
        None => name.to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn schema() -> Value {
        json!({
            "type": "object", "additionalProperties": false, "required": ["name"],
            "properties": {
                "name": {"type": "string", "minLength": 1, "maxLength": 3},
                "timeout_ms": {"type": "integer", "minimum": 100, "maximum": 200},
                "enabled": {"type": "boolean"},
                "region": {"type": ["string", "null"]},
                "mode": {"type": "string", "enum": ["chat", "voice"]},
                "list": {"type": "array", "maxItems": 2, "items": {"type": "object",
                    "additionalProperties": false, "properties": {"kind": {"type": "string"}}}},
            }
        })
    }

    fn problems(mut value: Value, strictness: Strictness) -> Vec<(String, String)> {
        let mut found = Vec::new();
        walk(&schema(), &mut value, "", strictness, &mut found);
        found.into_iter().map(|problem| (problem.field, problem.message)).collect()
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        let found = problems(
            json!({"name": "", "timeout_ms": 5, "enabled": null, "mode": "sms",
                   "timeoutMs": 1, "list": [{"kind": 1, "x": 2}]}),
            Strictness::Strict,
        );
        let fields: Vec<&str> = found.iter().map(|(field, _)| field.as_str()).collect();
        assert_eq!(
            fields,
            ["name", "timeout_ms", "enabled", "mode", "timeoutMs", "list[0].kind", "list[0].x"]
        );
        assert_eq!(found[4].1, "is not a field; did you mean `timeout_ms`?");
    }

    #[test]
    fn null_passes_only_where_it_means_something() {
        assert!(problems(json!({"name": "a", "region": null}), Strictness::Strict).is_empty());
        assert_eq!(problems(json!({"name": null}), Strictness::Strict).len(), 1);
    }

    #[test]
    fn whole_floats_are_integers_and_others_are_not() {
        let mut value = json!({"name": "a", "timeout_ms": 150.0});
        check(&schema(), &mut value, Strictness::Strict).unwrap();
        assert_eq!(value["timeout_ms"], json!(150));
        for bad in [json!(150.5), json!(1e300), json!(9_007_199_254_740_993_i64), json!(u64::MAX)] {
            let found = problems(json!({"name": "a", "timeout_ms": bad}), Strictness::Strict);
            assert_eq!(found.len(), 1, "{bad}");
        }
    }

    #[test]
    fn strings_are_mended_only_for_mcp() {
        let sent = json!({"name": "a", "timeout_ms": "150", "enabled": "true", "list": "[{\"kind\":\"k\"}]"});
        assert_eq!(problems(sent.clone(), Strictness::Strict).len(), 3);
        let mut value = sent;
        check(&schema(), &mut value, Strictness::Coerce).unwrap();
        assert_eq!(value, json!({"name": "a", "timeout_ms": 150, "enabled": true, "list": [{"kind": "k"}]}));
        assert_eq!(problems(json!({"name": "a", "timeout_ms": "+150"}), Strictness::Coerce).len(), 1);
    }
}
