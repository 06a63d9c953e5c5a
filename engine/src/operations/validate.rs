//! Checks a request against its schema and names every field that is wrong.
//!
//! Our own schemas use few keywords, and only those are supported here; [`crate::base::tool_parameters`] checks the JSON
//! Schemas that users write. Unlike a general validator, this one explains in the API's terms what to change, and it
//! converts what MCP clients are known to send (numbers, objects and lists as strings) into what the schema asks for.
use serde_json::{Map, Number, Value};

use crate::base::error::{Code, Error, FieldProblem, PROBLEMS_MAX};
use crate::base::limits::INTEGER_MAX;
use crate::base::text::{UNFIT_NAME, is_unfit_for_names};
use crate::base::values::NAME_RULES;
use crate::base::whole_number;
use crate::operations::operation::Operation;
use crate::operations::schema::MAX_BYTES;

/// Whether values that were sent as strings are turned into what the schema asks for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Strictness {
    /// REST: a string is a string.
    Strict,
    /// MCP: `"5"` is 5 where an integer is expected, `"{…}"` an object, `"true"` true.
    Coerce,
}

/// What a schema describes; the messages name its parts accordingly.
#[derive(Clone, Copy)]
pub enum Place<'a> {
    /// A request body.
    Body,
    /// A query string.
    Query,
    /// The arguments of an operation's MCP tool, without those that belong to other schemas; and the schema of its body.
    Arguments(&'static Operation, Option<&'a Value>),
}

/// Fields of a resource that operations of their own set.
const SET_BY: [(&str, &str); 2] = [
    ("tool_ids", "set_assistant_tools, `PUT /assistants/{id}/tools`"),
    ("knowledge_ids", "set_assistant_knowledge, `PUT /assistants/{id}/knowledge`"),
];

/// Checks `value` in place, and names every part that breaks a rule.
pub fn problems(
    schema: &Value,
    value: &mut Value,
    strictness: Strictness,
    place: Place<'_>,
) -> Vec<FieldProblem> {
    let mut check = Check { strictness, place, problems: Vec::new() };
    check.walk(schema, value, "");
    check.problems
}

/// `Ok` without problems, else 422 with all of them.
pub fn refuse(problems: &[FieldProblem]) -> Result<(), Error> {
    match problems {
        [] => Ok(()),
        some => Err(Error::fields(Code::ValidationFailed, some)),
    }
}

struct Check<'a> {
    strictness: Strictness,
    place: Place<'a>,
    problems: Vec<FieldProblem>,
}

