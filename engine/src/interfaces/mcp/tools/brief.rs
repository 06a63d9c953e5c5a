//! Makes the tools short: clients give all of them to a model in every conversation, so each word is paid for again and again.
//! What is left out is in `/docs` and in the OpenAPI document, and whatever is wrong is refused with a message that says what
//! to do.
use std::collections::BTreeMap;
use std::collections::btree_map::Entry;

use serde_json::{Map, Value, json};

use crate::base::limits::INTEGER_MAX;
use crate::operations::operation::{Operation, Presence};
use crate::operations::schema;
use crate::operations::{OPERATIONS, operation};

/// Sentences of a tool's description are left out once it would be longer than this.
const DESCRIPTION_CHARS_MAX: usize = 152;
/// A longer description of a field is in the list once: other tools name the one that has it.
const REPEATED_CHARS_MAX: usize = 40;
/// A description that is longer than this, but not than that, is only in the first tool: to name that takes as many words.
const OBVIOUS_CHARS_MAX: usize = 20;

/// The first sentences of an operation's description.
pub(super) fn description(text: &str) -> String {
    let mut end = 0;
    for sentence in sentence_ends(text) {
        if end > 0 && sentence > DESCRIPTION_CHARS_MAX {
            break;
        }
        end = sentence;
    }
    text[..end].to_owned()
}

/// The positions after each sentence.
fn sentence_ends(text: &str) -> impl Iterator<Item = usize> {
    let ends = text.match_indices(". ").map(|(at, _)| at + 1).filter(|at| {
        let next = text[*at + 1..].chars().next();
        // Not inside of code, and not after an abbreviation.
        text[..*at].matches('`').count().is_multiple_of(2) && next.is_some_and(|next| !next.is_lowercase())
    });
    ends.chain([text.len()])
}

/// The schema of a field without what a model does not need: limits on the length of texts, and in descriptions all but the
/// first sentence. A description of an enum explains its words.
pub(super) fn field(schema: &Value) -> Value {
    let mut field = schema::for_mcp(schema);
    shorten(&mut field);
    field
}

fn shorten(schema: &mut Value) {
    let Value::Object(object) = schema else { return };
    for keyword in ["minLength", "maxLength", "pattern", "additionalProperties"] {
        object.remove(keyword);
    }
    // What cannot be meant anyway.
    if object.get("maximum").and_then(Value::as_i64) == Some(INTEGER_MAX) {
        object.remove("maximum");
    }
    if object.get("minimum").and_then(Value::as_i64).is_some_and(|least| (0..=1).contains(&least)) {
        object.remove("minimum");
    }
    let words: Vec<String> = object
        .get("enum")
        .and_then(Value::as_array)
        .into_iter()
        .flatten()
        .filter_map(|word| Some(word.as_str()?.to_owned()))
        .collect();
    // Words such as `call.ended` say it themselves.
    let has_dots = words.iter().any(|word| word.len() > 1 && word.contains('.'));
    let description = object.remove("description");
    if let Some(Value::String(text)) = description.filter(|_| !has_dots) {
        let text = if words.is_empty() { first_sentence(&text).to_owned() } else { notes(&text, &words) };
        match meaning(&text) {
            "" => {}
            text => _ = object.insert("description".to_owned(), text.into()),
        }
    }
    if object.get("required").is_some_and(|names| *names == json!([])) {
        object.remove("required");
    }
    if let Some(Value::Object(children)) = object.get_mut("properties") {
        children.values_mut().for_each(shorten);
    }
    if let Some(items) = object.get_mut("items") {
        shorten(items);
        if let Value::Object(items) = items {
            // The list has one.
            items.remove("description");
        }
    }
}

fn first_sentence(text: &str) -> &str {
    let first = sentence_ends(text).next().and_then(|end| text.get(..end)).unwrap_or_default();
    first.strip_suffix('.').unwrap_or(first)
}

/// Of the description of an enum, the first sentence, and those that begin with one of its words.
fn notes(text: &str, words: &[String]) -> String {
    let text = text.replace("`: Passes when ", "`: ");
    let mut notes = String::new();
    let mut end = 0;
    for begin in sentence_ends(&text) {
        let (sentence, rest) = (&text[end..begin], &text[begin..]);
        let word = sentence.trim_start().strip_prefix('`').and_then(|rest| Some(rest.split_once('`')?.0));
        let is_note = word.is_some_and(|word| words.iter().any(|one| one == word));
        if end == 0 || is_note {
            notes.push_str(sentence);
        }
        end = text.len() - rest.len();
    }
    notes
}

/// A description without its first sentence, if that only repeats the name of its field.
fn meaning(text: &str) -> &str {
    let end = sentence_ends(text).next().unwrap_or_default();
    let (first, rest) = text.split_at_checked(end).unwrap_or((text, ""));
    let repeats = ["Filter by ", "The name of the "].iter().any(|beginning| first.starts_with(beginning));
    if repeats { rest.trim_start() } else { text }
}

/// The tools that have a long description of a field, by the field's name and the description.
pub(super) type Said = BTreeMap<(String, String), &'static str>;

