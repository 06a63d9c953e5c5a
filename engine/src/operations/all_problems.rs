//! Completes the error of a refused body, so that it lists every problem and not only those that were found first.
//!
//! A body passes three stages: its schema, its type, the rules of its resource. Each stage reads what passed the one
//! before. When one refuses the body, the later ones check the fields that are sound so far. Stand-ins take the place of
//! the others, and what is said about a stand-in is dropped.
use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::base::error::{Code, Error, FieldProblem, PROBLEMS_MAX};
use crate::base::ordered::Ordered as _;
use crate::config::Config;
use crate::operations::operation::{BodySchema, Presence, from_map};

/// Lists what the type of a body, and the rules of its resource, refuse about the sound fields.
pub(crate) type Problems = fn(&mut SoundFields<'_>, &Config) -> Vec<FieldProblem>;

/// The error with the problems that `body` has beyond those it names. `passed_schema` says where the error comes from: the
/// fields that it names are then readable, and lists among them may have more wrong items.
pub(crate) fn complete(
    error: Error,
    shape: BodySchema,
    schema: &Value,
    body: &Map<String, Value>,
    passed_schema: bool,
    config: &Config,
) -> Error {
    if error.code != Code::ValidationFailed {
        return error;
    }
    let mut problems = error.problems();
    let known = if passed_schema { &[] } else { problems.as_slice() };
    let mut fields = SoundFields::of(body, schema, shape.presence, known);
    let mut more = (shape.problems)(&mut fields, config);
    more.retain(|new| problems.iter().all(|problem| problem.field != new.field));
    if more.is_empty() {
        return error;
    }
    problems.extend(more);
    Error::fields(error.code, &problems)
}

/// The problems of a body that has no rules beyond its type.
pub(crate) fn of_type<T: DeserializeOwned>(fields: &mut SoundFields<'_>, _: &Config) -> Vec<FieldProblem> {
    let mut problems = Vec::new();
    fields.read::<T>(&mut problems);
    problems
}

/// The fields of a body without known problems, and stand-ins for the others.
pub(crate) struct SoundFields<'a> {
    properties: Option<&'a Map<String, Value>>,
    /// The fields that the type cannot do without.
    required: Vec<&'a str>,
    fields: Map<String, Value>,
    /// The fields that the client sent.
    sent: BTreeSet<String>,
    /// Those of them that nothing has refused.
    sound: BTreeSet<String>,
    /// How many items at the beginning of a list were taken out.
    taken_out: BTreeMap<String, usize>,
}

impl<'a> SoundFields<'a> {
    fn of(body: &Map<String, Value>, schema: &'a Value, presence: Presence, known: &[FieldProblem]) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let is_sound = |name: &str| {
            properties.is_some_and(|properties| properties.contains_key(name))
                && !known.iter().any(|problem| root(&problem.field) == name)
        };
        let sound = body.iter().filter(|(name, _)| is_sound(name));
        let fields: Map<String, Value> = sound.map(|(name, value)| (name.clone(), value.clone())).collect();
        let required = match presence {
            // The schema of a PATCH requires nothing, its type does.
            Presence::Partial => properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect(),
            Presence::Whole | Presence::Optional => {
                let required = schema.get("required").and_then(Value::as_array);
                required.into_iter().flatten().filter_map(Value::as_str).collect()
            }
        };
        let sent: BTreeSet<String> = fields.keys().cloned().into_set();
        Self { properties, required, fields, sound: sent.clone(), sent, taken_out: BTreeMap::new() }
    }

    /// Reads the type, and adds what it refuses to `problems`. `None` where it refuses a stand-in.
    pub(crate) fn read<T: DeserializeOwned>(&mut self, problems: &mut Vec<FieldProblem>) -> Option<T> {
        self.take_out_refused(problems, &|fields| from_map::<T>(fields).err());
        from_map(&self.fields).ok()
    }

    /// Whether the problem is about a field that the client sent and that had no problem before.
    pub(crate) fn is_new(&self, problem: &FieldProblem) -> bool {
        self.sound.contains(root(&problem.field))
    }

    fn take_out_refused(
        &mut self,
        problems: &mut Vec<FieldProblem>,
        read: &dyn Fn(&Map<String, Value>) -> Option<Error>,
    ) {
        while problems.len() < PROBLEMS_MAX {
            self.put_stand_ins();
            let Some(problem) = read(&self.fields).and_then(|error| error.problems().into_iter().next())
            else {
                return;
            };
            let name = root(&problem.field).to_owned();
            if !self.sent.contains(&name) {
                return;
            }
            self.sound.remove(&name);
            problems.push(self.take_out(&name, problem));
        }
    }

    /// Takes out the field, or the items of a list up to the refused one: later items may have problems of their own.
    fn take_out(&mut self, name: &str, problem: FieldProblem) -> FieldProblem {
        let after_name = &problem.field[name.len()..];
        let item = after_name.strip_prefix('[').and_then(|rest| rest.split_once(']'));
        let item = item.and_then(|(at, rest)| Some((at.parse::<usize>().ok()?, rest)));
        match (self.fields.get_mut(name), item) {
            (Some(Value::Array(items)), Some((at, rest))) if at < items.len() => {
                items.drain(..=at);
                let before = self.taken_out.entry(name.to_owned()).or_default();
                let field = format!("{name}[{}]{rest}", *before + at);
                *before += at + 1;
                FieldProblem::new(field, problem.message)
            }
            _ => {
                self.fields.remove(name);
                self.sent.remove(name);
                problem
            }
        }
    }

    fn put_stand_ins(&mut self) {
        for name in &self.required {
            if !self.fields.contains_key(*name) {
                let schema = self.properties.and_then(|properties| properties.get(*name));
                self.fields.insert((*name).to_owned(), schema.map_or(Value::Null, stand_in));
            }
        }
    }
}

