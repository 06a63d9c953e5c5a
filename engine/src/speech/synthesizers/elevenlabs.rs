//! ElevenLabs: a context for each line on a WebSocket of several contexts, with a time for every character.
use std::collections::VecDeque;

use base64::Engine;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};

use super::failure::{reported, temporary};
use super::streaming::{ContextId, Dialect, Heard, Stuck};
use super::word_map::is_ideograph;
use super::{RATE, SynthesizerSettings};
use crate::base::setting::Secret;
use crate::ports::SocketMessage;
use crate::speech::exchange::SocketRequest;

/// The speeds that the provider makes (its reference of the interface); it refuses others.
pub(super) const SPEEDS: std::ops::RangeInclusive<f64> = 0.7..=1.2;
/// The provider closes a connection with more open contexts.
const CONTEXTS_MAX: usize = 5;
/// How long the end of a closed context is awaited.
const CLOSE_MS: i64 = 5_000;
/// The pause between two signs of life.
const KEEPALIVE_MS: i64 = 5_000;
/// The longest word that is put together, in bytes.
const WORD_BYTES_MAX: usize = 200;

/// The protocol's state on one connection.
pub(super) struct ElevenLabs {
    settings: SynthesizerSettings,
    /// The context of the line being spoken.
    context: Option<ContextId>,
    /// Whether that context was told that it has no more text. Nothing may name it after that.
    is_finished: bool,
    /// Contexts that were closed before their end, and until when the provider may take to end them.
    closing: VecDeque<(ContextId, i64)>,
    /// The beginning of a word, and its end in ms after the audio so far.
    word: String,
    word_end_ms: f64,
    keepalive_ms: i64,
}

impl ElevenLabs {
    /// The protocol for a voice.
    pub(super) fn new(settings: SynthesizerSettings) -> Self {
        let (closing, word) = (VecDeque::new(), String::new());
        Self {
            settings,
            context: None,
            is_finished: false,
            closing,
            word,
            word_end_ms: 0.0,
            keepalive_ms: i64::MAX,
        }
    }

    /// Characters with their times, as words.
    fn words(&mut self, alignment: &Value, words: &mut Vec<(String, f64)>) {
        let list = |names: [&str; 2]| {
            names.iter().find_map(|name| alignment.get(name).and_then(Value::as_array)).map(Vec::as_slice)
        };
        let chars = list(["chars", "characters"]).unwrap_or_default();
        let starts = list(["charStartTimesMs", "char_start_times_ms"]).unwrap_or_default();
        let durations = list(["charDurationsMs", "char_durations_ms"]).unwrap_or_default();
        for ((text, start), duration) in chars.iter().zip(starts).zip(durations) {
            let (Some(text), Some(start), Some(duration)) =
                (text.as_str(), start.as_f64(), duration.as_f64())
            else {
                continue;
            };
            if text.trim().is_empty() {
                self.end_word(words);
                continue;
            }
            if self.word.len() + text.len() <= WORD_BYTES_MAX {
                self.word.push_str(text);
            }
            self.word_end_ms = start + duration;
            if text.chars().all(is_ideograph) {
                self.end_word(words);
            }
        }
    }

    fn end_word(&mut self, words: &mut Vec<(String, f64)>) {
        if !self.word.is_empty() {
            words.push((std::mem::take(&mut self.word), self.word_end_ms));
        }
    }
}

impl Dialect for ElevenLabs {
    const PROVIDER: &'static str = "ElevenLabs";
    const CONNECTION_MS_MAX: i64 = 60 * 60_000;
    const TEXT_BYTES_MAX: usize = 4_000;

    fn key(&self) -> Option<&Secret> {
        self.settings.api_key.as_ref()
    }

    fn request(&self) -> SocketRequest {
        let voice =
            percent_encoding::utf8_percent_encode(&self.settings.voice, percent_encoding::NON_ALPHANUMERIC);
        let format = format!("pcm_{}", RATE.hz());
        let query = [
            ("model_id", self.settings.model.as_deref()),
            ("language_code", self.settings.language.as_deref()),
            ("output_format", Some(format.as_str())),
            // Each part is a sentence or a clause: nothing is gained by waiting for more.
            ("auto_mode", Some("true")),
            ("sync_alignment", Some("true")),
            ("inactivity_timeout", Some("180")),
        ];
        SocketRequest {
            url: self.settings.socket(&format!("/text-to-speech/{voice}/multi-stream-input"), &query),
            headers: self.settings.key_header("xi-api-key", ""),
            subprotocols: Vec::new(),
            party: self.settings.party.clone(),
        }
    }

    fn opened(&mut self, now_ms: i64) {
        self.context = None;
        self.closing.clear();
        self.word.clear();
        self.keepalive_ms = now_ms.saturating_add(KEEPALIVE_MS);
    }

    fn is_ready(&self) -> bool {
        self.closing.len() < CONTEXTS_MAX
    }

