//! Values as texts, as the fields of a form hold them.
use serde_json::Value;

/// A value as it stands in its control: one text, or a list's.
pub struct Shown(pub Vec<String>);

impl Shown {
    /// From JSON.
    pub fn of(value: &Value) -> Self {
        Self(match value {
            Value::Null => Vec::new(),
            Value::String(text) => vec![text.clone()],
            Value::Array(items) => items
                .iter()
                .map(|item| item.as_str().map_or_else(|| item.to_string(), str::to_owned))
                .collect(),
            Value::Object(_) => vec![serde_json::to_string_pretty(value).unwrap_or_default()],
            other => vec![other.to_string()],
        })
    }

    /// The one text, or the last: a box to tick stands after the field for its absence.
    pub fn first(&self) -> &str {
        self.0.last().map_or("", String::as_str)
    }

    /// Whether this text is among them.
    pub fn has(&self, one: &str) -> bool {
        self.0.iter().any(|value| value == one)
    }

    /// A list, a line each.
    pub fn lines(&self) -> String {
        self.0.join("\n")
    }

    /// A list of objects, as JSON: what was typed is that already.
    pub fn json(&self) -> String {
        match self.0.as_slice() {
            [typed] if typed.starts_with('[') => typed.clone(),
            items => format!("[{}]", items.join(",\n")),
        }
    }
}

/// What is between the first and the last line that differ.
pub fn differing<'a, T: PartialEq>(old: &'a [T], new: &'a [T]) -> (&'a [T], &'a [T]) {
    let same = old.iter().zip(new).take_while(|(old, new)| old == new).count();
    let (old, new) = (old.get(same..).unwrap_or_default(), new.get(same..).unwrap_or_default());
    let tail = old.iter().rev().zip(new.iter().rev()).take_while(|(old, new)| old == new).count();
    (&old[..old.len() - tail], &new[..new.len() - tail])
}
