//! Phone numbers in E.164 form, with a leading `+`.

use std::borrow::Cow;
use std::fmt;
use std::str::FromStr;

use schemars::{JsonSchema, Schema, SchemaGenerator, json_schema};
use serde::{Deserialize, Deserializer, Serialize};

/// Fewest digits after the `+`: no number that can be called from abroad is shorter.
pub const E164_DIGITS_MIN: usize = 7;

/// Most digits after the `+` (ITU-T E.164, 6.2.1).
pub const E164_DIGITS_MAX: usize = 15;

/// The form as a regular expression, for the API's schemas.
pub const E164_PATTERN: &str = r"^\+[1-9][0-9]{6,14}$";

/// A phone number such as `+14155550123`.
#[derive(Debug, Clone, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize)]
#[serde(transparent)]
pub struct E164(String);

/// The text is not a phone number in E.164 form.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PhoneError;

impl E164 {
    /// Accepts exactly the E.164 form: no spaces, dashes or brackets, so that each number has one spelling.
    pub fn parse(text: &str) -> Result<Self, PhoneError> {
        let digits = text.strip_prefix('+').ok_or(PhoneError)?.as_bytes();
        let fits = (E164_DIGITS_MIN..=E164_DIGITS_MAX).contains(&digits.len());
        if !fits || digits.starts_with(b"0") || !digits.iter().all(u8::is_ascii_digit) {
            return Err(PhoneError);
        }
        Ok(Self(text.to_owned()))
    }

    /// A number as people write it, such as `+1 (415) 555-0123`, without what separates its digits.
    pub fn without_separators(text: &str) -> String {
        text.chars()
            .filter(|c| !c.is_whitespace() && !matches!(c, '-' | '–' | '.' | '/' | '(' | ')'))
            .collect()
    }

    /// The number with its `+`.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

impl fmt::Display for E164 {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl FromStr for E164 {
    type Err = PhoneError;

    fn from_str(text: &str) -> Result<Self, PhoneError> {
        Self::parse(text)
    }
}

impl<'de> Deserialize<'de> for E164 {
    fn deserialize<D: Deserializer<'de>>(source: D) -> Result<Self, D::Error> {
        let text = String::deserialize(source)?;
        Self::parse(&text).map_err(serde::de::Error::custom)
    }
}

impl JsonSchema for E164 {
    fn schema_name() -> Cow<'static, str> {
        "PhoneNumber".into()
    }

    fn inline_schema() -> bool {
        true
    }

    fn json_schema(_: &mut SchemaGenerator) -> Schema {
        json_schema!({
            "type": "string",
            "description": "A phone number in E.164 form: + and the country code, digits only.",
            "pattern": E164_PATTERN,
            "examples": ["+14155550123"],
        })
    }
}

impl fmt::Display for PhoneError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "must start with + and the country code, then digits only ({E164_DIGITS_MIN} to {E164_DIGITS_MAX} in all), e.g. +14155550123"
        )
    }
}

impl std::error::Error for PhoneError {}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn accepts_e164() {
        for text in ["+14155550123", "+442071838750", "+6421234", "+123456789012345", "+1234567"] {
            assert_eq!(E164::parse(text).unwrap().as_str(), text);
        }
    }

    #[test]
    fn rejects_every_other_spelling() {
        let texts = [
            "",
            "+",
            "+1",
            "+123456",
            "+1234567890123456",
            "14155550123",
            "0014155550123",
            "+04155550123",
            "+1 415 555 0123",
            "+1-415-555-0123",
            "+1(415)5550123",
            " +14155550123",
            "+14155550123 ",
            "+14155550123\n",
            "++14155550123",
            "+1415555O123",
            "+1415555012x3",
            "tel:+14155550123",
            "%2B14155550123",
            "＋14155550123",
            "+１４１５５５５０１２３",
            "+١٤١٥٥٥٥٠١٢٣",
            "+14155550123\0",
            "+-14155550123",
            "-14155550123",
            "+1415555.0123",
            "sip:a@b",
        ];
        for text in texts {
            assert_eq!(E164::parse(text), Err(PhoneError), "{text:?}");
        }
    }

    #[test]
    fn the_message_shows_the_format() {
        let message =
            "must start with + and the country code, then digits only (7 to 15 in all), e.g. +14155550123";
        assert_eq!(PhoneError.to_string(), message);
        let error = serde_json::from_str::<E164>("\"0123\"").unwrap_err();
        assert!(error.to_string().starts_with(message));
        assert!(serde_json::from_str::<E164>("14155550123").is_err(), "a number is not a text");
    }

    #[test]
    fn serialises_as_its_text() {
        let number: E164 = serde_json::from_str("\"+14155550123\"").unwrap();
        assert_eq!(serde_json::to_string(&number).unwrap(), "\"+14155550123\"");
        let schema = schemars::schema_for!(E164).to_value();
        assert_eq!((&schema["type"], &schema["pattern"]), (&"string".into(), &E164_PATTERN.into()));
    }

    proptest! {
        #[test]
        fn agrees_with_its_pattern(text in r"\+?[0-9]{0,17}|\PC*") {
            let pattern = regex::Regex::new(E164_PATTERN).unwrap();
            prop_assert_eq!(E164::parse(&text).is_ok(), pattern.is_match(&text));
        }
    }
}