    fn begin(&mut self, context: ContextId, out: &mut Vec<SocketMessage>) {
        self.context = Some(context);
        self.is_finished = false;
        self.word.clear();
        // The first message of a context; nothing else may name it before.
        let mut message = json!({ "text": " ", "context_id": name(context) });
        if let (Some(speed), Some(fields)) = (self.settings.speed_within(SPEEDS), message.as_object_mut()) {
            fields.insert("voice_settings".to_owned(), json!({ "speed": speed }));
        }
        out.push(text(&message));
    }

    fn speak(&mut self, now_ms: i64, part: &str, _is_part_end: bool, out: &mut Vec<SocketMessage>) {
        let Some(context) = self.context else { return };
        self.keepalive_ms = now_ms.saturating_add(KEEPALIVE_MS);
        out.push(text(&json!({ "text": format!("{} ", part.trim()), "context_id": name(context) })));
    }

    fn finish(&mut self, _now_ms: i64, out: &mut Vec<SocketMessage>) -> bool {
        self.is_finished = true;
        if let Some(context) = self.context {
            out.push(text(&json!({ "context_id": name(context), "flush": true })));
            out.push(text(&json!({ "context_id": name(context), "close_context": true })));
        }
        false
    }

    fn cancel(&mut self, now_ms: i64, out: &mut Vec<SocketMessage>) {
        if let Some(context) = self.context.take() {
            if !self.is_finished {
                out.push(text(&json!({ "context_id": name(context), "close_context": true })));
            }
            self.closing.push_back((context, now_ms.saturating_add(CLOSE_MS)));
        }
    }

    fn farewell(&self) -> Option<SocketMessage> {
        Some(text(&json!({ "close_socket": true })))
    }

    fn tick(&mut self, now_ms: i64, out: &mut Vec<SocketMessage>) -> Result<(), Stuck> {
        if now_ms >= self.keepalive_ms {
            self.keepalive_ms = now_ms.saturating_add(KEEPALIVE_MS);
            out.push(text(&match self.context.filter(|_| !self.is_finished) {
                Some(context) => json!({ "text": "", "context_id": name(context) }),
                None => json!({ "text": "" }),
            }));
        }
        // Most of the closed contexts end within a moment. One that does not is only a danger when there are many.
        let is_late = self.closing.front().is_some_and(|(_, until_ms)| now_ms >= *until_ms);
        if is_late && !self.is_ready() {
            return Err(Stuck);
        }
        Ok(())
    }

    fn timeout(&self) -> Option<i64> {
        let closing_ms = self.closing.front().filter(|_| !self.is_ready()).map(|(_, until_ms)| *until_ms);
        [closing_ms, Some(self.keepalive_ms)].into_iter().flatten().min()
    }

    fn read(&mut self, message: &SocketMessage, heard: &mut Vec<Heard>) {
        let SocketMessage::Text(text) = message else { return };
        let Ok(message) = serde_json::from_str::<Value>(text) else { return };
        let field = |names: [&str; 2]| {
            names.iter().find_map(|name| message.get(name)).filter(|value| !value.is_null())
        };
        let named = field(["contextId", "context_id"]).and_then(Value::as_str).and_then(context_of);
        if let Some(error) = field(["error", "error"]) {
            let said = [error.as_str(), message.get("message").and_then(Value::as_str)];
            let said: Vec<&str> = said.into_iter().flatten().collect();
            let failure = reported(Self::PROVIDER, None, &said.join(", "));
            heard.push(Heard::Failed { context: named, failure });
            return;
        }
        let Some(context) = named else { return };
        let is_final = field(["isFinal", "is_final"])
            .is_some_and(|value| value == &json!(true) || value == &json!("true"));
        if self.context == Some(context) {
            self.read_own(context, &message, is_final, heard);
        }
        if is_final {
            self.closing.retain(|(closing, _)| *closing != context);
        }
    }
}

impl ElevenLabs {
    /// Reads a message of the line being spoken. Its times count from the beginning of its audio.
    fn read_own(&mut self, context: ContextId, message: &Value, is_final: bool, heard: &mut Vec<Heard>) {
        let mut words = Vec::new();
        if let Some(alignment) = message.get("alignment") {
            self.words(alignment, &mut words);
        }
        if is_final {
            self.end_word(&mut words);
        }
        if !words.is_empty() {
            heard.push(Heard::Words { context, words, is_relative: true });
        }
        if let Some(audio) = message.get("audio").and_then(Value::as_str) {
            match STANDARD.decode(audio) {
                Ok(pcm) => {
                    self.word_end_ms -= pcm.len() as f64 / 2.0 * 1_000.0 / f64::from(RATE.hz());
                    heard.push(Heard::Audio { context, pcm: pcm.into() });
                }
                Err(_) => {
                    let failure = temporary("ElevenLabs sent audio that cannot be read");
                    heard.push(Heard::Failed { context: Some(context), failure });
                }
            }
        }
        if is_final {
            self.context = None;
            heard.push(Heard::Done { context });
        }
    }
}

fn name(context: ContextId) -> String {
    format!("line-{context}")
}

fn context_of(name: &str) -> Option<ContextId> {
    name.strip_prefix("line-")?.parse().ok()
}

fn text(message: &Value) -> SocketMessage {
    SocketMessage::Text(message.to_string())
}

#[cfg(test)]
mod tests;
