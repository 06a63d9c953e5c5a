//! OpenAI's transcription sessions: `/v1/realtime?intent=transcription`.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;

use super::{Opened, Over, Said, Socket, WORDS_MS, loud_ms, misbehave, next, samples_of, tell};

/// Less audio cannot be committed.
const COMMIT_MS_MIN: i64 = 100;

pub(super) fn run(socket: &mut Socket, opened: &Opened, said: &Said) -> Result<(), Over> {
    if opened.query("intent") != Some("transcription") {
        return Err("unknown intent".into());
    }
    tell(
        socket,
        &json!({"type": "session.created", "event_id": "e1", "session": {"type": "transcription"}}),
    )?;
    let (mut buffer, mut term, mut name, mut items) = (Vec::new(), String::new(), String::new(), 0);
    while let Some(message) = next(socket) {
        let message: Value = serde_json::from_str(message.to_text()?)?;
        match message["type"].as_str() {
            Some("session.update") => {
                let input = &message["session"]["audio"]["input"];
                let is_known = message["session"]["type"] == "transcription"
                    && input["format"] == json!({"type": "audio/pcm", "rate": 24_000})
                    && input["transcription"]["model"].is_string();
                if !is_known {
                    return Err("unsupported session".into());
                }
                name = input["transcription"]["model"].as_str().unwrap_or_default().to_owned();
                misbehave(socket, &name)?;
                term = input["transcription"]["prompt"].as_str().unwrap_or_default().to_owned();
                said.opened(&term);
                tell(
                    socket,
                    &json!({"type": "session.updated", "event_id": "e2", "session": message["session"]}),
                )?;
            }
            Some("input_audio_buffer.append") => {
                let audio = message["audio"].as_str().ok_or("no audio")?;
                buffer.extend(samples_of(&STANDARD.decode(audio)?));
                if loud_ms(&buffer, Rate::Khz24) >= WORDS_MS {
                    said.may_stop(&name, &term)?;
                }
            }
            Some("input_audio_buffer.commit") => {
                let samples = std::mem::take(&mut buffer);
                if Rate::Khz24.ms_of(samples.len()) < COMMIT_MS_MIN {
                    tell(
                        socket,
                        &json!({"type": "error", "error": {
                        "type": "invalid_request_error", "code": "input_audio_buffer_commit_empty",
                        "message": "The buffer is too small.", "event_id": message["event_id"]}}),
                    )?;
                    continue;
                }
                let id = |number: i64| (number > 0).then(|| format!("item_{number}"));
                let previous = id(items);
                items += 1;
                let item = id(items);
                tell(
                    socket,
                    &json!({"type": "input_audio_buffer.committed", "previous_item_id": previous, "item_id": item}),
                )?;
                tell(
                    socket,
                    &json!({"type": "conversation.item.added", "previous_item_id": previous,
                    "item": {"id": item, "type": "message", "role": "user", "status": "completed",
                             "content": [{"type": "input_audio", "transcript": null}]}}),
                )?;
                let heard_ms = loud_ms(&samples, Rate::Khz24);
                let text = if heard_ms >= WORDS_MS {
                    said.heard(&term, heard_ms);
                    said.next(&term)
                } else {
                    String::new()
                };
                let kind = |name: &str| format!("conversation.item.input_audio_transcription.{name}");
                for word in text.split_inclusive(' ') {
                    tell(
                        socket,
                        &json!({"type": kind("delta"), "item_id": item, "content_index": 0, "delta": word}),
                    )?;
                }
                tell(
                    socket,
                    &json!({"type": kind("completed"), "item_id": item, "content_index": 0, "transcript": text}),
                )?;
            }
            Some("input_audio_buffer.clear") => buffer.clear(),
            _ => return Err("unknown message".into()),
        }
    }
    Ok(())
}
