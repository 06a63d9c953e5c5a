//! A chat completion as it comes in: streamed (`chat.completion.chunk` events) or, from servers that
//! do not stream with tools, whole (`chat.completion`), told apart by its first byte.
use serde_json::Value;

use super::calls::{CallFragment, Calls};
use super::error::{ProviderError, reported_error};
use super::sse::{SseEvent, SseReader};
use crate::base::limits::{MODEL_BYTES_PER_TOKEN, MODEL_RESPONSE_BYTES_MAX, MODEL_TEXT_BYTES_MAX};
use crate::conversation::ToolRequest;

/// What a model answered.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Answer {
    /// Its words; those of its refusal where there are no others.
    pub text: String,
    /// The tools it wants called. An empty list says nothing about `finish_reason`: some servers
    /// end a call with `stop`.
    pub calls: Vec<ToolRequest>,
    /// Why it stopped.
    pub finish: Finish,
    /// What it took, as the server counts.
    pub usage: Option<TokenCount>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    /// It had no more to say, or did not tell.
    #[default]
    Done,
    /// It ran into its limit of tokens.
    Length,
    /// The provider withheld the rest.
    ContentFilter,
}

/// Tokens of one answer.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCount {
    /// Read.
    pub input: u64,
    /// Written, those the model only thought with included.
    pub output: u64,
}

impl TokenCount {
    /// About how many there were, of a request and an answer of so many bytes.
    pub fn estimate(asked_bytes: usize, answered_bytes: usize) -> Self {
        let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(MODEL_BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
        Self { input: tokens(asked_bytes), output: tokens(answered_bytes) }
    }
}

/// Why an answer cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum AnswerError {
    /// The provider reports an error in place of an answer, or in the midst of it.
    Reported(ProviderError),
    /// It broke off.
    Cut,
    /// It is not what the API says; the text says in what.
    Garbled(&'static str),
    /// More words, calls or bytes than an answer may have.
    TooLarge,
}

/// Whether to read on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There may be more.
    More,
    /// The answer is complete, whatever else comes.
    Complete,
}

/// Puts an answer together from the bytes of a body, in pieces of any size: the same bytes give the
/// same answer or the same error, however they are cut.
#[derive(Debug, Clone, Default)]
pub struct AnswerReader {
    form: Form,
    assembly: Assembly,
}

#[derive(Debug, Clone)]
enum Form {
    /// Nothing but white space yet, and this many bytes of a byte order mark.
    Unknown {
        mark_bytes: usize,
    },
    Whole(Vec<u8>),
    Streamed(SseReader),
}

impl Default for Form {
    fn default() -> Self {
        Self::Unknown { mark_bytes: 0 }
    }
}

const BYTE_ORDER_MARK: &[u8] = b"\xEF\xBB\xBF";