/// Replaces long descriptions that an earlier tool has.
pub(super) fn refer(schema: &mut Value, tool: &'static str, said: &mut Said) {
    for (name, field) in schema.get_mut("properties").and_then(Value::as_object_mut).into_iter().flatten() {
        let Value::Object(object) = field else { continue };
        if let Some(earlier) = described_by(name, object, tool, said) {
            object.remove("required");
            if let Some(Value::Object(fields)) = object.get_mut("properties") {
                fields.retain(|field, schema| {
                    let length = schema.get("description").and_then(Value::as_str).map_or(0, str::len);
                    length > REPEATED_CHARS_MAX && said_by(field, schema, said) != Some(earlier)
                });
            }
            refer(field, tool, said);
            let Value::Object(object) = field else { continue };
            let text = object.get("description").and_then(Value::as_str).unwrap_or_default();
            let note = if text.is_empty() { String::new() } else { format!("{text}. ") };
            object.insert("description".to_owned(), format!("{note}Fields as in {earlier}").into());
            continue;
        }
        let text = object.get("description").and_then(Value::as_str).unwrap_or_default();
        let length = text.len();
        if length > OBVIOUS_CHARS_MAX {
            match said.entry((name.clone(), text.to_owned())) {
                Entry::Vacant(place) => _ = place.insert(tool),
                Entry::Occupied(earlier) if *earlier.get() == tool => {}
                Entry::Occupied(_) if length <= REPEATED_CHARS_MAX => _ = object.shift_remove("description"),
                Entry::Occupied(earlier) => {
                    object.insert("description".to_owned(), format!("As in {}", earlier.get()).into());
                }
            }
        }
        refer(field, tool, said);
        if let Some(items) = field.get_mut("items") {
            refer(items, tool, said);
        }
    }
}

/// The earlier tool that has this description of a field.
fn said_by(field: &str, schema: &Value, said: &Said) -> Option<&'static str> {
    let text = schema.get("description")?.as_str()?;
    said.get(&(field.to_owned(), text.to_owned())).copied()
}

/// The earlier tool that describes the fields of an object, if all are described; some may be another tool's.
fn described_by(name: &str, object: &Map<String, Value>, tool: &str, said: &Said) -> Option<&'static str> {
    let fields = object.get("properties")?.as_object()?;
    let mut earlier = None;
    for (field, schema) in fields {
        let text = schema.get("description").and_then(Value::as_str).unwrap_or_default();
        if text.len() > OBVIOUS_CHARS_MAX {
            earlier = earlier.or(Some(said_by(field, schema, said)?));
        }
    }
    earlier.filter(|by| name != "data" && *by != tool)
}

/// The body of an operation. An update leaves out the fields that the operation that creates has: they are described there.
pub(super) fn body(operation: &Operation, schema: &Value, presence: Presence) -> Value {
    let mut body = field(schema);
    let Value::Object(object) = &mut body else { return body };
    object.remove("description");
    let Some((creates, described)) = creator(operation).filter(|_| presence == Presence::Partial) else {
        return body;
    };
    let described = described["properties"].as_object().cloned().unwrap_or_default();
    if let Some(Value::Object(fields)) = object.get_mut("properties") {
        fields.retain(|name, _| !described.contains_key(name));
    }
    let note = format!("The fields to change, of those of {}", creates.id);
    object.insert("description".to_owned(), note.into());
    body
}

/// The operation that creates what this one updates, and its body.
fn creator(operation: &Operation) -> Option<(&'static Operation, Value)> {
    let collection = operation.path.strip_suffix("/{id}")?;
    let creates = OPERATIONS.iter().find(|one| {
        one.path == collection
            && one.method == http::Method::POST
            && one.effects == operation::Effects::Create
    })?;
    let body = creates.body?;
    Some((creates, schema::request(body.schema, false)))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_description_ends_with_a_sentence() {
        assert_eq!(description("Reads it. All of it."), "Reads it. All of it.");
        let long = format!("Reads it. {}. The end.", "X".repeat(DESCRIPTION_CHARS_MAX));
        assert_eq!(description(&long), "Reads it.");
        let one = format!("{} ends.", "x".repeat(DESCRIPTION_CHARS_MAX));
        assert_eq!(description(&format!("{one} More.")), one);
        assert_eq!(sentence_ends("Such as `a. B`, e.g. this. And that.").collect::<Vec<_>>(), [26, 36]);
    }

    #[test]
    fn a_field_keeps_what_a_model_needs() {
        let schema = json!({"type": "integer", "minimum": 0, "maximum": INTEGER_MAX});
        assert_eq!(field(&schema), json!({"type": "integer"}));
        let schema = json!({"type": "integer", "minimum": 100, "maximum": 200});
        assert_eq!(field(&schema), schema);
        let schema = json!({"type": ["string", "null"], "minLength": 1, "maxLength": 9, "pattern": "^a", "description": "A name. At most 9."});
        assert_eq!(field(&schema), json!({"type": "string", "description": "A name"}));
        let schema = json!({"type": "string", "enum": ["a", "b"],
            "description": "One of two. Not more. `a`: The first. It is good. `b`: The second."});
        assert_eq!(field(&schema)["description"], "One of two. `a`: The first. `b`: The second.");
        let schema = json!({"type": "string", "enum": ["true", "null"],
            "description": "Filter by result. `null` are those without one. `other` is no word of it."});
        assert_eq!(field(&schema)["description"], "`null` are those without one.");
        let schema = json!({"type": "string", "description": "The name of the assistant."});
        assert_eq!(field(&schema), json!({"type": "string"}));
        let schema =
            json!({"type": "string", "enum": ["call.ended"], "description": "One. `call.ended`: It ended."});
        assert_eq!(field(&schema), json!({"type": "string", "enum": ["call.ended"]}));
    }

    #[test]
    fn a_long_description_is_there_once() {
        let long = "x".repeat(REPEATED_CHARS_MAX + 1);
        let schema = || json!({"properties": {"a": {"description": long}, "b": {"description": "short"}}});
        let mut said = Said::new();
        let (mut first, mut second) = (schema(), schema());
        refer(&mut first, "one", &mut said);
        refer(&mut second, "two", &mut said);
        assert_eq!(first, schema());
        assert_eq!(
            second,
            json!({"properties": {"a": {"description": "As in one"}, "b": {"description": "short"}}})
        );
    }
}
