//! The fields of a form as the body of an operation: texts become what the operation's schema asks for. What cannot be
//! converted stays a text, and the operation says what is wrong with it.
use serde_json::{Map, Value};

use crate::base::dollars;
use crate::base::field::FieldProblem;
use crate::base::phone::{E164, E164_PATTERN};
use crate::base::{json, whole_number};

/// The body, and what is wrong with texts that should be JSON. Names with dots are fields of an object: `speech.filler`.
/// Lists are repeated names, or one entry a line.
pub(super) fn body(schema: &Value, fields: &[(&str, &str)]) -> (Map<String, Value>, Vec<FieldProblem>) {
    let mut body = Map::new();
    let mut problems = Vec::new();
    let mut done: Vec<&str> = Vec::new();
    for (name, _) in fields {
        if done.contains(name) {
            continue;
        }
        done.push(name);
        let values: Vec<&str> =
            fields.iter().filter(|(other, _)| other == name).map(|(_, value)| *value).collect();
        put(schema, &mut body, name, &values);
        problems.extend(not_json(schema, &mut body, name));
        problems.extend(not_a_number(schema, &mut body, name));
    }
    for (name, value) in &mut body {
        let kind = part(schema, name);
        if has(kind, "object") && has(kind, "null") && lacks_required(kind, value) {
            *value = Value::Null;
        }
    }
    (body, problems)
}

/// Whether all that an object needs was left empty: it is not there.
fn lacks_required(schema: &Value, value: &Value) -> bool {
    let mut required = choice(schema, "object")["required"].as_array().into_iter().flatten().peekable();
    let is_empty = |name: &Value| name.as_str().is_some_and(|name| value[name] == "");
    value.is_object() && required.peek().is_some() && required.all(is_empty)
}

/// Replaces a text that should be a JSON object by an empty one, and says what is wrong with it.
fn not_json(schema: &Value, body: &mut Map<String, Value>, name: &str) -> Option<FieldProblem> {
    let kind = part(schema, name);
    let value = body.get_mut(name).filter(|_| has(kind, "object") && !has(kind, "string"))?;
    let problem = match json::read(value.as_str()?.trim().as_bytes()) {
        Ok(_) => return None,
        Err(error) => FieldProblem::new(name, error.to_string()),
    };
    *value = Value::Object(Map::new());
    Some(problem)
}

/// Replaces a text that should be a number by one that fits, and says what is wrong with it in the words of a form: whoever
/// types knows nothing of strings.
fn not_a_number(schema: &Value, body: &mut Map<String, Value>, name: &str) -> Option<FieldProblem> {
    let (first, rest) = name.split_once('.').unwrap_or((name, ""));
    if !rest.is_empty() {
        let inner = body.get_mut(first)?.as_object_mut()?;
        let problem = not_a_number(part(schema, first), inner, rest)?;
        return Some(FieldProblem::new(name, problem.message));
    }
    let kind = part(schema, name);
    let is_number = (has(kind, "integer") || has(kind, "number")) && !has(kind, "string");
    let value = body.get_mut(name).filter(|value| is_number && value.is_string())?;
    let fits = ["default", "minimum"].iter().map(|name| &kind[name]).find(|number| number.is_number());
    let fits = fits.cloned().unwrap_or_else(|| 0.into());
    let message = match (name.ends_with(dollars::SUFFIX), has(kind, "number")) {
        (true, _) => "must be an amount in US dollars, such as 25 or 0.5".to_owned(),
        (_, true) => format!("must be a number, such as {fits}"),
        _ => format!("must be a whole number, such as {fits}"),
    };
    *value = fits;
    Some(FieldProblem::new(name, message))
}

/// The value of a first column that says that its row is left out.
pub(super) const LEFT_OUT: &str = "-";

