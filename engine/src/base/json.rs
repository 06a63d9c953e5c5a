//! Reads a request body as JSON, strictly: input that two parsers could interpret differently is rejected.

use std::fmt;

use serde::de::{DeserializeSeed, MapAccess, SeqAccess, Visitor};
use serde_json::map::Entry;
use serde_json::{Map, Number, Value};

use crate::base::field::{self, Step};

/// Deepest nesting of arrays and objects in a body.
pub const JSON_DEPTH_MAX: usize = 64;

/// Keys that serde_json interprets itself: it would parse their string value as JSON a second time, without the checks of
/// this module.
const RESERVED_KEY_PREFIX: &str = "$serde_json::private::";

/// Why a body was rejected.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum JsonError {
    /// Not valid JSON (400 `invalid_json`).
    Unreadable {
        /// Why, without a subject: the caller says what was read. Ends with a full stop.
        message: String,
    },
    /// Valid JSON with a field that is not allowed (422 `validation_failed`).
    Refused {
        /// The path of the field, such as `evaluations[0].kind`.
        field: String,
        /// What is wrong and how to correct it.
        message: String,
    },
}

/// Parses exactly one JSON document.
///
/// Accepts the same documents as `serde_json`, except those that are nested deeper than [`JSON_DEPTH_MAX`], repeat a key in
/// one object, or contain U+0000. Time is linear in the length; the depth limit bounds the stack.
pub fn read(bytes: &[u8]) -> Result<Value, JsonError> {
    let text = text_of(bytes)?;
    let mut reader = Reader { depth: 0, rejection: None };
    let mut source = serde_json::Deserializer::from_str(text);
    let value = match reader.deserialize(&mut source) {
        Ok(value) => value,
        Err(error) => return Err(reader.explain(&error)),
    };
    source.end().map_err(|error| not_json(&error))?;
    Ok(value)
}

impl fmt::Display for JsonError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Unreadable { message } => f.write_str(message),
            Self::Refused { field, message } if field.is_empty() => f.write_str(message),
            Self::Refused { field, message } => write!(f, "{field}: {message}"),
        }
    }
}

impl std::error::Error for JsonError {}

fn text_of(bytes: &[u8]) -> Result<&str, JsonError> {
    if bytes.starts_with(b"\xEF\xBB\xBF") {
        return Err(unreadable("it starts with a byte order mark. Send UTF-8 without one."));
    }
    let text = std::str::from_utf8(bytes).map_err(|error| {
        let at = error.valid_up_to();
        unreadable(format!("byte {at} is not UTF-8. Send JSON encoded as UTF-8."))
    })?;
    if text.trim_ascii().is_empty() {
        return Err(unreadable("it is empty. Send a JSON document."));
    }
    Ok(text)
}

fn unreadable(message: impl Into<String>) -> JsonError {
    JsonError::Unreadable { message: message.into() }
}

fn not_json(error: &serde_json::Error) -> JsonError {
    if error.is_eof() {
        let (line, column) = (error.line(), error.column());
        return unreadable(format!(
            "it ends too early, at line {line} column {column}: a bracket or a quote is not closed. Send one JSON document."
        ));
    }
    unreadable(format!("{error}. Send one JSON document."))
}

/// Builds the value during parsing. The path costs nothing until an error occurs: each level then adds its own step while
/// the error propagates.
struct Reader {
    depth: usize,
    rejection: Option<Rejection>,
}

/// Why a document is rejected, with the path to the place, innermost step first.
struct Rejection {
    reason: Reason,
    steps: Vec<Step>,
}

#[derive(Clone, Copy)]
enum Reason {
    TooDeep,
    DuplicateKey,
    NulCharacter,
    ReservedKey,
}

impl Reader {
    fn explain(self, error: &serde_json::Error) -> JsonError {
        let Some(rejection) = self.rejection else {
            return not_json(error);
        };
        let message = match rejection.reason {
            Reason::TooDeep => {
                return unreadable(format!(
                    "it is nested deeper than {JSON_DEPTH_MAX} levels. Send a flatter document."
                ));
            }
            Reason::DuplicateKey => "occurs twice in one object; keep one",
            Reason::NulCharacter => "contains the character U+0000, which is not allowed; remove it",
            Reason::ReservedKey => "is a reserved name; choose another one",
        };
        JsonError::Refused { field: field::path(rejection.steps.iter().rev()), message: message.to_owned() }
    }

    fn reject<E: serde::de::Error>(&mut self, reason: Reason, steps: Vec<Step>) -> E {
        self.rejection = Some(Rejection { reason, steps });
        E::custom("refused")
    }

    fn enter<E: serde::de::Error>(&mut self) -> Result<(), E> {
        if self.depth == JSON_DEPTH_MAX {
            return Err(self.reject(Reason::TooDeep, Vec::new()));
        }
        self.depth += 1;
        Ok(())
    }

    fn leave(&mut self) {
        self.depth -= 1;
    }

