//! The subset of JSON Schema that guides argument filling. Other keywords are ignored.
use std::collections::BTreeSet;

use serde_json::{Number, Value};

use super::super::entities::{Entity, EntityKind};
use super::super::words::{identifier_words, is_stop, terms};
use super::terms_of;

/// Most references and unions followed in a row.
const HOPS_MAX: usize = 8;
/// Bytes read of a property's name or description.
const DESCRIPTION_BYTES_MAX: usize = 500;
/// Most values of an `enum` that are searched for.
const CHOICES_MAX: usize = 256;
/// Digits from which a plain number may be a phone number.
const PHONE_DIGITS_MIN: usize = 7;

/// A property, or the items of an array.
#[derive(Debug)]
pub(super) struct Field<'a> {
    pub(super) name: &'a str,
    pub(super) required: bool,
    pub(super) shape: Shape<'a>,
    pub(super) default: Option<&'a Value>,
    /// Terms of the name.
    pub(super) name_terms: BTreeSet<String>,
    /// Terms of the name and the description.
    pub(super) terms: BTreeSet<String>,
    /// See [`Field::entity_kinds`].
    kinds: Option<&'static [EntityKind]>,
    schema: Option<&'a Value>,
    format: Option<&'a str>,
}

/// The type of the expected value.
#[derive(Debug)]
pub(super) enum Shape<'a> {
    Choice(Vec<&'a Value>),
    Integer,
    Number,
    Boolean,
    String,
    Array(Option<Box<Field<'a>>>),
    Object(&'a Value),
}

/// The properties of an object schema in order, then required names without a schema.
pub(super) fn fields<'a>(schema: &'a Value, root: &'a Value, max: usize) -> Vec<Field<'a>> {
    let schema = resolved(schema, root);
    let required: Vec<&str> = schema
        .get("required")
        .and_then(Value::as_array)
        .map(|names| names.iter().filter_map(Value::as_str).take(max).collect())
        .unwrap_or_default();
    let properties = schema.get("properties").and_then(Value::as_object);
    let described = properties.into_iter().flatten().take(max);
    let mut out: Vec<_> = described
        .map(|(name, schema)| Field::new(name, Some(schema), root, required.contains(&name.as_str()), 0))
        .collect();
    for name in &required {
        if out.len() < max && !out.iter().any(|field| field.name == *name) {
            out.push(Field::new(name, None, root, true, 0));
        }
    }
    out
}

impl<'a> Field<'a> {
    fn new(name: &'a str, schema: Option<&'a Value>, root: &'a Value, required: bool, depth: usize) -> Self {
        let stated = schema;
        let schema = schema.map(|schema| resolved(schema, root));
        let of = |key| stated.and_then(|s| s.get(key)).or_else(|| schema.and_then(|s| s.get(key)));
        let words = identifier_words(shortened(name));
        let telling = words.iter().map(String::as_str).filter(|word| !is_stop(word));
        let name_terms = terms_of(telling);
        let description = of("description").and_then(Value::as_str).unwrap_or_default();
        let mut all = name_terms.clone();
        all.extend(terms(shortened(description)));
        let format = of("format").and_then(Value::as_str);
        Self {
            name,
            required,
            shape: shape(schema, name, root, depth),
            default: of("default"),
            kinds: entity_kinds(format, &name_terms, &all),
            name_terms,
            terms: all,
            schema,
            format,
        }
    }

    /// Whether this is a string without a specific format.
    pub(super) fn takes_any_text(&self) -> bool {
        const FORMS: [&str; 12] = [
            "date",
            "date-time",
            "duration",
            "email",
            "hostname",
            "idn-email",
            "ipv4",
            "ipv6",
            "time",
            "uri",
            "url",
            "uuid",
        ];
        matches!(self.shape, Shape::String) && self.format.is_none_or(|format| !FORMS.contains(&format))
    }

    /// The kinds of entities for this string by its format, name or description, best first; `None` when no specific kind is
    /// expected.
    pub(super) const fn entity_kinds(&self) -> Option<&'static [EntityKind]> {
        self.kinds
    }

    pub(super) fn accepts(&self, entity: &Entity) -> bool {
        let wants_phone = self.entity_kinds().is_some_and(|kinds| kinds.contains(&EntityKind::Phone));
        !wants_phone || entity.kind != EntityKind::Number || entity.value.len() >= PHONE_DIGITS_MIN
    }

    /// Parses digits as a number of this field's type and within its bounds.
    pub(super) fn number(&self, digits: &str) -> Option<Value> {
        let value = match (digits.parse::<i64>(), &self.shape) {
            (Ok(whole), _) => Number::from(whole),
            (Err(_), Shape::Number) => Number::from_f64(digits.parse().ok()?)?,
            (Err(_), _) => return None,
        };
        let bound = |key| self.schema.and_then(|schema| schema.get(key)).and_then(Value::as_f64);
        let size = value.as_f64()?;
        let fits = bound("minimum").is_none_or(|min| size >= min)
            && bound("maximum").is_none_or(|max| size <= max)
            && bound("exclusiveMinimum").is_none_or(|min| size > min)
            && bound("exclusiveMaximum").is_none_or(|max| size < max);
        fits.then_some(Value::Number(value))
    }

    /// Truncates the text to `maxLength`.
    pub(super) fn shortened(&self, text: String) -> String {
        let max = self.schema.and_then(|schema| schema.get("maxLength")).and_then(Value::as_u64);
        match max.and_then(|max| usize::try_from(max).ok()) {
            Some(max) if text.chars().count() > max => text.chars().take(max).collect(),
            _ => text,
        }
    }
}

fn entity_kinds(
    format: Option<&str>,
    name_terms: &BTreeSet<String>,
    terms: &BTreeSet<String>,
) -> Option<&'static [EntityKind]> {
    use EntityKind::{Code, Date, Email, Number, Phone, Time, Url};
    match format {
        Some("email" | "idn-email") => return Some(&[Email]),
        Some("date" | "date-time") => return Some(&[Date]),
        Some("time") => return Some(&[Time]),
        Some("uri" | "url") => return Some(&[Url]),
        Some("phone") => return Some(&[Phone, Number]),
        _ => {}
    }
    let named = |words: &[&str]| terms_of(words.iter().copied()).intersection(name_terms).next().is_some();
    let described = |words: &[&str]| terms_of(words.iter().copied()).intersection(terms).next().is_some();
    if named(&["email", "mail"]) {
        Some(&[Email])
    } else if named(&["phone", "telephone", "mobile", "fax"]) {
        Some(&[Phone, Number])
    } else if named(&["date", "day"]) {
        Some(&[Date])
    } else if named(&["time", "hour"]) {
        Some(&[Time])
    } else if named(&["url", "link", "website"]) {
        Some(&[Url])
    } else if described(&["id", "number", "code", "reference", "zip", "postcode", "sku", "serial", "pin"]) {
        Some(&[Code, Number])
    } else {
        None
    }
}