/// Joins the columns of lists of objects, such as `evaluations[].kind`, to lists, as JSON. An empty row is
/// left out, and one whose first column says so.
pub(super) fn folded(fields: Vec<(String, String)>) -> Vec<(String, String)> {
    let mut rest = Vec::with_capacity(fields.len());
    let mut lists: Vec<(String, Vec<Map<String, Value>>)> = Vec::new();
    for (name, value) in fields {
        let Some((list, field)) = name.split_once("[].") else {
            rest.push((name, value));
            continue;
        };
        let at = lists.iter().position(|(known, _)| known == list).unwrap_or_else(|| {
            lists.push((list.to_owned(), Vec::new()));
            lists.len() - 1
        });
        let rows = &mut lists[at].1;
        // Each row has each field once, in the order of the form: a field that the row has begins the next one.
        if rows.last().is_none_or(|row| row.contains_key(field)) {
            rows.push(Map::new());
        }
        if let Some(row) = rows.last_mut() {
            // Browsers send line breaks of two characters.
            row.insert(field.to_owned(), value.replace("\r\n", "\n").into());
        }
    }
    let is_filled = |row: &Map<String, Value>| {
        row.values().next().is_some_and(|first| first != LEFT_OUT) && row.values().any(|value| value != "")
    };
    rest.extend(lists.into_iter().map(|(list, rows)| {
        let rows = rows.into_iter().filter(is_filled).map(Value::Object).collect();
        (list, Value::Array(rows).to_string())
    }));
    rest
}

fn put(schema: &Value, into: &mut Map<String, Value>, name: &str, values: &[&str]) {
    // Only as deep as the schema goes: a name of a million dots would take as many levels.
    if let Some((first, rest)) = name.split_once('.')
        && schema["properties"].get(name).is_none()
        && let inner @ Value::Object(_) = part(schema, first)
    {
        let slot = into.entry(first).or_insert_with(|| Value::Object(Map::new()));
        if let Value::Object(object) = slot {
            put(inner, object, rest, values);
        }
        return;
    }
    if left_out(schema, name, values) {
        return;
    }
    let amount = values.last().map(|text| text.trim());
    if let Some(text) = amount.filter(|text| name.ends_with(dollars::SUFFIX) && !text.is_empty()) {
        into.insert(name.to_owned(), dollars::read(text).map_or_else(|| text.into(), Value::from));
    } else if let Some(value) = convert(part(schema, name), values) {
        into.insert(name.to_owned(), value);
    }
}

/// Whether an empty field means "the server's default": it may be left out, and may not be empty. Where nothing is
/// required, in a change, an empty field is an error to tell.
fn left_out(schema: &Value, name: &str, values: &[&str]) -> bool {
    let Some(required) = schema["required"].as_array() else { return false };
    let is_required = required.iter().any(|other| other == name);
    values.iter().all(|value| value.trim().is_empty())
        // A choice that was not made is missing, not wrong.
        && (name.ends_with("_id") || !is_required && part(schema, name)["minLength"].as_u64() > Some(0))
}

/// The schema of a field: a property's, or that of every value of a map.
fn part<'a>(schema: &'a Value, name: &str) -> &'a Value {
    let schema = choice(schema, "object");
    schema["properties"].get(name).unwrap_or(&schema["additionalProperties"])
}

/// The alternative of this kind, where a schema has alternatives.
fn choice<'a>(schema: &'a Value, kind: &str) -> &'a Value {
    let alternatives = schema["anyOf"].as_array().into_iter().flatten();
    alternatives.clone().find(|one| has(one, kind)).unwrap_or(schema)
}

fn has(schema: &Value, kind: &str) -> bool {
    let kinds = &schema["type"];
    kinds == kind
        || kinds.as_array().is_some_and(|kinds| kinds.iter().any(|known| known == kind))
        || schema["anyOf"].as_array().is_some_and(|all| all.iter().any(|one| has(one, kind)))
}

