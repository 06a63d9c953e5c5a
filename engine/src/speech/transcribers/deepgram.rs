//! Deepgram's streaming recognition (`/v1/listen`).
//!
//! All audio is streamed. Deepgram finalises it piece by piece (`is_final`), each with its place in the stream; at the end of
//! an utterance we ask it to finalise the rest at once (`Finalize`), and the answer is marked (`from_finalize`), though it
//! may be missing when nothing was left. So an utterance is complete when everything before its end is finalised. Pieces
//! belong to the utterance in whose time they are, so a late answer never becomes words of the next one.
use std::collections::VecDeque;

use serde::Deserialize;
use serde_json::Value;

use super::audio_log::{AudioLog, Position, linear16};
use super::events::{Events, append, joined, spoken};
use super::report::Reporter;
use super::socket_link::{Change, SocketLink, socket_request};
use super::{TranscriberKind, TranscriberSettings};
use crate::base::limits::{SPEECH_PRE_ROLL_MS, SPEECH_RESULT_LATE_MS, SPEECH_UTTERANCES_MAX};
use crate::ports::SocketMessage;
use crate::speech::audio::Rate;
use crate::speech::exchange::{Arrival, ExchangeId, SpeechFailure, Transmit};
use crate::speech::g711;
use crate::speech::transcriber::{Transcriber, TranscriberEvent};

const KIND: TranscriberKind = TranscriberKind::Deepgram;
/// Audio in a message.
const CHUNK_MS: i64 = 40;
/// Audio in a message when much of it is to be sent.
const CHUNK_MS_MAX: i64 = 500;
/// How far the times of results may deviate from ours.
const TOLERANCE_MS: i64 = 100;
/// Audio that is kept while nobody speaks.
const IDLE_MS: i64 = 2_000;
/// An utterance whose end is not confirmed is taken as it is when the provider has told nothing more for this time.
const UNCONFIRMED_MS: i64 = 2_000;

pub(super) struct Deepgram {
    link: SocketLink,
    log: AudioLog,
    events: Events,
    /// Where the stream of this connection began.
    origin: Position,
    /// Everything before it was sent over this connection.
    sent_to: Position,
    /// Everything before it is part of an utterance that has its result.
    done_to: Position,
    is_speaking: bool,
    /// Words of the utterance in progress, or heard outside of one.
    current: Words,
    ended: VecDeque<Utterance>,
    /// The latest utterance that has its result: some of its words may come after it.
    last: Option<Told>,
    /// When it last told what it heard, be it nothing. Whatever else it sends is no answer.
    heard_ms: i64,
    billed_samples: u64,
}

#[derive(Default)]
struct Words {
    text: String,
    /// The end of the finalised words.
    end: Position,
    interim: String,
}

impl Words {
    fn so_far(&self) -> String {
        joined(&self.text, &self.interim)
    }
}

/// An utterance that waits for its result.
struct Utterance {
    end: Position,
    words: Words,
    /// When it was sent whole over this connection.
    asked_ms: Option<i64>,
}

/// An utterance that has its result.
struct Told {
    start: Position,
    words: Words,
    result: String,
}