    /// Adds a step to the path of a rejection. A plain syntax error has no path (serde_json gives its line and column).
    fn step_out(&mut self, step: impl FnOnce() -> Step) {
        if let Some(rejection) = &mut self.rejection {
            rejection.steps.push(step());
        }
    }

    fn check_text<E: serde::de::Error>(&mut self, text: &str) -> Result<(), E> {
        if text.as_bytes().contains(&0) {
            return Err(self.reject(Reason::NulCharacter, Vec::new()));
        }
        Ok(())
    }

    fn check_key<E: serde::de::Error>(&mut self, key: &str) -> Result<(), E> {
        let reason = if key.as_bytes().contains(&0) {
            Reason::NulCharacter
        } else if key.starts_with(RESERVED_KEY_PREFIX) {
            Reason::ReservedKey
        } else {
            return Ok(());
        };
        Err(self.reject(reason, vec![Step::Key(key.to_owned())]))
    }
}

impl<'de> DeserializeSeed<'de> for &mut Reader {
    type Value = Value;

    fn deserialize<D: serde::Deserializer<'de>>(self, source: D) -> Result<Value, D::Error> {
        source.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for &mut Reader {
    type Value = Value;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a JSON value")
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(Value::Bool(value))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(Value::Number(value.into()))
    }

    fn visit_f64<E: serde::de::Error>(self, value: f64) -> Result<Value, E> {
        Number::from_f64(value).map(Value::Number).ok_or_else(|| E::custom("number out of range"))
    }

    fn visit_str<E: serde::de::Error>(self, value: &str) -> Result<Value, E> {
        self.check_text(value)?;
        Ok(Value::String(value.to_owned()))
    }