/// The value; `None` leaves the field out.
fn convert(schema: &Value, values: &[&str]) -> Option<Value> {
    if has(schema, "array") {
        return list(choice(schema, "array"), values);
    }
    // Of several with one name the last counts: a checkbox stands after the hidden field for its absence.
    let text = values.last().copied().unwrap_or_default();
    let trimmed = text.trim();
    if trimmed.is_empty() && has(schema, "null") {
        return Some(Value::Null);
    }
    if has(schema, "boolean") {
        return Some(match trimmed {
            "true" | "on" | "1" => true.into(),
            "" | "false" | "off" | "0" => false.into(),
            _ => text.into(),
        });
    }
    if has(schema, "string") {
        if schema["pattern"] == E164_PATTERN {
            return Some(E164::without_separators(text).into());
        }
        // Browsers send the lines of a text area with CR LF.
        return Some(text.replace("\r\n", "\n").into());
    }
    if trimmed.is_empty() && (has(schema, "integer") || has(schema, "number") || has(schema, "object")) {
        return None;
    }
    if has(schema, "integer")
        && let Some(number) = whole_number::from_text(trimmed)
    {
        return Some(number.into());
    }
    if has(schema, "number")
        && let Some(number) = trimmed.parse().ok().and_then(serde_json::Number::from_f64)
    {
        return Some(Value::Number(number));
    }
    if has(schema, "object")
        && let Ok(value @ Value::Object(_)) = json::read(trimmed.as_bytes())
    {
        return Some(value);
    }
    Some(text.into())
}

fn list(schema: &Value, values: &[&str]) -> Option<Value> {
    let items = &schema["items"];
    let entries: Vec<&str> = match values {
        [one] if one.trim_start().starts_with('[') => {
            if let Ok(Value::Array(mut rows)) = json::read(one.trim().as_bytes()) {
                rows.iter_mut().for_each(|row| settle(items, row));
                return Some(Value::Array(rows));
            }
            vec![one]
        }
        [one] if !has(items, "object") => one.lines().collect(),
        several => several.to_vec(),
    };
    let filled = entries.into_iter().map(str::trim).filter(|entry| !entry.is_empty());
    Some(Value::Array(filled.filter_map(|entry| convert(items, &[entry])).collect()))
}

