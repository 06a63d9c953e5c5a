//! Vonage's media socket: audio in binary messages, JSON in text messages.
//!
//! Sources: Vonage's guide "WebSockets" (first message, keys, frames, `clear`, `notify`), and four independent services that
//! use `notify` and `clear`. The audio is a mix of the whole conversation; with one telephone and this socket, that is the
//! telephone's audio.
use bytes::Bytes;
use serde::Deserialize;
use serde_json::json;

use super::documents::CONTENT_TYPE;
use crate::base::limits::MEDIA_CHUNK_MS_MAX;
use crate::carriers::media::{MediaCodec, MediaError, MediaEvent, MediaFormat, MediaMessage};
use crate::carriers::shared;
use crate::speech::audio::Rate;

const RATE: Rate = Rate::Khz16;
const BYTES_PER_MS: usize = 2 * RATE.hz() as usize / 1_000;
/// The longest text message returns our headers, which have at most 512 bytes.
const TEXT_BYTES_MAX: usize = 16 * 1024;

/// The codec for one media socket.
#[derive(Debug, Default)]
pub struct VonageCodec {
    has_started: bool,
}

#[derive(Deserialize)]
struct Text {
    event: String,
    #[serde(rename = "content-type")]
    content_type: Option<String>,
    // Our header `documents::CALL_ID_HEADER`, returned next to the event.
    #[serde(rename = "sidetone_call")]
    call_id: Option<String>,
    digit: Option<String>,
    payload: Option<Payload>,
}

#[derive(Deserialize)]
struct Payload {
    name: Option<String>,
}

impl MediaCodec for VonageCodec {
    fn read(&mut self, message: MediaMessage) -> Result<Vec<MediaEvent>, MediaError> {
        match message {
            MediaMessage::Text(text) => self.read_text(&text),
            MediaMessage::Binary(bytes) => {
                self.read_audio(&bytes).map(|samples| vec![MediaEvent::Audio(samples)])
            }
        }
    }

    fn format(&self) -> MediaFormat {
        MediaFormat { rate: RATE }
    }

    fn audio(&mut self, samples: &[i16]) -> MediaMessage {
        MediaMessage::Binary(samples.iter().flat_map(|sample| sample.to_le_bytes()).collect())
    }

    fn mark(&mut self, name: &str) -> MediaMessage {
        MediaMessage::Text(json!({"action": "notify", "payload": {"name": name}}).to_string())
    }

    fn clear(&mut self) -> MediaMessage {
        MediaMessage::Text(json!({"action": "clear"}).to_string())
    }
}

impl VonageCodec {
    fn read_text(&mut self, text: &str) -> Result<Vec<MediaEvent>, MediaError> {
        if text.len() > TEXT_BYTES_MAX {
            return Err(MediaError::Malformed);
        }
        let text: Text = serde_json::from_str(text).map_err(|_| MediaError::Malformed)?;
        if text.event == "websocket:connected" {
            return self.start(text).map(|event| vec![event]);
        }
        if !self.has_started {
            return Err(MediaError::OutOfPlace);
        }
        match text.event.as_str() {
            "websocket:dtmf" => {
                let key = text.digit.as_deref().and_then(shared::key).ok_or(MediaError::Malformed)?;
                Ok(vec![MediaEvent::Dtmf(key)])
            }
            "websocket:notify" => {
                let name = text.payload.and_then(|payload| payload.name).ok_or(MediaError::Malformed)?;
                Ok(vec![MediaEvent::Played(name)])
            }
            "websocket:cleared" => Ok(vec![MediaEvent::Cleared]),
            // Unknown events may be ignored.
            _ => Ok(Vec::new()),
        }
    }

    fn start(&mut self, text: Text) -> Result<MediaEvent, MediaError> {
        if self.has_started {
            return Err(MediaError::OutOfPlace);
        }
        let spelled: String = text.content_type.unwrap_or_default().split_whitespace().collect();
        if !spelled.eq_ignore_ascii_case(CONTENT_TYPE) {
            return Err(MediaError::Format);
        }
        self.has_started = true;
        Ok(MediaEvent::Started { carrier_call_id: text.call_id.filter(|id| !id.is_empty()) })
    }

