//! Maps of texts that clients send: the variables of a conversation, and metadata.
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::ops::Deref;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Serialize};

use crate::base::limits::{
    METADATA_BYTES_MAX, METADATA_FILTERS_MAX, METADATA_MAX, METADATA_NAME_CHARS_MAX,
    METADATA_VALUE_BYTES_MAX, VARIABLE_NAME_CHARS_MAX, VARIABLE_VALUE_BYTES_MAX, VARIABLES_BYTES_MAX,
    VARIABLES_MAX,
};

/// What the names in a map look like. A schema has the pattern, and the check of requests does what it says.
pub(crate) struct NameRule {
    /// As `propertyNames.pattern` of a schema.
    pub pattern: &'static str,
    /// Whether a name fits it.
    pub fits: fn(&str) -> bool,
    /// What to say of one that does not.
    pub message: &'static str,
}

/// Names of variables.
const VARIABLE: NameRule = NameRule {
    pattern: "^[a-z][a-z0-9_]{0,63}$",
    fits: is_variable_name,
    message: "is no name of a variable: it has small letters, digits and underscores, begins with a letter, and has at most 64 characters",
};

/// Names of metadata. Brackets belong to queries (`metadata[name]`).
const METADATA: NameRule = NameRule {
    pattern: r#"^[^\u0000-\u001F\u007F"\\\[\]]{1,64}$"#,
    fits: is_metadata_name,
    message: "is no name for metadata: it has 1 to 64 characters, without square brackets, quotation marks, backslashes and control characters",
};

pub(crate) const NAME_RULES: [NameRule; 2] = [VARIABLE, METADATA];

/// Whether a variable can have this name.
pub(crate) fn is_variable_name(name: &str) -> bool {
    name.starts_with(|first: char| first.is_ascii_lowercase())
        && name.len() <= VARIABLE_NAME_CHARS_MAX
        && name.bytes().all(is_in_variable_name)
}

/// Whether the name of a variable can have this character.
pub(crate) const fn is_in_variable_name(byte: u8) -> bool {
    matches!(byte, b'a'..=b'z' | b'0'..=b'9' | b'_')
}

fn is_metadata_name(name: &str) -> bool {
    let is_odd = |c: char| c.is_ascii_control() || matches!(c, '"' | '\\' | '[' | ']');
    (1..=METADATA_NAME_CHARS_MAX).contains(&name.chars().count()) && !name.contains(is_odd)
}

macro_rules! maps {
    ($($(#[$about:meta])* $name:ident($title:literal, $rule:expr, $most:expr, $value_bytes:expr, $bytes:expr);)*) => {$(
        $(#[$about])*
        #[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
        #[serde(transparent)]
        pub struct $name(BTreeMap<String, String>);

        impl Deref for $name {
            type Target = BTreeMap<String, String>;

            fn deref(&self) -> &Self::Target {
                &self.0
            }
        }

        impl JsonSchema for $name {
            fn schema_name() -> Cow<'static, str> {
                $title.into()
            }

            fn inline_schema() -> bool {
                true
            }

            fn json_schema(_: &mut SchemaGenerator) -> Schema {
                json_schema!({
                    "type": "object",
                    "propertyNames": {"pattern": $rule.pattern},
                    "additionalProperties": {
                        "type": "string", "maxLength": $value_bytes, "x-max-bytes": $value_bytes,
                    },
                    "maxProperties": $most,
                    "x-max-bytes": $bytes,
                })
            }
        }
    )*};
}

maps! {
    /// What fills in the names in an assistant's texts.
    Variables("Variables", VARIABLE, VARIABLES_MAX, VARIABLE_VALUE_BYTES_MAX, VARIABLES_BYTES_MAX);
    /// What a client wants to know of something again.
    Metadata("Metadata", METADATA, METADATA_MAX, METADATA_VALUE_BYTES_MAX, METADATA_BYTES_MAX);
    /// The metadata of what is looked for.
    MetadataFilter("MetadataFilter", METADATA, METADATA_FILTERS_MAX, METADATA_VALUE_BYTES_MAX, METADATA_BYTES_MAX);
}

impl NameRule {
    /// Whether a value has what only makes it longer: JSON has six bytes for a control character.
    pub(crate) fn is_odd_value(&self, text: &str) -> bool {
        self.pattern == METADATA.pattern
            && text.contains(|c: char| c.is_ascii_control() && !matches!(c, '\n' | '\t'))
    }
}

impl Variables {
    /// These, laid over `defaults`.
    #[must_use]
    pub fn over(&self, defaults: &Self) -> Self {
        let mut all = defaults.0.clone();
        all.extend(self.0.iter().map(|(name, value)| (name.clone(), value.clone())));
        Self(all)
    }

    /// Those whose names `others` have, too.
    #[must_use]
    pub fn common(mut self, others: &Self) -> Self {
        self.0.retain(|name, _| others.0.contains_key(name));
        self
    }

    /// The size of names and values.
    pub fn bytes(&self) -> usize {
        bytes(&self.0)
    }
}

impl Metadata {
    /// The size of names and values.
    pub fn bytes(&self) -> usize {
        bytes(&self.0)
    }
}

fn bytes(map: &BTreeMap<String, String>) -> usize {
    map.iter().map(|(name, value)| name.len() + value.len()).sum()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::tool_parameters::ToolParameters;

    /// The rules are written twice: as patterns for clients, and in Rust, which is small enough for the Worker.
    #[test]
    fn the_patterns_say_what_is_checked() {
        let names = [
            "a", "name", "a_1", "", "_a", "1a", "A", "ä", "a-b", "a b", "a.b", "a[b]", "a\"b", "a\\b",
            "a\nb", "a\u{7f}", "\u{1f}", "€",
        ];
        let long = ["a".repeat(64), "a".repeat(65), "€".repeat(64), "€".repeat(65)];
        let names: Vec<&str> = names.into_iter().chain(long.iter().map(String::as_str)).collect();
        for rule in NAME_RULES {
            let schema = serde_json::json!({
                "type": "object", "properties": {"name": {"type": "string", "pattern": rule.pattern}},
            });
            let schema = ToolParameters::parse(&schema).unwrap();
            for name in &names {
                let fits = schema.check_arguments(&serde_json::json!({"name": name})).is_ok();
                assert_eq!((rule.fits)(name), fits, "{name:?} and {}", rule.pattern);
            }
        }
    }

    #[test]
    fn what_is_laid_over_wins() {
        let read = |value| serde_json::from_value::<Variables>(value).unwrap();
        let defaults = read(serde_json::json!({"a": "1", "b": "2"}));
        let all = read(serde_json::json!({"b": "3", "c": "4"})).over(&defaults);
        assert_eq!(serde_json::json!(all), serde_json::json!({"a": "1", "b": "3", "c": "4"}));
        assert_eq!(all.bytes(), 6);
    }
}
