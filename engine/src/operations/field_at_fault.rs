//! Finds the field that a type's deserializer rejected: its error names the problem, but not the field.

use serde_json::{Map, Value};

use crate::base::error::Error;
use crate::base::field::{self, Step};

/// The error of `read` for the map, with the path of the wrong field; `body` when no single field is wrong.
///
/// Fields are read in order, so the shortest prefix with the same error ends with the wrong field. This takes one
/// attempt per field, only for rejected requests. Tracking the path during deserialization would require a second copy
/// of every type's deserializer: 19 KB of a Worker.
pub(crate) fn explain(
    map: &Map<String, Value>,
    refused: &serde_json::Error,
    read: &dyn Fn(&Map<String, Value>) -> Option<serde_json::Error>,
) -> Error {
    let message = refused.to_string();
    let fails = |value: &Value| match value {
        Value::Object(map) => read(map).is_some_and(|error| error.to_string() == message),
        _ => false,
    };
    let mut steps = Vec::new();
    follow(&Value::Object(map.clone()), &fails, &mut steps);
    let path = if steps.is_empty() { "body".to_owned() } else { field::path(&steps) };
    Error::field(path, message)
}

fn follow(value: &Value, fails: &dyn Fn(&Value) -> bool, steps: &mut Vec<Step>) {
    match value {
        Value::Object(map) if !fails(&Value::Object(Map::new())) => {
            let mut before = Map::new();
            for (name, inner) in map {
                let fails_with = |inner: &Value| {
                    let mut beginning = before.clone();
                    beginning.insert(name.clone(), inner.clone());
                    fails(&Value::Object(beginning))
                };
                if fails_with(inner) {
                    steps.push(Step::Key(name.clone()));
                    return follow(inner, &fails_with, steps);
                }
                before.insert(name.clone(), inner.clone());
            }
        }
        Value::Array(items) if !fails(&Value::Array(Vec::new())) => {
            for (at, inner) in items.iter().enumerate() {
                let fails_with = |inner: &Value| {
                    let mut beginning = items[..at].to_vec();
                    beginning.push(inner.clone());
                    fails(&Value::Array(beginning))
                };
                if fails_with(inner) {
                    steps.push(Step::Index(at));
                    return follow(inner, &fails_with, steps);
                }
            }
        }
        _ => {}
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;
    use serde_json::json;

    use crate::base::phone::E164;
    use crate::operations::operation::from_map;
    use crate::simulation::evaluation::Evaluation;

    #[derive(Debug, Deserialize)]
    #[allow(dead_code, reason = "only read into")]
    struct Call {
        name: String,
        to: E164,
        backup: Option<E164>,
        #[serde(default)]
        evaluations: Vec<Evaluation>,
        #[serde(default)]
        nested: Option<Box<Call>>,
    }

    fn refused(body: serde_json::Value) -> String {
        let map = body.as_object().unwrap();
        let error = from_map::<Call>(map).unwrap_err();
        error.details.as_ref().unwrap()["fields"][0]["field"].as_str().unwrap().to_owned()
    }

    #[test]
    fn names_the_wrong_field_at_any_position() {
        let good = json!({"kind": "transcript", "includes": "a"});
        let blank = json!({"kind": "transcript", "includes": " "});
        let (to, bad) = ("+14155550123", "+1");
        for (body, field) in [
            (json!({"name": "a", "to": bad}), "to"),
            (json!({"to": bad, "name": "a"}), "to"),
            (json!({"to": to, "backup": bad, "name": "a"}), "backup"),
            (json!({"backup": bad, "to": bad}), "backup"),
            (
                json!({"name": "a", "to": to, "evaluations": [good, good, blank, blank]}),
                "evaluations[2].includes",
            ),
            (json!({"evaluations": [blank], "to": bad}), "evaluations[0].includes"),
            (json!({"name": "a", "to": to, "nested": {"name": "b", "to": bad}}), "nested.to"),
            (json!({"name": "a", "to": to, "evaluations": [{"includes": "a"}]}), "evaluations[0]"),
            (json!({"name": "a", "to": to, "evaluations": 1}), "evaluations"),
            (json!({}), "body"),
        ] {
            assert_eq!(refused(body.clone()), field, "{body}");
        }
    }
}
