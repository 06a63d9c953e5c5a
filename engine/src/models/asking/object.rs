//! Extracts the requested JSON object from a model's text.
use serde_json::Value;

/// Opening braces that are tried.
const CANDIDATES_MAX: usize = 256;

/// The last JSON object in the text that `read` accepts. Models add code fences and prose, and quote before they conclude,
/// so the last one counts.
pub fn last_object<T>(text: &str, read: impl Fn(&Value) -> Option<T>) -> Option<T> {
    let mut found = None;
    let mut at = 0;
    for _ in 0..CANDIDATES_MAX {
        let Some(begin) = text.get(at..).and_then(|rest| rest.find('{')) else { break };
        at += begin;
        let mut values = serde_json::Deserializer::from_str(&text[at..]).into_iter::<Value>();
        match values.next() {
            Some(Ok(value)) => {
                found = read(&value).or(found);
                at += values.byte_offset();
            }
            _ => at += 1,
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn finds_the_object_between_fences_and_prose() {
        for text in [
            "{\"n\": 7}",
            "```json\n{\"n\": 7}\n```",
            "They wrote {\"n\": 6} and {x}, hence: {\"n\": 7}. {\"m\": 1}",
            "{{\"n\": 7}",
            "{\"a\": {\"n\": 1}} {\"n\":7} {\"n\":\"x\"",
        ] {
            assert_eq!(last_object(text, number), Some(7), "{text}");
        }
        assert_eq!(last_object("seven", number), None);
        assert_eq!(last_object(&"{\"".repeat(100_000), number), None);
    }

    proptest! {
        #[test]
        fn never_panics(text in "[{}\"\\\\n:7é ]{0,60}") {
            last_object(&text, number);
        }
    }

    fn number(value: &Value) -> Option<u64> {
        value.get("n").and_then(Value::as_u64)
    }
}