impl Check<'_> {
    fn refuse(&mut self, path: impl Into<String>, message: impl Into<String>) {
        self.problems.push(FieldProblem::new(path, message));
    }

    fn walk(&mut self, schema: &Value, value: &mut Value, path: &str) {
        if self.problems.len() >= PROBLEMS_MAX {
            return;
        }
        let kinds = kinds_of(schema);
        if self.strictness == Strictness::Coerce {
            coerce(&kinds, value);
        }
        if !kinds.is_empty() && !kinds.iter().any(|kind| is_kind(kind, value)) {
            let name = if path.is_empty() { "body" } else { path };
            if let Value::Number(number) = value
                && kinds.contains(&"integer")
            {
                return self.refuse(name, no_whole_number(schema, number));
            }
            let expected = kinds.iter().map(|kind| with_article(kind)).collect::<Vec<_>>().join(" or ");
            return self.refuse(name, format!("must be {expected}, not {}", kind_name(value)));
        }
        match value {
            Value::Object(map) => self.walk_object(schema, map, path),
            Value::Array(items) => self.walk_array(schema, items, path),
            Value::String(text) => self.check_text(schema, text, path),
            Value::Number(number) => self.check_number(schema, &kinds, number, path),
            Value::Null | Value::Bool(_) => {}
        }
    }

    fn walk_object(&mut self, schema: &Value, map: &mut Map<String, Value>, path: &str) {
        let empty = Map::new();
        let properties = schema.get("properties").and_then(Value::as_object).unwrap_or(&empty);
        for required in schema.get("required").and_then(Value::as_array).into_iter().flatten() {
            if let Some(name) = required.as_str()
                && !map.contains_key(name)
            {
                self.refuse(join(path, name), missing(properties.get(name)));
            }
        }
        self.check_entries(schema, map, path);
        let closed = schema.get("additionalProperties") == Some(&Value::Bool(false));
        for (name, value) in map.iter_mut() {
            if self.problems.len() >= PROBLEMS_MAX {
                return;
            }
            match properties.get(name) {
                Some(property) => self.walk(property, value, &join(path, name)),
                None if closed => {
                    let place = if path.is_empty() { self.place } else { Place::Body };
                    self.refuse(join(path, &shortened(name)), unknown(place, name, properties));
                }
                None => {
                    if let Some(values) = schema.get("additionalProperties")
                        && values.is_object()
                        && !is_text(values)
                    {
                        self.walk(values, value, &join(path, &shortened(name)));
                    }
                }
            }
        }
    }

    /// Checks a map: how many entries it has, how large its texts are together, and each name and text.
    fn check_entries(&mut self, schema: &Value, map: &Map<String, Value>, path: &str) {
        let Some(entry) = schema.get("additionalProperties").filter(|entry| entry.is_object()) else {
            return;
        };
        let count = map.len() as u64;
        if let Some(most) = schema.get("maxProperties").and_then(Value::as_u64)
            && count > most
        {
            return self.refuse(path, format!("takes at most {most} entries, has {count}"));
        }
        let is_of_texts = is_text(entry);
        let text_bytes = |text: &Value| text.as_str().map_or(0, str::len);
        let bytes: usize = map.iter().map(|(name, text)| name.len() + text_bytes(text)).sum();
        if let Some(most) = schema.get(MAX_BYTES).and_then(Value::as_u64)
            && bytes as u64 > most
        {
            let message = format!("takes at most {most} bytes, names and values together, has {bytes}");
            return self.refuse(path, message);
        }
        let pattern = schema.pointer("/propertyNames/pattern").and_then(Value::as_str);
        let rule = NAME_RULES.iter().find(|rule| Some(rule.pattern) == pattern);
        for (name, text) in map {
            let path = join(path, &shortened(name));
            match (rule, text) {
                (Some(rule), _) if !(rule.fits)(name) => self.refuse(path, rule.message),
                (Some(rule), Value::String(text)) if is_of_texts && rule.is_odd_value(text) => {
                    self.refuse(path, "must have no control characters but line breaks and tabs");
                }
                (_, Value::String(text)) if is_of_texts => self.check_length(entry, text, &path),
                _ if is_of_texts => self.refuse(path, format!("must be a string, not {}", kind_name(text))),
                _ => {}
            }
        }
    }

    fn walk_array(&mut self, schema: &Value, items: &mut [Value], path: &str) {
        let count = items.len() as u64;
        if let Some(least) = schema.get("minItems").and_then(Value::as_u64)
            && count < least
        {
            self.refuse(path, format!("needs at least {least}, has {count}"));
        }
        if let Some(most) = schema.get("maxItems").and_then(Value::as_u64)
            && count > most
        {
            return self.refuse(path, format!("takes at most {most}, has {count}"));
        }
        if let Some(item) = schema.get("items") {
            for (at, value) in items.iter_mut().enumerate() {
                self.walk(item, value, &format!("{path}[{at}]"));
            }
        }
    }

    fn check_text(&mut self, schema: &Value, text: &str, path: &str) {
        if let Some(allowed) = words_of(schema) {
            if !allowed.contains(&text) {
                self.refuse(path, format!("must be one of: {}", allowed.join(", ")));
            }
            return;
        }
        if path.rsplit('.').next() == Some("name") {
            if text.chars().any(is_unfit_for_names) {
                return self.refuse(path, UNFIT_NAME);
            }
            if !text.is_empty() && text.trim().is_empty() {
                return self.refuse(path, "must have more than white space");
            }
        }
        self.check_length(schema, text, path);
    }

    fn check_length(&mut self, schema: &Value, text: &str, path: &str) {
        if let Some(most) = schema.get(MAX_BYTES).and_then(Value::as_u64)
            && text.len() as u64 > most
        {
            return self.refuse(path, format!("must have at most {most} bytes, has {}", text.len()));
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
            self.refuse(path, message);
        }
        if let Some(most) = most.and_then(Value::as_u64)
            && length > most
        {
            self.refuse(path, format!("must have at most {most} characters, has {length}"));
        }
    }

    fn check_number(&mut self, schema: &Value, kinds: &[&str], number: &mut Number, path: &str) {
        if kinds.contains(&"integer")
            && let Some(whole) = whole_number::from_number(number)
        {
            *number = whole.into();
        }
        let Some(value) = number.as_f64() else { return };
        if let Some(least) = schema.get("minimum").and_then(Value::as_f64)
            && value < least
        {
            self.refuse(path, format!("must be at least {least}"));
        }
        if let Some(most) = schema.get("maximum").and_then(Value::as_f64)
            && value > most
        {
            self.refuse(path, format!("must be at most {most}"));
        }
    }
}

/// The words that an enum allows.
fn words_of(schema: &Value) -> Option<Vec<&str>> {
    let allowed = schema.get("enum")?.as_array()?;
    Some(allowed.iter().filter_map(Value::as_str).collect())
}

