//! Assembles tool calls from the fragments of a stream, in all the variants that servers send.
use serde_json::Value;

use crate::base::limits::{MODEL_ARGUMENTS_BYTES_MAX, MODEL_CALLS_MAX};
use crate::conversation::ToolRequest;

/// An entry of `tool_calls`, or a part of it.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct CallFragment<'a> {
    /// `index`; some servers omit it or send 0 for every call.
    pub index: Option<u64>,
    /// `id`; empty for none.
    pub id: &'a str,
    /// `function.name`; empty for none.
    pub name: &'a str,
    /// The next part of `function.arguments`.
    pub arguments: &'a str,
}

/// An answer exceeds the limit on calls or on their arguments.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TooManyCalls;

/// The calls of an answer so far.
///
/// In OpenAI's API a fragment belongs to the call with its `index`. Compatible servers deviate in many ways, so the rule here
/// is wider: a fragment without a name continues the call with its index, or with its id, or the last one; a fragment with a
/// name starts a call, unless it repeats the name of an incomplete call.
#[derive(Debug, Clone, Default)]
pub struct Calls {
    calls: Vec<Call>,
    arguments_bytes: usize,
}

#[derive(Debug, Clone, Default)]
struct Call {
    index: Option<u64>,
    id: String,
    name: String,
    arguments: String,
    nesting: NestingTracker,
}

impl Calls {
    pub const fn is_empty(&self) -> bool {
        self.calls.is_empty()
    }

    /// Bytes of all calls so far.
    pub const fn bytes(&self) -> usize {
        self.arguments_bytes
    }

    /// Whether the arguments of every call are complete, judged by their brackets.
    pub fn are_complete(&self) -> bool {
        self.calls.iter().all(|call| call.nesting.is_complete())
    }

    /// Adds a fragment.
    pub fn push(&mut self, fragment: &CallFragment<'_>) -> Result<(), TooManyCalls> {
        self.arguments_bytes = self
            .arguments_bytes
            .saturating_add(fragment.arguments.len())
            .saturating_add(fragment.name.len())
            .saturating_add(fragment.id.len());
        if self.arguments_bytes > MODEL_ARGUMENTS_BYTES_MAX {
            return Err(TooManyCalls);
        }
        let index = match self.index(fragment) {
            Some(index) => index,
            None if self.calls.len() >= MODEL_CALLS_MAX => return Err(TooManyCalls),
            None => {
                self.calls.push(Call { index: fragment.index, ..Call::default() });
                self.calls.len() - 1
            }
        };
        if let Some(call) = self.calls.get_mut(index) {
            call.push(fragment);
        }
        Ok(())
    }

    /// The calls for the conversation, without those that have no name.
    pub fn requests(&self) -> Vec<ToolRequest> {
        let named = self.calls.iter().filter(|call| !call.name.is_empty());
        named
            .map(|call| ToolRequest { name: call.name.clone(), arguments: read_arguments(&call.arguments) })
            .collect()
    }

    /// The call that a fragment continues; `None` when it starts a new one.
    fn index(&self, fragment: &CallFragment<'_>) -> Option<usize> {
        let last = self.calls.len().checked_sub(1)?;
        let nameless = fragment.name.is_empty();
        let by_id = || self.calls.iter().rposition(|call| !call.id.is_empty() && call.id == fragment.id);
        let index = match fragment.index {
            Some(index) => match self.calls.iter().rposition(|call| call.index == Some(index)) {
                Some(index) => index,
                // A fragment with neither a name nor an id cannot start a call.
                None if nameless && fragment.id.is_empty() => last,
                None => return None,
            },
            None if fragment.id.is_empty() => last,
            None => match by_id() {
                Some(index) => index,
                None if nameless => last,
                None => return None,
            },
        };
        let call = self.calls.get(index)?;
        (nameless || !call.is_followed_by(fragment)).then_some(index)
    }
}

impl Call {
    /// Whether a fragment with a name, sent under this call's index or id, starts another call.
    fn is_followed_by(&self, fragment: &CallFragment<'_>) -> bool {
        if self.name.is_empty() {
            return false;
        }
        if self.name != fragment.name {
            return true;
        }
        let other_id = !fragment.id.is_empty() && !self.id.is_empty() && fragment.id != self.id;
        let no_ids = fragment.id.is_empty() && self.id.is_empty();
        self.nesting.is_complete() && (other_id || no_ids && !fragment.arguments.is_empty())
    }

    fn push(&mut self, fragment: &CallFragment<'_>) {
        if self.id.is_empty() {
            fragment.id.clone_into(&mut self.id);
        }
        if self.name.is_empty() {
            fragment.name.clone_into(&mut self.name);
        }
        self.nesting.read(fragment.arguments);
        self.arguments.push_str(fragment.arguments);
    }
}

/// Tracks the nesting of a JSON value that arrives in parts; reads each byte once.
#[derive(Debug, Clone, Copy, Default)]
struct NestingTracker {
    opened: bool,
    depth: usize,
    in_text: bool,
    escaped: bool,
}

impl NestingTracker {
    fn read(&mut self, text: &str) {
        for byte in text.bytes() {
            match byte {
                _ if self.escaped => self.escaped = false,
                b'\\' if self.in_text => self.escaped = true,
                b'"' => self.in_text = !self.in_text,
                _ if self.in_text => {}
                b'{' | b'[' => {
                    self.opened = true;
                    self.depth = self.depth.saturating_add(1);
                }
                b'}' | b']' => self.depth = self.depth.saturating_sub(1),
                _ => {}
            }
        }
    }

    const fn is_complete(self) -> bool {
        self.opened && self.depth == 0 && !self.in_text
    }
}

