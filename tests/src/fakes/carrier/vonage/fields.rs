//! Strict reading of JSON objects: every field by name, without unknown ones.
use serde_json::{Map, Value};

/// An object with no other fields than these.
pub fn object<'a>(value: &'a Value, what: &str, known: &[&str]) -> Result<&'a Map<String, Value>, String> {
    let object = value.as_object().ok_or_else(|| format!("{what}: must be an object"))?;
    match object.keys().find(|name| !known.contains(&name.as_str())) {
        Some(name) => Err(format!("{what}.{name}: is not a known field")),
        None => Ok(object),
    }
}

/// The only element of an array.
pub fn one<'a>(value: Option<&'a Value>, what: &str) -> Result<&'a Value, String> {
    match value.and_then(Value::as_array).map(Vec::as_slice) {
        Some([one]) => Ok(one),
        _ => Err(format!("{what}: must be an array of one")),
    }
}

/// A text field.
pub fn text<'a>(object: &'a Map<String, Value>, name: &str) -> Result<&'a str, String> {
    let found = object.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    found.ok_or_else(|| format!("{name}: must be a text"))
}

/// An optional integer within bounds.
pub fn within(
    object: &Map<String, Value>,
    name: &str,
    bounds: std::ops::RangeInclusive<u64>,
) -> Result<(), String> {
    match object.get(name).map(Value::as_u64) {
        None => Ok(()),
        Some(Some(number)) if bounds.contains(&number) => Ok(()),
        _ => Err(format!("{name}: must be {} to {}", bounds.start(), bounds.end())),
    }
}

/// A telephone number; adds the `+` that Vonage omits.
pub fn number(value: Option<&Value>, what: &str) -> Result<String, String> {
    let digits = value.and_then(Value::as_str).unwrap_or_default();
    let fits = (7..=15).contains(&digits.len()) && digits.bytes().all(|byte| byte.is_ascii_digit());
    match fits && !digits.starts_with('0') {
        true => Ok(format!("+{digits}")),
        false => Err(format!("{what}: must be a number in E.164 without +")),
    }
}

/// The URL in an array of one, with this scheme or its secure form.
pub fn url(value: Option<&Value>, what: &str, scheme: &str) -> Result<String, String> {
    let text = one(value, what)?.as_str().unwrap_or_default();
    address(text, what, scheme)
}

/// A URL with this scheme or its secure form.
pub fn address(text: &str, what: &str, scheme: &str) -> Result<String, String> {
    let (found, rest) = text.split_once("://").unwrap_or_default();
    let fits = (found == scheme || found == format!("{scheme}s")) && !rest.is_empty() && !text.contains(' ');
    fits.then(|| text.to_owned()).ok_or_else(|| format!("{what}: must be a URL ({scheme} or {scheme}s)"))
}

/// An optional `GET` or `POST`.
pub fn method(object: &Map<String, Value>, name: &str) -> Result<(), String> {
    match object.get(name).map(Value::as_str) {
        None | Some(Some("GET" | "POST")) => Ok(()),
        _ => Err(format!("{name}: must be GET or POST")),
    }
}