/// Whether the entries of a map are texts, which [`Check::check_entries`] checks.
fn is_text(entry: &Value) -> bool {
    entry.get("type").and_then(Value::as_str) == Some("string")
}

fn missing(schema: Option<&Value>) -> String {
    let items = schema.and_then(|schema| schema.get("items"));
    if let Some(allowed) = schema.and_then(words_of) {
        format!("is required; must be one of: {}", allowed.join(", "))
    } else if let Some(allowed) = items.and_then(words_of) {
        format!("is required; must be a list of: {}", allowed.join(", "))
    } else {
        "is required".to_owned()
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
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "a list",
        Value::Object(_) => "an object",
    }
}

/// What is wrong with a number where the schema wants a whole one: its fraction, or its size.
fn no_whole_number(schema: &Value, number: &Number) -> String {
    let bound = |keyword: &str, default: i64| schema[keyword].as_i64().unwrap_or(default);
    let (least, most) = (bound("minimum", -INTEGER_MAX), bound("maximum", INTEGER_MAX));
    match number.as_f64() {
        Some(float) if float.fract() != 0.0 => {
            format!("must be a whole number from {least} to {most}, not {number}")
        }
        Some(float) if float < 0.0 => format!("must be at least {least}"),
        _ => format!("must be at most {most}"),
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

fn unknown(place: Place<'_>, name: &str, properties: &Map<String, Value>) -> String {
    let (what, all) = match place {
        Place::Body => ("a field", "fields"),
        Place::Query => ("a query parameter", "query parameters"),
        Place::Arguments(..) => ("an argument of this tool", "arguments"),
    };
    if let (Place::Body, Some((_, operation))) = (place, SET_BY.iter().find(|(field, _)| *field == name)) {
        return format!("is not {what} here; {operation} sets it");
    }
    if let Place::Arguments(_, Some(body)) = place
        && body["properties"].get(name).is_some()
    {
        return format!(
            "is not {what}, but a field of the body; send it inside `data`, as {{\"data\": {{\"{name}\": …}}}}"
        );
    }
    let near = properties.keys().find(|known| {
        known.eq_ignore_ascii_case(name)
            || known.replace('_', "") == name.replace(['_', '-'], "").to_ascii_lowercase()
    });
    if let Some(known) = near {
        return format!("is not {what}; did you mean `{known}`?");
    }
    if let Some((object, rest)) = name.split_once('.')
        && properties.contains_key(object)
    {
        let rest = shortened(rest);
        return format!("is not {what}; send it within the object, as {{\"{object}\": {{\"{rest}\": …}}}}");
    }
    let mut names: Vec<&str> = Vec::new();
    if let Place::Arguments(operation, _) = place {
        names.extend(operation.path_names().map(|name| -> &str { name }));
    }
    names.extend(properties.keys().map(String::as_str));
    if let Place::Arguments(operation, _) = place {
        names.extend(operation.body.is_some().then_some("data"));
        names.extend(operation.revision.then_some("if_revision"));
        names.extend(operation.takes_idempotency_key().then_some("idempotency_key"));
        names.extend(operation.spends().then_some("confirm"));
    }
    match names.as_slice() {
        [] => format!("is not {what}; no {all} are accepted"),
        names => format!("is not {what}; {all} are: {}", names.join(", ")),
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

    #[test]
    fn a_name_is_a_line_that_runs_in_one_direction() {
        for unfit in ["a\n", "a\u{7f}", "a\u{202e}", "a\u{2066}", "a\u{2028}"] {
            let problem = ("name".to_owned(), UNFIT_NAME.to_owned());
            assert_eq!(found(json!({"name": unfit}), Strictness::Strict), [problem], "{unfit:?}");
        }
        assert_eq!(found(json!({"name": "א b"}), Strictness::Strict), []);
    }

    #[test]
    fn a_name_has_more_than_white_space() {
        let blank = vec![("name".to_owned(), "must have more than white space".to_owned())];
        assert_eq!(found(json!({"name": " \u{a0}"}), Strictness::Strict), blank);
        assert_eq!(found(json!({"name": " a"}), Strictness::Strict), []);
    }

    #[test]
    fn a_number_is_told_its_bounds() {
        let schema = |more: Value| {
            let mut schema = json!({"type": "integer"});
            schema.as_object_mut().unwrap().extend(more.as_object().unwrap().clone());
            schema
        };
        let (bounded, free) = (schema(json!({"minimum": 100, "maximum": 30_000})), schema(json!({})));
        for (schema, number, told) in [
            (&bounded, json!(5_000.5), "must be a whole number from 100 to 30000, not 5000.5"),
            (&bounded, json!(1e20), "must be at most 30000"),
            (&bounded, json!(-1e20), "must be at least 100"),
            (&bounded, json!(u64::MAX), "must be at most 30000"),
            (&free, json!(1_u64 << 63), "must be at most 9007199254740991"),
            (&free, json!(18_446_744_073_709_551_616.0), "must be at most 9007199254740991"),
            (&free, json!(i64::MIN), "must be at least -9007199254740991"),
        ] {
            let found = problems(schema, &mut number.clone(), Strictness::Strict, Place::Body);
            assert_eq!(found[0].message, told, "{number}");
        }
    }

    fn found(mut value: Value, strictness: Strictness) -> Vec<(String, String)> {
        let found = problems(&schema(), &mut value, strictness, Place::Body);
        found.into_iter().map(|problem| (problem.field, problem.message)).collect()
    }

    #[test]
    fn every_wrong_field_is_named_at_once() {
        let found = found(
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
        assert!(found(json!({"name": "a", "region": null}), Strictness::Strict).is_empty());
        assert_eq!(found(json!({"name": null}), Strictness::Strict).len(), 1);
    }

    #[test]
    fn whole_floats_are_integers_and_others_are_not() {
        let mut value = json!({"name": "a", "timeout_ms": 150.0});
        assert_eq!(problems(&schema(), &mut value, Strictness::Strict, Place::Body), []);
        assert_eq!(value["timeout_ms"], json!(150));
        for bad in [json!(150.5), json!(1e300), json!(9_007_199_254_740_993_i64), json!(u64::MAX)] {
            let found = found(json!({"name": "a", "timeout_ms": bad}), Strictness::Strict);
            assert_eq!(found.len(), 1, "{bad}");
        }
    }

    #[test]
    fn strings_are_mended_only_for_mcp() {
        let sent = json!({"name": "a", "timeout_ms": "150", "enabled": "true", "list": "[{\"kind\":\"k\"}]"});
        assert_eq!(found(sent.clone(), Strictness::Strict).len(), 3);
        let mut value = sent;
        assert_eq!(problems(&schema(), &mut value, Strictness::Coerce, Place::Body), []);
        assert_eq!(value, json!({"name": "a", "timeout_ms": 150, "enabled": true, "list": [{"kind": "k"}]}));
        assert_eq!(found(json!({"name": "a", "timeout_ms": "+150"}), Strictness::Coerce).len(), 1);
    }

    #[test]
    fn a_limit_in_bytes_is_told_in_bytes() {
        let schema = json!({"type": "string", "minLength": 1, "maxLength": 4, (MAX_BYTES): 4});
        let found = |text: &str| problems(&schema, &mut text.into(), Strictness::Strict, Place::Body);
        assert_eq!(found("éé"), []);
        assert_eq!(found("ééé")[0].message, "must have at most 4 bytes, has 6");
        assert_eq!(found("abcde")[0].message, "must have at most 4 bytes, has 5");
        assert_eq!(found("")[0].message, "must not be empty");
    }

    #[test]
    fn a_missing_enum_lists_what_is_allowed() {
        let word = json!({"type": "string", "enum": ["a", "b"]});
        let schema = json!({
            "type": "object", "required": ["kind", "kinds", "name"],
            "properties": {"kind": word, "kinds": {"type": "array", "items": word}, "name": {"type": "string"}},
        });
        let found = problems(&schema, &mut json!({}), Strictness::Strict, Place::Body);
        let messages: Vec<&str> = found.iter().map(|problem| problem.message.as_str()).collect();
        assert_eq!(
            messages,
            ["is required; must be one of: a, b", "is required; must be a list of: a, b", "is required"]
        );
    }

    #[test]
    fn an_unknown_part_is_called_what_it_is() {
        let schema = json!({"additionalProperties": false, "properties": {"limit": {"type": "integer"}}});
        let first = |mut sent: Value, place: Place| {
            problems(&schema, &mut sent, Strictness::Strict, place).remove(0).message
        };
        let (sent, near) = (json!({"size": 1}), json!({"Limit": 1}));
        assert_eq!(first(sent.clone(), Place::Body), "is not a field; fields are: limit");
        assert_eq!(
            first(sent.clone(), Place::Query),
            "is not a query parameter; query parameters are: limit"
        );
        assert_eq!(first(near, Place::Query), "is not a query parameter; did you mean `limit`?");
        let dotted = json!({"limit.most": 3});
        let within = r#"is not a field; send it within the object, as {"limit": {"most": …}}"#;
        assert_eq!(first(dotted, Place::Body), within);
        let tool = |id: &str| Place::Arguments(crate::operations::by_id(id).unwrap(), None);
        assert_eq!(
            first(sent.clone(), tool("list_webhook_deliveries")),
            "is not an argument of this tool; arguments are: id, limit"
        );
        assert_eq!(
            first(sent, tool("create_assistant")),
            "is not an argument of this tool; arguments are: limit, data, idempotency_key"
        );
    }
}
