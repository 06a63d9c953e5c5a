//! The messages of a session, as OpenAI's API reference of the Realtime API has them (client and server events).
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::RealtimeSettings;
use crate::base::limits::REALTIME_REPLY_TOKENS_MAX;
use crate::conversation::ToolSpec;
use crate::models::openai::request::parameters_of;
use crate::speech::audio::Rate;
use crate::speech::g711;
use crate::speech::transcribers::transcription_of;

/// The speeds that the protocol knows.
const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=1.5;

/// Describes the session.
pub(super) fn session(settings: &RealtimeSettings, rate: Rate) -> String {
    let format = match rate {
        Rate::Khz8 => json!({"type": "audio/pcmu"}),
        _ => json!({"type": "audio/pcm", "rate": rate.hz()}),
    };
    let mut output = json!({"format": format});
    if let Some(voice) = &settings.voice {
        output["voice"] = voice.as_str().into();
    }
    if let Some(speed) = settings.speed {
        output["speed"] = speed.clamp(*SPEEDS.start(), *SPEEDS.end()).into();
    }
    let tools: Vec<Value> = settings.tools.iter().map(tool).collect();
    json!({
        "type": "session.update",
        "event_id": "session",
        "session": {
            "type": "realtime",
            "output_modalities": ["audio"],
            "instructions": settings.prompt,
            "max_output_tokens": REALTIME_REPLY_TOKENS_MAX,
            "tools": tools,
            "tool_choice": "auto",
            "audio": {
                "input": {
                    "format": format,
                    "transcription": transcription_of(&settings.transcription),
                    "turn_detection": null,
                },
                "output": output,
            },
        },
    })
    .to_string()
}

fn tool(spec: &ToolSpec) -> Value {
    json!({"type": "function", "name": spec.name, "description": spec.description,
        "parameters": parameters_of(spec)})
}

/// Asks for the next step of the conversation.
pub(super) fn ask() -> String {
    json!({"type": "response.create", "event_id": RESPONSE}).to_string()
}

/// Asks to read a line out. It is no part of the server's conversation.
pub(super) fn read_out(text: &str) -> String {
    let instructions = format!(
        "Say exactly these words, in their language, as a part of a telephone call. Add nothing and leave nothing out.\n\n{text}"
    );
    json!({"type": "response.create", "event_id": RESPONSE, "response": {
        "conversation": "none", "input": [], "instructions": instructions, "tool_choice": "none"}})
    .to_string()
}

/// The event id of what asks for a response, so that an error about it can be recognised.
pub(super) const RESPONSE: &str = "response";

pub(super) fn cancel(response: &str) -> String {
    json!({"type": "response.cancel", "response_id": response}).to_string()
}

pub(super) fn truncate(item: &str, audio_end_ms: i64) -> String {
    json!({"type": "conversation.item.truncate", "item_id": item, "content_index": 0,
        "audio_end_ms": audio_end_ms})
    .to_string()
}

pub(super) fn delete(item: &str) -> String {
    json!({"type": "conversation.item.delete", "item_id": item}).to_string()
}

/// Creates an item with this id after another one.
pub(super) fn create(mut item: Value, id: &str, after: &str) -> String {
    item["id"] = id.into();
    json!({"type": "conversation.item.create", "previous_item_id": after, "item": item}).to_string()
}

/// A line of the person that was not spoken over this session.
pub(super) fn user(text: &str) -> Value {
    json!({"type": "message", "role": "user", "content": [{"type": "input_text", "text": text}]})
}

/// A line of the assistant that is no response of this session.
pub(super) fn assistant(text: &str) -> Value {
    json!({"type": "message", "role": "assistant", "content": [{"type": "output_text", "text": text}]})
}

pub(super) fn call(id: &str, name: &str, arguments: &Value) -> Value {
    json!({"type": "function_call", "call_id": id, "name": name, "arguments": arguments.to_string()})
}

pub(super) fn result(id: &str, text: &str) -> Value {
    json!({"type": "function_call_output", "call_id": id, "output": text})
}

/// A text of a message; empty if there is none.
pub(super) fn text<'a>(message: &'a Value, path: &str) -> &'a str {
    message.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// What an event is called. The names of the beta protocol stand for those of the present one.
pub(super) fn kind(message: &Value) -> String {
    let kind = text(message, "/type");
    match kind.strip_prefix("response.").and_then(|kind| kind.split_once('.')) {
        Some((what @ ("audio" | "audio_transcript" | "text"), rest)) => {
            format!("response.output_{what}.{rest}")
        }
        _ => kind.to_owned(),
    }
}

/// The samples of a piece of audio. `odd` has half a sample of the piece before.
pub(super) fn samples(delta: &str, rate: Rate, odd: &mut Option<u8>) -> Option<Vec<i16>> {
    let bytes = STANDARD.decode(delta).ok()?;
    if rate == Rate::Khz8 {
        return Some(g711::decode(&bytes));
    }
    let mut bytes: Vec<u8> = odd.take().into_iter().chain(bytes).collect();
    if bytes.len() % 2 == 1 {
        *odd = bytes.pop();
    }
    Some(bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect())
}
