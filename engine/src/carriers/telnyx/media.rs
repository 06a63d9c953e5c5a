//! Telnyx's media socket: JSON text messages with base64 mu-law.
//!
//! Source: "Stream call media over WebSocket" in the API reference (AsyncAPI). The call id is inside `start`, with `stream_id`
//! next to it; outgoing messages contain no id. Errors are in `payload` there and in `error` on older pages.
use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};

use super::causes;
use super::reorder::Reorder;
use crate::carriers::media::{MediaCodec, MediaError, MediaEvent, MediaFormat, MediaMessage};
use crate::carriers::shared;
use crate::speech::audio::Rate;

/// Chunk numbers are below this, like integers in JSON.
const CHUNK_MAX: u64 = 1 << 53;

/// The codec for one media socket.
#[derive(Debug, Default)]
pub(super) struct TelnyxCodec {
    state: State,
    reorder: Reorder,
}

#[derive(Debug, Default, PartialEq)]
enum State {
    #[default]
    Opened,
    Started,
    Stopped,
}

impl MediaCodec for TelnyxCodec {
    fn read(&mut self, message: MediaMessage) -> Result<Vec<MediaEvent>, MediaError> {
        let MediaMessage::Text(text) = message else { return Err(MediaError::Malformed) };
        // Fifty a second, so nothing else of the message is read.
        if let Ok(Heard { event: "media", media }) = serde_json::from_str(&text) {
            return self.media(&media);
        }
        let message: Value = serde_json::from_str(&text).map_err(|_| MediaError::Malformed)?;
        match message.get("event").and_then(Value::as_str).ok_or(MediaError::Malformed)? {
            "start" => self.start(message.get("start").ok_or(MediaError::Malformed)?),
            "media" => {
                let media = message.get("media").ok_or(MediaError::Malformed)?;
                self.media(&Media::deserialize(media).map_err(|_| MediaError::Malformed)?)
            }
            "dtmf" => digit(&message).map(|digit| vec![MediaEvent::Dtmf(digit)]),
            "mark" => {
                let name =
                    message.pointer("/mark/name").and_then(Value::as_str).ok_or(MediaError::Malformed)?;
                Ok(vec![MediaEvent::Played(name.to_owned())])
            }
            "stop" => Ok(self.stop()),
            "error" => Ok(vec![MediaEvent::Complaint(complaint(&message))]),
            // `connected`, and events that do not exist yet.
            _ => Ok(Vec::new()),
        }
    }

    fn says_stop(&self) -> bool {
        true
    }

    fn format(&self) -> MediaFormat {
        MediaFormat { rate: Rate::Khz8 }
    }

