//! Twilio's end of a Media Stream.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::super::mulaw;
use super::ACCOUNT_SID;
use crate::fakes::carrier::wire::{FromService, MediaWire, PhoneCall, WireMessage};

/// Samples of 20 ms.
const FRAME_SAMPLES: usize = 160;

/// The state of one stream.
pub struct Stream {
    call_sid: String,
    stream_sid: String,
    messages: u64,
    chunks: u64,
}

impl Stream {
    /// The stream of a call.
    pub fn of(call: &PhoneCall) -> Self {
        let stream_sid = match call.other_id.strip_prefix("MZ") {
            Some(_) => call.other_id.clone(),
            None => format!("MZ{}", call.carrier_call_id.trim_start_matches("CA")),
        };
        Self { call_sid: call.carrier_call_id.clone(), stream_sid, messages: 0, chunks: 0 }
    }

    /// A message with the next sequence number and the stream's id. Numbers are strings.
    fn message(&mut self, event: &str, part: Value) -> WireMessage {
        self.messages += 1;
        let mut message = json!({"event": event, "sequenceNumber": self.messages.to_string()});
        message[event] = part;
        message["streamSid"] = json!(self.stream_sid);
        WireMessage::Text(message.to_string())
    }
}

impl MediaWire for Stream {
    fn rate_hz(&self) -> u32 {
        8_000
    }

    fn opening(&mut self) -> Vec<WireMessage> {
        let connected = json!({"event": "connected", "protocol": "Call", "version": "1.0.0"});
        let start = json!({
            "accountSid": ACCOUNT_SID, "streamSid": self.stream_sid, "callSid": self.call_sid,
            "tracks": ["inbound"], "customParameters": {},
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000, "channels": 1},
        });
        vec![WireMessage::Text(connected.to_string()), self.message("start", start)]
    }

    fn audio(&mut self, samples: &[i16]) -> WireMessage {
        assert_eq!(samples.len() % FRAME_SAMPLES, 0, "frames of 20 ms");
        let coded: Vec<u8> = samples.iter().map(|sample| mulaw::encode(*sample)).collect();
        let timestamp = self.chunks * 20;
        self.chunks += 1;
        let (chunk, payload) = (self.chunks.to_string(), STANDARD.encode(coded));
        let media = json!({
            "track": "inbound", "chunk": chunk, "timestamp": timestamp.to_string(), "payload": payload,
        });
        self.message("media", media)
    }

    fn key(&mut self, key: char) -> WireMessage {
        self.message("dtmf", json!({"track": "inbound_track", "digit": key.to_string()}))
    }

    fn played(&mut self, name: &str) -> WireMessage {
        self.message("mark", json!({"name": name}))
    }

    fn cleared(&mut self, marks: &[String]) -> Vec<WireMessage> {
        // There is no separate confirmation: the marks are returned at once.
        marks.iter().map(|name| self.played(name)).collect()
    }

    fn closing(&mut self) -> Vec<WireMessage> {
        let stop = json!({"accountSid": ACCOUNT_SID, "callSid": self.call_sid});
        vec![self.message("stop", stop)]
    }

    fn read(&mut self, message: &WireMessage) -> Result<FromService, String> {
        let WireMessage::Text(text) = message else { return Err("31950: a binary message".to_owned()) };
        let mut message: Map<String, Value> =
            serde_json::from_str(text).map_err(|error| format!("31951: {error}"))?;
        if message.remove("streamSid") != Some(json!(self.stream_sid)) {
            return Err(format!("31951: without this stream's streamSid: {text:.200}"));
        }
        let event = message.remove("event");
        let event = event.as_ref().and_then(Value::as_str).unwrap_or_default();
        let said = match event {
            "clear" => FromService::Clear,
            "mark" => FromService::Mark(only_text(message.remove("mark"), "name")?),
            "media" => FromService::Audio(audio(&only_text(message.remove("media"), "payload")?)?),
            _ => return Err(format!("31951: the event {event:?}")),
        };
        match message.keys().next() {
            Some(name) => Err(format!("31951: {name} beside {event}")),
            None => Ok(said),
        }
    }
}

/// The text of an object's only field.
fn only_text(object: Option<Value>, name: &str) -> Result<String, String> {
    let Some(Value::Object(object)) = object else { return Err("31951: no object".to_owned()) };
    match object.get(name).and_then(Value::as_str) {
        Some(text) if object.len() == 1 && !text.is_empty() => Ok(text.to_owned()),
        _ => Err(format!("31951: not {name} alone")),
    }
}

/// Mu-law without a container, which is recognised by its magic bytes.
fn audio(payload: &str) -> Result<Vec<i16>, String> {
    let bytes = STANDARD.decode(payload).map_err(|error| format!("31951: {error}"))?;
    if bytes.starts_with(b"RIFF") || bytes.starts_with(b"OggS") {
        return Err("31951: audio in a container".to_owned());
    }
    Ok(bytes.into_iter().map(mulaw::decode).collect())
}
