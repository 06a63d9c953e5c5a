//! Parses a chat completion: streamed (`chat.completion.chunk` events) or, from servers that do not stream with tools,
//! whole (`chat.completion`). The first byte tells them apart.
use serde_json::Value;

use super::calls::{CallFragment, Calls};
use super::sse::{SseEvent, SseReader};
use crate::base::limits::{MODEL_BYTES_PER_TOKEN, MODEL_RESPONSE_BYTES_MAX, MODEL_TEXT_BYTES_MAX};
use crate::base::provider_error::{ProviderError, reported_error};
use crate::conversation::ToolRequest;

/// A model's completion.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Completion {
    /// The text, or the refusal when there is no other text.
    pub text: String,
    /// The requested tool calls. `finish_reason` is no indication: some servers end with `stop` after calls.
    pub calls: Vec<ToolRequest>,
    /// Why the model stopped.
    pub finish: Finish,
    /// The reported token count.
    pub usage: Option<TokenCount>,
}

/// Why a model stopped.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Finish {
    /// It was finished, or gave no reason.
    #[default]
    Done,
    /// It reached its token limit.
    Length,
    /// The provider's content filter removed the rest.
    ContentFilter,
}

/// The token count of one completion.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct TokenCount {
    /// Input tokens.
    pub input: u64,
    /// Output tokens, including reasoning tokens.
    pub output: u64,
}

impl TokenCount {
    /// Estimates the count from the sizes of the request and the response.
    pub fn estimate(request_bytes: usize, response_bytes: usize) -> Self {
        let tokens = |bytes: usize| u64::try_from(bytes.div_ceil(MODEL_BYTES_PER_TOKEN)).unwrap_or(u64::MAX);
        Self { input: tokens(request_bytes), output: tokens(response_bytes) }
    }
}

/// Why a completion cannot be used.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum CompletionError {
    /// The provider reported an error instead of an answer, or in the middle of one.
    Reported(ProviderError),
    /// The response ended too early.
    Truncated,
    /// The response does not follow the API; the text says how.
    Garbled(&'static str),
    /// The response exceeds a limit on text, calls or bytes.
    TooLarge,
}

/// Whether to continue reading.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Progress {
    /// There may be more.
    More,
    /// The completion is complete; ignore what follows.
    Complete,
}

/// Assembles a completion from the pieces of a body. The result does not depend on how the bytes are divided.
#[derive(Debug, Clone, Default)]
pub struct CompletionReader {
    form: Form,
    assembly: Assembly,
}

