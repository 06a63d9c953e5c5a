//! What a scenario answers in place of the assistant's tools, so that a simulation needs no endpoint.
//!
//! Which answer a call gets follows from the transcript alone: from the calls of the tool before it and their arguments. So
//! it is the same after a restart.
use std::collections::BTreeMap;

use schemars::JsonSchema;
use serde::{Deserialize, Deserializer, Serialize};
use serde_json::{Map, Value};

use super::evaluation::tools::has_fields;
use crate::base::field::FieldProblem;
use crate::base::limits::{
    MOCK_DELAY_MS_MAX, MOCKED_ANSWERS_MAX, TOOL_MOCKS_BYTES_MAX, TOOL_MOCKS_MAX, TOOL_NAME_CHARS_MAX,
};
use crate::base::text::{is_function_name, truncate};
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};

/// The result of a call that no answer fits.
const NO_MATCH: &str = "no mock of this tool matches these arguments";
/// Bytes of a wrong name that its problem repeats.
const NAME_SHOWN_BYTES: usize = 80;

/// Answers by the names of tools.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(transparent)]
#[schemars(inline)] // a map needs no name of its own
pub struct ToolMocks(BTreeMap<String, Vec<MockedAnswer>>);

/// One answer in place of a tool: a `result` or an `error`.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MockedAnswer {
    /// Arguments that the call must have for this answer, among others. Objects are compared by their fields, everything
    /// else by type and value: `1` is not `"1"`. Without it, the answer fits every call.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "Map<String, Value>")]
    when: Option<Map<String, Value>>,
    /// What the tool answers: a text as it is, everything else as JSON.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "given")]
    #[schemars(with = "Value")]
    result: Option<Value>,
    /// Why the call fails, in place of a `result`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    #[schemars(with = "String", length(min = 1))]
    error: Option<String>,
    /// How long the answer takes, in ms of the conversation. Longer than the `timeout_ms` of the tool, the call fails with
    /// a timeout.
    #[serde(default, skip_serializing_if = "takes_no_time")]
    #[schemars(range(min = 0, max = MOCK_DELAY_MS_MAX))]
    delay_ms: i64,
}

/// What answers a call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct MockedResult {
    pub(crate) text: String,
    pub(crate) is_error: bool,
    pub(crate) delay_ms: i64,
}

impl ToolMocks {
    /// Whether no tool is answered for.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// The tools that are answered for and that are none of these.
    pub(crate) fn unused<'a>(&'a self, is_tool: impl Fn(&str) -> bool + 'a) -> impl Iterator<Item = &'a str> {
        self.0.keys().map(String::as_str).filter(move |name| !is_tool(name))
    }

    /// What is wrong with them beyond their type; `field` is the name of the field that has them.
    pub(crate) fn problems(&self, field: &str) -> Vec<FieldProblem> {
        let mut problems = Vec::new();
        let mut add = |path: String, message: String| problems.push(FieldProblem::new(path, message));
        let tools = self.0.len();
        if tools > TOOL_MOCKS_MAX {
            add(field.to_owned(), format!("takes at most {TOOL_MOCKS_MAX} tools, has {tools}"));
        }
        let bytes = serde_json::json!(self).to_string().len();
        if bytes > TOOL_MOCKS_BYTES_MAX {
            let message = format!("must have at most {TOOL_MOCKS_BYTES_MAX} bytes as JSON, has {bytes}");
            add(field.to_owned(), message);
        }
        for (name, answers) in &self.0 {
            let path = format!("{field}.{}", truncate(name.clone(), NAME_SHOWN_BYTES));
            if !is_function_name(name) || name.len() as u64 > TOOL_NAME_CHARS_MAX {
                let message =
                    "is no name of a tool: letters, digits and underscores, at most 64, and no digit first";
                add(path.clone(), message.to_owned());
            }
            if answers.is_empty() || answers.len() > MOCKED_ANSWERS_MAX {
                let message = format!("takes 1 to {MOCKED_ANSWERS_MAX} answers, has {}", answers.len());
                add(path.clone(), message);
            }
            for (at, answer) in answers.iter().enumerate() {
                let message = match (&answer.result, &answer.error) {
                    (Some(_), Some(_)) => "has `result` and `error`, which cannot be both; leave one out",
                    (None, None) => "needs a `result` or an `error`",
                    _ => continue,
                };
                add(format!("{path}[{at}]"), message.to_owned());
            }
        }
        problems
    }
}

impl MockedAnswer {
    fn fits(&self, arguments: &Map<String, Value>) -> bool {
        self.when.as_ref().is_none_or(|wanted| has_fields(arguments, wanted))
    }

    fn result(&self) -> MockedResult {
        let text = match (&self.error, &self.result) {
            (Some(text), _) | (None, Some(Value::String(text))) => text.clone(),
            (None, Some(value)) => value.to_string(),
            (None, None) => String::new(),
        };
        MockedResult { text, is_error: self.error.is_some(), delay_ms: self.delay_ms }
    }
}

