//! Deepgram Aura: text in, binary audio out. The audio does not say what it belongs to, so lines go one at a time.
use std::collections::VecDeque;

use serde_json::{Value, json};

use super::failure::reported;
use super::streaming::{ContextId, Dialect, Heard, Stuck};
use super::{RATE, SynthesizerSettings};
use crate::base::setting::Secret;
use crate::ports::SocketMessage;
use crate::speech::exchange::SocketRequest;

/// The speeds that the provider makes (its reference of the interface); it refuses others.
pub(super) const SPEEDS: std::ops::RangeInclusive<f64> = 0.7..=1.5;
/// The provider allows this many flushes in [`FLUSH_WINDOW_MS`].
const FLUSHES_MAX: usize = 20;
/// How many of them are kept for the ends of lines, without which a line never ends.
const FLUSHES_KEPT: usize = 8;
/// This much text gets one of them.
const UNFLUSHED_CHARS_MAX: usize = 200;
const FLUSH_WINDOW_MS: i64 = 60_000;
/// How long an answer to `Clear` is awaited.
const CLEAR_MS: i64 = 2_000;

/// The protocol's state on one connection.
pub(super) struct Aura {
    settings: SynthesizerSettings,
    /// The context whose text was sent, until its end.
    context: Option<ContextId>,
    /// Parts of the context that were sent.
    parts: usize,
    /// For each flush without an answer, the parts that it completes.
    flushes: VecDeque<usize>,
    /// Whether text was sent after the last flush.
    has_unflushed: bool,
    unflushed_chars: usize,
    is_finished: bool,
    /// When the last flushes were sent, over all connections.
    flushed_ms: VecDeque<i64>,
    /// Whether a flush waits until the provider allows it.
    flush_due_ms: Option<i64>,
    /// Until when an answer to `Clear` is awaited. All audio before it is of the cleared line.
    clear_until_ms: Option<i64>,
}

impl Aura {
    /// The protocol for a voice.
    pub(super) fn new(settings: SynthesizerSettings) -> Self {
        Self {
            settings,
            context: None,
            parts: 0,
            flushes: VecDeque::new(),
            has_unflushed: false,
            unflushed_chars: 0,
            is_finished: false,
            flushed_ms: VecDeque::new(),
            flush_due_ms: None,
            clear_until_ms: None,
        }
    }

    /// Sends a flush if the provider allows one more than `kept`.
    fn flush(&mut self, now_ms: i64, kept: usize, out: &mut Vec<SocketMessage>) -> bool {
        while self.flushed_ms.front().is_some_and(|at_ms| now_ms.saturating_sub(*at_ms) >= FLUSH_WINDOW_MS) {
            self.flushed_ms.pop_front();
        }
        if self.flushed_ms.len() + kept >= FLUSHES_MAX {
            return false;
        }
        self.flushed_ms.push_back(now_ms);
        self.flushes.push_back(self.parts);
        (self.has_unflushed, self.unflushed_chars) = (false, 0);
        out.push(text(&json!({ "type": "Flush" })));
        true
    }

    fn forget(&mut self) {
        self.context = None;
        self.parts = 0;
        self.flushes.clear();
        (self.has_unflushed, self.unflushed_chars) = (false, 0);
        self.is_finished = false;
        self.flush_due_ms = None;
    }

    fn flushed(&mut self, heard: &mut Vec<Heard>) {
        if self.clear_until_ms.is_some() {
            return;
        }
        if let (Some(context), Some(count)) = (self.context, self.flushes.pop_front()) {
            heard.push(Heard::Parts { context, count });
            if self.is_finished && self.flushes.is_empty() && !self.has_unflushed {
                self.forget();
                heard.push(Heard::Done { context });
            }
        }
    }
}

impl Dialect for Aura {
    const PROVIDER: &'static str = "Deepgram";
    const CONNECTION_MS_MAX: i64 = 50 * 60_000;
    const TEXT_BYTES_MAX: usize = 1_900;

    fn key(&self) -> Option<&Secret> {
        self.settings.api_key.as_ref()
    }

