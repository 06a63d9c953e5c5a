//! Vonage's end of a media socket, from its guide "WebSockets".
use serde_json::{Map, Value, json};

use super::fields::{object, text};
use crate::fakes::carrier::wire::{FromService, MediaWire, WireMessage};

/// The state of one socket.
#[derive(Debug)]
pub struct VonageMedia {
    /// Samples per second.
    pub rate_hz: u32,
    /// The headers from the document.
    pub headers: Map<String, Value>,
}

impl MediaWire for VonageMedia {
    fn rate_hz(&self) -> u32 {
        self.rate_hz
    }

    fn opening(&mut self) -> Vec<WireMessage> {
        let mut first = Map::new();
        first.insert("event".to_owned(), json!("websocket:connected"));
        first.insert("content-type".to_owned(), json!(format!("audio/l16;rate={}", self.rate_hz)));
        first.extend(self.headers.clone());
        vec![WireMessage::Text(Value::Object(first).to_string())]
    }

    fn audio(&mut self, samples: &[i16]) -> WireMessage {
        WireMessage::Binary(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
    }

    fn key(&mut self, key: char) -> WireMessage {
        let message = json!({"event": "websocket:dtmf", "digit": key.to_string(), "duration": 260});
        WireMessage::Text(message.to_string())
    }

    fn played(&mut self, name: &str) -> WireMessage {
        WireMessage::Text(json!({"event": "websocket:notify", "payload": {"name": name}}).to_string())
    }

    /// Discarded marks are not reported.
    fn cleared(&mut self, _: &[String]) -> Vec<WireMessage> {
        vec![WireMessage::Text(json!({"event": "websocket:cleared"}).to_string())]
    }

    fn closing(&mut self) -> Vec<WireMessage> {
        Vec::new()
    }

    fn read(&mut self, message: &WireMessage) -> Result<FromService, String> {
        match message {
            WireMessage::Binary(bytes) => {
                let wanted = self.rate_hz as usize / 50 * 2;
                let samples =
                    bytes.chunks_exact(2).map(|pair| i16::from_le_bytes([pair[0], pair[1]])).collect();
                match bytes.len() == wanted {
                    true => Ok(FromService::Audio(samples)),
                    false => Err(format!("a message of {} bytes, not of {wanted}", bytes.len())),
                }
            }
            WireMessage::Text(text) => command(text),
        }
    }
}

fn command(message: &str) -> Result<FromService, String> {
    let message: Value = serde_json::from_str(message).map_err(|error| error.to_string())?;
    match message.get("action").and_then(Value::as_str) {
        Some("clear") => object(&message, "clear", &["action"]).map(|_| FromService::Clear),
        Some("notify") => {
            let message = object(&message, "notify", &["action", "payload"])?;
            let payload = object(message.get("payload").unwrap_or(&Value::Null), "payload", &["name"])?;
            text(payload, "name").map(|name| FromService::Mark(name.to_owned()))
        }
        other => Err(format!("no such action: {other:?}")),
    }
}