impl AnswerReader {
    /// Takes in the next bytes of the body. After an error or [`Progress::Complete`] nothing more is
    /// taken in.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Progress, AnswerError> {
        let mut bytes = bytes;
        while let Form::Unknown { mark_bytes } = &mut self.form {
            let Some((&first, rest)) = bytes.split_first() else { return Ok(Progress::More) };
            if BYTE_ORDER_MARK.get(*mark_bytes) == Some(&first) {
                *mark_bytes += 1;
                bytes = rest;
            } else if first.is_ascii_whitespace() {
                *mark_bytes = BYTE_ORDER_MARK.len();
                bytes = rest;
            } else if matches!(first, b'{' | b'[') {
                self.form = Form::Whole(Vec::new());
            } else {
                self.form = Form::Streamed(SseReader::default());
            }
        }
        let assembly = &mut self.assembly;
        match &mut self.form {
            Form::Unknown { .. } => Ok(Progress::More),
            Form::Whole(body) if body.len() + bytes.len() > MODEL_RESPONSE_BYTES_MAX => {
                Err(AnswerError::TooLarge)
            }
            Form::Whole(body) => {
                body.extend_from_slice(bytes);
                Ok(Progress::More)
            }
            Form::Streamed(reader) => {
                let read = reader.push(bytes, &mut |event| assembly.event(&event, false));
                assembly.progress(read.is_err())
            }
        }
    }

    /// The body has ended: the answer that is in it.
    pub fn finish(&mut self) -> Result<Answer, AnswerError> {
        let assembly = &mut self.assembly;
        match &mut self.form {
            Form::Unknown { .. } => return Err(AnswerError::Cut),
            Form::Whole(body) => match serde_json::from_slice::<Value>(body) {
                Ok(value) => {
                    assembly.take(&value)?;
                    assembly.ended = true;
                }
                Err(error) if error.is_eof() => return Err(AnswerError::Cut),
                Err(_) => return Err(AnswerError::Garbled("it is no JSON")),
            },
            Form::Streamed(reader) => {
                let read = reader.finish(&mut |event| assembly.event(&event, true));
                assembly.progress(read.is_err())?;
                if assembly.events == 0 {
                    return Err(AnswerError::Garbled("it is neither JSON nor a stream of events"));
                }
            }
        }
        assembly.answer()
    }

    /// The tokens counted so far, for an answer that cannot be used: it has to be paid all the same.
    pub const fn usage(&self) -> Option<TokenCount> {
        self.assembly.usage
    }

    /// Whether the provider has said that it failed, and nothing before that: there is no answer to be paid.
    pub const fn is_only_an_error(&self) -> bool {
        self.assembly.reported && self.assembly.said() == 0
    }

    /// Bytes of words and calls so far; of an answer that came whole and cannot be read, all of them.
    pub fn bytes(&self) -> usize {
        match (&self.form, self.assembly.said()) {
            (Form::Whole(body), 0) => body.len(),
            (_, said) => said,
        }
    }
}

/// What the events have said so far.
#[derive(Debug, Clone, Default)]
struct Assembly {
    events: u64,
    choices: u64,
    text: String,
    refusal: String,
    calls: Calls,
    finish: Option<Finish>,
    usage: Option<TokenCount>,
    /// The tokens were counted in a piece that says nothing, and nothing was said since.
    counted_last: bool,
    /// The provider has told of an error.
    reported: bool,
    /// `[DONE]` has come.
    done: bool,
    /// It is whole, so nothing tells of its end but itself.
    ended: bool,
    failed: Option<AnswerError>,
}

impl Assembly {
    fn event(&mut self, event: &SseEvent, is_last: bool) {
        if self.done || self.failed.is_some() {
            return;
        }
        self.events += 1;
        let data = event.data.trim_ascii();
        if data == b"[DONE]" {
            self.done = true;
        } else if !data.is_empty() {
            let taken = match serde_json::from_slice::<Value>(data) {
                Ok(value) if event.name == "error" => {
                    Err(AnswerError::Reported(ProviderError::read(&value, None)))
                }
                Ok(value) => self.take(&value),
                // Only the last event can have been cut off.
                Err(_) if is_last => Err(AnswerError::Cut),
                Err(_) => Err(AnswerError::Garbled("a piece of it is no JSON")),
            };
            self.failed = taken.err();
        }
    }

