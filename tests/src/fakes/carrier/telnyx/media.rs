//! Telnyx's end of a media socket. Source: "Stream call media over WebSocket".
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::super::mulaw;
use super::super::wire::{FromService, MediaWire, PhoneCall, WireMessage};
use super::uuid;

/// Audio in one message to Telnyx: 20 ms to 30 s.
const AUDIO_BYTES: std::ops::RangeInclusive<usize> = 160..=240_000;

/// The state of one stream.
pub(super) struct TelnyxMedia {
    call: PhoneCall,
    stream_id: String,
    sequence_number: u32,
    chunk: u32,
}

impl TelnyxMedia {
    pub(super) fn new(call: &PhoneCall) -> Self {
        let stream_id = uuid(&format!("stream {}", call.carrier_call_id));
        Self { call: call.clone(), stream_id, sequence_number: 0, chunk: 0 }
    }

    /// A message with its sequence number and the stream's id.
    fn message(&mut self, event: &str, content: Value) -> WireMessage {
        self.sequence_number += 1;
        let message = json!({
            "event": event,
            "sequence_number": self.sequence_number.to_string(),
            event: content,
            "stream_id": self.stream_id,
        });
        WireMessage::Text(message.to_string())
    }
}

impl MediaWire for TelnyxMedia {
    fn rate_hz(&self) -> u32 {
        8_000
    }

    fn opening(&mut self) -> Vec<WireMessage> {
        let connected = json!({"event": "connected", "version": "1.0.0"}).to_string();
        let start = json!({
            "user_id": "3E6F995F-85F7-4705-9741-53B116D28237",
            "call_control_id": self.call.carrier_call_id,
            "call_session_id": self.call.other_id,
            "from": self.call.from,
            "to": self.call.to,
            "client_state": null,
            "tags": [],
            "media_format": {"encoding": "PCMU", "sample_rate": 8_000, "channels": 1},
        });
        vec![WireMessage::Text(connected), self.message("start", start)]
    }

    fn audio(&mut self, samples: &[i16]) -> WireMessage {
        let bytes: Vec<u8> = samples.iter().copied().map(mulaw::encode).collect();
        let timestamp_ms = self.chunk * 20;
        self.chunk += 1;
        let media = json!({
            "track": "inbound",
            "chunk": self.chunk.to_string(),
            "timestamp": timestamp_ms.to_string(),
            "payload": STANDARD.encode(bytes),
        });
        self.message("media", media)
    }

    fn key(&mut self, key: char) -> WireMessage {
        self.message("dtmf", json!({"digit": key.to_string()}))
    }

    fn played(&mut self, name: &str) -> WireMessage {
        self.message("mark", json!({ "name": name }))
    }

    /// No confirmation is documented.
    fn cleared(&mut self, _marks: &[String]) -> Vec<WireMessage> {
        Vec::new()
    }

    fn closing(&mut self) -> Vec<WireMessage> {
        let stop = json!({
            "user_id": "3E6F995F-85F7-4705-9741-53B116D28237",
            "call_control_id": self.call.carrier_call_id,
        });
        vec![self.message("stop", stop)]
    }

    fn read(&mut self, message: &WireMessage) -> Result<FromService, String> {
        let WireMessage::Text(text) = message else { return Err("a binary message".to_owned()) };
        let message: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        let event = message.get("event").and_then(Value::as_str).ok_or("no event")?;
        let only = |object: &Map<String, Value>, names: &[&str]| {
            let odd = object.keys().find(|name| !names.contains(&name.as_str()));
            odd.map_or(Ok(()), |name| Err(format!("{event} has no {name}")))
        };
        let text = |part: &str, name: &str| {
            only(&message, &["event", part])?;
            let part = message.get(part).and_then(Value::as_object).ok_or(format!("no {part}"))?;
            only(part, &[name])?;
            part.get(name).and_then(Value::as_str).map(str::to_owned).ok_or(format!("no {name}"))
        };
        match event {
            "media" => {
                let bytes = STANDARD.decode(text("media", "payload")?).map_err(|error| error.to_string())?;
                match AUDIO_BYTES.contains(&bytes.len()) {
                    true => Ok(FromService::Audio(bytes.into_iter().map(mulaw::decode).collect())),
                    false => Err(format!("{} bytes of audio", bytes.len())),
                }
            }
            "mark" => match text("mark", "name")? {
                name if name.is_empty() => Err("a mark without a name".to_owned()),
                name => Ok(FromService::Mark(name)),
            },
            "clear" => only(&message, &["event"]).map(|()| FromService::Clear),
            other => Err(format!("no event {other}")),
        }
    }
}
