//! The messages of a session, as OpenAI's API reference of the Realtime API has them (client and server events).
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;

use super::RealtimeSettings;
use crate::base::limits::REALTIME_REPLY_TOKENS_MAX;
use crate::conversation::ToolSpec;
use crate::models::openai::request::parameters_of;
use crate::speech::audio::Rate;
use crate::speech::g711;
use crate::speech::transcribers::transcription_of;

/// Ids of servers are much shorter.
const ID_BYTES_MAX: usize = 256;

/// The speeds that the protocol knows.
pub const SPEEDS: std::ops::RangeInclusive<f64> = 0.25..=1.5;

/// A text as JSON. Messages are texts with gaps: a tree of values for each would take much of the Worker.
pub(super) fn quoted(text: &str) -> String {
    Value::from(text).to_string()
}

/// Describes the session.
pub(super) fn session(settings: &RealtimeSettings, rate: Rate) -> String {
    let format = match rate {
        Rate::Khz8 => r#"{"type":"audio/pcmu"}"#,
        _ => r#"{"type":"audio/pcm","rate":24000}"#,
    };
    let mut output = format!(r#""format":{format}"#);
    if let Some(voice) = &settings.voice {
        output.push_str(&format!(r#","voice":{}"#, quoted(voice)));
    }
    if let Some(speed) = settings.speed {
        output.push_str(&format!(r#","speed":{}"#, speed.clamp(*SPEEDS.start(), *SPEEDS.end())));
    }
    let tools: Vec<String> = settings.tools.iter().map(tool).collect();
    format!(
        r#"{{"type":"session.update","event_id":"session","session":{{"type":"realtime","output_modalities":["audio"],"instructions":{},"max_output_tokens":{REALTIME_REPLY_TOKENS_MAX},"tools":[{}],"tool_choice":"auto","audio":{{"input":{{"format":{format},"transcription":{},"turn_detection":null}},"output":{{{output}}}}}}}}}"#,
        quoted(&settings.prompt),
        tools.join(","),
        transcription_of(&settings.transcription),
    )
}

fn tool(spec: &ToolSpec) -> String {
    format!(
        r#"{{"type":"function","name":{},"description":{},"parameters":{}}}"#,
        quoted(&spec.name),
        quoted(&spec.description),
        Value::Object(parameters_of(spec)),
    )
}

/// Asks for the next step of the conversation.
pub(super) fn ask() -> String {
    format!(r#"{{"type":"response.create","event_id":"{RESPONSE}"}}"#)
}

/// Asks to read a line out. It is no part of the server's conversation.
pub(super) fn read_out(text: &str) -> String {
    let instructions = format!(
        "Say exactly these words, in their language, as a part of a telephone call. Add nothing and leave nothing out.\n\n{text}"
    );
    format!(
        r#"{{"type":"response.create","event_id":"{RESPONSE}","response":{{"conversation":"none","input":[],"tool_choice":"none","instructions":{}}}}}"#,
        quoted(&instructions),
    )
}

/// The event id of what asks for a response, so that an error about it can be recognised.
pub(super) const RESPONSE: &str = "response";

pub(super) fn cancel(response: &str) -> String {
    format!(r#"{{"type":"response.cancel","response_id":{}}}"#, quoted(response))
}

pub(super) fn truncate(item: &str, audio_end_ms: i64) -> String {
    format!(
        r#"{{"type":"conversation.item.truncate","item_id":{},"content_index":0,"audio_end_ms":{audio_end_ms}}}"#,
        quoted(item),
    )
}

pub(super) fn delete(item: &str) -> String {
    format!(r#"{{"type":"conversation.item.delete","item_id":{}}}"#, quoted(item))
}

/// Creates an item with this id after another one.
pub(super) fn create(item: &str, id: &str, after: &str) -> String {
    format!(
        r#"{{"type":"conversation.item.create","previous_item_id":{},"item":{{"id":"{id}",{item}}}}}"#,
        quoted(after),
    )
}

/// A line of the person that was not spoken over this session, or one of the assistant that is no response of it.
pub(super) fn line(is_user: bool, text: &str) -> String {
    let (role, content) = if is_user { ("user", "input_text") } else { ("assistant", "output_text") };
    let text = quoted(text);
    format!(r#""type":"message","role":"{role}","content":[{{"type":"{content}","text":{text}}}]"#)
}

pub(super) fn call(id: &str, name: &str, arguments: &Value) -> String {
    let (id, name, arguments) = (quoted(id), quoted(name), quoted(&arguments.to_string()));
    format!(r#""type":"function_call","call_id":{id},"name":{name},"arguments":{arguments}"#)
}

pub(super) fn result(id: &str, text: &str) -> String {
    format!(r#""type":"function_call_output","call_id":{},"output":{}"#, quoted(id), quoted(text))
}

/// A text of a message; empty if there is none.
pub(super) fn text<'a>(message: &'a Value, path: &str) -> &'a str {
    message.pointer(path).and_then(Value::as_str).unwrap_or_default()
}

/// An id of the server's; empty if there is none, or one so long that nobody needs to keep it.
pub(super) fn id<'a>(message: &'a Value, path: &str) -> &'a str {
    Some(text(message, path)).filter(|id| id.len() <= ID_BYTES_MAX).unwrap_or_default()
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