    fn audio(&mut self, samples: &[i16]) -> MediaMessage {
        let payload = shared::mulaw_payload(samples);
        // Base64 has nothing to escape.
        MediaMessage::Text(format!(r#"{{"event":"media","media":{{"payload":"{payload}"}}}}"#))
    }

    fn mark(&mut self, name: &str) -> MediaMessage {
        text_message(&json!({"event": "mark", "mark": {"name": name}}))
    }

    fn clear(&mut self) -> MediaMessage {
        text_message(&json!({"event": "clear"}))
    }
}

impl TelnyxCodec {
    fn start(&mut self, start: &Value) -> Result<Vec<MediaEvent>, MediaError> {
        if self.state != State::Opened {
            return Err(MediaError::OutOfPlace);
        }
        let format = start.get("media_format").ok_or(MediaError::Malformed)?;
        let encoding = format.get("encoding").and_then(Value::as_str).unwrap_or_default();
        let mulaw = ["PCMU", "audio/x-mulaw"].iter().any(|name| name.eq_ignore_ascii_case(encoding));
        let is =
            |name: &str, expected: u64| format.get(name).is_none_or(|value| number(value) == Some(expected));
        if !mulaw || !is("sample_rate", 8_000) || !is("channels", 1) {
            return Err(MediaError::Format);
        }
        self.state = State::Started;
        let carrier_call_id = start.get("call_control_id").and_then(causes::id);
        Ok(vec![MediaEvent::Started { carrier_call_id }])
    }

    fn media(&mut self, media: &Media<'_>) -> Result<Vec<MediaEvent>, MediaError> {
        // Our own audio, which we did not request.
        if media.track.as_ref().and_then(Value::as_str).is_some_and(|track| track.starts_with("outbound")) {
            return Ok(Vec::new());
        }
        if self.state != State::Started {
            return Err(MediaError::OutOfPlace);
        }
        let payload = &media.payload;
        let chunk = match &media.chunk {
            None => None,
            Some(chunk) => {
                Some(number(chunk).filter(|chunk| *chunk < CHUNK_MAX).ok_or(MediaError::Malformed)?)
            }
        };
        let samples = shared::mulaw(payload)?;
        let heard = match chunk {
            Some(chunk) => self.reorder.push(chunk, samples),
            None => vec![samples],
        };
        Ok(heard.into_iter().map(MediaEvent::Audio).collect())
    }

    fn stop(&mut self) -> Vec<MediaEvent> {
        if std::mem::replace(&mut self.state, State::Stopped) == State::Stopped {
            return Vec::new();
        }
        let rest = self.reorder.flush().into_iter().map(MediaEvent::Audio);
        rest.chain([MediaEvent::Stopped]).collect()
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
    track: Option<Value>,
    chunk: Option<Value>,
    #[serde(borrow)]
    payload: Cow<'a, str>,
}

fn text_message(message: &Value) -> MediaMessage {
    MediaMessage::Text(message.to_string())
}

/// Numbers are texts in most messages and numbers in some.
fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Number(number) => number.as_u64(),
        Value::String(text) if !text.starts_with('+') => text.parse().ok(),
        _ => None,
    }
}

fn digit(message: &Value) -> Result<char, MediaError> {
    let digit = message.pointer("/dtmf/digit").and_then(Value::as_str).ok_or(MediaError::Malformed)?;
    shared::key(digit).ok_or(MediaError::Malformed)
}

/// `100003 malformed_frame: detail`, as far as the message contains it.
fn complaint(message: &Value) -> String {
    let error = message.get("payload").or_else(|| message.get("error")).cloned().unwrap_or_default();
    let text = |name: &str| match error.get(name) {
        Some(Value::String(text)) => text.clone(),
        Some(Value::Number(number)) => number.to_string(),
        _ => String::new(),
    };
    let head = format!("{} {}", text("code"), text("title"));
    let words = match (head.trim(), text("detail")) {
        ("", detail) if detail.is_empty() => "an error without a message".to_owned(),
        ("", detail) => detail,
        (head, detail) if detail.is_empty() => head.to_owned(),
        (head, detail) => format!("{head}: {detail}"),
    };
    shared::sanitized(&words)
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    fn text(message: Value) -> MediaMessage {
        MediaMessage::Text(message.to_string())
    }

    fn start(format: &Value) -> MediaMessage {
        text(
            json!({"event": "start", "sequence_number": "1", "stream_id": "32DE0DEA-53CB-4B21-89A4-9E1819C043BC",
            "start": {"user_id": "u", "call_control_id": "v3:abc", "call_session_id": "s", "from": "+13122010094",
                "to": "+13122123456", "client_state": "aGF2ZSBhIG5pY2UgZGF5ID1d", "tags": [], "media_format": format}}),
        )
    }

    fn media(chunk: &Value, payload: &str) -> MediaMessage {
        text(json!({"event": "media", "sequence_number": "4", "stream_id": "32DE0DEA",
            "media": {"track": "inbound", "chunk": chunk, "timestamp": "5", "payload": payload}}))
    }

    fn started() -> TelnyxCodec {
        let mut line = TelnyxCodec::default();
        let pcmu = json!({"encoding": "PCMU", "sample_rate": 8000, "channels": 1});
        assert_eq!(
            line.read(start(&pcmu)),
            Ok(vec![MediaEvent::Started { carrier_call_id: Some("v3:abc".to_owned()) }])
        );
        line
    }

    #[test]
    fn reads_a_stream() {
        let mut line = TelnyxCodec::default();
        assert_eq!(line.read(text(json!({"event": "connected", "version": "1.0.0"}))), Ok(vec![]));
        assert_eq!(line.read(media(&json!("1"), "/38=")), Err(MediaError::OutOfPlace));
        let mut line = started();
        assert_eq!(line.read(media(&json!("1"), "gAA=")), Ok(vec![MediaEvent::Audio(vec![32_124, -32_124])]));
        assert_eq!(line.read(media(&json!(3), "/w==")), Ok(vec![]));
        let both = vec![MediaEvent::Audio(vec![8]), MediaEvent::Audio(vec![0])];
        assert_eq!(line.read(media(&json!("2"), "/g==")), Ok(both));
        let dtmf = json!({"event": "dtmf", "stream_id": "x", "occurred_at": "2026-11-20T10:00:00Z",
            "sequence_number": "5", "dtmf": {"digit": "#"}});
        assert_eq!(line.read(text(dtmf)), Ok(vec![MediaEvent::Dtmf('#')]));
        let mark =
            json!({"event": "mark", "stream_id": "x", "sequence_number": "6", "mark": {"name": "turn-7"}});
        assert_eq!(line.read(text(mark)), Ok(vec![MediaEvent::Played("turn-7".to_owned())]));
        assert_eq!(line.read(media(&json!("6"), "/w==")), Ok(vec![]), "four and five are missing");
        let stop = json!({"event": "stop", "sequence_number": "9", "stop": {"user_id": "u", "call_control_id": "v3:abc"}});
        assert_eq!(line.read(text(stop.clone())), Ok(vec![MediaEvent::Audio(vec![0]), MediaEvent::Stopped]));
        assert_eq!(line.read(text(stop)), Ok(vec![]));
        assert_eq!(line.read(media(&json!("7"), "/w==")), Err(MediaError::OutOfPlace));
    }

    #[test]
    fn accepts_only_mu_law() {
        let table = [
            (json!({"encoding": "PCMU", "sample_rate": 8000, "channels": 1}), Ok(())),
            (json!({"encoding": "audio/x-mulaw", "sample_rate": "8000", "channels": 1}), Ok(())),
            (json!({"encoding": "PCMU"}), Ok(())),
            (json!({"encoding": "PCMA", "sample_rate": 8000, "channels": 1}), Err(MediaError::Format)),
            (json!({"encoding": "G722", "sample_rate": 8000, "channels": 1}), Err(MediaError::Format)),
            (json!({"encoding": "L16", "sample_rate": 16000, "channels": 1}), Err(MediaError::Format)),
            (json!({"encoding": "PCMU", "sample_rate": 16000, "channels": 1}), Err(MediaError::Format)),
            (json!({"encoding": "PCMU", "sample_rate": 8000, "channels": 2}), Err(MediaError::Format)),
            (json!({}), Err(MediaError::Format)),
        ];
        for (format, expected) in table {
            let mut line = TelnyxCodec::default();
            assert_eq!(line.read(start(&format)).map(|_| ()), expected, "{format}");
            // A rejected start does not start the stream.
            assert_eq!(line.read(media(&json!("1"), "/w==")).is_ok(), expected.is_ok());
        }
        assert_eq!(started().read(start(&json!({"encoding": "PCMU"}))), Err(MediaError::OutOfPlace));
    }

    #[test]
    fn undecodable_messages_change_nothing() {
        let mut line = started();
        let long = "/".repeat(4 * 8 * crate::base::limits::MEDIA_CHUNK_MS_MAX);
        for payload in ["", "?", "/w", &long] {
            assert_eq!(line.read(media(&json!("1"), payload)), Err(MediaError::Audio));
        }
        for chunk in [json!("one"), json!(-1), json!("+1"), json!(1.5), json!("9007199254740992"), json!([])]
        {
            assert_eq!(line.read(media(&chunk, "/w==")), Err(MediaError::Malformed), "{chunk}");
        }
        let ours = json!({"event": "media", "media": {"track": "outbound", "chunk": "1", "payload": "/w=="}});
        assert_eq!(line.read(text(ours)), Ok(vec![]));
        let without = json!({"event": "media", "media": {"payload": "/w=="}});
        assert_eq!(line.read(text(without)), Ok(vec![MediaEvent::Audio(vec![0])]));
        assert_eq!(line.read(media(&json!("1"), "/w==")), Ok(vec![MediaEvent::Audio(vec![0])]));
        assert_eq!(line.read(media(&json!("1"), "/w==")), Ok(vec![]), "a repeated chunk is dropped");
        for digit in ["", "11", "E", "é"] {
            assert_eq!(
                line.read(text(json!({"event": "dtmf", "dtmf": {"digit": digit}}))),
                Err(MediaError::Malformed)
            );
        }
        assert_eq!(line.read(MediaMessage::Binary(vec![0; 160].into())), Err(MediaError::Malformed));
    }

    #[test]
    fn reads_both_forms_of_errors() {
        let newer = json!({"event": "error", "stream_id": "x",
            "payload": {"code": 100_003, "title": "malformed_frame", "detail": "no payload"}});
        let older = json!({"event": "error", "stream_id": "x",
            "error": {"code": "100005", "title": "rate_limit_reached"}});
        let table = [
            (newer, "100003 malformed_frame: no payload"),
            (older, "100005 rate_limit_reached"),
            (json!({"event": "error", "payload": {"detail": "x"}}), "x"),
            (json!({"event": "error", "payload": []}), "an error without a message"),
            (json!({"event": "error"}), "an error without a message"),
        ];
        for (message, words) in table {
            let complaint = MediaEvent::Complaint(words.to_owned());
            assert_eq!(TelnyxCodec::default().read(text(message)), Ok(vec![complaint]));
        }
        let long = json!({"event": "error", "payload": {"title": "x".repeat(9_000)}});
        let events = TelnyxCodec::default().read(text(long)).unwrap();
        assert!(
            matches!(&events[..], [MediaEvent::Complaint(words)] if words.len() <= crate::base::limits::CARRIER_MESSAGE_BYTES_MAX)
        );
    }

    #[test]
    fn outgoing_messages_have_no_ids() {
        let mut line = TelnyxCodec::default();
        let MediaMessage::Text(audio) = line.audio(&[0; 160]) else { panic!("text") };
        assert_eq!(
            audio,
            format!(r#"{{"event":"media","media":{{"payload":"{}"}}}}"#, "/".repeat(213) + "w==")
        );
        assert_eq!(
            line.mark("a\"b"),
            MediaMessage::Text(r#"{"event":"mark","mark":{"name":"a\"b"}}"#.to_owned())
        );
        assert_eq!(line.clear(), MediaMessage::Text(r#"{"event":"clear"}"#.to_owned()));
        assert_eq!(line.format().rate.frame_samples(), 160);
    }

    proptest! {
        #[test]
        fn arbitrary_text_does_not_panic(texts: Vec<String>) {
            let mut line = started();
            for text in texts {
                let _ = line.read(MediaMessage::Text(text));
            }
        }

        #[test]
        fn arbitrary_messages_do_not_panic(events in prop::collection::vec((0_usize..7, any::<u32>(), ".{0,12}"), 0..60)) {
            let mut line = TelnyxCodec::default();
            for (event, number, word) in events {
                let event = ["connected", "start", "media", "dtmf", "mark", "stop", "error"][event];
                let part = json!({"chunk": number, "payload": word, "digit": word, "name": word, "code": number,
                    "media_format": {"encoding": "PCMU"}});
                let _ = line.read(text(json!({"event": event, (event): part, "payload": part})));
            }
        }
    }
}
