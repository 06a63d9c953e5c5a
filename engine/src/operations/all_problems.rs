//! Completes the error of a refused body, so that it lists every problem and not only those that were found first.
//!
//! A body passes three stages: its schema, its type, the rules of its resource. Each stage reads what passed the one
//! before. When one refuses the body, the later ones check what is sound so far, also within a list or an object that has
//! something wrong elsewhere. Stand-ins take the place of the rest, and what is said about a stand-in is dropped.
use std::collections::{BTreeMap, BTreeSet};

use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::base::error::{Code, Error, FieldProblem, PROBLEMS_MAX};
use crate::base::field::Step;
use crate::base::ordered::Ordered as _;
use crate::base::phone::E164_PATTERN;
use crate::config::Config;
use crate::operations::field_at_fault;
use crate::operations::operation::{BodySchema, Presence, from_map};

/// Nodes of JSON that are copied and read in search of all problems, when there is more than one.
const NODES_MAX: usize = 8_000_000;

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
    more.retain(|new| !problems.iter().any(|known| is_at_or_within(&new.field, &known.field)));
    if more.is_empty() {
        return error;
    }
    problems.extend(more);
    Error::fields(error.code, &problems)
}

/// Whether a path is the same as another one, or leads further into it.
fn is_at_or_within(path: &str, other: &str) -> bool {
    path.strip_prefix(other).is_some_and(|rest| rest.is_empty() || rest.starts_with(['.', '[']))
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
    /// The fields that the client sent and that could be mended, if something was wrong with them.
    sent: BTreeSet<String>,
    /// The fields that the client sent, whatever is wrong with them.
    named: BTreeSet<String>,
    /// Those of them that nothing has refused.
    sound: BTreeSet<String>,
    /// How many items at the beginning of a list were taken out.
    taken_out: BTreeMap<String, usize>,
}

impl<'a> SoundFields<'a> {
    fn of(body: &Map<String, Value>, schema: &'a Value, presence: Presence, known: &[FieldProblem]) -> Self {
        let properties = schema.get("properties").and_then(Value::as_object);
        let (mut fields, mut sound) = (Map::new(), BTreeSet::new());
        for (name, value) in body {
            let Some(property) = properties.and_then(|properties| properties.get(name)) else { continue };
            let mut value = value.clone();
            let mut wrong = known.iter().filter(|problem| root(&problem.field) == name).peekable();
            if wrong.peek().is_none() || value.is_array() {
                sound.insert(name.clone());
            }
            if wrong.all(|problem| mend(property, &mut value, &problem.field[name.len()..])) {
                fields.insert(name.clone(), value);
            } else {
                sound.remove(name);
            }
        }
        let required = match presence {
            // The schema of a PATCH requires nothing, its type does.
            Presence::Partial => properties.into_iter().flatten().map(|(name, _)| name.as_str()).collect(),
            Presence::Whole | Presence::Optional => {
                let required = schema.get("required").and_then(Value::as_array);
                required.into_iter().flatten().filter_map(Value::as_str).collect()
            }
        };
        let sent: BTreeSet<String> = fields.keys().cloned().into_set();
        let is_known = |name: &&String| properties.is_some_and(|properties| properties.contains_key(*name));
        let named = body.keys().filter(is_known).cloned().into_set();
        Self { properties, required, fields, sound, sent, named, taken_out: BTreeMap::new() }
    }

