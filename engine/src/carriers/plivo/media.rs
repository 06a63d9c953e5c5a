//! Plivo's audio streams: JSON text messages with base64 mu-law at 8 kHz.
//!
//! Source: plivo.com/docs/voice-agents/audio-streaming and Plivo's stream SDK for Python. The end has no message: the socket
//! is closed. Only Plivo's command line tool sends `stop`, to test a server.
use serde::Deserialize;
use serde_json::{Value, json};

use crate::carriers::media::{MediaCodec, MediaError, MediaEvent, MediaFormat, MediaMessage};
use crate::carriers::shared;
use crate::carriers::shared::{mulaw, mulaw_payload};
use crate::speech::audio::Rate;

const ENCODING: &str = "audio/x-mulaw";
const RATE: Rate = Rate::Khz8;

/// The codec for one Plivo stream.
#[derive(Debug, Default)]
pub(super) struct PlivoCodec {
    /// Plivo's stream id, required in marks and clears.
    stream_id: String,
    state: State,
}

#[derive(Debug, Default, Clone, Copy, PartialEq, Eq)]
enum State {
    #[default]
    Fresh,
    Open,
    Over,
}

impl MediaCodec for PlivoCodec {
    fn read(&mut self, message: MediaMessage) -> Result<Vec<MediaEvent>, MediaError> {
        let MediaMessage::Text(text) = message else { return Err(MediaError::Malformed) };
        // Fifty a second, so nothing else of the message is read.
        if self.state == State::Open
            && let Ok(Heard { event: "media", media: Media { payload, track: "inbound" } }) =
                serde_json::from_str(&text)
        {
            return Ok(vec![MediaEvent::Audio(mulaw(payload)?)]);
        }
        let message: Value = serde_json::from_str(&text).map_err(|_| MediaError::Malformed)?;
        let event = message["event"].as_str().ok_or(MediaError::Malformed)?;
        match (event, self.state) {
            ("start", State::Fresh) => self.start(&message["start"]),
            ("stop", _) => {
                self.state = State::Over;
                Ok(vec![MediaEvent::Stopped])
            }
            ("start" | "media" | "dtmf" | "playedStream" | "clearedAudio", State::Open) => {
                events_of(event, &message)
            }
            ("start" | "media" | "dtmf" | "playedStream" | "clearedAudio", _) => Err(MediaError::OutOfPlace),
            _ => Ok(Vec::new()),
        }
    }

    fn format(&self) -> MediaFormat {
        MediaFormat { rate: RATE }
    }

    fn audio(&mut self, samples: &[i16]) -> MediaMessage {
        let payload = mulaw_payload(samples);
        let rate = RATE.hz();
        // Base64 has nothing to escape.
        MediaMessage::Text(format!(
            r#"{{"event":"playAudio","media":{{"contentType":"{ENCODING}","sampleRate":{rate},"payload":"{payload}"}}}}"#
        ))
    }

    fn mark(&mut self, name: &str) -> MediaMessage {
        text(&json!({"event": "checkpoint", "streamId": self.stream_id, "name": name}))
    }

    fn clear(&mut self) -> MediaMessage {
        text(&json!({"event": "clearAudio", "streamId": self.stream_id}))
    }
}

impl PlivoCodec {
    fn start(&mut self, start: &Value) -> Result<Vec<MediaEvent>, MediaError> {
        let stream_id = start["streamId"].as_str().filter(|id| !id.is_empty() && id.len() <= ID_BYTES_MAX);
        let stream_id = stream_id.ok_or(MediaError::Malformed)?;
        let format = &start["mediaFormat"];
        let asked_for =
            format["encoding"] == ENCODING && number(&format["sampleRate"]) == Some(RATE.hz().into());
        // A missing format means the one that the answer document requested.
        if !format.is_null() && !asked_for {
            return Err(MediaError::Format);
        }
        stream_id.clone_into(&mut self.stream_id);
        self.state = State::Open;
        let carrier_call_id = start["callId"].as_str().filter(|id| super::is_id(id)).map(str::to_owned);
        Ok(vec![MediaEvent::Started { carrier_call_id }])
    }
}

/// A message with the caller's audio.
#[derive(Deserialize)]
struct Heard<'a> {
    event: &'a str,
    #[serde(borrow)]
    media: Media<'a>,
}

#[derive(Deserialize)]
struct Media<'a> {
    payload: &'a str,
    track: &'a str,
}

const ID_BYTES_MAX: usize = 128;

/// The events of a message of an open stream.
fn events_of(event: &str, message: &Value) -> Result<Vec<MediaEvent>, MediaError> {
    Ok(match event {
        // A bidirectional stream contains only the person's audio; in other modes ours may arrive as well.
        "media" if message["media"]["track"] == "outbound" => Vec::new(),
        "media" => {
            let payload = message["media"]["payload"].as_str().ok_or(MediaError::Audio)?;
            vec![MediaEvent::Audio(mulaw(payload)?)]
        }
        "dtmf" => vec![MediaEvent::Dtmf(key(&message["dtmf"]["digit"]).ok_or(MediaError::Malformed)?)],
        "playedStream" => {
            vec![MediaEvent::Played(message["name"].as_str().ok_or(MediaError::Malformed)?.to_owned())]
        }
        "clearedAudio" => vec![MediaEvent::Cleared],
        _ => return Err(MediaError::OutOfPlace),
    })
}

/// A number, or a text with a number: Plivo's samples have both.
fn number(value: &Value) -> Option<u64> {
    value.as_u64().or_else(|| value.as_str()?.parse().ok())
}

fn key(digit: &Value) -> Option<char> {
    let text = match digit {
        Value::String(text) => text.clone(),
        other => other.as_u64()?.to_string(),
    };
    shared::key(&text)
}

fn text(message: &Value) -> MediaMessage {
    MediaMessage::Text(message.to_string())
}

#[cfg(test)]
mod tests;
