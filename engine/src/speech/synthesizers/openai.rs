//! OpenAI's `POST /audio/speech` and servers with the same interface: a request for each part of a line.
//!
//! The next part is asked for as soon as audio of the one before it arrives, and its audio is held until its turn. Servers
//! stream the body by themselves; the optional fields that ask for it (`stream_format`, `stream`) are refused by some.
use std::collections::VecDeque;

use bytes::Bytes;
use serde_json::{Map, json};

use super::container::Container;
use super::failure::{broken, refused, temporary};
use super::lines::{FIRST_AUDIO_MS, LINE_AUDIO_MS_MAX, Lines, STALL_MS, at_work_until_ms, pieces};
use super::{RATE, SynthesizerSettings};
use crate::ports::{Egress, HttpRequest};
use crate::speech::exchange::{
    Arrival, EXCHANGE_ERROR_BYTES_MAX, ExchangeFailure, ExchangeId, SpeechFailure, Transmit,
};
use crate::speech::synthesizer::{LineId, Synthesizer, SynthesizerEvent};

/// The provider's name in messages.
const PROVIDER: &str = "The speech server";
/// The interface accepts 4,096 characters.
const TEXT_BYTES_MAX: usize = 4_000;
/// The deadline of a whole response. What matters is enforced here: the first audio, and pauses.
const RESPONSE_MS: u64 = 300_000;
/// A line's audio at the highest rate of a WAV file, 48 kHz, with room for its head.
const RESPONSE_BYTES_MAX: usize = LINE_AUDIO_MS_MAX as usize * 96 + 64 * 1024;
/// The most samples held before their turn: one minute.
const HELD_SAMPLES_MAX: usize = RATE.hz() as usize * 60;

/// A request.
struct Part {
    line: LineId,
    /// The index of the line's part that is complete with this request.
    ends: Option<usize>,
    text: String,
    exchange: Option<Exchange>,
    /// Since when its audio is awaited.
    turn_ms: Option<i64>,
    has_been_repeated: bool,
    /// Whether it may be asked for before its turn.
    may_go_ahead: bool,
}

impl Part {
    /// Takes its characters back from a bill: a server does not bill a text of which it made no audio.
    fn take_back(&self, billed: &mut u64) {
        *billed = billed.saturating_sub(billed_chars(&self.text));
    }
}

/// What is known of its response.
struct Exchange {
    id: ExchangeId,
    body: Body,
    held: Vec<i16>,
    has_audio: bool,
    last_ms: i64,
    end: Option<Result<(), SpeechFailure>>,
}

enum Body {
    Awaited,
    Audio(Box<Container>),
    Error(u16, Vec<u8>),
}

/// A voice over HTTP.
pub(super) struct OpenAi {
    settings: SynthesizerSettings,
    lines: Lines,
    parts: VecDeque<Part>,
    next_id: ExchangeId,
    transmits: VecDeque<Transmit>,
    billed_chars: u64,
    is_closed: bool,
}

impl OpenAi {
    /// The protocol for a voice.
    pub(super) fn new(settings: SynthesizerSettings) -> Self {
        Self {
            lines: Lines::default().hiding(settings.api_key.as_ref()),
            settings,
            parts: VecDeque::new(),
            next_id: 0,
            transmits: VecDeque::new(),
            billed_chars: 0,
            is_closed: false,
        }
    }

    fn request(&self, text: &str) -> HttpRequest {
        let settings = &self.settings;
        let mut body = Map::new();
        if let Some(model) = &settings.model {
            body.insert("model".to_owned(), json!(model));
        }
        body.insert("input".to_owned(), json!(text.trim()));
        body.insert("voice".to_owned(), json!(settings.voice));
        body.insert("response_format".to_owned(), json!("pcm"));
        if let Some(speed) = settings.speed {
            body.insert("speed".to_owned(), json!(speed));
        }
        let mut headers = settings.key_header("authorization", "Bearer ");
        headers.push(("content-type", "application/json".to_owned()));
        HttpRequest {
            method: "POST",
            url: settings.http("/audio/speech"),
            headers,
            body: Bytes::from(json!(body).to_string()),
            deadline_ms: RESPONSE_MS,
            response_bytes_max: RESPONSE_BYTES_MAX,
            egress: Egress::Operator,
            party: settings.party.clone(),
            expected: &[],
        }
    }

    /// Sends the request of a part.
    fn ask(&mut self, now_ms: i64, index: usize) {
        let Some(request) = self.parts.get(index).map(|part| self.request(&part.text)) else { return };
        let Some(part) = self.parts.get_mut(index) else { return };
        let id = self.next_id;
        self.next_id = self.next_id.wrapping_add(1);
        self.billed_chars += billed_chars(&part.text);
        part.exchange = Some(Exchange {
            id,
            body: Body::Awaited,
            held: Vec::new(),
            has_audio: false,
            last_ms: now_ms,
            end: None,
        });
        self.transmits.push_back(Transmit::Request { id, request });
    }