    fn request(&self) -> SocketRequest {
        let rate = RATE.hz().to_string();
        let speed = self.settings.speed_within(SPEEDS).map(|speed| speed.to_string());
        let query = [
            ("model", Some(self.settings.voice.as_str())),
            ("encoding", Some("linear16")),
            ("sample_rate", Some(rate.as_str())),
            ("speed", speed.as_deref()),
        ];
        SocketRequest {
            url: self.settings.socket("/speak", &query),
            headers: self.settings.key_header("authorization", "Token "),
            subprotocols: Vec::new(),
            party: self.settings.party.clone(),
        }
    }

    fn opened(&mut self, _now_ms: i64) {
        self.forget();
        self.clear_until_ms = None;
    }

    fn is_ready(&self) -> bool {
        self.clear_until_ms.is_none()
    }

    fn begin(&mut self, context: ContextId, _out: &mut Vec<SocketMessage>) {
        self.forget();
        self.context = Some(context);
    }

    fn speak(&mut self, now_ms: i64, part: &str, is_part_end: bool, out: &mut Vec<SocketMessage>) {
        // Without a space at its end, the next part's first word is joined to this one's last.
        out.push(text(&json!({ "type": "Speak", "text": format!("{} ", part.trim()) })));
        self.has_unflushed = true;
        self.unflushed_chars += part.chars().count();
        if is_part_end {
            self.parts += 1;
            // Long text is not kept back for want of a flush: its audio may be awaited.
            let kept = if self.unflushed_chars >= UNFLUSHED_CHARS_MAX { 1 } else { FLUSHES_KEPT };
            self.flush(now_ms, kept, out);
        }
    }

    fn finish(&mut self, now_ms: i64, out: &mut Vec<SocketMessage>) -> bool {
        self.is_finished = true;
        if self.has_unflushed && !self.flush(now_ms, 0, out) {
            let oldest_ms = self.flushed_ms.front().copied().unwrap_or(now_ms);
            self.flush_due_ms = Some(oldest_ms.saturating_add(FLUSH_WINDOW_MS));
        }
        let is_done = self.flushes.is_empty() && !self.has_unflushed;
        if is_done {
            self.forget();
        }
        is_done
    }

    fn cancel(&mut self, now_ms: i64, out: &mut Vec<SocketMessage>) {
        if self.context.is_some() {
            out.push(text(&json!({ "type": "Clear" })));
            self.clear_until_ms = Some(now_ms.saturating_add(CLEAR_MS));
        }
        self.forget();
    }

    fn farewell(&self) -> Option<SocketMessage> {
        Some(text(&json!({ "type": "Close" })))
    }

    fn tick(&mut self, now_ms: i64, out: &mut Vec<SocketMessage>) -> Result<(), Stuck> {
        if self.flush_due_ms.is_some_and(|due_ms| now_ms >= due_ms) && self.flush(now_ms, 0, out) {
            self.flush_due_ms = None;
        }
        if self.clear_until_ms.is_some_and(|until_ms| now_ms >= until_ms) { Err(Stuck) } else { Ok(()) }
    }

    fn timeout(&self) -> Option<i64> {
        [self.flush_due_ms, self.clear_until_ms].into_iter().flatten().min()
    }

    fn keeps_back_until_ms(&self) -> Option<i64> {
        self.flush_due_ms
    }

    fn read(&mut self, message: &SocketMessage, heard: &mut Vec<Heard>) {
        let message = match message {
            SocketMessage::Binary(pcm) => {
                if let Some(context) = self.context.filter(|_| self.clear_until_ms.is_none()) {
                    heard.push(Heard::Audio { context, pcm: pcm.clone() });
                }
                return;
            }
            SocketMessage::Text(text) => serde_json::from_str::<Value>(text).unwrap_or_default(),
        };
        match message.get("type").and_then(Value::as_str) {
            Some("Flushed") => self.flushed(heard),
            Some("Cleared") => self.clear_until_ms = None,
            Some("Error") => {
                let said: Vec<&str> = ["code", "err_code", "description", "err_msg", "message"]
                    .iter()
                    .filter_map(|name| message.get(name).and_then(Value::as_str))
                    .collect();
                let failure = reported(Self::PROVIDER, None, &said.join(", "));
                heard.push(Heard::Failed { context: None, failure });
            }
            // `Metadata` and `Warning` change nothing.
            _ => {}
        }
    }
}

fn text(message: &Value) -> SocketMessage {
    SocketMessage::Text(message.to_string())
}

#[cfg(test)]
mod tests;