/// The arguments as JSON; an empty text is an empty object, and invalid JSON stays a string.
fn read_arguments(text: &str) -> Value {
    if text.trim().is_empty() {
        return Value::Object(serde_json::Map::new());
    }
    match crate::base::json::read(text.as_bytes()) {
        // Some servers encode the object twice.
        Ok(Value::String(inner)) => match crate::base::json::read(inner.as_bytes()) {
            Ok(object @ Value::Object(_)) => object,
            _ => Value::String(text.to_owned()),
        },
        Ok(value) => value,
        Err(_) => Value::String(text.to_owned()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    fn fragment<'a>(index: Option<u64>, id: &'a str, name: &'a str, arguments: &'a str) -> CallFragment<'a> {
        CallFragment { index, id, name, arguments }
    }

    #[track_caller]
    fn assembled(fragments: &[CallFragment<'_>]) -> Vec<(String, Value)> {
        let mut calls = Calls::default();
        for fragment in fragments {
            calls.push(fragment).unwrap();
        }
        calls.requests().into_iter().map(|call| (call.name, call.arguments)).collect()
    }

    fn two() -> Vec<(String, Value)> {
        vec![("f".into(), json!({"x": 1})), ("g".into(), json!({"y": [2]}))]
    }

    fn twice() -> Vec<(String, Value)> {
        vec![("f".into(), json!({"x": 1})), ("f".into(), json!({"x": 2}))]
    }

    #[test]
    fn fragments_are_joined_by_index() {
        let (a, b) = (Some(0), Some(1));
        let fragments = [
            fragment(a, "1", "f", ""),
            fragment(a, "", "", "{\"x\":"),
            fragment(b, "2", "g", "{\"y\""),
            fragment(a, "", "", "1}"),
            fragment(b, "", "", ":[2]}"),
        ];
        assert_eq!(assembled(&fragments), two());
    }

    #[test]
    fn whole_calls_may_lack_an_index_or_share_index_0() {
        for index in [None, Some(0)] {
            for (first, second) in [("1", "2"), ("", "")] {
                let whole =
                    [fragment(index, first, "f", "{\"x\":1}"), fragment(index, second, "g", "{\"y\":[2]}")];
                assert_eq!(assembled(&whole), two(), "{index:?} {first}");
                let same =
                    [fragment(index, first, "f", "{\"x\":1}"), fragment(index, second, "f", "{\"x\":2}")];
                assert_eq!(assembled(&same), twice(), "{index:?} {first}");
            }
        }
    }

    #[test]
    fn fragments_may_share_index_0() {
        let fragments = [
            fragment(Some(0), "1", "f", ""),
            fragment(Some(0), "", "", "{\"x\""),
            fragment(Some(0), "", "", ":1}"),
            fragment(Some(0), "2", "g", ""),
            fragment(Some(0), "", "", "{\"y\":[2]}"),
        ];
        assert_eq!(assembled(&fragments), two());
    }

    #[test]
    fn the_id_may_change_within_a_call() {
        for index in [None, Some(0)] {
            for name in ["", "f"] {
                let fragments = [
                    fragment(index, "1", "f", ""),
                    fragment(index, "2", name, "{\"x\""),
                    fragment(index, "3", name, ":1}"),
                ];
                // A repeated name with its own id and no index is a separate call.
                if index.is_some() || name.is_empty() {
                    assert_eq!(assembled(&fragments), two()[..1], "{index:?} {name}");
                }
            }
        }
    }

    #[test]
    fn every_fragment_may_repeat_name_and_id() {
        let fragments = [
            fragment(Some(0), "1", "f", "{\"x\""),
            fragment(Some(0), "1", "f", ":1}"),
            fragment(Some(0), "1", "f", ""),
        ];
        assert_eq!(assembled(&fragments), two()[..1]);
    }

    #[test]
    fn brackets_in_strings_do_not_count() {
        let fragments = [
            fragment(Some(0), "", "f", "{\"x\":\"}\\\"}\""),
            fragment(Some(0), "", "f", "}"),
            fragment(Some(0), "", "f", "{}"),
        ];
        assert_eq!(
            assembled(&fragments),
            [("f".to_owned(), json!({"x": "}\"}"})), ("f".to_owned(), json!({}))]
        );
    }

    #[test]
    fn invalid_json_arguments_stay_a_string() {
        for (text, value) in [
            ("", json!({})),
            (" ", json!({})),
            ("{\"x\":", json!("{\"x\":")),
            ("[1]", json!([1])),
            ("\"{\\\"x\\\":1}\"", json!({"x": 1})),
            ("\"x\"", json!("\"x\"")),
            ("{\"x\":1,\"x\":2}", json!("{\"x\":1,\"x\":2}")),
        ] {
            assert_eq!(assembled(&[fragment(None, "", "f", text)]), [("f".to_owned(), value)], "{text}");
        }
    }

    #[test]
    fn a_call_without_a_name_is_dropped() {
        assert_eq!(assembled(&[fragment(Some(0), "1", "", "{}")]), []);
        let late = [fragment(Some(0), "1", "", ""), fragment(Some(0), "1", "f", "{\"x\":1}")];
        assert_eq!(assembled(&late), two()[..1]);
    }

    #[test]
    fn the_size_is_bounded() {
        let mut calls = Calls::default();
        for n in 0..MODEL_CALLS_MAX as u64 {
            calls.push(&fragment(Some(n), "", "f", "")).unwrap();
        }
        assert_eq!(calls.push(&fragment(Some(1_000), "", "f", "")), Err(TooManyCalls));
        let long = "x".repeat(MODEL_ARGUMENTS_BYTES_MAX);
        assert_eq!(calls.push(&fragment(Some(0), "", "", &long)), Err(TooManyCalls));
    }
}