impl Deepgram {
    pub(super) fn new(settings: &TranscriberSettings, line_rate: Rate) -> Self {
        let rate = streamed_rate(line_rate);
        let mut query = vec![("model", settings.model.clone())];
        query.extend(encoding(rate));
        query.push(("channels", "1".to_owned()));
        query.push(("interim_results", "true".to_owned()));
        query.push(("smart_format", "true".to_owned()));
        query.push(("endpointing", "300".to_owned()));
        query.extend(settings.language.iter().map(|language| ("language", language.clone())));
        query.extend(settings.fitting_keyterms().into_iter().map(|term| ("keyterm", term)));
        let request = socket_request(settings, "/v1/listen", &query, "Token");
        Self {
            link: SocketLink::new(Reporter::new(KIND, settings), request, Some(r#"{"type":"KeepAlive"}"#)),
            log: AudioLog::new(rate),
            events: Events::default(),
            origin: 0,
            sent_to: 0,
            done_to: 0,
            is_speaking: false,
            current: Words::default(),
            ended: VecDeque::new(),
            last: None,
            heard_ms: 0,
            billed_samples: 0,
        }
    }

    /// Sends what was not sent yet: audio, and after each utterance the request to finalise it.
    fn pump(&mut self, now_ms: i64) {
        if !self.link.is_open() {
            return;
        }
        let (chunk, chunk_max) = (self.log.samples_in(CHUNK_MS), self.log.samples_in(CHUNK_MS_MAX));
        loop {
            let unasked = self.ended.iter().position(|utterance| utterance.asked_ms.is_none());
            let mark = unasked.and_then(|index| self.ended.get(index)).map(|utterance| utterance.end);
            let until = mark.unwrap_or(self.log.end());
            let least = if mark.is_some() { 1 } else { chunk };
            while until.saturating_sub(self.sent_to) >= least {
                let to = until.min(self.sent_to + chunk_max);
                let samples = self.log.read(self.sent_to, to);
                self.billed_samples += samples.len() as u64;
                self.link.send(now_ms, encoded(self.log.rate(), &samples));
                self.sent_to = to;
            }
            let Some(utterance) = unasked.and_then(|index| self.ended.get_mut(index)) else { return };
            utterance.asked_ms = Some(now_ms);
            self.link.send_text(now_ms, r#"{"type":"Finalize"}"#);
        }
    }

    fn changed(&mut self, now_ms: i64, change: Change) {
        match change {
            Change::Opened => {
                self.origin = self.log.start();
                self.sent_to = self.origin;
                while self.ended.front().is_some_and(|first| first.end <= self.origin) {
                    // Its audio could not be kept so long.
                    let failure = self.link.reporter.disturbed("gave no answer for too long", "");
                    self.resolve(Some(failure));
                }
                self.pump(now_ms);
            }
            Change::Text(text) => self.read(now_ms, &text),
            Change::Lost => {
                for utterance in &mut self.ended {
                    utterance.asked_ms = None;
                    utterance.words.interim.clear();
                }
                self.current.interim.clear();
            }
            Change::Over(failure) => self.fail_all(&failure),
            Change::Closed { is_orderly } => {
                while is_orderly && !self.ended.is_empty() {
                    self.resolve(None);
                }
                if let Some(failure) = self.link.ended().cloned() {
                    self.fail_all(&failure);
                }
            }
        }
    }

    fn read(&mut self, now_ms: i64, text: &str) {
        let kind = serde_json::from_str::<Kind>(text).map(|message| message.kind);
        let change = match kind.as_deref() {
            Ok("Results") => match serde_json::from_str::<Results>(text) {
                Ok(results) => {
                    self.heard_ms = now_ms;
                    return self.results(results);
                }
                Err(_) => self.link.unreadable(now_ms),
            },
            Ok("Error") => {
                let error = serde_json::from_str::<Value>(text).unwrap_or_default();
                let failure = self.link.reporter.message(&error);
                Some(self.link.broke(now_ms, failure))
            }
            // Metadata, UtteranceEnd, SpeechStarted and whatever comes.
            Ok(_) => None,
            Err(_) => self.link.unreadable(now_ms),
        };
        if let Some(change) = change {
            self.changed(now_ms, change);
        }
    }

    fn results(&mut self, results: Results) {
        self.link.worked();
        let is_final = results.is_final.unwrap_or(false);
        let is_answer = is_final && results.from_finalize.unwrap_or(false);
        let span = results.start.zip(results.duration).map(|(start, duration)| {
            let end = self.log.position(self.origin, start + duration).min(self.sent_to);
            (self.log.position(self.origin, start).min(end), end)
        });
        self.place(span, is_final, &spoken(&results.transcript()));
        let Some((start, end)) = span else {
            // A server that tells no times: its answers come in order.
            if is_answer && self.ended.front().is_some_and(|first| first.asked_ms.is_some()) {
                self.resolve(None);
            }
            return;
        };
        if is_final {
            self.log.forget_until(end);
        }
        let covered = if is_final { end } else { start } + self.log.samples_in(TOLERANCE_MS);
        while self.ended.front().is_some_and(|first| first.asked_ms.is_some() && first.end <= covered) {
            self.resolve(None);
        }
    }

    /// Gives words to the utterance in whose time they were said.
    fn place(&mut self, span: Option<(Position, Position)>, is_final: bool, said: &str) {
        let middle = span.map(|(start, end)| start + (end - start) / 2);
        if let Some(middle) = middle.filter(|middle| *middle < self.done_to) {
            if is_final {
                self.place_late(middle, span.map_or(middle, |(_, end)| end), said);
            }
            return;
        }
        let waiting =
            self.ended.iter_mut().find(|utterance| middle.is_none_or(|middle| middle < utterance.end));
        let is_loose = waiting.is_none() && !self.is_speaking;
        let words = waiting.map_or(&mut self.current, |utterance| &mut utterance.words);
        // Told twice.
        if is_final && middle.is_some_and(|middle| middle < words.end) {
            return;
        }
        if is_final {
            if is_loose {
                words.text.clear();
            }
            append(&mut words.text, said);
            // Words that were heard in speech stay when their final result has none.
            if is_loose || !said.is_empty() {
                words.interim.clear();
                words.end = span.map_or(self.sent_to, |(_, end)| end);
            }
        } else {
            said.clone_into(&mut words.interim);
        }
        let so_far = words.so_far();
        self.events.partial(so_far);
    }

    /// Tells final words that come after the result of their utterance.
    fn place_late(&mut self, middle: Position, end: Position, said: &str) {
        let is_new = |last: &&mut Told| middle >= last.start.max(last.words.end);
        let Some(last) = self.last.as_mut().filter(is_new) else { return };
        if said.is_empty() || self.events.is_full() {
            return;
        }
        append(&mut last.words.text, said);
        last.words.end = end;
        let text = last.words.text.clone();
        let told = std::mem::replace(&mut last.result, text.clone());
        self.events.push(TranscriberEvent::Late { told, text });
    }

    /// The oldest utterance has its result.
    fn resolve(&mut self, failure: Option<SpeechFailure>) {
        let Some(utterance) = self.ended.pop_front() else { return };
        let start = std::mem::replace(&mut self.done_to, utterance.end);
        let result = utterance.words.so_far();
        self.events.push(match failure {
            Some(failure) if result.is_empty() => TranscriberEvent::Failed(failure),
            _ => TranscriberEvent::Final(result.clone()),
        });
        self.last = Some(Told { start, words: utterance.words, result });
    }

    fn fail_all(&mut self, failure: &SpeechFailure) {
        for utterance in self.ended.drain(..) {
            self.done_to = utterance.end;
            self.events.push(TranscriberEvent::Failed(failure.clone()));
        }
    }

    /// When the oldest utterance must have its result, and whether it is then taken as it is.
    fn due(&self) -> Option<(i64, bool)> {
        let asked_ms = self.ended.front()?.asked_ms?;
        let late_ms = asked_ms + SPEECH_RESULT_LATE_MS;
        let is_heard = self.heard_ms > asked_ms;
        Some((if is_heard { late_ms.min(self.heard_ms + UNCONFIRMED_MS) } else { late_ms }, is_heard))
    }
}

impl Transcriber for Deepgram {
    fn rate(&self) -> Rate {
        self.log.rate()
    }

    fn final_wait_ms(&self) -> i64 {
        KIND.final_wait_ms()
    }

    fn hear(&mut self, now_ms: i64, samples: &[i16]) {
        if self.link.ended().is_some() || self.link.is_closing() {
            return;
        }
        self.link.begin(now_ms);
        self.log.push(samples);
        self.pump(now_ms);
        if !self.is_speaking && self.ended.is_empty() {
            let kept = self.log.end().saturating_sub(self.log.samples_in(IDLE_MS));
            self.log.forget_until(if self.link.is_open() { kept.min(self.sent_to) } else { kept });
        }
    }

    fn speech_began(&mut self, now_ms: i64) {
        self.is_speaking = true;
        let from = self.log.end().saturating_sub(self.log.samples_in(SPEECH_PRE_ROLL_MS));
        if self.current.end <= from {
            self.current.text.clear();
        }
        self.link.try_again(now_ms);
    }

    fn speech_ended(&mut self, now_ms: i64) {
        self.is_speaking = false;
        let words = std::mem::take(&mut self.current);
        if let Some(failure) = self.link.ended() {
            self.events.push(TranscriberEvent::Failed(failure.clone()));
            return;
        }
        if self.ended.len() >= SPEECH_UTTERANCES_MAX {
            let failure = self.link.reporter.disturbed("is behind by too many utterances", "");
            self.resolve(Some(failure));
        }
        self.ended.push_back(Utterance { end: self.log.end(), words, asked_ms: None });
        self.link.try_again(now_ms);
        self.pump(now_ms);
        if self.link.is_closing() {
            // Everything that was heard was sent before; its last words follow.
            self.ended.iter_mut().for_each(|utterance| utterance.asked_ms = Some(now_ms));
        }
    }

    fn close(&mut self, now_ms: i64) {
        self.pump(now_ms);
        if let Some(change) = self.link.close(now_ms, Some(r#"{"type":"CloseStream"}"#)) {
            self.changed(now_ms, change);
        }
    }

    fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival) {
        if let Some(change) = self.link.arrived(now_ms, id, arrival) {
            self.changed(now_ms, change);
        }
    }

    fn tick(&mut self, now_ms: i64) {
        if let Some(change) = self.link.tick(now_ms) {
            self.changed(now_ms, change);
        }
        while let Some((due_ms, is_heard)) = self.due()
            && now_ms >= due_ms
        {
            if is_heard {
                self.resolve(None);
                continue;
            }
            let failure = self.link.reporter.disturbed("did not answer in time", "");
            let change = self.link.broke(now_ms, failure);
            self.changed(now_ms, change);
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.link.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<TranscriberEvent> {
        self.events.pop()
    }

    fn poll_timeout(&self) -> Option<i64> {
        let due_ms = self.due().map(|(due_ms, _)| due_ms);
        self.link.timeout().into_iter().chain(due_ms).min()
    }

    fn billed_ms(&self) -> i64 {
        self.log.ms_of(self.billed_samples)
    }
}

/// The rate at which audio is streamed: no more than the line carries.
pub(super) fn streamed_rate(line_rate: Rate) -> Rate {
    if line_rate == Rate::Khz8 { Rate::Khz8 } else { Rate::Khz16 }
}

/// How audio of this rate is announced.
pub(super) fn encoding(rate: Rate) -> [(&'static str, String); 2] {
    let encoding = if rate == Rate::Khz8 { "mulaw" } else { "linear16" };
    [("encoding", encoding.to_owned()), ("sample_rate", rate.hz().to_string())]
}

/// Audio as it was announced.
pub(super) fn encoded(rate: Rate, samples: &[i16]) -> SocketMessage {
    SocketMessage::Binary(if rate == Rate::Khz8 { g711::encode(samples).into() } else { linear16(samples) })
}

#[derive(Deserialize)]
pub(super) struct Kind {
    #[serde(rename = "type")]
    pub(super) kind: String,
}

#[derive(Deserialize)]
struct Results {
    start: Option<f64>,
    duration: Option<f64>,
    is_final: Option<bool>,
    from_finalize: Option<bool>,
    channel: Option<Channel>,
}

#[derive(Deserialize)]
struct Channel {
    #[serde(default)]
    alternatives: Vec<Alternative>,
}

#[derive(Deserialize)]
struct Alternative {
    transcript: Option<String>,
}

impl Results {
    fn transcript(self) -> String {
        let first = self.channel.and_then(|channel| channel.alternatives.into_iter().next());
        first.and_then(|first| first.transcript).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests;
