//! A JSON document that is kept as text: it takes the memory of its text, where a parsed one can take 70 times as much.
use std::fmt;
use std::sync::Arc;

use serde::{Deserialize, Deserializer, Serialize, Serializer};
use serde_json::Value;
use serde_json::value::{RawValue, to_raw_value};

/// A JSON document as text. Clones share it.
#[derive(Clone)]
pub struct JsonText(Arc<RawValue>);

impl JsonText {
    /// The text.
    #[must_use]
    pub fn as_str(&self) -> &str {
        self.0.get()
    }

    /// The parsed document. Drop it soon.
    #[must_use]
    pub fn parse(&self) -> Value {
        // The text is JSON.
        serde_json::from_str(self.as_str()).unwrap_or_default()
    }
}

impl From<Value> for JsonText {
    fn from(value: Value) -> Self {
        Self(to_raw_value(&value).unwrap_or_default().into())
    }
}

impl fmt::Debug for JsonText {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.as_str())
    }
}

impl PartialEq for JsonText {
    fn eq(&self, other: &Self) -> bool {
        self.as_str() == other.as_str()
    }
}

impl Serialize for JsonText {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        self.0.serialize(serializer)
    }
}

impl<'de> Deserialize<'de> for JsonText {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        <Box<RawValue>>::deserialize(deserializer).map(|text| Self(text.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn a_document_survives_as_text_and_as_a_value() {
        let value = json!({"b": [1, 2.5, null], "a": {"é": "\"\u{1}"}});
        let text = JsonText::from(value.clone());
        assert_eq!(text.as_str(), value.to_string());
        assert_eq!(text.parse(), value);
        assert_eq!(serde_json::to_value(&text).unwrap(), value);
        assert_eq!(serde_json::from_value::<JsonText>(value.clone()).unwrap(), text);
        assert_eq!(serde_json::from_str::<JsonText>(&serde_json::to_string(&text).unwrap()).unwrap(), text);
    }
}
