//! Evaluations of tool calls.
use serde_json::{Map, Value};

use super::{EVALUATION_ARGUMENTS_BYTES_MAX, Evaluation, EvaluationKind, EvaluationResult, ReadTranscript};
use crate::base::text::{collapse_whitespace, truncate};
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};

/// In place of a tool's name: any tool.
const ANY_TOOL: &str = "*";
/// Of a tool's error in a reason.
const ERROR_BYTES_MAX: usize = 200;
/// Names of tools in a reason.
const NAMES_MAX: usize = 8;

/// What came of a tool call.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Outcome {
    Succeeded,
    /// The call was not sent, or it failed.
    Failed,
    /// The conversation ended before.
    Open,
}

impl Evaluation {
    /// What is wrong with the fields together: the name of one with what is wrong.
    #[must_use]
    pub fn problem(&self) -> Option<(&'static str, String)> {
        let only = || "is for evaluations of the kind `tool_call`".to_owned();
        let is_call = self.kind == EvaluationKind::ToolCall;
        match &self.arguments {
            Some(_) if !is_call => Some(("arguments", only())),
            Some(arguments)
                if serde_json::json!(arguments).to_string().len() > EVALUATION_ARGUMENTS_BYTES_MAX =>
            {
                Some((
                    "arguments",
                    format!("must have at most {EVALUATION_ARGUMENTS_BYTES_MAX} bytes as JSON"),
                ))
            }
            _ if self.times.is_some() && !is_call => Some(("times", only())),
            _ => None,
        }
    }

    pub(super) fn called(&self, read: &ReadTranscript<'_>) -> EvaluationResult {
        let transcript = read.rows;
        let (mut good, mut bad, mut open, mut others) = (Vec::new(), None, None, 0_u32);
        for (row, outcome) in self.calls(transcript) {
            if !self.arguments.as_ref().is_none_or(|wanted| has_arguments(row, wanted)) {
                others += 1;
                continue;
            }
            match outcome {
                Outcome::Succeeded => good.push(row.index),
                Outcome::Failed => bad = bad.or(Some(row)),
                Outcome::Open => open = open.or(Some(row)),
            }
        }
        if let Some(times) = self.times {
            let found = u32::try_from(good.len()).unwrap_or(u32::MAX);
            let mut reason = format!(
                "{} of this tool succeeded; there should be {times}.",
                counted(found, "matching call")
            );
            // The call that should not be there any more, or that should have succeeded, or the last.
            let failed = bad.filter(|_| found < times);
            if let Some(row) = failed {
                reason.push_str(&error_of(row, transcript));
            } else if found == 0 {
                reason.extend(self.unknown_tool(read).map(|unknown| format!(" {unknown}")));
            }
            let last = failed.map(|row| row.index).or(good.last().copied());
            let index = good.get(times as usize).copied().or(last);
            return self.result(Some(found == times), index, reason);
        }
        if let Some(index) = good.first() {
            return self.result(
                Some(true),
                Some(*index),
                "The tool was called, and its result is no error.".to_owned(),
            );
        }
        if let Some(row) = bad {
            let reason = if row.is_error == Some(true) {
                "The model asked for it, but the call was refused."
            } else {
                "The tool was called, but its result is an error."
            };
            return self.result(Some(false), Some(row.index), reason.to_owned());
        }
        if let Some(row) = open {
            let reason = "The tool was called, but the conversation ended before its result.".to_owned();
            return self.result(Some(false), Some(row.index), reason);
        }
        let reason = if let Some(unknown) = self.unknown_tool(read).filter(|_| others == 0) {
            unknown
        } else if others > 0 {
            format!("{} of this tool, none with these arguments.", counted(others, "call"))
        } else {
            let made =
                |row: &&TranscriptRow| row.role == TranscriptRole::ToolCall && row.is_error != Some(true);
            match transcript.iter().filter(made).count() {
                0 => "No tool was called.".to_owned(),
                1 => "1 tool call was made, none of this tool.".to_owned(),
                n => format!("{n} tool calls were made, none of this tool."),
            }
        };
        self.result(Some(false), None, reason)
    }

    pub(super) fn not_called(&self, read: &ReadTranscript<'_>) -> EvaluationResult {
        if let Some((row, _)) = self.calls(read.rows).next() {
            return self.result(Some(false), Some(row.index), "The model called it.".to_owned());
        }
        match self.unknown_tool(read) {
            Some(unknown) => self.result(None, None, unknown),
            None if !read.rows.iter().any(is_of_caller) => {
                let reason = "The caller said nothing, so the model was not asked.".to_owned();
                self.result(None, None, reason)
            }
            None => self.result(Some(true), None, "The model did not call it.".to_owned()),
        }
    }

