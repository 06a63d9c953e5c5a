//! Cartesia's voices: `/tts/websocket`.
use std::collections::{BTreeMap, BTreeSet};

use serde_json::{Value, json};

use super::{CHAR_MS, Opened, Over, Socket, base64, misbehave, next, rate, sound_ms, speak, tell};

pub(super) fn run(socket: &mut Socket, opened: &Opened) -> Result<(), Over> {
    if opened.header("cartesia-version").is_empty() && opened.query("cartesia_version").is_none() {
        return Err("no version".into());
    }
    // What the contexts have said so far, in ms.
    let mut contexts: BTreeMap<String, i64> = BTreeMap::new();
    let mut closed: BTreeSet<String> = BTreeSet::new();
    while let Some(message) = next(socket) {
        let message: Value = serde_json::from_str(message.to_text()?)?;
        let id = message["context_id"].as_str().ok_or("no context")?.to_owned();
        if message["cancel"] == true {
            contexts.remove(&id);
            closed.insert(id);
            continue;
        }
        if closed.contains(&id) {
            let why = json!({"type": "error", "title": "Invalid context", "message": "The context has closed.",
                             "status_code": 400, "context_id": id});
            tell(socket, &why)?;
            continue;
        }
        let name = message["voice"]["id"].as_str().unwrap_or_default();
        misbehave(socket, name)?;
        if name.ends_with("refuses") {
            let why = json!({"type": "error", "title": "Unauthorized", "message": "Invalid API key.",
                             "status_code": 401, "context_id": id});
            tell(socket, &why)?;
            continue;
        }
        let format = &message["output_format"];
        let is_known = message["model_id"].is_string()
            && message["voice"]["id"].is_string()
            && format["container"] == "raw"
            && format["encoding"] == "pcm_s16le";
        if !is_known {
            return Err("unsupported parameters".into());
        }
        let speed = message["generation_config"]["speed"].as_f64().unwrap_or(1.0);
        if !(0.6..=1.5).contains(&speed) {
            return Err("speed is out of range".into());
        }
        let rate = rate(format["sample_rate"].as_u64())?;
        let text = message["transcript"].as_str().ok_or("no transcript")?;
        let said_ms = contexts.entry(id.clone()).or_default();
        speak(socket, name, (text, rate), |socket, _, piece| {
            let chunk = json!({"type": "chunk", "data": base64(&piece), "done": false, "status_code": 206,
                               "step_time": 1.5, "context_id": id});
            tell(socket, &chunk)
        })?;
        if message["add_timestamps"] == true && !text.trim().is_empty() {
            let (mut words, mut starts, mut ends, mut chars) = (Vec::new(), Vec::new(), Vec::new(), 0);
            for word in text.trim().split(' ') {
                let until = chars + word.chars().count() as i64;
                let seconds = |chars: i64| (*said_ms + chars * CHAR_MS) as f64 / 1_000.0;
                words.push(word);
                starts.push(seconds(chars));
                ends.push(seconds(until));
                chars = until + 1;
            }
            tell(
                socket,
                &json!({"type": "timestamps", "done": false, "status_code": 206, "context_id": id,
                                 "word_timestamps": {"words": words, "start": starts, "end": ends}}),
            )?;
        }
        *said_ms += sound_ms(text);
        if message["continue"] != true {
            tell(socket, &json!({"type": "done", "done": true, "status_code": 200, "context_id": id}))?;
            contexts.remove(&id);
            closed.insert(id);
        }
    }
    Ok(())
}