fn shortened(text: &str) -> &str {
    text.get(..text.floor_char_boundary(DESCRIPTION_BYTES_MAX)).unwrap_or(text)
}

fn shape<'a>(schema: Option<&'a Value>, name: &'a str, root: &'a Value, depth: usize) -> Shape<'a> {
    let Some(schema) = schema else {
        return Shape::String;
    };
    if let Some(values) = schema.get("enum").and_then(Value::as_array) {
        return Shape::Choice(values.iter().take(CHOICES_MAX).collect());
    }
    if let Some(value) = schema.get("const") {
        return Shape::Choice(vec![value]);
    }
    match type_of(schema) {
        Some("integer") => Shape::Integer,
        Some("number") => Shape::Number,
        Some("boolean") => Shape::Boolean,
        Some("object") => Shape::Object(schema),
        Some("array") => {
            let items = schema.get("items").filter(|items| items.is_object() && depth < HOPS_MAX);
            Shape::Array(items.map(|items| Box::new(Field::new(name, Some(items), root, false, depth + 1))))
        }
        _ => Shape::String,
    }
}

fn type_of(schema: &Value) -> Option<&str> {
    match schema.get("type") {
        Some(Value::String(name)) => Some(name),
        Some(Value::Array(names)) => names.iter().filter_map(Value::as_str).find(|name| *name != "null"),
        _ if schema.get("properties").is_some() => Some("object"),
        _ if schema.get("items").is_some() => Some("array"),
        _ => None,
    }
}

/// Follows local references and the first non-null branch of a union.
fn resolved<'a>(mut schema: &'a Value, root: &'a Value) -> &'a Value {
    for _ in 0..HOPS_MAX {
        let reference = schema.get("$ref").and_then(Value::as_str);
        let target = reference.and_then(|reference| root.pointer(reference.strip_prefix('#')?));
        let branches = ["anyOf", "oneOf", "allOf"].iter().find_map(|key| schema.get(key)?.as_array());
        let is_null = |branch: &&Value| branch.get("type").and_then(Value::as_str) == Some("null");
        let branch = branches.and_then(|branches| branches.iter().find(|branch| !is_null(branch)));
        match target.or(branch) {
            Some(next) => schema = next,
            None => break,
        }
    }
    schema
}
