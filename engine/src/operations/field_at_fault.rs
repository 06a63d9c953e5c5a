//! Finds the field that a type's deserializer rejected: its error names the problem, but not the field.

use serde_json::{Map, Value};

use crate::base::error::Error;
use crate::base::field::{self, Step};

/// Nodes of JSON that the search for one field copies and reads again. A body of 1 MB, which has 500,000 at most, is read
/// four times; then its path ends with the field that was found so far.
const NODES_MAX: usize = 2_000_000;

/// The error of `read` for the map, with the path of the wrong field; `body` when no single field is wrong.
///
/// Fields are read in order, so the shortest prefix with the same error ends with the wrong field, and every longer one has
/// the error, too: the search halves. This takes some attempts for each level, only for rejected requests. Tracking the path
/// during deserialization would require a second copy of every type's deserializer: 19 KB of a Worker.
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
    let body = Value::Object(map.clone());
    let mut search = Search { whole: nodes(&body), left: NODES_MAX, steps: Vec::new() };
    search.follow(&body, &fails);
    let path = if search.steps.is_empty() { "body".to_owned() } else { field::path(&search.steps) };
    Error::field(path, message)
}

/// What [`explain`] costs at most for this body, in nodes that are copied and read.
pub(crate) fn cost(map: &Map<String, Value>) -> usize {
    let whole = map.values().map(nodes).sum::<usize>() + 1;
    whole.saturating_mul(64).min(NODES_MAX + whole)
}

/// The size of a value: texts count by their length, too.
fn nodes(value: &Value) -> usize {
    match value {
        Value::String(text) => 1 + text.len() / 64,
        Value::Array(items) => 1 + items.iter().map(nodes).sum::<usize>(),
        Value::Object(map) => 1 + map.values().map(nodes).sum::<usize>(),
        _ => 1,
    }
}

struct Search {
    /// The size of the body: no attempt costs more.
    whole: usize,
    /// What further attempts may cost.
    left: usize,
    steps: Vec<Step>,
}

impl Search {
    fn follow(&mut self, value: &Value, fails: &dyn Fn(&Value) -> bool) {
        match value {
            Value::Object(map) => {
                let entries: Vec<(&String, &Value)> = map.iter().collect();
                let beginning = |until: usize| -> Map<String, Value> {
                    entries[..until].iter().map(|(name, inner)| ((*name).clone(), (*inner).clone())).collect()
                };
                let fails_until = |until: usize| fails(&Value::Object(beginning(until)));
                let Some(at) = self.first(entries.len(), &fails_until) else { return };
                let (name, inner) = entries[at];
                self.steps.push(Step::Key(name.clone()));
                let before = beginning(at);
                self.follow(inner, &|inner| {
                    let mut beginning = before.clone();
                    beginning.insert(name.clone(), inner.clone());
                    fails(&Value::Object(beginning))
                });
            }
            Value::Array(items) => {
                let fails_until = |until: usize| fails(&Value::Array(items[..until].to_vec()));
                let Some(at) = self.first(items.len(), &fails_until) else { return };
                self.steps.push(Step::Index(at));
                self.follow(&items[at], &|inner| {
                    let mut beginning = items[..at].to_vec();
                    beginning.push(inner.clone());
                    fails(&Value::Array(beginning))
                });
            }
            _ => {}
        }
    }

    /// The place of the first of `count` parts with which the reading fails; `None` if it fails without any, with none, or if
    /// the search would take too long.
    fn first(&mut self, count: usize, fails_until: &dyn Fn(usize) -> bool) -> Option<usize> {
        let attempts = 2 + count.checked_ilog2().map_or(0, |doublings| doublings as usize + 1);
        self.left = self.left.checked_sub(attempts.saturating_mul(self.whole))?;
        if fails_until(0) || !fails_until(count) {
            return None;
        }
        let (mut passes, mut fails) = (0, count);
        while fails - passes > 1 {
            let middle = passes + (fails - passes) / 2;
            if fails_until(middle) { fails = middle } else { passes = middle }
        }
        Some(passes)
    }
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use serde::Deserialize;
    use serde_json::json;

    use super::*;
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

    fn refused(body: Value) -> String {
        let map = body.as_object().unwrap();
        let error = from_map::<Call>(map).unwrap_err();
        error.details.as_ref().unwrap()["fields"][0]["field"].as_str().unwrap().to_owned()
    }

    #[test]
    fn names_the_wrong_field_at_any_position() {
        let good = json!({"kind": "transcript", "includes": "a"});
        let blank = json!({"kind": "transcript", "includes": " "});
        let late = [vec![good.clone(); 299], vec![blank.clone()]].concat();
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
            (
                json!({"name": "a", "to": to, "evaluations": vec![blank.clone(); 300]}),
                "evaluations[0].includes",
            ),
            (json!({"name": "a", "to": to, "evaluations": late}), "evaluations[299].includes"),
        ] {
            assert_eq!(refused(body.clone()), field, "{body}");
        }
    }

    #[test]
    fn a_large_body_is_read_a_few_times_only() {
        let mut body = json!({"ballast": vec![0; 400_000], "name": "a", "to": "+14155550123"});
        body["evaluations"] = json!([{"kind": "transcript", "includes": " "}]);
        let map = body.as_object().unwrap();
        let reads = Cell::new(0);
        let read = |map: &Map<String, Value>| {
            reads.set(reads.get() + 1);
            Call::deserialize(map).err()
        };
        let error = explain(map, &Call::deserialize(map).unwrap_err(), &read);
        assert!(reads.get() <= NODES_MAX / 400_000, "{} reads", reads.get());
        let field = error.details.as_ref().unwrap()["fields"][0]["field"].as_str().unwrap().to_owned();
        assert!(["body", "evaluations"].contains(&field.as_str()), "what was found so far: {field}");
        assert!(cost(map) < NODES_MAX * 2);
    }
}