    fn read_audio(&self, bytes: &Bytes) -> Result<Vec<i16>, MediaError> {
        if !self.has_started {
            return Err(MediaError::OutOfPlace);
        }
        let (samples, []) = bytes.as_chunks::<2>() else { return Err(MediaError::Audio) };
        if samples.is_empty() || bytes.len() > BYTES_PER_MS * MEDIA_CHUNK_MS_MAX {
            return Err(MediaError::Audio);
        }
        Ok(samples.iter().map(|sample| i16::from_le_bytes(*sample)).collect())
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;
    use crate::carriers::vonage::documents::{CALL_ID_HEADER, LEG_HEADER};

    const CONNECTED: &str = r#"{"event":"websocket:connected","content-type":"audio/l16;rate=16000"}"#;

    fn text(text: &str) -> MediaMessage {
        MediaMessage::Text(text.to_owned())
    }

    fn binary(bytes: &[u8]) -> MediaMessage {
        MediaMessage::Binary(Bytes::copy_from_slice(bytes))
    }

    fn started() -> VonageCodec {
        let mut line = VonageCodec::default();
        let event = MediaEvent::Started { carrier_call_id: None };
        assert_eq!(line.read(text(CONNECTED)), Ok(vec![event]));
        line
    }

    #[test]
    fn the_first_message_starts_the_stream() {
        let mut line = VonageCodec::default();
        let mut with_headers =
            json!({"event": "websocket:connected", "content-type": "audio/L16; rate=16000"});
        with_headers[LEG_HEADER] = json!("media");
        with_headers[CALL_ID_HEADER] = json!("63f61863");
        let with_headers = with_headers.to_string();
        let event = MediaEvent::Started { carrier_call_id: Some("63f61863".to_owned()) };
        assert_eq!(line.read(text(&with_headers)), Ok(vec![event]));
        assert_eq!(line.read(text(&with_headers)), Err(MediaError::OutOfPlace));
    }

    #[test]
    fn another_format_is_rejected() {
        for wrong in [
            r#"{"event":"websocket:connected","content-type":"audio/l16;rate=8000"}"#,
            r#"{"event":"websocket:connected","content-type":"audio/l16;rate=160001"}"#,
            r#"{"event":"websocket:connected"}"#,
        ] {
            let mut line = VonageCodec::default();
            assert_eq!(line.read(text(wrong)), Err(MediaError::Format), "{wrong}");
            assert_eq!(line.read(binary(&[0, 0])), Err(MediaError::OutOfPlace));
            assert!(line.read(text(CONNECTED)).is_ok());
        }
    }

    #[test]
    fn audio_is_little_endian_in_both_directions() {
        let mut line = started();
        let event = MediaEvent::Audio(vec![1, -2, i16::MIN]);
        assert_eq!(line.read(binary(&[1, 0, 0xfe, 0xff, 0x00, 0x80])), Ok(vec![event]));
        let frame: Vec<i16> = (0..320).map(|n| n * 100 - 16_000).collect();
        let MediaMessage::Binary(sent) = line.audio(&frame) else { panic!("text") };
        assert_eq!(sent.len(), 640);
        assert_eq!(&sent[..2], &(-16_000_i16).to_le_bytes());
        assert_eq!(line.read(MediaMessage::Binary(sent)), Ok(vec![MediaEvent::Audio(frame)]));
    }

    #[test]
    fn undecodable_audio_is_rejected() {
        assert_eq!(VonageCodec::default().read(binary(&[0; 640])), Err(MediaError::OutOfPlace));
        let mut line = started();
        let long = vec![0; 32 * MEDIA_CHUNK_MS_MAX];
        assert!(line.read(binary(&long)).is_ok());
        for wrong in [&[][..], &[0], &[0; 639], &[&long[..], &[0, 0]].concat()] {
            assert_eq!(line.read(binary(wrong)), Err(MediaError::Audio), "{}", wrong.len());
        }
    }

    #[test]
    fn keys_marks_and_clears() {
        let mut line = started();
        for (message, event) in [
            (r##"{"event":"websocket:dtmf","digit":"5","duration":260}"##, MediaEvent::Dtmf('5')),
            (r##"{"event":"websocket:dtmf","digit":"#"}"##, MediaEvent::Dtmf('#')),
            (r##"{"event":"websocket:dtmf","digit":"d"}"##, MediaEvent::Dtmf('D')),
            (r#"{"event":"websocket:notify","payload":{"name":"7"}}"#, MediaEvent::Played("7".to_owned())),
            (r#"{"event":"websocket:cleared"}"#, MediaEvent::Cleared),
        ] {
            assert_eq!(line.read(text(message)), Ok(vec![event]), "{message}");
            assert_eq!(VonageCodec::default().read(text(message)), Err(MediaError::OutOfPlace), "{message}");
        }
        assert_eq!(line.read(text(r#"{"event":"websocket:new","digit":"x"}"#)), Ok(Vec::new()));
        assert_eq!(line.mark("m-1"), text(r#"{"action":"notify","payload":{"name":"m-1"}}"#));
        assert_eq!(line.clear(), text(r#"{"action":"clear"}"#));
    }

    #[test]
    fn unreadable_messages_are_malformed() {
        let mut line = started();
        let long = format!(r#"{{"event":"websocket:new","x":"{}"}}"#, "x".repeat(TEXT_BYTES_MAX));
        for wrong in [
            "",
            "[]",
            "{}",
            r#"{"event":5}"#,
            r#"{"event":"websocket:dtmf"}"#,
            r#"{"event":"websocket:dtmf","digit":""}"#,
            r#"{"event":"websocket:dtmf","digit":"12"}"#,
            r#"{"event":"websocket:dtmf","digit":"x"}"#,
            r#"{"event":"websocket:notify"}"#,
            r#"{"event":"websocket:notify","payload":{}}"#,
            &long,
        ] {
            assert_eq!(line.read(text(wrong)), Err(MediaError::Malformed), "{wrong:.60}");
        }
    }

    proptest! {
        #[test]
        fn no_message_panics(words in ".{0,200}", bytes in proptest::collection::vec(any::<u8>(), 0..200)) {
            let mut line = started();
            let _ = line.read(text(&words));
            let event = serde_json::json!({"event": words, "digit": words, "payload": {"name": words}});
            let _ = line.read(text(&event.to_string()));
            prop_assert_eq!(line.read(binary(&bytes)).is_ok(), !bytes.is_empty() && bytes.len() % 2 == 0);
        }
    }
}