#[derive(Debug, Clone)]
enum Form {
    /// Only white space so far, and this many bytes of a byte order mark.
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

impl CompletionReader {
    /// Adds the next bytes of the body. After an error or [`Progress::Complete`] further bytes have no effect.
    pub fn push(&mut self, bytes: &[u8]) -> Result<Progress, CompletionError> {
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
                Err(CompletionError::TooLarge)
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

    /// Ends the body and returns the completion.
    pub fn finish(&mut self) -> Result<Completion, CompletionError> {
        let assembly = &mut self.assembly;
        match &mut self.form {
            Form::Unknown { .. } => return Err(CompletionError::Truncated),
            Form::Whole(body) => match serde_json::from_slice::<Value>(body) {
                Ok(value) => {
                    assembly.take(&value)?;
                    assembly.ended = true;
                }
                Err(error) if error.is_eof() => return Err(CompletionError::Truncated),
                Err(_) => return Err(CompletionError::Garbled("it is not JSON")),
            },
            Form::Streamed(reader) => {
                let read = reader.finish(&mut |event| assembly.event(&event, true));
                assembly.progress(read.is_err())?;
                if assembly.events == 0 {
                    return Err(CompletionError::Garbled("it is neither JSON nor an event stream"));
                }
            }
        }
        assembly.answer()
    }

    /// The tokens reported so far; an unusable answer is billed as well.
    pub const fn usage(&self) -> Option<TokenCount> {
        self.assembly.usage
    }

    /// The text so far; empty until a whole response has ended.
    pub const fn text(&self) -> &str {
        self.assembly.text.as_str()
    }

    /// Whether the provider reported an error before any content, so that there is nothing to bill.
    pub const fn is_only_an_error(&self) -> bool {
        self.assembly.reported && self.assembly.content_bytes() == 0
    }

    /// Bytes of text and calls so far; for an unreadable whole response, all of its bytes.
    pub fn bytes(&self) -> usize {
        match (&self.form, self.assembly.content_bytes()) {
            (Form::Whole(body), 0) => body.len(),
            (_, said) => said,
        }
    }
}

/// What was received so far.
#[derive(Debug, Clone, Default)]
struct Assembly {
    events: u64,
    choices: u64,
    text: String,
    refusal: String,
    calls: Calls,
    finish: Option<Finish>,
    usage: Option<TokenCount>,
    /// The last content-free chunk reported usage, and no content followed.
    usage_is_last: bool,
    /// The provider reported an error.
    reported: bool,
    /// `[DONE]` was received.
    done: bool,
    /// The response is whole, so it has no other end marker.
    ended: bool,
    failed: Option<CompletionError>,
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
                    Err(CompletionError::Reported(ProviderError::read(&value, None)))
                }
                Ok(value) => self.take(&value),
                // Only the last event can be truncated.
                Err(_) if is_last => Err(CompletionError::Truncated),
                Err(_) => Err(CompletionError::Garbled("a chunk is not JSON")),
            };
            self.failed = taken.err();
        }
    }

    fn progress(&self, too_long: bool) -> Result<Progress, CompletionError> {
        match &self.failed {
            Some(error) => Err(error.clone()),
            None if self.done => Ok(Progress::Complete),
            None if too_long => Err(CompletionError::TooLarge),
            None => Ok(Progress::More),
        }
    }

    /// Adds a `chat.completion.chunk` or a `chat.completion`.
    fn take(&mut self, value: &Value) -> Result<(), CompletionError> {
        let taken = self.try_take(value);
        if let Err(error) = &taken {
            self.failed = Some(error.clone());
        }
        taken
    }

    fn try_take(&mut self, value: &Value) -> Result<(), CompletionError> {
        if let Some(error) = reported_error(value) {
            self.reported = true;
            return Err(CompletionError::Reported(error));
        }
        let before = self.content_bytes();
        let mut counted = false;
        // Groq reports usage here, in the last chunk.
        for usage in [value.get("usage"), value.pointer("/x_groq/usage")].into_iter().flatten() {
            let tokens = |name: &str| usage.get(name).and_then(Value::as_u64);
            if let (Some(input), Some(output)) = (tokens("prompt_tokens"), tokens("completion_tokens")) {
                self.usage = Some(TokenCount { input, output });
                counted = true;
            }
        }
        self.choice(value)?;
        // Some servers report usage in every chunk, so usage next to content does not mark the end.
        self.usage_is_last = self.content_bytes() == before && (counted || self.usage_is_last);
        Ok(())
    }

    /// Bytes of content so far.
    const fn content_bytes(&self) -> usize {
        self.text.len() + self.refusal.len() + self.calls.bytes()
    }

    fn choice(&mut self, value: &Value) -> Result<(), CompletionError> {
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
            // Some servers repeat the whole message at the end of a stream.
            Some(message) if self.text.is_empty() && self.calls.is_empty() => self.delta(message),
            _ => Ok(()),
        }
    }

    fn delta(&mut self, delta: &Value) -> Result<(), CompletionError> {
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
            // The predecessor of `tool_calls`, for a single call.
            Some(function @ Value::Object(_)) => self.function(None, "", function),
            _ => Ok(()),
        }
    }

    fn call(&mut self, call: &Value) -> Result<(), CompletionError> {
        let index = call.get("index").and_then(Value::as_u64);
        self.function(index, text_of(call, "id"), call.get("function").unwrap_or(&Value::Null))
    }

    fn function(&mut self, index: Option<u64>, id: &str, function: &Value) -> Result<(), CompletionError> {
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
        self.calls.push(&fragment).map_err(|_| CompletionError::TooLarge)
    }

    /// The completion, if it is valid and complete.
    fn answer(&self) -> Result<Completion, CompletionError> {
        if let Some(error) = &self.failed {
            return Err(error.clone());
        }
        // Not all servers send `[DONE]` or a finish_reason; final usage marks the end as well.
        let has_ended = self.done || self.ended || self.finish.is_some() || self.usage_is_last;
        let calls_are_whole = !self.calls.is_empty() && self.calls.are_complete();
        if !has_ended && !calls_are_whole {
            return Err(CompletionError::Truncated);
        }
        if self.choices == 0 {
            return Err(CompletionError::Garbled("it has no choices"));
        }
        let text = if self.text.trim().is_empty() { &self.refusal } else { &self.text };
        Ok(Completion {
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

fn add(text: &mut String, more: &str) -> Result<(), CompletionError> {
    if text.len() + more.len() > MODEL_TEXT_BYTES_MAX {
        return Err(CompletionError::TooLarge);
    }
    text.push_str(more);
    Ok(())
}

#[cfg(test)]
mod tests;
