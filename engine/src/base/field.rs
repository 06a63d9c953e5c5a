//! Paths to the field of a JSON document that an error is about: `evaluations[0].kind`.

use std::borrow::Cow;
use std::fmt;

/// Longest field path in a message; a longer one is truncated, so that an error never repeats a huge body.
pub const FIELD_PATH_BYTES_MAX: usize = 256;

/// Longest object key inside a path; a longer one is truncated.
pub const FIELD_KEY_BYTES_MAX: usize = 64;

/// A problem with one field.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FieldProblem {
    /// The path, such as `evaluations[0].kind`; empty for the whole document.
    pub field: String,
    /// What is wrong and how to correct it, without the path.
    pub message: String,
}

impl FieldProblem {
    /// A problem at the path `field`.
    pub fn new(field: impl Into<String>, message: impl Into<String>) -> Self {
        Self { field: field.into(), message: message.into() }
    }
}

/// One step of a path.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Step {
    /// A member of an object.
    Key(String),
    /// An element of an array, counted from 0.
    Index(usize),
}

/// Formats steps, outermost first, as a path. Keys that are not plain names are quoted: `headers["a b"]`.
pub fn path<'a>(steps: impl IntoIterator<Item = &'a Step>) -> String {
    let mut text = String::new();
    for step in steps {
        let before = text.len();
        push(&mut text, step);
        if text.len() > FIELD_PATH_BYTES_MAX {
            text.truncate(before);
            text.push('…');
            break;
        }
    }
    text
}

/// The text, truncated at [`FIELD_KEY_BYTES_MAX`] for a message.
pub fn shortened(text: &str) -> Cow<'_, str> {
    if text.len() <= FIELD_KEY_BYTES_MAX {
        return Cow::Borrowed(text);
    }
    Cow::Owned(format!("{}…", &text[..text.floor_char_boundary(FIELD_KEY_BYTES_MAX)]))
}

impl fmt::Display for FieldProblem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.field.is_empty() {
            return f.write_str(&self.message);
        }
        write!(f, "{}: {}", self.field, self.message)
    }
}

fn push(text: &mut String, step: &Step) {
    match step {
        Step::Index(index) => {
            text.push('[');
            text.push_str(&index.to_string());
            text.push(']');
        }
        Step::Key(key) if is_plain(key) => {
            if !text.is_empty() {
                text.push('.');
            }
            text.push_str(key);
        }
        Step::Key(key) => {
            text.push('[');
            text.push_str(&quoted(key));
            text.push(']');
        }
    }
}

fn is_plain(key: &str) -> bool {
    let name = |b: u8| b.is_ascii_alphanumeric() || matches!(b, b'_' | b'-' | b'$');
    !key.is_empty() && key.len() <= FIELD_KEY_BYTES_MAX && key.bytes().all(name)
}

fn quoted(key: &str) -> String {
    serde_json::Value::from(shortened(key)).to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key(text: &str) -> Step {
        Step::Key(text.to_owned())
    }

    #[test]
    fn formats_paths() {
        assert_eq!(path(&[key("evaluations"), Step::Index(0), key("kind")]), "evaluations[0].kind");
        assert_eq!(path(&[Step::Index(3)]), "[3]");
        assert_eq!(path(&[key("a"), key("b c")]), "a[\"b c\"]");
        assert_eq!(path(&[key("")]), "[\"\"]");
        assert_eq!(path(&[key("a\0\n")]), "[\"a\\u0000\\n\"]");
        assert_eq!(path(&[]), "");
    }

    #[test]
    fn never_repeats_a_huge_key_or_path() {
        assert!(path(&[key(&"é".repeat(100_000))]).len() < FIELD_PATH_BYTES_MAX);
        let deep: Vec<Step> = (0..10_000).map(Step::Index).collect();
        assert!(path(&deep).len() <= FIELD_PATH_BYTES_MAX + '…'.len_utf8());
    }
}
