//! The messages of a transcription session.
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde::Deserialize;
use serde_json::Value;

use super::RATE;
use crate::speech::audio::Rate;
use crate::speech::g711;
use crate::speech::transcribers::TranscriberSettings;
use crate::speech::transcribers::audio_log::linear16;

/// What [`commit`] puts before a number, so that an error about it can be recognised.
const COMMIT: &str = "commit_";

/// Describes the session. Messages are texts with gaps: a tree of values for each would take much of the Worker.
pub(super) fn session(settings: &TranscriberSettings) -> String {
    format!(
        r#"{{"type":"session.update","event_id":"session","session":{{"type":"transcription","audio":{{"input":{{"format":{{"type":"audio/pcm","rate":{}}},"transcription":{},"turn_detection":null}}}}}}}}"#,
        RATE.hz(),
        transcription(settings),
    )
}

/// Describes the session to a server of the beta protocol.
pub(super) fn beta_session(settings: &TranscriberSettings) -> String {
    format!(
        r#"{{"type":"transcription_session.update","session":{{"input_audio_format":"pcm16","input_audio_transcription":{},"turn_detection":null}}}}"#,
        transcription(settings),
    )
}

/// The part of both that says what to recognise, as JSON.
pub(crate) fn transcription(settings: &TranscriberSettings) -> String {
    // This family takes no prompt.
    let takes_prompt = !settings.model.contains("realtime-whisper");
    let terms = if takes_prompt { settings.fitting_keyterms().join(", ") } else { String::new() };
    let language = settings.primary_language().unwrap_or_default();
    let fields = [("model", &settings.model), ("language", &language), ("prompt", &terms)];
    let fields = fields.into_iter().filter(|(_, value)| !value.is_empty());
    let fields: Vec<String> =
        fields.map(|(name, value)| format!(r#""{name}":{}"#, Value::from(value.as_str()))).collect();
    format!("{{{}}}", fields.join(","))
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
    format!(r#"{{"type":"input_audio_buffer.commit","event_id":"{COMMIT}{number}"}}"#)
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
