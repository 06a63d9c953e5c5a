//! Replies on the wire, in OpenAI's shape or in one observed on compatible servers.
use bytes::Bytes;
use serde_json::{Value, json};

use super::behaviour::Reply;

/// The shape of a reply.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Shape {
    /// As OpenAI sends it.
    #[default]
    Usual,
    /// Calls without an index, each complete.
    NoIndex,
    /// Every call has index 0.
    ZeroIndex,
    /// Every call in one fragment.
    Whole,
    /// Every fragment of a call has another id.
    ChangingIds,
    /// `finish_reason` is `stop` despite calls.
    Stop,
    /// `finish_reason` is `length`.
    Length,
    /// Without `[DONE]`.
    NoDone,
    /// CR LF line ends, with comments in between.
    CrLf,
    /// One byte at a time.
    OneByte,
    /// Content as a list of parts.
    Parts,
    /// Never streamed.
    NotStreamed,
    /// Without `usage`.
    NoUsage,
    /// An error after the first words.
    Error,
}

/// Characters per fragment of text.
const PIECE_CHARS: usize = 7;

/// A `chat.completion`.
pub fn whole(body: &Value, reply: &Reply) -> Value {
    let calls: Vec<Value> = reply.calls.iter().enumerate().map(|(n, call)| call_of(n, call)).collect();
    let or_null = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    let mut message =
        json!({"role": "assistant", "content": or_null(&reply.text), "refusal": or_null(&reply.refusal)});
    if !calls.is_empty() {
        message["tool_calls"] = calls.into();
    }
    let mut completion = envelope(body, "chat.completion");
    completion["choices"] =
        json!([{"index": 0, "message": message, "logprobs": null, "finish_reason": finish_reason(reply)}]);
    completion["usage"] = usage(body, reply);
    completion
}

/// The events of a stream.
pub fn events(body: &Value, reply: &Reply, shape: Shape) -> Vec<Bytes> {
    let counted = body["stream_options"]["include_usage"] == true && shape != Shape::NoUsage;
    let event = |choices: Value, usage: Value| {
        let mut chunk = envelope(body, "chat.completion.chunk");
        chunk["choices"] = choices;
        if counted {
            chunk["usage"] = usage;
        }
        format!("data: {chunk}\n\n")
    };
    let delta = |delta: Value, reason: Value| {
        let choice = json!([{"index": 0, "delta": delta, "logprobs": null, "finish_reason": reason}]);
        event(choice, Value::Null)
    };
    let first = if reply.calls.is_empty() { json!("") } else { Value::Null };
    let mut events =
        vec![delta(json!({"role": "assistant", "content": first, "refusal": null}), Value::Null)];
    for piece in pieces(&reply.text) {
        let content = match shape {
            Shape::Parts => json!([{"type": "text", "text": piece}]),
            _ => piece.into(),
        };
        events.push(delta(json!({ "content": content }), Value::Null));
    }
    if shape == Shape::Error {
        let error = json!({"error": {"message": "The server had an error", "type": "server_error", "param": null,
            "code": null}});
        events.push(format!("data: {error}\n\n"));
        return events.into_iter().map(Bytes::from).collect();
    }
    events.extend(pieces(&reply.refusal).map(|piece| delta(json!({"refusal": piece}), Value::Null)));
    for (n, call) in reply.calls.iter().enumerate() {
        events.extend(
            call_pieces(n, call, shape).map(|call| delta(json!({"tool_calls": [call]}), Value::Null)),
        );
    }
    let reason = match shape {
        Shape::Stop => "stop",
        Shape::Length => "length",
        _ => finish_reason(reply),
    };
    events.push(delta(json!({}), reason.into()));
    if counted {
        events.push(event(json!([]), usage(body, reply)));
    }
    if shape != Shape::NoDone {
        events.push("data: [DONE]\n\n".to_owned());
    }
    match shape {
        Shape::CrLf => events
            .iter()
            .map(|event| Bytes::from(format!(": ping\n\n{event}").replace('\n', "\r\n")))
            .collect(),
        Shape::OneByte => {
            events.concat().into_bytes().into_iter().map(|byte| Bytes::from(vec![byte])).collect()
        }
        _ => events.into_iter().map(Bytes::from).collect(),
    }
}

/// One fragment of text.
pub fn text_event(body: &Value, text: &str) -> String {
    let mut chunk = envelope(body, "chat.completion.chunk");
    chunk["choices"] = json!([{"index": 0, "delta": {"content": text}, "finish_reason": null}]);
    format!("data: {chunk}\n\n")
}

/// The text in an event.
pub fn text_of(event: &Bytes) -> Option<String> {
    let chunk: Value = serde_json::from_slice(event.strip_prefix(b"data: ")?).ok()?;
    Some(chunk["choices"][0]["delta"]["content"].as_str()?.to_owned())
}

fn envelope(body: &Value, object: &str) -> Value {
    json!({"id": "chatcmpl-fake", "object": object, "created": 1_700_000_000, "model": body["model"],
        "service_tier": "default", "system_fingerprint": "fp_fake"})
}

fn finish_reason(reply: &Reply) -> &'static str {
    if reply.calls.is_empty() { "stop" } else { "tool_calls" }
}

/// One token per word, so that scenarios can count them.
fn usage(body: &Value, reply: &Reply) -> Value {
    let words = |text: &str| text.split_whitespace().count();
    let read: usize = body["messages"]
        .as_array()
        .into_iter()
        .flatten()
        .map(|message| words(message["content"].as_str().unwrap_or_default()))
        .sum();
    let written = words(&reply.text) + words(&reply.refusal) + reply.calls.len();
    json!({"prompt_tokens": read, "completion_tokens": written, "total_tokens": read + written})
}

fn call_of(n: usize, (name, arguments): &(String, String)) -> Value {
    json!({"id": format!("call_{n}"), "type": "function", "function": {"name": name, "arguments": arguments}})
}

/// The fragments of a call: first its name, then its arguments.
fn call_pieces(n: usize, call: &(String, String), shape: Shape) -> impl Iterator<Item = Value> {
    let mut whole = call_of(n, call);
    let index = if shape == Shape::ZeroIndex { 0 } else { n };
    if shape != Shape::NoIndex {
        whole["index"] = index.into();
    }
    if matches!(shape, Shape::NoIndex | Shape::Whole) {
        return vec![whole].into_iter();
    }
    let mut out = Vec::new();
    whole["function"]["arguments"] = "".into();
    out.push(whole);
    for (part, text) in pieces(&call.1).enumerate() {
        let mut piece = json!({"index": index, "function": {"arguments": text}});
        if shape == Shape::ChangingIds {
            piece["id"] = format!("call_{n}_{part}").into();
            piece["function"]["name"] = "".into();
        }
        out.push(piece);
    }
    out.into_iter()
}

fn pieces(text: &str) -> impl Iterator<Item = String> {
    let chars: Vec<char> = text.chars().collect();
    let pieces: Vec<String> = chars.chunks(PIECE_CHARS).map(|piece| piece.iter().collect()).collect();
    pieces.into_iter()
}
