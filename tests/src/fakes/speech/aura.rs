//! Deepgram's voices: `/v1/speak`.
use serde_json::{Value, json};
use tungstenite::{Bytes, Message};

use super::{Opened, Over, Socket, next, speak, tell};

pub(super) fn run(socket: &mut Socket, opened: &Opened) -> Result<(), Over> {
    let rate = opened.rate()?;
    if opened.query("encoding") != Some("linear16")
        || !opened.query("model").is_some_and(|name| name.starts_with("aura"))
    {
        return Err("unsupported parameters".into());
    }
    let speed = opened.query("speed").map_or(Ok(1.0), str::parse::<f64>)?;
    if !(0.7..=1.5).contains(&speed) {
        return Err("speed is out of range".into());
    }
    tell(socket, &json!({"type": "Metadata", "request_id": "r1", "model_name": opened.query("model")}))?;
    let (mut waiting, mut sequence) = (String::new(), 0);
    while let Some(message) = next(socket) {
        let message: Value = serde_json::from_str(message.to_text()?)?;
        match message["type"].as_str() {
            Some("Speak") => waiting.push_str(message["text"].as_str().ok_or("no text")?),
            Some("Flush") => {
                speak(socket, opened.name(), (&waiting, rate), |socket, _, piece| {
                    Ok(socket.send(Message::Binary(Bytes::from(piece)))?)
                })?;
                waiting.clear();
                tell(socket, &json!({"type": "Flushed", "sequence_id": sequence}))?;
                sequence += 1;
            }
            Some("Clear") => {
                waiting.clear();
                tell(socket, &json!({"type": "Cleared", "sequence_id": sequence}))?;
                sequence += 1;
            }
            Some("Close") => return Ok(()),
            _ => return Err("unknown message".into()),
        }
    }
    Ok(())
}