    fn progress(&self, too_long: bool) -> Result<Progress, AnswerError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.done => Ok(Progress::Complete),
            None if too_long => Err(AnswerError::TooLarge),
            None => Ok(Progress::More),
        }
    }

    /// Takes in a `chat.completion.chunk` or a `chat.completion`.
    fn take(&mut self, value: &Value) -> Result<(), AnswerError> {
        let taken = self.try_take(value);
        if let Err(error) = &taken {
            self.failed = Some(error.clone());
        }
        taken
    }

    fn try_take(&mut self, value: &Value) -> Result<(), AnswerError> {
        if let Some(error) = reported_error(value) {
            self.reported = true;
            return Err(AnswerError::Reported(error));
        }
        let said = self.said();
        let mut counted = false;
        // Groq's own place for it, in the last piece.
        for usage in [value.get("usage"), value.pointer("/x_groq/usage")].into_iter().flatten() {
            let tokens = |name: &str| usage.get(name).and_then(Value::as_u64);
            if let (Some(input), Some(output)) = (tokens("prompt_tokens"), tokens("completion_tokens")) {
                self.usage = Some(TokenCount { input, output });
                counted = true;
            }
        }
        self.choice(value)?;
        // Some servers count with every piece, so a count that comes with words is no end.
        self.counted_last = self.said() == said && (counted || self.counted_last);
        Ok(())
    }

    /// How much has been said.
    const fn said(&self) -> usize {
        self.text.len() + self.refusal.len() + self.calls.bytes()
    }

    fn choice(&mut self, value: &Value) -> Result<(), AnswerError> {
        let choices = value.get("choices").and_then(Value::as_array);
        let first = |choice: &&Value| choice.get("index").and_then(Value::as_u64).unwrap_or(0) == 0;
        let Some(choice) = choices.and_then(|choices| choices.iter().find(first)) else { return Ok(()) };
        self.choices += 1;
        match choice.get("finish_reason").and_then(Value::as_str) {
            None | Some("") => {}
            Some("length") => self.finish = Some(Finish::Length),
            Some("content_filter") => self.finish = Some(Finish::ContentFilter),
            Some(_) => self.finish = Some(Finish::Done),
        }
        if let Some(delta) = choice.get("delta").filter(|delta| delta.is_object()) {
            self.delta(delta)?;
        }
        match choice.get("message") {
            // Some servers end a stream with the whole message once more.
            Some(message) if self.text.is_empty() && self.calls.is_empty() => self.delta(message),
            _ => Ok(()),
        }
    }

    fn delta(&mut self, delta: &Value) -> Result<(), AnswerError> {
        match delta.get("content") {
            Some(Value::String(text)) => add(&mut self.text, text)?,
            Some(Value::Array(parts)) => {
                for part in parts {
                    let text = part.as_str().or_else(|| part.get("text").and_then(Value::as_str));
                    add(&mut self.text, text.unwrap_or_default())?;
                }
            }
            _ => {}
        }
        add(&mut self.refusal, text_of(delta, "refusal"))?;
        match delta.get("tool_calls") {
            Some(Value::Array(calls)) => {
                for call in calls {
                    self.call(call)?;
                }
            }
            Some(call @ Value::Object(_)) => self.call(call)?,
            _ => {}
        }
        match delta.get("function_call") {
            // What `tool_calls` was before; there is one at most.
            Some(function @ Value::Object(_)) => self.function(None, "", function),
            _ => Ok(()),
        }
    }

    fn call(&mut self, call: &Value) -> Result<(), AnswerError> {
        let index = call.get("index").and_then(Value::as_u64);
        self.function(index, text_of(call, "id"), call.get("function").unwrap_or(&Value::Null))
    }

    fn function(&mut self, index: Option<u64>, id: &str, function: &Value) -> Result<(), AnswerError> {
        let whole;
        let arguments = match function.get("arguments") {
            Some(Value::String(text)) => text.as_str(),
            Some(object @ Value::Object(_)) => {
                whole = object.to_string();
                whole.as_str()
            }
            _ => "",
        };
        let fragment = CallFragment { index, id, name: text_of(function, "name"), arguments };
        self.calls.push(&fragment).map_err(|_| AnswerError::TooLarge)
    }

    /// The answer, if this is one and has come to its end.
    fn answer(&self) -> Result<Answer, AnswerError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // Not all servers send `[DONE]`, nor all a finish_reason. What comes last tells too.
        let has_ended = self.done || self.ended || self.finish.is_some() || self.counted_last;
        let calls_are_whole = !self.calls.is_empty() && self.calls.are_complete();
        if !has_ended && !calls_are_whole {
            return Err(AnswerError::Cut);
        }
        if self.choices == 0 {
            return Err(AnswerError::Garbled("there is no choice in it"));
        }
        let text = if self.text.trim().is_empty() { &self.refusal } else { &self.text };
        Ok(Answer {
            text: text.clone(),
            calls: self.calls.requests(),
            finish: self.finish.unwrap_or_default(),
            usage: self.usage,
        })
    }
}

fn text_of<'a>(value: &'a Value, name: &str) -> &'a str {
    value.get(name).and_then(Value::as_str).unwrap_or_default()
}

fn add(text: &mut String, more: &str) -> Result<(), AnswerError> {
    if text.len() + more.len() > MODEL_TEXT_BYTES_MAX {
        return Err(AnswerError::TooLarge);
    }
    text.push_str(more);
    Ok(())
}

#[cfg(test)]
mod tests;