    /// Forgets requests of lines that have ended.
    fn sweep(&mut self) {
        let (lines, transmits) = (&self.lines, &mut self.transmits);
        self.parts.retain(|part| {
            let is_open = lines.get(part.line).is_some();
            if let Some(exchange) =
                part.exchange.as_ref().filter(|exchange| !is_open && exchange.end.is_none())
            {
                transmits.push_back(Transmit::Drop { id: exchange.id });
            }
            is_open
        });
    }

    /// Does what can be done: reports audio whose turn it is, ends lines, sends requests.
    fn settle(&mut self, now_ms: i64) {
        if self.is_closed {
            return;
        }
        loop {
            self.sweep();
            let Some(front) = self.lines.front() else { return };
            let (line, is_finished, has_parts) = (front.id, front.is_finished, !front.parts.is_empty());
            let head = self.parts.front_mut().filter(|part| part.line == line);
            let Some(part) = head else {
                if is_finished && has_parts {
                    self.lines.complete(line, PROVIDER);
                    continue;
                }
                break;
            };
            part.turn_ms.get_or_insert(now_ms);
            let Some(exchange) = &mut part.exchange else {
                self.ask(now_ms, 0);
                break;
            };
            let held = std::mem::take(&mut exchange.held);
            let (end, has_audio, ends) = (exchange.end.take(), exchange.has_audio, part.ends);
            if !self.lines.audio(line, held) {
                continue;
            }
            let Some(end) = end else { break };
            // The exchange has ended: there is nothing to drop.
            self.parts.pop_front();
            match end {
                Ok(()) if has_audio => {
                    if let Some(index) = ends {
                        self.lines.part_end(line, index);
                    }
                }
                Ok(()) => self.lines.fail(line, temporary(format!("{PROVIDER} made no audio for the text"))),
                Err(failure) => self.lines.fail(line, failure),
            }
        }
        self.ask_ahead(now_ms);
    }

    /// Asks for one part before its turn.
    fn ask_ahead(&mut self, now_ms: i64) {
        let front = self.lines.front().map(|line| line.id);
        let is_head = |part: &Part| front == Some(part.line);
        let next = match self.parts.front() {
            Some(head) if is_head(head) => {
                // Not before the server has answered for this one.
                if head.exchange.as_ref().is_some_and(|exchange| exchange.has_audio) { 1 } else { return }
            }
            _ => 0,
        };
        let asked = self.parts.iter().filter(|part| part.exchange.is_some()).count();
        let is_free = self.parts.get(next).is_some_and(|part| part.exchange.is_none() && part.may_go_ahead);
        if is_free && asked <= next {
            self.ask(now_ms, next);
        }
    }

    /// When the part whose turn it is has failed if nothing arrives.
    fn deadline(&self) -> Option<i64> {
        let part = self.parts.front()?;
        let (exchange, turn_ms) = (part.exchange.as_ref()?, part.turn_ms?);
        Some(if exchange.has_audio {
            exchange.last_ms.max(turn_ms).saturating_add(STALL_MS)
        } else {
            turn_ms.saturating_add(FIRST_AUDIO_MS)
        })
    }
}

impl Exchange {
    /// Takes what arrived. `true`: it is of no use, and the exchange must be dropped.
    fn arrived(&mut self, now_ms: i64, arrival: Arrival) -> bool {
        let unusable = |what: String| {
            let check = "check its base URL, and that it can answer with pcm";
            temporary(format!("{PROVIDER} answered with {what}; {check}"))
        };
        match arrival {
            Arrival::Head { status: status @ 200..300, headers } => {
                let named = headers.iter().find(|(name, _)| name == "content-type");
                match Container::new(named.map(|(_, value)| value.as_str())) {
                    Ok(container) => self.body = Body::Audio(Box::new(container)),
                    Err(what) => {
                        self.end = Some(Err(unusable(format!("status {status} and {what}"))));
                        return true;
                    }
                }
            }
            Arrival::Head { status, .. } => self.body = Body::Error(status, Vec::new()),
            Arrival::Body(bytes) => match &mut self.body {
                Body::Audio(container) => match container.read(&bytes) {
                    Ok(samples) => self.audio(now_ms, samples),
                    Err(what) => {
                        self.end = Some(Err(unusable(what)));
                        return true;
                    }
                },
                Body::Error(_, body) => {
                    let room = EXCHANGE_ERROR_BYTES_MAX.saturating_sub(body.len()).min(bytes.len());
                    body.extend_from_slice(bytes.get(..room).unwrap_or_default());
                }
                Body::Awaited => {}
            },
            Arrival::End => {
                self.end = Some(match &mut self.body {
                    Body::Audio(container) => match container.finish() {
                        Ok(samples) => {
                            self.audio(now_ms, samples);
                            Ok(())
                        }
                        Err(what) => Err(unusable(what)),
                    },
                    Body::Error(status, body) => {
                        Err(refused(PROVIDER, *status, &String::from_utf8_lossy(body)))
                    }
                    Body::Awaited => Err(temporary(format!("{PROVIDER} ended the response before its head"))),
                });
            }
            Arrival::Failed(failure) => self.end = Some(Err(broken(PROVIDER, &failure))),
            // Sockets have these.
            Arrival::Opened | Arrival::Message(_) | Arrival::Closed { .. } => {}
        }
        false
    }

