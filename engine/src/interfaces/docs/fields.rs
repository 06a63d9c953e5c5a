//! The fields of requests and of the objects in responses. Every object is described once and linked to.
use maud::{Markup, html};
use serde_json::Value;

use super::list;
use super::words::{count, prose, text};

/// How deep fields within fields are listed.
const DEPTH_MAX: usize = 4;
const COMPONENTS: &str = "#/components/schemas/";

/// One field.
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) schema: &'a Value,
    pub(super) note: &'a str,
    pub(super) required: bool,
}

/// The fragment of an object.
pub(super) fn object_anchor(name: &str) -> String {
    format!("object-{name}")
}

/// The objects of responses, by name.
pub(super) fn object_names(document: &Value) -> impl Iterator<Item = &str> {
    let components = document["components"]["schemas"].as_object().into_iter().flatten();
    components.filter(|(_, schema)| schema["properties"].is_object()).map(|(name, _)| name.as_str())
}

/// The chapter that describes every object.
pub(super) fn objects(document: &Value) -> Markup {
    html! {
        section.group #objects { h2 { a href="#objects" { "Objects" } } p { "What responses and events consist of." } }
        @for name in object_names(document) {
            @let schema = &document["components"]["schemas"][name];
            section.op id=(object_anchor(name)) {
                div.told.wide {
                    h3 { a href={ "#" (object_anchor(name)) } { (name) } }
                    @if !text(&schema["description"]).is_empty() { p { (prose(text(&schema["description"]))) } }
                    (listed(document, schema, Place::Response))
                }
            }
        }
    }
}

/// The fields of a request's body.
pub(super) fn of_body(document: &Value, schema: &Value) -> Markup {
    listed(document, schema, Place::Request { depth: 0 })
}

/// A field of a path, query or header.
pub(super) fn row(document: &Value, field: &Field<'_>) -> Markup {
    entry(document, field, Place::Request { depth: 0 })
}

/// Where fields are listed. Those of a request have everything below them; a response has all its fields, and links to what
/// it consists of.
#[derive(Clone, Copy, PartialEq)]
enum Place {
    Request { depth: usize },
    Response,
}

fn listed(document: &Value, schema: &Value, place: Place) -> Markup {
    let required = list(&schema["required"]);
    html! {
        dl.fields {
            @for (name, property) in schema["properties"].as_object().into_iter().flatten() {
                @let required = place != Place::Response && required.iter().any(|one| one == name.as_str());
                (entry(document, &Field { name, schema: property, note: text(&property["description"]), required }, place))
            }
        }
    }
}

fn entry(document: &Value, field: &Field<'_>, place: Place) -> Markup {
    let schema = resolved(document, field.schema);
    let of_type = text(&schema["description"]);
    // The choices of an enum that several fields share are explained at the enum.
    let explained = match (of_type.find('`'), schema["enum"].is_array() && !of_type.is_empty()) {
        (Some(start), true) if !field.note.contains(&of_type[start..]) => &of_type[start..],
        _ => "",
    };
    let note = match field.note {
        "" => of_type.to_owned(),
        note => format!("{note} {explained}").trim_end().to_owned(),
    };
    let default = field.schema.get("default").or(schema.get("default"));
    let items = resolved(document, &schema["items"]);
    let inner = if items["properties"].is_object() { items } else { schema };
    let nested = inner["properties"].as_object().zip(match place {
        Place::Request { depth } if depth < DEPTH_MAX => Some(Place::Request { depth: depth + 1 }),
        Place::Response if !is_named(field.schema) => Some(Place::Response),
        _ => None,
    });
    html! {
        div {
            dt {
                code { (field.name) } " " span { (kind(document, field.schema)) }
                @if field.required { " " b { "required" } }
            }
            dd {
                (prose(&note)) " " (limits(schema, default, &note))
                @if let Some((fields, place)) = nested {
                    details { summary { (fields.len()) @if fields.len() == 1 { " field" } @else { " fields" } } (listed(document, inner, place)) }
                }
            }
        }
    }
}

/// The name of what a schema refers to.
fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str().and_then(|place| place.strip_prefix(COMPONENTS))
}

/// The schema without a reference to what has no fields, such as an enum, and without the branch that is null.
fn resolved<'a>(document: &'a Value, schema: &'a Value) -> &'a Value {
    let schema = list(&schema["anyOf"]).iter().find(|branch| branch["type"] != "null").unwrap_or(schema);
    reference(schema).map_or(schema, |name| &document["components"]["schemas"][name])
}

/// The object that a response is, or consists of.
pub(super) fn object_in<'a>(document: &Value, schema: &'a Value) -> Option<&'a str> {
    let name = reference(schema).or_else(|| reference(&schema["items"]))?;
    // One of several objects has no fields of its own.
    document["components"]["schemas"][name]["properties"].is_object().then_some(name)
}