    fn visit_string<E: serde::de::Error>(self, value: String) -> Result<Value, E> {
        self.check_text(&value)?;
        Ok(Value::String(value))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut array = Vec::new();
        loop {
            match source.next_element_seed(&mut *self) {
                Ok(Some(value)) => array.push(value),
                Ok(None) => break,
                Err(error) => {
                    self.step_out(|| Step::Index(array.len()));
                    return Err(error);
                }
            }
        }
        self.leave();
        Ok(Value::Array(array))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut source: A) -> Result<Value, A::Error> {
        self.enter()?;
        let mut object = Map::new();
        while let Some(key) = source.next_key::<String>()? {
            self.check_key(&key)?;
            match object.entry(key) {
                Entry::Occupied(entry) => {
                    let steps = vec![Step::Key(entry.key().clone())];
                    return Err(self.reject(Reason::DuplicateKey, steps));
                }
                Entry::Vacant(entry) => match source.next_value_seed(&mut *self) {
                    Ok(value) => {
                        entry.insert(value);
                    }
                    Err(error) => {
                        self.step_out(|| Step::Key(entry.key().clone()));
                        return Err(error);
                    }
                },
            }
        }
        self.leave();
        Ok(Value::Object(object))
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use serde_json::json;

    use super::*;

    fn refused(text: &str) -> (String, String) {
        match read(text.as_bytes()) {
            Err(JsonError::Refused { field, message }) => (field, message),
            other => panic!("{text:?} gave {other:?}"),
        }
    }

    fn unreadable_message(bytes: &[u8]) -> String {
        match read(bytes) {
            Err(JsonError::Unreadable { message }) => message,
            other => panic!("{:?} gave {other:?}", String::from_utf8_lossy(bytes)),
        }
    }

    #[test]
    fn reads_valid_json() {
        let text =
            r#" {"b":[1,-2,3.5,1e3,18446744073709551615,true,null],"a":{"é":"\ud83d\ude00\n"},"":""} "#;
        assert_eq!(
            read(text.as_bytes()).unwrap(),
            json!({"b":[1,-2,3.5,1e3,u64::MAX,true,null],"a":{"é":"😀\n"},"":""})
        );
        let keys: Vec<String> =
            read(br#"{"z":1,"a":2}"#).unwrap().as_object().unwrap().keys().cloned().collect();
        assert_eq!(keys, ["z", "a"], "the order of the document is kept");
    }

    #[test]
    fn rejects_invalid_json() {
        let bodies: &[&[u8]] = &[
            b"",
            b" \n",
            b"{",
            b"[1,]",
            b"{\"a\":1,}",
            b"{a:1}",
            b"'a'",
            b"NaN",
            b"-Infinity",
            b"+1",
            b"01",
            b"1.",
            b".5",
            b"0x10",
            b"1e400",
            b"-1e400",
            b"[1e99999999999999999999]",
            b"tru",
            b"nul",
            b"\"a",
            b"\"\\x41\"",
            b"\"\\u12\"",
            b"\"a\nb\"",
            b"\"a\tb\"",
            b"\"\\ud800\"",
            b"\"\\udc00\"",
            b"\"\\ud800\\u0041\"",
            b"\"\\udc00\\ud800\"",
            b"{\"\\ud800\":1}",
            b"{} {}",
            b"{}x",
            b"1 2",
            b"/* a */ 1",
            b"{} // a",
            b"\0",
            b"{}\0",
            b"\"a\0b\"",
            b"\xFF\xFE{\0}\0",
            b"\xEF\xBB\xBF{}",
            b"\"\xC3\"",
            b"\"\xC0\x80\"",
            b"\"\xED\xA0\x80\"",
            b"\"\xF5\x80\x80\x80\"",
            b"{\"a\":1]",
            b"\x0b1",
            b"\xC2\xA01",
        ];
        for body in bodies {
            unreadable_message(body);
        }
    }

    #[test]
    fn messages_name_the_problem() {
        assert_eq!(unreadable_message(b""), "it is empty. Send a JSON document.");
        assert_eq!(
            unreadable_message(b"\xEF\xBB\xBF{}"),
            "it starts with a byte order mark. Send UTF-8 without one."
        );
        assert_eq!(unreadable_message(b"\"a\xFF\""), "byte 2 is not UTF-8. Send JSON encoded as UTF-8.");
        assert_eq!(
            unreadable_message(b"{\"a\":1,}"),
            "trailing comma at line 1 column 8. Send one JSON document."
        );
    }

    #[test]
    fn names_the_duplicate_field() {
        assert_eq!(refused(r#"{"evaluations":[{"kind":"judge","kind":"judge"}]}"#).0, "evaluations[0].kind");
        assert_eq!(refused(r#"{"a":1,"\u0061":2}"#).0, "a", "however it is spelt");
        assert_eq!(refused(r#"{"a":{"b":[[],[{"c d":1,"c d":2}]]}}"#).0, "a.b[1][0][\"c d\"]");
        assert_eq!(refused(r#"{"":1,"":2}"#).0, "[\"\"]");
        assert!(read(r#"{"a":{"a":1},"b":{"a":1}}"#.as_bytes()).is_ok());
    }

    #[test]
    fn names_the_field_with_nul() {
        assert_eq!(refused(r#"{"tools":[{"name":"a\u0000b"}]}"#).0, "tools[0].name");
        assert_eq!(refused(r#"{"a":{"x\u0000":1}}"#).0, "a[\"x\\u0000\"]");
        assert_eq!(refused(r#""\u0000""#).0, "");
    }

    #[test]
    fn rejects_keys_that_serde_json_parses_again() {
        assert_eq!(
            refused(r#"{"parameters":{"$serde_json::private::RawValue":"{\"a\":1,\"a\":2}"}}"#).0,
            "parameters[\"$serde_json::private::RawValue\"]"
        );
    }

    #[test]
    fn bounds_the_depth() {
        let nested =
            |open: &str, close: &str, depth: usize| format!("{}1{}", open.repeat(depth), close.repeat(depth));
        assert!(read(nested("[", "]", JSON_DEPTH_MAX).as_bytes()).is_ok());
        assert!(read(nested("{\"a\":", "}", JSON_DEPTH_MAX).as_bytes()).is_ok());
        for depth in [JSON_DEPTH_MAX + 1, 10_000, 1_000_000] {
            let message = "it is nested deeper than 64 levels. Send a flatter document.";
            assert_eq!(unreadable_message(nested("[", "]", depth).as_bytes()), message);
            assert_eq!(unreadable_message(nested("{\"a\":", "}", depth).as_bytes()), message);
            unreadable_message("[".repeat(depth).as_bytes());
        }
        let siblings = format!("[{}1]", "[[]],".repeat(1000));
        assert!(read(siblings.as_bytes()).is_ok(), "depth is not a count of brackets");
    }

    fn document() -> impl Strategy<Value = Value> {
        let leaf = prop_oneof![
            Just(Value::Null),
            any::<bool>().prop_map(Value::from),
            any::<i64>().prop_map(Value::from),
            any::<u64>().prop_map(Value::from),
            any::<f64>().prop_map(Value::from),
            "[^\\x00]*".prop_map(Value::from),
        ];
        leaf.prop_recursive(8, 64, 8, |inner| {
            prop_oneof![
                prop::collection::vec(inner.clone(), 0..8).prop_map(Value::from),
                prop::collection::btree_map("[^\\x00]{0,6}", inner, 0..8)
                    .prop_map(|map| Value::Object(map.into_iter().collect())),
            ]
        })
    }

    proptest! {
        #[test]
        fn agrees_with_serde_json(value in document(), pretty in any::<bool>()) {
            let bytes = if pretty { serde_json::to_vec_pretty(&value) } else { serde_json::to_vec(&value) }.unwrap();
            prop_assert_eq!(read(&bytes).unwrap(), serde_json::from_slice::<Value>(&bytes).unwrap());
        }

        #[test]
        fn accepts_only_what_serde_json_accepts(text in r#"[\[\]{}:,"a0\\u.e+\- ]{0,40}"#) {
            match read(text.as_bytes()) {
                Ok(value) => prop_assert_eq!(value, serde_json::from_str::<Value>(&text).unwrap()),
                Err(JsonError::Unreadable { .. }) => prop_assert!(serde_json::from_str::<Value>(&text).is_err()),
                Err(JsonError::Refused { .. }) => {}
            }
        }

        #[test]
        fn never_panics(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
            let _ = read(&bytes);
        }
    }
}