/// Answers the tool calls of one conversation.
#[derive(Debug)]
pub(crate) struct Mocking<'a> {
    tools: BTreeMap<&'a str, Answers<'a>>,
    /// The rows of the transcript that were read.
    rows_read: usize,
    /// The answers by the ids of their calls; `None` where none fits. A conversation that goes on after a restart has them for all its
    /// calls so far, so the texts stay where they are.
    results: BTreeMap<String, Option<&'a MockedAnswer>>,
}

/// The answers of one tool.
#[derive(Debug)]
struct Answers<'a> {
    all: &'a [MockedAnswer],
    is_used: Vec<bool>,
}

impl<'a> Mocking<'a> {
    /// With the answers of a scenario; `None` for a conversation without one.
    pub(crate) fn new(mocks: Option<&'a ToolMocks>) -> Self {
        let mut tools = BTreeMap::new();
        for (name, all) in mocks.into_iter().flat_map(|mocks| &mocks.0) {
            tools.insert(name.as_str(), Answers { all, is_used: vec![false; all.len()] });
        }
        Self { tools, rows_read: 0, results: BTreeMap::new() }
    }

    /// The result of a call that is in the transcript; `None` if the tool itself answers.
    pub(crate) fn answer(&mut self, transcript: &[TranscriptRow], id: &str) -> Option<MockedResult> {
        if self.tools.is_empty() {
            return None;
        }
        for row in transcript.get(self.rows_read..).unwrap_or_default() {
            // A refused call was never made.
            if row.role == TranscriptRole::ToolCall
                && row.is_error != Some(true)
                && let (Some(id), Some(name)) = (&row.tool_call_id, &row.tool_name)
                && let Some(answers) = self.tools.get_mut(name.as_str())
            {
                self.results.insert(id.clone(), answers.next(row.arguments.as_ref()));
            }
        }
        self.rows_read = transcript.len();
        let answer = self.results.remove(id)?;
        Some(answer.map_or_else(
            || MockedResult { text: NO_MATCH.to_owned(), is_error: true, delay_ms: 0 },
            MockedAnswer::result,
        ))
    }
}

impl<'a> Answers<'a> {
    /// The first that fits and was not given yet, else the last that fits.
    fn next(&mut self, arguments: Option<&Value>) -> Option<&'a MockedAnswer> {
        let none = Map::new();
        let arguments = arguments.and_then(Value::as_object).unwrap_or(&none);
        let mut chosen = None;
        for (answer, is_used) in self.all.iter().zip(&mut self.is_used) {
            if answer.fits(arguments) {
                chosen = Some(answer);
                if !std::mem::replace(is_used, true) {
                    break;
                }
            }
        }
        chosen
    }
}

/// A field that is there, though it may be null.
fn given<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Value>, D::Error> {
    Value::deserialize(deserializer).map(Some)
}

const fn takes_no_time(ms: &i64) -> bool {
    *ms == 0
}

#[cfg(test)]
mod tests {
    use super::*;
    use serde_json::json;

    /// A transcript with these calls of the tool `find`, in which `refused` ones were never made.
    fn transcript(calls: &[(Value, bool)]) -> Vec<TranscriptRow> {
        let row = |(index, (arguments, is_refused)): (usize, &(Value, bool))| TranscriptRow {
            tool_name: Some("find".to_owned()),
            tool_call_id: Some(format!("t{index}")),
            arguments: Some(arguments.clone()),
            is_error: is_refused.then_some(true),
            ..TranscriptRow::new(index, TranscriptRole::ToolCall, String::new(), 0, 0)
        };
        calls.iter().enumerate().map(row).collect()
    }

    /// Whoever continues a conversation from its transcript gives the answers that would have been given.
    #[test]
    fn the_transcript_alone_decides_which_answers_were_given() {
        let mocks: ToolMocks = serde_json::from_value(json!({"find": [
            {"when": {"a": 1}, "result": "first"}, {"result": "second"}, {"when": {"a": 1}, "error": "last"},
        ]}))
        .unwrap();
        let calls = [
            (json!({"a": 1}), true),
            (json!({"a": 1, "b": 2}), false),
            (json!({"a": 2}), false),
            (json!({"a": 1.0}), false),
            (json!({"a": 2}), false),
            (json!({"a": 1}), false),
        ];
        let transcript = transcript(&calls);
        let mut going_on = Mocking::new(Some(&mocks));
        let mut texts = Vec::new();
        for rows in 1..=transcript.len() {
            let id = format!("t{}", rows - 1);
            let answer = going_on.answer(&transcript[..rows], &id);
            let mut restarted = Mocking::new(Some(&mocks));
            assert_eq!(restarted.answer(&transcript[..rows], &id), answer, "{id}");
            texts.extend(answer.map(|answer| answer.text));
        }
        assert_eq!(texts, ["first", "second", "last", "second", "last"]);
        assert_eq!(Mocking::new(None).answer(&transcript, "t1"), None);
    }

    #[test]
    fn a_scenario_answers_only_for_its_tools() {
        let mocks: ToolMocks = serde_json::from_value(json!({"other": [{"result": 1}]})).unwrap();
        let transcript = transcript(&[(json!({}), false)]);
        assert_eq!(Mocking::new(Some(&mocks)).answer(&transcript, "t0"), None);
    }
}
