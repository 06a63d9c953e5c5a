//! The messages of a transcription session.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::{Value, json};

use super::RATE;
use crate::speech::audio::Rate;
use crate::speech::g711;
use crate::speech::transcribers::TranscriberSettings;
use crate::speech::transcribers::audio_log::linear16;

/// What [`commit`] puts before a number, so that an error about it can be recognised.
const COMMIT: &str = "commit_";

/// Describes the session.
pub(super) fn session(settings: &TranscriberSettings) -> String {
    let session = json!({
        "type": "session.update",
        "event_id": "session",
        "session": {
            "type": "transcription",
            "audio": {"input": {
                "format": {"type": "audio/pcm", "rate": RATE.hz()},
                "transcription": transcription(settings),
                "turn_detection": null,
            }},
        },
    });
    session.to_string()
}

/// Describes the session to a server of the beta protocol.
pub(super) fn beta_session(settings: &TranscriberSettings) -> String {
    let session = json!({
        "type": "transcription_session.update",
        "session": {
            "input_audio_format": "pcm16",
            "input_audio_transcription": transcription(settings),
            "turn_detection": null,
        },
    });
    session.to_string()
}

/// The part of both that says what to recognise.
pub(crate) fn transcription(settings: &TranscriberSettings) -> Value {
    let mut transcription = json!({});
    if !settings.model.is_empty() {
        transcription["model"] = settings.model.as_str().into();
    }
    if let Some(language) = settings.primary_language() {
        transcription["language"] = language.into();
    }
    let terms = settings.fitting_keyterms().join(", ");
    // This family takes no prompt.
    if !terms.is_empty() && !settings.model.contains("realtime-whisper") {
        transcription["prompt"] = terms.into();
    }
    transcription
}

/// Audio.
pub(super) fn appended(samples: &[i16], rate: Rate) -> String {
    format!(r#"{{"type":"input_audio_buffer.append","audio":"{}"}}"#, encoded(samples, rate))
}

/// Audio as the protocol has it: mu-law at 8 kHz, otherwise linear.
pub(crate) fn encoded(samples: &[i16], rate: Rate) -> String {
    match rate {
        Rate::Khz8 => STANDARD.encode(g711::encode(samples)),
        _ => STANDARD.encode(linear16(samples)),
    }
}

/// The end of an utterance.
pub(super) fn commit(number: u64) -> String {
    json!({"type": "input_audio_buffer.commit", "event_id": format!("{COMMIT}{number}")}).to_string()
}

/// The utterance whose [`commit`] has this event id.
pub(super) fn committed_number(event_id: &str) -> Option<u64> {
    event_id.strip_prefix(COMMIT)?.parse().ok()
}

/// What we read of a server's message.
#[derive(Deserialize)]
pub(super) struct Message {
    #[serde(rename = "type")]
    pub(super) kind: String,
    item_id: Option<String>,
    pub(super) previous_item_id: Option<String>,
    item: Option<Item>,
    pub(super) delta: Option<String>,
    pub(super) transcript: Option<String>,
    pub(super) error: Option<Value>,
}

#[derive(Deserialize)]
struct Item {
    id: Option<String>,
}

impl Message {
    /// One about this item.
    pub(super) fn about(item: String) -> Self {
        Self {
            kind: String::new(),
            item_id: Some(item),
            previous_item_id: None,
            item: None,
            delta: None,
            transcript: None,
            error: None,
        }
    }

    /// The item that it is about.
    pub(super) fn id(&self) -> Option<&str> {
        self.item_id.as_deref().or_else(|| self.item.as_ref()?.id.as_deref())
    }
}