/// The fields of a row of a list, as people write them: telephone numbers, whole numbers, JSON. An optional one that is empty
/// is left out.
fn settle(schema: &Value, row: &mut Value) {
    for (name, field) in schema["properties"].as_object().into_iter().flatten() {
        let Some(Value::String(text)) = row.get_mut(name) else { continue };
        if field["pattern"] == E164_PATTERN {
            *text = E164::without_separators(text);
        } else if has(field, "integer") || has(field, "object") {
            let value = convert(field, &[text.as_str()]).filter(|value| !value.is_null());
            if let Some(row) = row.as_object_mut() {
                match value {
                    Some(value) => row.insert(name.clone(), value),
                    None => row.remove(name),
                };
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    fn schema() -> Value {
        json!({"type": "object", "properties": {
            "name": {"type": "string"},
            "note": {"type": ["string", "null"]},
            "limit": {"type": ["integer", "null"]},
            "runs": {"type": "integer"},
            "speed": {"type": "number"},
            "record": {"type": "boolean"},
            "events": {"type": "array", "items": {"type": "string"}},
            "evaluations": {"type": "array", "items": {"type": "object"}},
            "parameters": {"type": "object"},
            "speech": {"type": "object", "properties": {"filler": {"type": ["string", "null"]}, "min": {"type": "integer"}}},
            "voicemail": {"anyOf": [{"type": "object", "properties": {"action": {"type": "string"}}}, {"type": "null"}]},
            "variables": {"type": "object", "additionalProperties": {"type": "string"}}
        }})
    }

    #[test]
    fn columns_are_rows() {
        let fields = [
            ("name", "Saturday"),
            ("evaluations[].kind", "transcript"),
            ("evaluations[].includes", "at\r\nten"),
            ("evaluations[].kind", LEFT_OUT),
            ("evaluations[].includes", "left out"),
            ("evaluations[].kind", ""),
            ("evaluations[].includes", ""),
            ("evaluations[].kind", ""),
            ("evaluations[].includes", "kept"),
            ("evaluations[].kind", "judge"),
            ("evaluations[].includes", ""),
            ("other[].kind", ""),
        ];
        let fields = fields.map(|(name, value)| (name.to_owned(), value.to_owned())).to_vec();
        let folded = folded(fields);
        let evaluations = r#"[{"kind":"transcript","includes":"at\nten"},{"kind":"","includes":"kept"},{"kind":"judge","includes":""}]"#;
        let expected = [("name", "Saturday"), ("evaluations", evaluations), ("other", "[]")];
        assert_eq!(folded, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
    }

    #[test]
    fn a_name_goes_no_deeper_than_the_schema() {
        let deep = format!("speech{}", ".speed".repeat(100_000));
        let found = read(&[(&deep, "1")]);
        let speech = found["speech"].as_object().expect("an object");
        assert!(speech.values().all(|value| !value.is_object()), "{}", speech.len());
        let dots = ".".repeat(100_000);
        assert_eq!(read(&[(&dots, "1")]), json!({ dots: "1" }));
    }

    fn read(fields: &[(&str, &str)]) -> Value {
        let (body, problems) = body(&schema(), fields);
        assert_eq!(problems, []);
        Value::Object(body)
    }

    #[test]
    fn an_empty_field_that_may_not_be_empty_is_left_out_of_what_is_new() {
        let mut schema =
            json!({"properties": {"model": {"type": "string", "minLength": 1}}, "required": ["name"]});
        let given = |schema: &Value, name| Value::Object(body(schema, &[(name, "")]).0);
        assert_eq!(given(&schema, "model"), json!({}));
        schema["required"] = json!(["model", "assistant_id"]);
        assert_eq!(given(&schema, "model"), json!({"model": ""}));
        assert_eq!(given(&schema, "assistant_id"), json!({}));
        schema.as_object_mut().unwrap().remove("required");
        assert_eq!(given(&schema, "model"), json!({"model": ""}));
    }

    #[test]
    fn a_text_that_should_be_json_is_told_where_it_is_none() {
        let (given, problems) = body(&schema(), &[("parameters", r#"{"type":"object",}"#)]);
        assert_eq!(Value::Object(given), json!({"parameters": {}}));
        assert_eq!(problems.len(), 1);
        assert!(problems[0].field == "parameters" && problems[0].message.contains("line 1"), "{problems:?}");
        let (given, problems) = body(&schema(), &[("parameters", "{"), ("runs", "2")]);
        assert_eq!(Value::Object(given), json!({"parameters": {}, "runs": 2}));
        let told: Vec<_> = problems.iter().map(|problem| (&*problem.field, &*problem.message)).collect();
        let expected = "it ends too early, at line 1 column 1: a bracket or a quote is not closed. Send one JSON document.";
        assert_eq!(told, [("parameters", expected)]);
    }

    #[test]
    fn texts_become_what_the_schema_asks_for() {
        let given = read(&[
            ("name", "Front desk"),
            ("note", "two\r\nlines"),
            ("limit", ""),
            ("runs", " 7 "),
            ("speed", "1.5"),
            ("record", "false"),
            ("record", "true"),
            ("parameters", r#"{"type": "object"}"#),
        ]);
        let expected = json!({"name": "Front desk", "note": "two\nlines", "limit": null, "runs": 7, "speed": 1.5,
            "record": true, "parameters": {"type": "object"}});
        assert_eq!(given, expected);
    }

    #[test]
    fn dots_name_fields_of_objects_and_maps() {
        let given = read(&[
            ("speech.filler", ""),
            ("speech.min", "9"),
            ("variables.city", "Berlin"),
            ("voicemail.action", "speak"),
        ]);
        let expected = json!({"speech": {"filler": null, "min": 9}, "variables": {"city": "Berlin"}, "voicemail": {"action": "speak"}});
        assert_eq!(given, expected);
    }

    #[test]
    fn a_list_is_repeated_or_a_line_each_or_json() {
        assert_eq!(read(&[("events", "a"), ("events", ""), ("events", "b")]), json!({"events": ["a", "b"]}));
        assert_eq!(read(&[("events", "a\r\n\r\n b ")]), json!({"events": ["a", "b"]}));
        assert_eq!(read(&[("events", "")]), json!({"events": []}));
        assert_eq!(read(&[("evaluations", r#"[{"kind": "x"}]"#)]), json!({"evaluations": [{"kind": "x"}]}));
        assert_eq!(read(&[("evaluations", r#"{"kind": "x"}"#)]), json!({"evaluations": [{"kind": "x"}]}));
    }

    #[test]
    fn numbers_in_rows_are_written_as_people_write_them() {
        let number = json!({"type": "string", "pattern": E164_PATTERN});
        let items = json!({"type": "object", "properties": {"name": {"type": "string"}, "number": number}});
        let schema = json!({"properties": {"transfers": {"type": "array", "items": items}}});
        let typed = r#"[{"name": "+1 (Sales)", "number": "+44 (20) 7183-8750"}, 7]"#;
        let (read, _) = body(&schema, &[("transfers", typed)]);
        let expected = json!([{"name": "+1 (Sales)", "number": "+442071838750"}, 7]);
        assert_eq!(read["transfers"], expected);
    }

    #[test]
    fn an_object_without_what_it_needs_is_not_there() {
        let voicemail = json!({"type": ["object", "null"], "required": ["action"], "properties": {
            "action": {"type": "string", "enum": ["hang_up"]}, "message": {"type": "string"}}});
        let schema = json!({"properties": {"voicemail": voicemail}});
        let read = |action| body(&schema, &[("voicemail.action", action), ("voicemail.message", "Hello.")]).0;
        assert_eq!(read("")["voicemail"], Value::Null);
        assert_eq!(read("hang_up")["voicemail"], json!({"action": "hang_up", "message": "Hello."}));
    }

    #[test]
    fn amounts_are_typed_in_dollars() {
        let schema = json!({"properties": {"limit_microusd": {"type": ["integer", "null"]}}});
        let read = |text| body(&schema, &[("limit_microusd", text)]);
        assert_eq!(Value::Object(read(" 12.5 ").0), json!({"limit_microusd": 12_500_000}));
        assert_eq!(Value::Object(read("").0), json!({"limit_microusd": null}));
        for wrong in ["much", "-1", "99999999999999999"] {
            let (_, problems) = read(wrong);
            assert!(problems[0].message.contains("amount in US dollars"), "{wrong}: {problems:?}");
        }
    }

    #[test]
    fn what_is_no_number_is_told_in_the_words_of_a_form() {
        let (given, problems) =
            body(&schema(), &[("runs", "many"), ("speech.min", "1.5"), ("speed", "1e999")]);
        assert_eq!(Value::Object(given), json!({"runs": 0, "speech": {"min": 0}, "speed": 0}));
        let told: Vec<_> = problems.iter().map(|problem| (&*problem.field, &*problem.message)).collect();
        let whole = "must be a whole number, such as 0";
        assert_eq!(told, [("runs", whole), ("speech.min", whole), ("speed", "must be a number, such as 0")]);
    }

    #[test]
    fn what_cannot_be_converted_stays_a_text() {
        assert_eq!(read(&[("record", "many"), ("unknown", "1")]), json!({"record": "many", "unknown": "1"}));
        assert_eq!(read(&[("runs", ""), ("parameters", " ")]), json!({}));
    }
}