/// The field that a path begins with.
fn root(path: &str) -> &str {
    path.split(['.', '[']).next().unwrap_or_default()
}

/// A value of the schema's type.
fn stand_in(schema: &Value) -> Value {
    let kind = match &schema["type"] {
        Value::String(kind) => kind.as_str(),
        // All lists of types are a type or null.
        _ => return Value::Null,
    };
    match kind {
        "string" => schema["enum"].get(0).cloned().unwrap_or_else(|| json!("")),
        "integer" | "number" => schema.get("minimum").cloned().unwrap_or_else(|| json!(0)),
        "boolean" => json!(false),
        "array" => json!([]),
        "object" => json!({}),
        _ => Value::Null,
    }
}

#[cfg(test)]
mod tests {
    use serde::Deserialize;

    use super::*;
    use crate::base::phone::E164;
    use crate::simulation::evaluation::Evaluation;

    #[derive(Deserialize)]
    #[allow(dead_code, reason = "only read into")]
    struct Plan {
        name: String,
        to: E164,
        #[serde(default)]
        backup: Option<E164>,
        #[serde(default)]
        evaluations: Vec<Evaluation>,
    }

    fn problems(body: &Value, known: &[&str]) -> Vec<String> {
        let schema = json!({
            "type": "object", "required": ["name", "to"],
            "properties": {
                "name": {"type": "string"}, "to": {"type": "string"}, "backup": {"type": "string"},
                "evaluations": {"type": "array"},
            },
        });
        let known: Vec<FieldProblem> = known.iter().map(|field| FieldProblem::new(*field, "")).collect();
        let mut fields = SoundFields::of(body.as_object().unwrap(), &schema, Presence::Whole, &known);
        let mut found = Vec::new();
        fields.read::<Plan>(&mut found);
        found.into_iter().map(|problem| problem.field).collect()
    }

    #[test]
    fn each_field_that_the_type_refuses_is_listed_once() {
        let good = json!({"kind": "judge", "includes": "a"});
        let blank = json!({"kind": "judge", "includes": " "});
        let (to, bad) = ("+14155550123", "+1");
        assert_eq!(problems(&json!({"name": "a", "to": bad, "backup": bad}), &[]), ["to", "backup"]);
        assert_eq!(
            problems(
                &json!({"name": "a", "to": to, "evaluations": [good, blank, good, blank], "backup": bad}),
                &[]
            ),
            ["evaluations[1].includes", "evaluations[3].includes", "backup"]
        );
        assert_eq!(problems(&json!({"name": "a", "to": to, "evaluations": [good]}), &[]), [""; 0]);
    }

    #[test]
    fn fields_with_a_known_problem_and_stand_ins_are_not_listed() {
        let bad = "+1";
        assert_eq!(problems(&json!({"name": 5, "to": bad, "unknown": 1}), &["name", "unknown"]), ["to"]);
        assert_eq!(problems(&json!({"name": "a", "to": bad, "backup": bad}), &["to"]), ["backup"]);
        // The stand-in for `to` is refused, so nothing more can be read.
        assert_eq!(problems(&json!({"name": "a"}), &["to"]), [""; 0]);
        assert_eq!(
            problems(
                &json!({"evaluations": [{"kind": "judge", "includes": " "}]}),
                &["name", "to", "evaluations[0].x"]
            ),
            [""; 0]
        );
    }
}
