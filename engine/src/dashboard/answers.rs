//! Answers of operations as values. Of a list of calls only what a page shows of their transcripts is built: of each call, who
//! spoke the first lines, and what. Building and dropping all of them took half of the time of a page with 200 calls.
use std::fmt;

use serde::de::{DeserializeSeed, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::{Map, Value};

use crate::storage::fault::Fault;

/// The lines of a transcript that a list shows something of.
const LINES: usize = 3;
/// What it shows of them.
const OF_LINE: &[&str] = &["role", "text"];

/// The whole body of an answer.
pub(super) fn whole(body: Option<&str>) -> Result<Value, Fault> {
    body.map_or(Ok(Value::Null), |text| serde_json::from_str(text).map_err(broken))
}

/// The body of a list of calls, with the beginning of their transcripts.
pub(super) fn calls(body: Option<&str>) -> Result<Value, Fault> {
    let Some(text) = body else { return Ok(Value::Null) };
    Part::Other.deserialize(&mut serde_json::Deserializer::from_str(text)).map_err(broken)
}

fn broken(error: serde_json::Error) -> Fault {
    Fault::Bug(format!("an answer is no JSON: {error}"))
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Other,
    Transcript,
    Line,
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
            Self::Transcript => (Self::Line, LINES),
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
        while let Some(name) = all.next_key::<String>()? {
            if self == Self::Line && !OF_LINE.contains(&name.as_str()) {
                all.next_value::<IgnoredAny>()?;
                continue;
            }
            let part = if name == "transcript" { Self::Transcript } else { Self::Other };
            let value = all.next_value_seed(part)?;
            map.insert(name, value);
        }
        Ok(Value::Object(map))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    #[test]
    fn of_transcripts_the_beginning_is_kept_and_everything_else_whole() {
        let line = |text: &str| json!({"index": 0, "role": "user", "text": text, "arguments": {"a": [1]}});
        let mut list = json!({"calls": [{"id": "call_1", "cost": 1.5, "n": -2, "big": u64::MAX, "none": null, "live": true,
            "analysis": {"summary": "ü \" \n"}, "transcript": [line("1"), line("2"), line("3"), line("4")]}, {"transcript": []}],
            "stats": [[], {}]});
        let read = calls(Some(&list.to_string())).unwrap();
        let kept: Value = ["1", "2", "3"].iter().map(|text| json!({"role": "user", "text": text})).collect();
        list["calls"][0]["transcript"] = kept;
        assert_eq!(read, list);
        assert_eq!(calls(None).unwrap(), Value::Null);
        assert!(calls(Some("{")).is_err());
    }
}