    fn audio(&mut self, now_ms: i64, samples: Vec<i16>) {
        if !samples.is_empty() {
            let is_first = !std::mem::replace(&mut self.has_audio, true);
            self.last_ms =
                if is_first { now_ms } else { at_work_until_ms(self.last_ms, now_ms, samples.len()) };
            self.held.extend(samples);
        }
    }

    /// Whether a second attempt helps: the server was not reached, was busy, or failed before any audio.
    fn is_worth_repeating(&self, arrival: &Arrival) -> bool {
        let is_worth = match (arrival, &self.body) {
            (Arrival::End, Body::Error(500.., _)) | (Arrival::Failed(ExchangeFailure::Broken(_)), _) => true,
            // An account that has nothing left is no busy server.
            (Arrival::End, Body::Error(429, body)) => {
                refused(PROVIDER, 429, &String::from_utf8_lossy(body)).is_temporary
            }
            _ => false,
        };
        is_worth && !self.has_audio
    }
}

/// What a request with this text bills.
fn billed_chars(text: &str) -> u64 {
    text.trim().chars().count() as u64
}

impl Synthesizer for OpenAi {
    fn speak(&mut self, now_ms: i64, line: LineId, text: &str) {
        if self.is_closed {
            return;
        }
        let before = self.lines.get(line).map_or(0, |line| line.parts.len());
        self.lines.speak(line, text);
        let after = self.lines.get(line).map_or(0, |line| line.parts.len());
        if after > before {
            let at = self.parts.iter().position(|part| part.line > line).unwrap_or(self.parts.len());
            let pieces = pieces(text, TEXT_BYTES_MAX);
            for (index, piece) in pieces.iter().enumerate() {
                let part = Part {
                    line,
                    ends: (index + 1 == pieces.len()).then_some(before),
                    text: (*piece).to_owned(),
                    exchange: None,
                    turn_ms: None,
                    has_been_repeated: false,
                    may_go_ahead: true,
                };
                self.parts.insert(at + index, part);
            }
        }
        self.settle(now_ms);
    }

    fn finish(&mut self, now_ms: i64, line: LineId) {
        if !self.is_closed {
            self.lines.finish(line);
            self.settle(now_ms);
        }
    }

    fn cancel(&mut self, now_ms: i64, line: LineId) {
        self.lines.cancel(line);
        self.settle(now_ms);
    }

    fn close(&mut self, _now_ms: i64) {
        self.lines.clear();
        self.sweep();
        self.is_closed = true;
    }

    fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival) {
        let is_own = |part: &Part| part.exchange.as_ref().is_some_and(|exchange| exchange.id == id);
        let Some(index) = self.parts.iter().position(is_own) else { return };
        let Some(part) = self.parts.get_mut(index) else { return };
        let Some(exchange) = part.exchange.as_mut().filter(|exchange| exchange.end.is_none()) else { return };
        let is_repeated = exchange.is_worth_repeating(&arrival) && !part.has_been_repeated;
        let is_useless = !is_repeated && exchange.arrived(now_ms, arrival);
        let (has_ended, holds_too_much) = (exchange.end.is_some(), exchange.held.len() > HELD_SAMPLES_MAX);
        if (is_repeated || has_ended) && !exchange.has_audio {
            part.take_back(&mut self.billed_chars);
        }
        if is_repeated {
            part.has_been_repeated = true;
            self.ask(now_ms, index);
        } else if is_useless {
            self.transmits.push_back(Transmit::Drop { id });
        } else if holds_too_much && part.turn_ms.is_none() {
            // Too much to hold: asked for again when its turn comes.
            if !has_ended {
                self.transmits.push_back(Transmit::Drop { id });
            }
            (part.exchange, part.may_go_ahead) = (None, false);
        }
        self.settle(now_ms);
    }

    fn tick(&mut self, now_ms: i64) {
        if self.deadline().is_some_and(|due_ms| now_ms >= due_ms)
            && let Some(part) = self.parts.front_mut()
        {
            let has_audio = part.exchange.as_ref().is_some_and(|exchange| exchange.has_audio);
            // The end of the response may never come.
            if has_audio
                && part.ends.is_some()
                && self.lines.is_probably_spoken(part.line, part.ends)
                && let Some(exchange) = &mut part.exchange
            {
                exchange.end = Some(Ok(()));
                self.transmits.push_back(Transmit::Drop { id: exchange.id });
                return self.settle(now_ms);
            }
            let message = if has_audio {
                format!("{PROVIDER} stopped in the middle of the line")
            } else {
                part.take_back(&mut self.billed_chars);
                format!("{PROVIDER} made no audio within {} s", FIRST_AUDIO_MS / 1_000)
            };
            self.lines.fail(part.line, temporary(message));
        }
        self.settle(now_ms);
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    fn poll_event(&mut self) -> Option<SynthesizerEvent> {
        self.lines.poll_event()
    }

    fn poll_timeout(&self) -> Option<i64> {
        self.deadline()
    }

    fn billed_chars(&self) -> Vec<u64> {
        vec![self.billed_chars]
    }
}

#[cfg(test)]
mod tests;
