//! Plivo's end of an audio stream: plivo.com/docs/voice-agents/audio-streaming.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::super::mulaw;
use super::AUTH_ID;
use crate::fakes::carrier::wire::{FromService, MediaWire, PhoneCall, WireMessage};

const MESSAGE_BYTES_MAX: usize = 64 * 1024;

/// The state of one stream.
#[derive(Debug)]
pub(super) struct Stream {
    call_id: String,
    stream_id: String,
    sequence: u64,
    chunk: u64,
}

impl Stream {
    pub(super) fn of(call: &PhoneCall) -> Self {
        let call_id = call.carrier_call_id.clone();
        let stream_id = format!("stream-{call_id}");
        Self { call_id, stream_id, sequence: 0, chunk: 0 }
    }

    fn message(&mut self, mut message: Value) -> WireMessage {
        message["sequenceNumber"] = self.sequence.into();
        self.sequence += 1;
        WireMessage::Text(message.to_string())
    }

    fn ours(&self, message: &Map<String, Value>) -> Result<(), String> {
        match message["streamId"] == self.stream_id {
            true => Ok(()),
            false => Err(format!("streamId is not {}", self.stream_id)),
        }
    }
}

impl MediaWire for Stream {
    fn rate_hz(&self) -> u32 {
        8_000
    }

    fn opening(&mut self) -> Vec<WireMessage> {
        let start = json!({
            "callId": self.call_id, "streamId": self.stream_id, "accountId": AUTH_ID, "tracks": ["inbound"],
            "mediaFormat": {"encoding": "audio/x-mulaw", "sampleRate": 8000},
        });
        vec![self.message(json!({"event": "start", "start": start, "extra_headers": "{}"}))]
    }

    fn audio(&mut self, samples: &[i16]) -> WireMessage {
        self.chunk += 1;
        let payload: Vec<u8> = samples.iter().map(|sample| mulaw::encode(*sample)).collect();
        let media = json!({
            "track": "inbound", "timestamp": (self.chunk * 20).to_string(), "chunk": self.chunk,
            "payload": STANDARD.encode(payload),
        });
        let stream_id = self.stream_id.clone();
        self.message(json!({"streamId": stream_id, "event": "media", "media": media, "extra_headers": "{}"}))
    }

    fn key(&mut self, key: char) -> WireMessage {
        let dtmf =
            json!({"track": "inbound", "digit": key.to_string(), "timestamp": (self.chunk * 20).to_string()});
        let stream_id = self.stream_id.clone();
        self.message(json!({"event": "dtmf", "streamId": stream_id, "dtmf": dtmf, "extra_headers": "{}"}))
    }

    fn played(&mut self, name: &str) -> WireMessage {
        let stream_id = self.stream_id.clone();
        self.message(json!({"event": "playedStream", "streamId": stream_id, "name": name}))
    }

    /// The marks of discarded audio are never confirmed.
    fn cleared(&mut self, _marks: &[String]) -> Vec<WireMessage> {
        let stream_id = self.stream_id.clone();
        vec![self.message(json!({"event": "clearedAudio", "streamId": stream_id}))]
    }

    fn closing(&mut self) -> Vec<WireMessage> {
        Vec::new()
    }

    fn read(&mut self, message: &WireMessage) -> Result<FromService, String> {
        let WireMessage::Text(text) = message else { return Err("a binary message".to_owned()) };
        if text.len() > MESSAGE_BYTES_MAX {
            return Err("a message of more than 64 KB".to_owned());
        }
        let message: Map<String, Value> = serde_json::from_str(text).map_err(|error| error.to_string())?;
        match message.get("event").and_then(Value::as_str) {
            Some("playAudio") => {
                named(&message, &["event", "media"])?;
                played_audio(message["media"].as_object().ok_or("media is no object")?)
            }
            Some("checkpoint") => {
                named(&message, &["event", "name", "streamId"])?;
                self.ours(&message)?;
                let name = message["name"].as_str().filter(|name| !name.is_empty());
                Ok(FromService::Mark(name.ok_or("a checkpoint without a name")?.to_owned()))
            }
            Some("clearAudio") => {
                named(&message, &["event", "streamId"])?;
                self.ours(&message)?;
                Ok(FromService::Clear)
            }
            other => Err(format!("event {other:?}")),
        }
    }
}

fn played_audio(media: &Map<String, Value>) -> Result<FromService, String> {
    named(media, &["contentType", "payload", "sampleRate"])?;
    if media["contentType"] != "audio/x-mulaw" || media["sampleRate"] != 8000 {
        return Err(format!("audio in another format: {} {}", media["contentType"], media["sampleRate"]));
    }
    let payload = STANDARD.decode(media["payload"].as_str().unwrap_or_default());
    let bytes = payload.map_err(|error| error.to_string())?;
    match bytes.is_empty() {
        true => Err("empty audio".to_owned()),
        false => Ok(FromService::Audio(bytes.into_iter().map(mulaw::decode).collect())),
    }
}

/// Checks that a message has exactly these fields.
fn named(message: &Map<String, Value>, names: &[&str]) -> Result<(), String> {
    let mut found: Vec<&str> = message.keys().map(String::as_str).collect();
    found.sort_unstable();
    match found == names {
        true => Ok(()),
        false => Err(format!("{found:?} instead of {names:?}")),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn mu_law_matches_other_codecs() {
        let pairs =
            [(0, 0xff), (100, 0xf2), (-100, 0x72), (1000, 0xce), (-1000, 0x4e), (8031, 0xa0), (32767, 0x80)];
        for (sample, byte) in pairs {
            assert_eq!(mulaw::encode(sample), byte, "{sample}");
        }
        for (byte, sample) in
            [(0x00, -32124), (0x0f, -16764), (0x7f, 0), (0x80, 32124), (0xbf, 1980), (0xff, 0)]
        {
            assert_eq!(mulaw::decode(byte), sample, "{byte:02x}");
        }
    }
}