    /// Whether the client sent the field, whatever is wrong with it.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.named.contains(name)
    }

    /// The fields of the object in a field, but for those `without`; `None` where there is none. Its type cannot do without those
    /// `required`.
    pub(crate) fn within(
        &self,
        name: &str,
        required: &[&'static str],
        without: &[&str],
    ) -> Option<SoundFields<'a>> {
        let schema = self.properties?.get(name)?;
        let Value::Object(object) = self.fields.get(name).filter(|_| self.sent.contains(name))? else {
            return None;
        };
        let mut inner = SoundFields::of(object, schema, Presence::Whole, &[]);
        inner.required = required.to_vec();
        inner.fields.retain(|field, _| !without.contains(&field.as_str()));
        Some(inner)
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
        // A large body is looked at for fewer problems.
        let rounds = (NODES_MAX / field_at_fault::cost(&self.fields)).clamp(1, PROBLEMS_MAX);
        for _ in 0..rounds {
            if problems.len() >= PROBLEMS_MAX {
                return;
            }
            self.put_stand_ins();
            let Some(problem) = read(&self.fields).and_then(|error| error.problems().into_iter().next())
            else {
                return;
            };
            let name = root(&problem.field).to_owned();
            if !self.sent.contains(&name) {
                return;
            }
            let problem = self.take_out(&name, problem);
            // A stand-in may be refused, too.
            if problems.iter().all(|known| known.field != problem.field) {
                problems.push(problem);
            }
        }
    }

    /// Puts a stand-in where the problem is. Where that is refused, too, it takes out the field, or the items of a list up
    /// to the refused one: later items may have problems of their own.
    fn take_out(&mut self, name: &str, problem: FieldProblem) -> FieldProblem {
        let after_name = &problem.field[name.len()..];
        let property = self.properties.and_then(|properties| properties.get(name));
        if let (Some(property), Some(value)) = (property, self.fields.get_mut(name)) {
            let mut mended = value.clone();
            if mend(property, &mut mended, after_name) && mended != *value {
                if !mended.is_array() {
                    self.sound.remove(name);
                }
                *value = mended;
                let before = self.taken_out.get(name).copied().unwrap_or_default();
                return FieldProblem::new(shifted(&problem.field, name, before), problem.message);
            }
        }
        self.sound.remove(name);
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

/// The path with the position in its list moved by `before`.
fn shifted(path: &str, name: &str, before: usize) -> String {
    match step(&path[name.len()..]) {
        Some((Step::Index(at), rest)) => format!("{name}[{}]{rest}", before + at),
        _ => path.to_owned(),
    }
}

/// The first step of the rest of a path, and what follows; `None` at its end, and for keys that are written in quotes.
fn step(path: &str) -> Option<(Step, &str)> {
    if let Some(rest) = path.strip_prefix('[') {
        let (at, rest) = rest.split_once(']')?;
        return Some((Step::Index(at.parse().ok()?), rest));
    }
    let path = path.strip_prefix('.')?;
    let (name, rest) = path.split_at(path.find(['.', '[']).unwrap_or(path.len()));
    Some((Step::Key(name.to_owned()), rest))
}

/// Replaces what is at the path, or takes it out where it may be left out. False where that cannot be done.
fn mend(schema: &Value, value: &mut Value, path: &str) -> bool {
    let Some((step, rest)) = step(path) else { return false };
    match (step, value) {
        (Step::Index(at), Value::Array(items)) if schema["items"].is_object() => match items.get_mut(at) {
            Some(item) if rest.is_empty() => {
                *item = stand_in(&schema["items"]);
                true
            }
            Some(item) => mend(&schema["items"], item, rest),
            None => false,
        },
        (Step::Key(name), Value::Object(map)) if schema["properties"].is_object() => {
            let property = &schema["properties"][&name];
            if !rest.is_empty() {
                return map.get_mut(&name).is_some_and(|inner| mend(property, inner, rest));
            }
            let required = schema["required"].as_array();
            match required.is_some_and(|names| names.iter().any(|required| *required == name)) {
                true => map.insert(name, stand_in(property)),
                false => map.shift_remove(&name),
            };
            true
        }
        _ => false,
    }
}

/// A value of the schema's type.
fn stand_in(schema: &Value) -> Value {
    let kind = match &schema["type"] {
        Value::String(kind) => kind.as_str(),
        // All lists of types are a type or null.
        _ => return Value::Null,
    };
    match kind {
        "string" if schema["pattern"] == E164_PATTERN => json!("+14155550100"),
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
        problems_of(body, known, &json!({"type": "array"}))
    }

    fn problems_of(body: &Value, known: &[&str], evaluations: &Value) -> Vec<String> {
        let schema = json!({
            "type": "object", "required": ["name", "to"],
            "properties": {
                "name": {"type": "string"}, "to": {"type": "string"}, "backup": {"type": "string"},
                "evaluations": evaluations,
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
    fn what_is_sound_in_a_list_is_checked_beside_what_is_not() {
        let (to, bad) = ("+14155550123", "+1");
        let item =
            |includes: &str, times: i64| json!({"kind": "judge", "includes": includes, "times": times});
        let body = json!({"name": "a", "to": to, "evaluations": [item(" ", 1), item("b", 2), item(" ", 0)], "backup": bad});
        let (text, number) = (json!({"type": "string"}), json!({"type": "integer", "minimum": 1}));
        let fields = json!({"kind": text, "includes": text, "times": number});
        let evaluation = json!({"type": "object", "required": ["kind", "includes"], "properties": fields});
        let evaluations = json!({"type": "array", "items": evaluation});
        assert_eq!(
            problems_of(&body, &["evaluations[1].times", "evaluations[2].times"], &evaluations),
            ["evaluations[0].includes", "evaluations[2].includes", "backup"]
        );
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
