//! ElevenLabs' voices: `/v1/text-to-speech/{voice}/multi-stream-input`, and `stream-input` for its own client, which has only
//! sockets with one context.
use std::collections::BTreeSet;

use serde_json::{Value, json};

use super::{CHAR_MS, Opened, Over, Socket, base64, next, rate, speak, tell};

/// The context of a socket without names for them.
const ONLY: &str = "";
/// The most contexts at once.
const CONTEXTS_MAX: usize = 5;

pub(super) fn run(socket: &mut Socket, opened: &Opened) -> Result<(), Over> {
    let has_contexts = opened.path.ends_with("/multi-stream-input");
    if !has_contexts && !opened.path.ends_with("/stream-input") {
        return Err("no such path".into());
    }
    let format = opened
        .query("output_format")
        .and_then(|format| format.strip_prefix("pcm_"))
        .ok_or("unsupported format")?;
    let rate = rate(format.parse().ok())?;
    let mut contexts = BTreeSet::new();
    while let Some(message) = next(socket) {
        let message: Value = serde_json::from_str(message.to_text()?)?;
        if message["close_socket"] == true {
            return Ok(());
        }
        let id = if has_contexts { message["context_id"].as_str() } else { Some(ONLY) };
        let Some(id) = id else { continue };
        if message["close_context"] == true {
            if contexts.remove(id) {
                tell(socket, &json!({"audio": null, "isFinal": true, "contextId": id}))?;
            }
            continue;
        }
        let text = message["text"].as_str().unwrap_or_default();
        if !contexts.contains(id) {
            if text != " " {
                return Err("a context begins with a blank".into());
            }
            let speed = message["voice_settings"]["speed"].as_f64().unwrap_or(1.0);
            if !(0.7..=1.2).contains(&speed) {
                return Err("speed is out of range".into());
            }
            contexts.insert(id.to_owned());
            if contexts.len() > CONTEXTS_MAX {
                return Err("Maximum simultaneous contexts exceeded".into());
            }
            continue;
        }
        if text.is_empty() && !has_contexts {
            return tell(socket, &json!({"audio": null, "isFinal": true}));
        }
        if text.trim().is_empty() {
            continue;
        }
        if !text.ends_with(' ') {
            return Err("text ends with a blank".into());
        }
        let chars: Vec<String> = text.trim().chars().map(String::from).collect();
        let count = chars.len() as i64;
        let alignment = json!({
            "chars": chars,
            "charStartTimesMs": (0..count).map(|n| n * CHAR_MS).collect::<Vec<_>>(),
            "charDurationsMs": vec![CHAR_MS; chars.len()],
        });
        speak(socket, opened.name(), (text, rate), |socket, nth, piece| {
            let alignment = if nth == 0 { alignment.clone() } else { Value::Null };
            let mut audio = json!({"audio": base64(&piece), "isFinal": null, "alignment": alignment,
                                   "normalizedAlignment": alignment});
            if has_contexts {
                audio["contextId"] = id.into();
            }
            tell(socket, &audio)
        })?;
    }
    Ok(())
}
