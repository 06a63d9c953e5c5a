//! Where a part of an export ends, and the next one begins. The source keeps nothing of it: whoever reads the parts has it from
//! the last one. It is no secret, and says nothing that is not checked.
use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use serde::{Deserialize, Serialize};
use serde_json::Value as Json;

use crate::base::limits::INTEGER_MAX;
use crate::ports::statement::Value;

/// The longest text of a place: a key of a table has up to seven short texts.
const BYTES_MAX: usize = 8 * 1024;

/// A place in an export. Each kind follows the one before.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case", deny_unknown_fields)]
pub(super) enum Cursor {
    /// In the rows of a table, after this key; at its beginning without one.
    Rows {
        /// The table.
        table: String,
        /// The key.
        after: Vec<Json>,
    },
    /// In the secrets of tools and webhooks, after this id.
    Secrets {
        /// The id; empty at the beginning.
        after: String,
    },
    /// In the segments of recordings, after this recording, and in the one that follows after so many segments.
    Recordings {
        /// The key of the recording.
        after: Vec<Json>,
        /// How many segments of the next one have been read.
        segments: u64,
    },
    /// In the archived transcripts, after this key.
    Transcripts {
        /// The key.
        after: Vec<Json>,
    },
}

impl Cursor {
    /// As text, for a query.
    pub(super) fn to_text(&self) -> String {
        // Texts and whole numbers can always be written.
        URL_SAFE_NO_PAD.encode(serde_json::to_vec(self).unwrap_or_default())
    }

    /// Reads the text.
    pub(super) fn parse(text: &str) -> Option<Self> {
        let bytes = (text.len() <= BYTES_MAX).then(|| URL_SAFE_NO_PAD.decode(text).ok())??;
        serde_json::from_slice(&bytes).ok()
    }
}

/// The values of a key, to be put aside.
pub(super) fn to_json(key: &[Value]) -> Vec<Json> {
    let one = |value: &Value| match value {
        Value::Null => Json::Null,
        Value::Number(number) => Json::from(*number as i64),
        Value::Text(text) | Value::Asker(text) => Json::from(text.clone()),
    };
    key.iter().map(one).collect()
}

/// A key with so many values that was put aside, or an empty one.
pub(super) fn from_json(key: &[Json], columns: usize) -> Option<Vec<Value>> {
    let one = |value: &Json| match value {
        Json::String(text) => Some(Value::Text(text.clone())),
        Json::Number(number) => {
            let number = number.as_i64().filter(|number| number.unsigned_abs() <= INTEGER_MAX.unsigned_abs());
            number.map(Value::from)
        }
        _ => None,
    };
    let fits = key.is_empty() || key.len() == columns;
    fits.then(|| key.iter().map(one).collect())?
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_place_is_read_as_it_was_written() {
        let key = vec![Value::Text("ws_1".to_owned()), Value::Number(7.0)];
        for cursor in [
            Cursor::Rows { table: "calls".to_owned(), after: to_json(&key) },
            Cursor::Secrets { after: String::new() },
            Cursor::Recordings { after: Vec::new(), segments: 3 },
            Cursor::Transcripts { after: to_json(&key) },
        ] {
            let text = cursor.to_text();
            assert!(text.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-_".contains(&byte)), "{text}");
            assert_eq!(Cursor::parse(&text), Some(cursor));
        }
        assert_eq!(from_json(&to_json(&key), 2), Some(key.clone()));
        assert_eq!(from_json(&to_json(&key), 1), None);
        assert_eq!(from_json(&[], 2), Some(Vec::new()));
        for bad in [Json::Null, Json::from(1.5), Json::from(u64::MAX), Json::Array(Vec::new())] {
            assert_eq!(from_json(std::slice::from_ref(&bad), 1), None, "{bad}");
        }
        for bad in ["", "e30", "x", "ä", &"A".repeat(BYTES_MAX + 1)] {
            assert_eq!(Cursor::parse(bad), None, "{bad}");
        }
    }
}
