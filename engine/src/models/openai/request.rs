//! The body of a chat completion request.
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::base::json_text::JsonText;
use crate::base::limits::MODEL_REPLY_TOKENS_MAX;
use crate::base::provider_error::ProviderError;
use crate::conversation::ToolSpec;

/// A request, independent of the model.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct ChatRequest {
    /// `messages`, starting with the system message.
    pub messages: Vec<Value>,
    /// `tools`.
    pub tools: Vec<JsonText>,
    /// With the same seed and messages, servers that support it give the same answer.
    pub seed: Option<u64>,
}

/// Optional fields: when a server rejects one, the request is repeated without it.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options(u8);

/// The names of the optional fields, by bit.
const OPTIONAL: [&str; 3] = ["seed", "stream_options", "max_completion_tokens"];

impl Options {
    /// All optional fields.
    pub const ALL: Self = Self(0b111);

    /// Inverse of [`Options::bits`].
    #[must_use]
    pub const fn from_bits(bits: u8) -> Self {
        Self(bits & Self::ALL.0)
    }

    /// The options as a number, for storage in an atomic.
    #[must_use]
    pub const fn bits(self) -> u8 {
        self.0
    }

    /// The options without those that a server rejected; `None` when its error names none of them. The place that the
    /// error is about counts first, then its message, then its whole text: a server may repeat the request in it.
    #[must_use]
    pub fn without_refused(self, error: &ProviderError) -> Option<Self> {
        [&error.param, &error.message, &error.body].into_iter().find_map(|text| {
            let named = OPTIONAL.iter().enumerate().filter(|(_, name)| names(text, name));
            let bits = named.fold(self.0, |bits, (place, _)| bits & !(1 << place));
            (bits != self.0).then_some(Self(bits))
        })
    }

    fn has(self, name: &str) -> bool {
        let place = OPTIONAL.iter().position(|known| *known == name);
        place.is_some_and(|place| self.0 & (1 << place) != 0)
    }
}

/// Whether a text contains a name as a word of its own.
fn names(text: &str, name: &str) -> bool {
    let in_name = |c: char| c.is_ascii_alphanumeric() || c == '_';
    text.match_indices(name).any(|(at, _)| {
        let (before, after) = (&text[..at], &text[at + name.len()..]);
        !before.ends_with(in_name) && !after.starts_with(in_name)
    })
}

impl ChatRequest {
    /// The body of `POST …/chat/completions`. The answer is streamed, so that one that stalls or does not end is detected
    /// early.
    #[must_use]
    pub fn body(&self, model: &str, options: Options) -> Vec<u8> {
        let stream_options = options.has("stream_options").then(|| json!({"include_usage": true}));
        let body = Body {
            model,
            messages: &self.messages,
            tools: &self.tools,
            stream: true,
            stream_options,
            max_completion_tokens: options.has("max_completion_tokens").then_some(MODEL_REPLY_TOKENS_MAX),
            // Servers differ in the width of a seed; all accept 31 bits.
            seed: self.seed.filter(|_| options.has("seed")).map(|seed| seed & 0x7fff_ffff),
        };
        let tools_bytes: usize = self.tools.iter().map(|tool| tool.as_str().len() + 1).sum();
        let mut text = Vec::with_capacity(tools_bytes + OTHER_BYTES);
        // Text and numbers can always be written.
        serde_json::to_writer(&mut text, &body).unwrap_or_default();
        text
    }
}

/// The usual size of a request beside its tools.
const OTHER_BYTES: usize = 8 * 1024;

/// A request as it is sent. It is written straight from its parts, because the tools can be large.
#[derive(Serialize)]
struct Body<'a> {
    model: &'a str,
    messages: &'a [Value],
    #[serde(skip_serializing_if = "<[JsonText]>::is_empty")]
    tools: &'a [JsonText],
    stream: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    stream_options: Option<Value>,
    #[serde(skip_serializing_if = "Option::is_none")]
    max_completion_tokens: Option<u32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    seed: Option<u64>,
}

/// An entry of `tools`.
#[must_use]
pub fn tool(spec: &ToolSpec) -> JsonText {
    json!({"type": "function", "function": {
        "name": spec.name, "description": spec.description, "parameters": parameters_of(spec)}})
    .into()
}

/// The schema of a tool's arguments, as OpenAI takes it.
pub fn parameters_of(spec: &ToolSpec) -> Map<String, Value> {
    let mut parameters = match spec.parameters.parse() {
        Value::Object(schema) => schema,
        _ => Map::new(),
    };
    // OpenAI rejects an object schema without properties; JSON Schema allows it.
    parameters.entry("type").or_insert_with(|| "object".into());
    parameters.entry("properties").or_insert_with(|| json!({}));
    parameters
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_body_follows_the_api() {
        let request =
            ChatRequest { messages: vec![json!({"role": "user"})], tools: vec![], seed: Some(u64::MAX) };
        assert_eq!(
            String::from_utf8(request.body("m", Options::ALL)).unwrap(),
            r#"{"model":"m","messages":[{"role":"user"}],"stream":true,"stream_options":{"include_usage":true},"max_completion_tokens":4096,"seed":2147483647}"#
        );
    }

    #[test]
    fn a_rejected_field_is_left_out() {
        let error = |param: &str, message: &str| ProviderError {
            param: param.into(),
            message: message.into(),
            ..ProviderError::default()
        };
        let left = Options::ALL.without_refused(&error("seed", "")).unwrap();
        let left = left.without_refused(&error("", "Extra inputs: max_completion_tokens")).unwrap();
        assert_eq!(left.without_refused(&error("seed", "no model of that name")), None);
        let body = ChatRequest { seed: Some(1), ..ChatRequest::default() }.body("m", left);
        assert_eq!(
            String::from_utf8(body).unwrap(),
            r#"{"model":"m","messages":[],"stream":true,"stream_options":{"include_usage":true}}"#
        );
        assert_eq!(Options::from_bits(left.bits()), left);
    }

    #[test]
    fn the_most_precise_place_of_an_error_counts() {
        let refused = |error: ProviderError| {
            Options::ALL.without_refused(&error).map(|left| OPTIONAL.map(|name| left.has(name)))
        };
        let error = ProviderError {
            param: "body.seed".into(),
            message: "Extra inputs".into(),
            body: r#"{"input": {"stream_options": {}, "seed": 1}}"#.into(),
            ..ProviderError::default()
        };
        assert_eq!(refused(error), Some([false, true, true]));
        let page = ProviderError {
            body: "<p>unknown field `stream_options`</p>".into(),
            ..ProviderError::default()
        };
        assert_eq!(refused(page), Some([true, false, true]));
        for other in ["seeded", "linseed", "my_seed", "max_completion_tokens_2", ""] {
            assert_eq!(
                refused(ProviderError { body: other.into(), ..ProviderError::default() }),
                None,
                "{other}"
            );
        }
    }

    #[test]
    fn a_schema_gets_the_fields_that_openai_requires() {
        let spec = ToolSpec {
            name: "f".into(),
            description: "d".into(),
            parameters: json!({"type": "object"}).into(),
        };
        assert_eq!(
            tool(&spec).parse()["function"]["parameters"],
            json!({"type": "object", "properties": {}})
        );
    }
}
