//! Answers of operations as values. Of a list of calls only what pages show is built: building and dropping the rest, mostly
//! transcripts, took half of the time of a page with 200 calls.
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use super::pages::OF_CALL;
use crate::storage::fault::Fault;

/// The lines of a transcript that a list shows something of: a greeting, and what the caller wants.
const LINES: usize = 2;

/// The whole body of an answer.
pub(super) fn whole(body: Option<&str>) -> Result<Value, Fault> {
    body.map_or(Ok(Value::Null), |text| serde_json::from_str(text).map_err(broken))
}

/// The body of a list of calls, with what pages show of them.
pub(super) fn calls(body: Option<&str>) -> Result<Value, Fault> {
    let Some(text) = body else { return Ok(Value::Null) };
    Part::Answer.deserialize(&mut serde_json::Deserializer::from_str(text)).map_err(broken)
}

fn broken(error: serde_json::Error) -> Fault {
    Fault::Bug(format!("an answer is no JSON: {error}"))
}

#[derive(Clone, Copy)]
enum Part {
    Answer,
    Calls,
    Call,
    /// What has these fields, or the beginning of a list of such.
    With(&'static [&'static str]),
    Other,
}

impl Part {
    /// What a field is; `None` for one that is not shown.
    fn field(self, name: &str) -> Option<Self> {
        match self {
            Self::Answer if name == "calls" => Some(Self::Calls),
            Self::Call => OF_CALL.iter().find(|(known, _)| *known == name).map(|(_, inner)| match inner {
                [] => Self::Other,
                inner => Self::With(inner),
            }),
            Self::With(fields) => fields.contains(&name).then_some(Self::Other),
            _ => Some(Self::Other),
        }
    }
}

impl<'de> DeserializeSeed<'de> for Part {
    type Value = Value;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Value, D::Error> {
        deserializer.deserialize_any(self)
    }
}

impl<'de> Visitor<'de> for Part {
    type Value = Value;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("JSON")
    }

    fn visit_bool<E>(self, value: bool) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_i64<E>(self, value: i64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_u64<E>(self, value: u64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_f64<E>(self, value: f64) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_str<E>(self, value: &str) -> Result<Value, E> {
        Ok(value.into())
    }

    fn visit_unit<E>(self) -> Result<Value, E> {
        Ok(Value::Null)
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
        let (part, most) = match self {
            Self::Calls => (Self::Call, usize::MAX),
            Self::With(_) => (self, LINES),
            _ => (Self::Other, usize::MAX),
        };
        let mut items = Vec::new();
        while items.len() < most
            && let Some(item) = all.next_element_seed(part)?
        {
            items.push(item);
        }
        while all.next_element::<IgnoredAny>()?.is_some() {}
        Ok(Value::Array(items))
    }

    fn visit_map<A: MapAccess<'de>>(self, mut all: A) -> Result<Value, A::Error> {
        let mut map = Map::new();
        while let Some(named) = all.next_key_seed(Name { of: self })? {
            match named {
                Some((name, part)) => {
                    let value = all.next_value_seed(part)?;
                    map.insert(name, value);
                }
                None => drop(all.next_value::<IgnoredAny>()?),
            }
        }
        Ok(Value::Object(map))
    }
}

/// The name of a field that is shown, and what it is. The names of the others are most of all names: they take no memory.
struct Name {
    of: Part,
}

impl<'de> DeserializeSeed<'de> for Name {
    type Value = Option<(String, Part)>;

    fn deserialize<D: Deserializer<'de>>(self, deserializer: D) -> Result<Self::Value, D::Error> {
        deserializer.deserialize_str(self)
    }
}

impl Visitor<'_> for Name {
    type Value = Option<(String, Part)>;

    fn expecting(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str("a name")
    }

    fn visit_str<E>(self, name: &str) -> Result<Self::Value, E> {
        Ok(self.of.field(name).map(|part| (name.to_owned(), part)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_calls_what_is_shown_is_kept_and_everything_else_whole() {
        let line = |text: &str| json!({"index": 0, "role": "user", "text": text, "arguments": {"a": [1]}});
        let mut list = json!({"calls": [{"id": "call_1", "costs": {"total_microusd": 1.5, "n": -2}, "fault": null, "from": -2,
            "to": u64::MAX, "usage": {"tokens": [1]}, "analysis": {"summary": "ü \" \n"},
            "transcript": [line("1"), line("2"), line("3"), line("4")]}, {"transcript": []}],
            "stats": [[], {"usage": 1}]});
        let read = calls(Some(&list.to_string())).unwrap();
        let call = list["calls"][0].as_object_mut().unwrap();
        call.remove("usage");
        call["costs"] = json!({"total_microusd": 1.5});
        call["transcript"] = ["1", "2"].iter().map(|text| json!({"role": "user", "text": text})).collect();
        assert_eq!(read, list);
        assert_eq!(calls(None).unwrap(), Value::Null);
        assert!(calls(Some("{")).is_err());
    }
}