/// Whether it refers to an object, which is described at its own place.
fn is_named(schema: &Value) -> bool {
    let branches = list(&schema["anyOf"]);
    reference(schema).or_else(|| reference(&schema["items"])).is_some() || branches.iter().any(is_named)
}

/// The type of a value: a link for an object.
pub(super) fn kind(document: &Value, schema: &Value) -> Markup {
    if let Some(name) = reference(schema) {
        let target = &document["components"]["schemas"][name];
        return match target["properties"].is_object() {
            true => html! { a href={ "#" (object_anchor(name)) } { (name) } },
            false => kind(document, target),
        };
    }
    let branches = list(&schema["anyOf"]);
    if !branches.is_empty() {
        return html! {
            @for (place, branch) in branches.iter().enumerate() { @if place > 0 { " or " } (kind(document, branch)) }
        };
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => html! { "list of " (kind(document, &schema["items"])) },
        Value::String(name) => html! { (word(name, schema)) },
        Value::Array(names) => {
            let names: Vec<&str> = names.iter().map(|name| word(text(name), schema)).collect();
            html! { (names.join(" or ")) }
        }
        _ => html! { "any value" },
    }
}

/// A type by its name; a text that is a time is one.
fn word<'a>(name: &'a str, schema: &Value) -> &'a str {
    if name == "string" && schema["format"] == "date-time" { "time" } else { name }
}

/// What a value must keep to.
fn limits(schema: &Value, default: Option<&Value>, note: &str) -> Markup {
    let mut told: Vec<String> = Vec::new();
    let number = |name: &str| schema[name].as_i64();
    let range = |least: Option<i64>, most: Option<i64>, unit: &str| {
        let shown = |number: i64| match u64::try_from(number) {
            Ok(number) => count(number),
            Err(_) => format!("−{}", count(number.unsigned_abs())),
        };
        match (least, most) {
            (Some(least), Some(most)) => Some(format!("{} to {}{unit}", shown(least), shown(most))),
            (Some(least), None) => Some(format!("at least {}{unit}", shown(least))),
            (None, Some(most)) => Some(format!("at most {}{unit}", shown(most))),
            (None, None) => None,
        }
    };
    // The description of a text that is limited in bytes says so; `maxLength` counts characters.
    if !note.contains("bytes") {
        told.extend(range(number("minLength"), number("maxLength"), " characters"));
    }
    told.extend(range(number("minimum"), number("maximum"), ""));
    told.extend(range(number("minItems"), number("maxItems"), " items"));
    told.extend(
        default.and_then(Value::as_str).filter(|text| text.is_empty()).map(|_| "empty by default".to_owned()),
    );
    let default = default.filter(|value| {
        value.is_boolean() || value.is_number() || value.as_str().is_some_and(|text| !text.is_empty())
    });
    let default = default.map(|value| value.as_str().map_or_else(|| value.to_string(), str::to_owned));
    let pattern = schema["pattern"].as_str();
    let choices: Vec<&str> = list(&schema["enum"]).iter().filter_map(Value::as_str).collect();
    // A description that explains each choice names it.
    let unexplained = choices.iter().any(|choice| !note.contains(&format!("`{choice}`")));
    html! {
        span.limits {
            @if unexplained { "One of" @for choice in &choices { " " code { (choice) } } ". " }
            (told.join(" · "))
            @if let Some(default) = default { @if !told.is_empty() { " · " } "default " code { (default) } }
            @if let Some(pattern) = pattern { " · form " code { (pattern) } }
        }
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_shared_enum_is_explained_where_it_is_used() {
        let mode = json!({"type": "string", "enum": ["chat", "voice"], "description": "A mode. `chat`: In writing. `voice`: Aloud."});
        let document = json!({"components": {"schemas": {"Mode": mode}}});
        let schema = json!({"$ref": "#/components/schemas/Mode", "default": "chat"});
        let field = Field { name: "mode", schema: &schema, note: "How it is held.", required: false };
        let told = row(&document, &field).into_string();
        for words in ["How it is held. <code>chat</code>: In writing.", "default <code>chat</code>"] {
            assert!(told.contains(words), "{told}");
        }
        assert!(!told.contains("One of"), "{told}");
    }

    #[test]
    fn a_limit_in_bytes_is_not_shown_in_characters() {
        let schema = json!({"type": "string", "maxLength": 9000});
        assert!(!limits(&schema, None, "At most 9,000 bytes.").into_string().contains("characters"));
        assert!(limits(&schema, None, "A name.").into_string().contains("at most 9,000 characters"));
        let level = json!({"type": "integer", "minimum": -90, "maximum": 0});
        assert!(limits(&level, None, "").into_string().contains("−90 to 0"));
    }
}