    pub(super) fn without_error(&self, read: &ReadTranscript<'_>) -> EvaluationResult {
        let (mut calls, mut open) = (0, None);
        for (row, outcome) in self.calls(read.rows) {
            if outcome == Outcome::Failed {
                return self.result(
                    Some(false),
                    Some(row.index),
                    "The call was refused or failed.".to_owned(),
                );
            }
            if outcome == Outcome::Open {
                open = open.or(Some(row.index));
            }
            calls += 1;
        }
        if calls == 0 {
            let none = || "There was no call that could fail.".to_owned();
            return self.result(None, None, self.unknown_tool(read).unwrap_or_else(none));
        }
        if open.is_some() {
            let reason = "The conversation ended before a call had its result.".to_owned();
            return self.result(None, open, reason);
        }
        self.result(Some(true), None, format!("No error in {}.", counted(calls, "call")))
    }

    /// What to say of a name that none of the assistant's tools has, if those are known.
    fn unknown_tool(&self, read: &ReadTranscript<'_>) -> Option<String> {
        let name = self.includes.trim();
        let tools = read.tools.as_ref().filter(|tools| name != ANY_TOOL && !tools.contains(&name))?;
        let names: Vec<&str> = tools.iter().take(NAMES_MAX).copied().collect();
        Some(match names.join("”, “") {
            names if names.is_empty() => "The assistant has no tool of this name; it has none.".to_owned(),
            names => format!("The assistant has no tool of this name; it has “{names}”."),
        })
    }

    /// The calls of the tool, with what came of them.
    fn calls<'a>(
        &'a self,
        transcript: &'a [TranscriptRow],
    ) -> impl Iterator<Item = (&'a TranscriptRow, Outcome)> {
        let name = self.includes.trim();
        let named = move |row: &&TranscriptRow| {
            row.role == TranscriptRole::ToolCall
                && (name == ANY_TOOL || row.tool_name.as_deref() == Some(name))
        };
        transcript.iter().filter(named).map(move |row| {
            let is_result = |other: &&TranscriptRow| {
                other.role == TranscriptRole::ToolResult && other.tool_call_id == row.tool_call_id
            };
            let outcome = match transcript.iter().find(is_result) {
                _ if row.is_error == Some(true) => Outcome::Failed,
                Some(result) if result.is_error == Some(true) => Outcome::Failed,
                Some(_) => Outcome::Succeeded,
                None => Outcome::Open,
            };
            (row, outcome)
        })
    }
}

/// The error of a call that failed, as the end of a reason.
fn error_of(call: &TranscriptRow, transcript: &[TranscriptRow]) -> String {
    let is_result = |row: &&TranscriptRow| {
        row.role == TranscriptRole::ToolResult && row.tool_call_id == call.tool_call_id
    };
    let result = transcript.iter().find(is_result).map(|row| collapse_whitespace(&row.text));
    let what = if call.is_error == Some(true) { "was refused" } else { "failed" };
    match result.filter(|text| !text.is_empty()) {
        Some(text) => format!(" One {what}: “{}”.", truncate(text, ERROR_BYTES_MAX)),
        None => format!(" One {what}."),
    }
}

/// Whether the call has the arguments, among others.
fn has_arguments(row: &TranscriptRow, wanted: &Map<String, Value>) -> bool {
    matches!(&row.arguments, Some(Value::Object(given)) if has_fields(given, wanted))
}

/// Whether `given` has the fields of `wanted`, by type and value, among others.
pub(in crate::simulation) fn has_fields(given: &Map<String, Value>, wanted: &Map<String, Value>) -> bool {
    wanted.iter().all(|(name, wanted)| given.get(name).is_some_and(|given| is_same(given, wanted)))
}

/// Objects may have more fields than are wanted; a list has the same items. `2.0` is the same number as `2`.
fn is_same(given: &Value, wanted: &Value) -> bool {
    match (given, wanted) {
        (Value::Object(given), Value::Object(wanted)) => has_fields(given, wanted),
        (Value::Array(given), Value::Array(wanted)) => {
            given.len() == wanted.len()
                && given.iter().zip(wanted).all(|(given, wanted)| is_same(given, wanted))
        }
        (Value::Number(one), Value::Number(other)) => {
            one == other || (one.is_f64() || other.is_f64()) && one.as_f64() == other.as_f64()
        }
        (given, wanted) => given == wanted,
    }
}

fn counted(number: u32, what: &str) -> String {
    if number == 1 { format!("1 {what}") } else { format!("{number} {what}s") }
}

fn is_of_caller(row: &TranscriptRow) -> bool {
    matches!(row.role, TranscriptRole::User | TranscriptRole::Dtmf)
}
