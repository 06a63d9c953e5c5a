//! Media Streams: JSON text messages with mu-law at 8 kHz in both directions.
//!
//! Source: Twilio's page "Media Streams: WebSocket messages".
use std::borrow::Cow;

use serde::Deserialize;
use serde_json::{Value, json};

use crate::carriers::media::{MediaCodec, MediaError, MediaEvent, MediaFormat, MediaMessage};
use crate::carriers::shared;
use crate::speech::audio::Rate;

/// Longest stream id that is accepted: every outgoing message contains it.
const STREAM_SID_BYTES_MAX: usize = 64;

/// The codec for one stream.
#[derive(Debug, Default)]
pub struct TwilioCodec {
    /// Empty before the start.
    stream_sid: String,
    stopped: bool,
}

impl MediaCodec for TwilioCodec {
    fn read(&mut self, message: MediaMessage) -> Result<Vec<MediaEvent>, MediaError> {
        let MediaMessage::Text(text) = message else { return Err(MediaError::Malformed) };
        let message: Message<'_> = serde_json::from_str(&text).map_err(|_| MediaError::Malformed)?;
        if message
            .stream_sid
            .as_ref()
            .is_some_and(|sid| !self.stream_sid.is_empty() && *sid != self.stream_sid)
        {
            return Err(MediaError::Malformed);
        }
        let event = match message.event.as_ref() {
            "start" => self.start(message.start.ok_or(MediaError::Malformed)?)?,
            "media" => match self.media(&message.media.ok_or(MediaError::Malformed)?)? {
                Some(event) => event,
                None => return Ok(Vec::new()),
            },
            "dtmf" => MediaEvent::Dtmf(key(message.dtmf)?),
            "mark" => MediaEvent::Played(message.mark.ok_or(MediaError::Malformed)?.name.into_owned()),
            "stop" => {
                self.stopped = true;
                MediaEvent::Stopped
            }
            // `connected` has no information, and unknown events are ignored.
            _ => return Ok(Vec::new()),
        };
        Ok(vec![event])
    }

    fn says_stop(&self) -> bool {
        true
    }

    fn format(&self) -> MediaFormat {
        MediaFormat { rate: Rate::Khz8 }
    }

    fn audio(&mut self, samples: &[i16]) -> MediaMessage {
        let (sid, payload) = (json!(self.stream_sid), shared::mulaw_payload(samples));
        // Base64 has nothing to escape.
        MediaMessage::Text(format!(
            r#"{{"event":"media","streamSid":{sid},"media":{{"payload":"{payload}"}}}}"#
        ))
    }

    fn mark(&mut self, name: &str) -> MediaMessage {
        text_message(&json!({"event": "mark", "streamSid": self.stream_sid, "mark": {"name": name}}))
    }

    fn clear(&mut self) -> MediaMessage {
        text_message(&json!({"event": "clear", "streamSid": self.stream_sid}))
    }
}

impl TwilioCodec {
    fn start(&mut self, start: Start<'_>) -> Result<MediaEvent, MediaError> {
        let sid = start.stream_sid.into_owned();
        let fits = (1..=STREAM_SID_BYTES_MAX).contains(&sid.len()) && sid.is_ascii();
        // A stream starts only once.
        if !fits || !self.stream_sid.is_empty() {
            return Err(MediaError::Malformed);
        }
        let Format { encoding, sample_rate, channels } = start.media_format;
        if (encoding.as_ref(), sample_rate, channels) != ("audio/x-mulaw", Rate::Khz8.hz(), 1) {
            return Err(MediaError::Format);
        }
        self.stream_sid = sid;
        Ok(MediaEvent::Started { carrier_call_id: start.call_sid.map(Cow::into_owned) })
    }

    /// The caller's audio; `None` for the outbound track, which a bidirectional stream should not send.
    fn media(&self, media: &Media<'_>) -> Result<Option<MediaEvent>, MediaError> {
        if self.stream_sid.is_empty() || self.stopped {
            return Err(MediaError::OutOfPlace);
        }
        if media.track.as_deref() == Some("outbound") {
            return Ok(None);
        }
        shared::mulaw(&media.payload).map(MediaEvent::Audio).map(Some)
    }
}

fn text_message(message: &Value) -> MediaMessage {
    MediaMessage::Text(message.to_string())
}

fn key(dtmf: Option<Dtmf<'_>>) -> Result<char, MediaError> {
    dtmf.and_then(|dtmf| shared::key(&dtmf.digit)).ok_or(MediaError::Malformed)
}

/// The relevant fields of a message.
#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Message<'a> {
    #[serde(borrow)]
    event: Cow<'a, str>,
    #[serde(borrow)]
    stream_sid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    start: Option<Start<'a>>,
    #[serde(borrow)]
    media: Option<Media<'a>>,
    #[serde(borrow)]
    dtmf: Option<Dtmf<'a>>,
    #[serde(borrow)]
    mark: Option<Mark<'a>>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Start<'a> {
    #[serde(borrow)]
    stream_sid: Cow<'a, str>,
    #[serde(borrow)]
    call_sid: Option<Cow<'a, str>>,
    #[serde(borrow)]
    media_format: Format<'a>,
}

#[derive(Deserialize)]
#[serde(rename_all = "camelCase")]
struct Format<'a> {
    #[serde(borrow)]
    encoding: Cow<'a, str>,
    sample_rate: u32,
    channels: u32,
}

#[derive(Deserialize)]
struct Media<'a> {
    #[serde(borrow)]
    track: Option<Cow<'a, str>>,
    #[serde(borrow)]
    payload: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Dtmf<'a> {
    #[serde(borrow)]
    digit: Cow<'a, str>,
}

#[derive(Deserialize)]
struct Mark<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

#[cfg(test)]
mod tests;
