//! Cartesia: a context for each line on one WebSocket, with a time for every word.
use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Map, Value, json};

use super::failure::{reported, temporary};
use super::streaming::{ContextId, Dialect, Heard};
use super::{RATE, SynthesizerSettings};
use crate::base::setting::Secret;
use crate::ports::SocketMessage;
use crate::speech::exchange::SocketRequest;

/// The speeds that the provider makes (its reference of the interface); it refuses others.
pub(super) const SPEEDS: std::ops::RangeInclusive<f64> = 0.6..=1.5;
/// The version of the interface that this file speaks.
pub const VERSION: &str = "2026-08-14";
/// The model of settings without one.
const MODEL: &str = "sonic-3.5";

/// The protocol's state on one connection.
pub(super) struct Cartesia {
    settings: SynthesizerSettings,
    /// The context of the line being spoken.
    context: Option<ContextId>,
}

impl Cartesia {
    /// The protocol for a voice.
    pub(super) fn new(settings: SynthesizerSettings) -> Self {
        Self { settings, context: None }
    }

    /// A message with text. Everything else is the same in all messages of a context, as the provider demands.
    fn text(&self, context: ContextId, transcript: &str, is_continued: bool) -> SocketMessage {
        let settings = &self.settings;
        let mut message = Map::new();
        let mut set = |name: &str, value: Value| message.insert(name.to_owned(), value);
        set("context_id", json!(name(context)));
        set("model_id", json!(settings.model.as_deref().unwrap_or(MODEL)));
        set("transcript", json!(transcript));
        set("voice", json!({ "id": settings.voice }));
        set(
            "output_format",
            json!({ "container": "raw", "encoding": "pcm_s16le", "sample_rate": RATE.hz() }),
        );
        set("continue", json!(is_continued));
        set("max_buffer_delay_ms", json!(0));
        set("add_timestamps", json!(true));
        set("use_normalized_timestamps", json!(false));
        if let Some(language) = &settings.language {
            set("language", json!(language));
        }
        if let Some(speed) = settings.speed_within(SPEEDS) {
            set("generation_config", json!({ "speed": speed }));
        }
        SocketMessage::Text(Value::Object(message).to_string())
    }
}

impl Dialect for Cartesia {
    const PROVIDER: &'static str = "Cartesia";
    const CONNECTION_MS_MAX: i64 = 4 * 60_000;
    const TEXT_BYTES_MAX: usize = 4_000;

    fn key(&self) -> Option<&Secret> {
        self.settings.api_key.as_ref()
    }

    fn request(&self) -> SocketRequest {
        let mut headers = self.settings.key_header("authorization", "Bearer ");
        headers.push(("cartesia-version", VERSION.to_owned()));
        let url = self.settings.socket("/tts/websocket", &[("cartesia_version", Some(VERSION))]);
        SocketRequest { url, headers, subprotocols: Vec::new(), party: self.settings.party.clone() }
    }

    fn opened(&mut self, _now_ms: i64) {
        self.context = None;
    }

    fn begin(&mut self, context: ContextId, _out: &mut Vec<SocketMessage>) {
        self.context = Some(context);
    }

    fn speak(&mut self, _now_ms: i64, part: &str, _is_part_end: bool, out: &mut Vec<SocketMessage>) {
        if let Some(context) = self.context {
            out.push(self.text(context, &format!("{} ", part.trim()), true));
        }
    }

    fn finish(&mut self, _now_ms: i64, out: &mut Vec<SocketMessage>) -> bool {
        if let Some(context) = self.context {
            out.push(self.text(context, "", false));
        }
        false
    }

    fn cancel(&mut self, _now_ms: i64, out: &mut Vec<SocketMessage>) {
        if let Some(context) = self.context.take() {
            let message = json!({ "context_id": name(context), "cancel": true });
            out.push(SocketMessage::Text(message.to_string()));
        }
    }

    fn read(&mut self, message: &SocketMessage, heard: &mut Vec<Heard>) {
        let SocketMessage::Text(text) = message else { return };
        let Ok(message) = serde_json::from_str::<Value>(text) else { return };
        let named = message.get("context_id").and_then(Value::as_str);
        let kind = message.get("type").and_then(Value::as_str);
        if kind == Some("error") {
            let status =
                message.get("status_code").and_then(Value::as_u64).and_then(|code| u16::try_from(code).ok());
            let said: Vec<&str> = ["title", "message", "error", "error_code"]
                .iter()
                .filter_map(|name| message.get(name).and_then(Value::as_str))
                .collect();
            let failure = reported(Self::PROVIDER, status, &said.join(", "));
            match named {
                None => heard.push(Heard::Failed { context: None, failure }),
                Some(named) => {
                    if let Some(context) = context_of(named) {
                        heard.push(Heard::Failed { context: Some(context), failure });
                    }
                }
            }
            return;
        }
        let Some(context) = named.and_then(context_of) else { return };
        match kind {
            Some("chunk") => {
                let audio = message.get("data").and_then(Value::as_str).map(|data| STANDARD.decode(data));
                heard.push(match audio {
                    Some(Ok(pcm)) => Heard::Audio { context, pcm: pcm.into() },
                    _ => {
                        let failure = temporary("Cartesia sent audio that cannot be read");
                        Heard::Failed { context: Some(context), failure }
                    }
                });
            }
            Some("timestamps") => {
                let list =
                    |name: &str| message.get("word_timestamps").and_then(|times| times.get(name)?.as_array());
                if let (Some(words), Some(ends)) = (list("words"), list("end")) {
                    let timed = words
                        .iter()
                        .zip(ends)
                        .filter_map(|(word, end)| Some((word.as_str()?.to_owned(), end.as_f64()? * 1_000.0)));
                    heard.push(Heard::Words { context, words: timed.collect(), is_relative: false });
                }
            }
            Some("done") => heard.push(Heard::Done { context }),
            // `flush_done` and what is new change nothing.
            _ => {}
        }
    }
}

fn name(context: ContextId) -> String {
    format!("line-{context}")
}

fn context_of(name: &str) -> Option<ContextId> {
    name.strip_prefix("line-")?.parse().ok()
}

#[cfg(test)]
mod tests;
