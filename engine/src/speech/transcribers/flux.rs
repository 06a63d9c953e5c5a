//! Deepgram Flux (`/v2/listen`): recognition that decides itself when a turn ends.
//!
//! All audio is streamed. Flux reports the words of the whole turn each time, and its end with all of them. It decides by
//! the audio, so a turn never ends when no audio comes: we send silence then. Our own detector is a backstop: when a turn is
//! still open long after the end of speech, we end it; when Flux heard no speech at all in it, the turn is empty.
use serde::Deserialize;
use serde_json::Value;

use super::audio_log::{AudioLog, Position};
use super::deepgram::{Kind, encoded, encoding, streamed_rate};
use super::events::{Events, spoken};
use super::report::Reporter;
use super::socket_link::{Change, SocketLink, socket_request};
use super::{TranscriberKind, TranscriberSettings};
use crate::base::limits::SPEECH_RESULT_LATE_MS;
use crate::speech::audio::Rate;
use crate::speech::exchange::{Arrival, ExchangeId, SpeechFailure, Transmit};
use crate::speech::transcriber::{Transcriber, TranscriberEvent};

const KIND: TranscriberKind = TranscriberKind::DeepgramFlux;
/// The silence after which a turn is over in any case (`eot_timeout_ms`), as far as Flux goes along.
pub(super) const TURN_ENDS_MS: std::ops::RangeInclusive<i64> = 500..=10_000;
/// How long after that Flux may take to tell.
pub(super) const TELLS_MS: i64 = 500;
/// How sure Flux must be to announce a likely end, which lets an answer begin to be thought of.
const EAGER_THRESHOLD: &str = "0.5";
/// Audio in a message: what Flux recommends.
const CHUNK_MS: i64 = 80;
/// Audio in a message when much of it is to be sent.
const CHUNK_MS_MAX: i64 = 480;
/// No audio for this long is silence.
const GAP_MS: i64 = 500;
/// Audio that is kept while nobody speaks.
const IDLE_MS: i64 = 2_000;

pub(super) struct Flux {
    link: SocketLink,
    log: AudioLog,
    events: Events,
    origin: Position,
    sent_to: Position,
    is_speaking: bool,
    /// When our detector saw the end of speech for which no turn has ended yet.
    waiting_ms: Option<i64>,
    /// When this connection was opened.
    opened_ms: i64,
    /// When it last told what it hears, be it nothing: it does four times a second.
    told_ms: Option<i64>,
    is_forced: bool,
    /// Whether a turn ended while our detector still heard speech: the end of that speech needs no other.
    is_answered: bool,
    turn: Option<Turn>,
    /// The last turn that has ended on this connection.
    ended_turn: Option<u64>,
    audio_ms: i64,
    /// The silence that ends a turn.
    turn_ends_ms: i64,
    billed_samples: u64,
}

/// The turn that Flux hears.
#[derive(Default)]
struct Turn {
    text: String,
    is_likely_over: bool,
}

impl Flux {
    pub(super) fn new(settings: &TranscriberSettings, line_rate: Rate) -> Self {
        let rate = streamed_rate(line_rate);
        let turn_ends_ms = settings.turn_ends_ms.clamp(*TURN_ENDS_MS.start(), *TURN_ENDS_MS.end());
        let mut query = vec![("model", settings.model.clone())];
        query.extend(encoding(rate));
        query.push(("eager_eot_threshold", EAGER_THRESHOLD.to_owned()));
        query.push(("eot_timeout_ms", turn_ends_ms.to_string()));
        // The English model takes no language.
        let hint = settings.primary_language().filter(|_| settings.model.contains("multi"));
        query.extend(hint.map(|language| ("language_hint", language)));
        query.extend(settings.fitting_keyterms().into_iter().map(|term| ("keyterm", term)));
        let request = socket_request(settings, "/v2/listen", &query, "Token");
        Self {
            link: SocketLink::new(Reporter::new(KIND, settings), request, None),
            log: AudioLog::new(rate),
            events: Events::default(),
            origin: 0,
            sent_to: 0,
            is_speaking: false,
            waiting_ms: None,
            opened_ms: 0,
            told_ms: None,
            is_forced: false,
            is_answered: false,
            turn: None,
            ended_turn: None,
            audio_ms: 0,
            turn_ends_ms,
            billed_samples: 0,
        }
    }

    fn pump(&mut self, now_ms: i64) {
        self.send_audio(now_ms, self.log.samples_in(CHUNK_MS));
        if self.turn.is_none() && !self.is_speaking && self.waiting_ms.is_none() {
            let kept = self.log.end().saturating_sub(self.log.samples_in(IDLE_MS));
            self.log.forget_until(if self.link.is_open() { kept.min(self.sent_to) } else { kept });
        }
    }

    /// Sends what was not sent, if it is at least so much.
    fn send_audio(&mut self, now_ms: i64, least: Position) {
        let chunk_max = self.log.samples_in(CHUNK_MS_MAX);
        while self.link.is_open() && self.log.end().saturating_sub(self.sent_to) >= least {
            let to = self.log.end().min(self.sent_to + chunk_max);
            let samples = self.log.read(self.sent_to, to);
            self.billed_samples += samples.len() as u64;
            self.link.send(now_ms, encoded(self.log.rate(), &samples));
            self.sent_to = to;
        }
    }

    fn changed(&mut self, now_ms: i64, change: Change) {
        match change {
            Change::Opened => {
                self.origin = self.log.start();
                self.sent_to = self.origin;
                self.opened_ms = now_ms;
                self.told_ms = None;
                self.ended_turn = None;
                self.pump(now_ms);
            }
            Change::Text(text) => self.read(now_ms, &text),
            Change::Lost => {
                // The audio of the turn is heard again; its words stay until then.
                self.is_forced = false;
                self.resume();
            }
            Change::Over(failure) => self.fail(&failure),
            Change::Closed { is_orderly } => {
                let failure = self.link.ended().cloned();
                match failure.filter(|_| !is_orderly) {
                    Some(failure) => self.fail(&failure),
                    None => {
                        let text = self.turn.take().unwrap_or_default().text;
                        self.end_turn(text);
                    }
                }
            }
        }
    }

    fn read(&mut self, now_ms: i64, text: &str) {
        let kind = serde_json::from_str::<Kind>(text).map(|message| message.kind);
        let change = match kind.as_deref() {
            Ok("TurnInfo") => match serde_json::from_str::<TurnInfo>(text) {
                Ok(info) => {
                    self.told_ms = Some(now_ms);
                    return self.turn_info(&info);
                }
                Err(_) => self.link.unreadable(now_ms),
            },
            Ok("Error") => {
                let error = serde_json::from_str::<Value>(text).unwrap_or_default();
                let failure = self.link.reporter.message(&error);
                Some(self.link.broke(now_ms, failure))
            }
            // Connected, the answers to Configure, and whatever comes.
            Ok(_) => None,
            Err(_) => self.link.unreadable(now_ms),
        };
        if let Some(change) = change {
            self.changed(now_ms, change);
        }
    }

    fn turn_info(&mut self, info: &TurnInfo) {
        self.link.worked();
        if self.events.is_full() {
            return;
        }
        // Told twice.
        if self.ended_turn.is_some() && info.turn_index <= self.ended_turn {
            return;
        }
        let text = spoken(info.transcript.as_deref().unwrap_or_default());
        match info.event.as_str() {
            "EndOfTurn" => {
                let so_far = self.turn.take().unwrap_or_default().text;
                self.ended_turn = info.turn_index;
                let end = info.audio_window_end.map_or(self.sent_to, |at| self.log.position(self.origin, at));
                self.log.forget_until(end.min(self.sent_to));
                // Words that were heard stay when the end has none.
                self.end_turn(if text.is_empty() { so_far } else { text });
            }
            "EagerEndOfTurn" => {
                let turn = self.turn.get_or_insert_default();
                if !text.is_empty() {
                    turn.text.clone_from(&text);
                }
                if !std::mem::replace(&mut turn.is_likely_over, true) {
                    self.events.push(TranscriberEvent::LikelyEnd(text));
                }
            }
            event @ ("Update" | "StartOfTurn" | "TurnResumed") => {
                if event == "TurnResumed" {
                    self.resume();
                }
                if event == "StartOfTurn" || !text.is_empty() {
                    self.turn.get_or_insert_default().text.clone_from(&text);
                }
                self.events.partial(text);
            }
            _ => {}
        }
    }

    /// The likely end was none.
    fn resume(&mut self) {
        if let Some(turn) = &mut self.turn
            && std::mem::take(&mut turn.is_likely_over)
        {
            self.events.push(TranscriberEvent::Resumed);
        }
    }

    /// A turn has ended, and with it whatever our detector reported until now.
    fn end_turn(&mut self, text: String) {
        self.is_forced = false;
        self.is_answered = !text.is_empty();
        if self.waiting_ms.take().is_some() || !text.is_empty() {
            self.events.push(TranscriberEvent::TurnEnded(text));
        }
    }

    fn fail(&mut self, failure: &SpeechFailure) {
        self.turn = None;
        self.is_forced = false;
        if self.waiting_ms.take().is_some() {
            self.events.push(TranscriberEvent::Failed(failure.clone()));
        }
    }

    /// When the turn should have ended.
    fn due(&self) -> Option<i64> {
        let waiting_ms = self.waiting_ms.filter(|_| self.link.is_open() && !self.is_speaking)?;
        let late_ms = if self.is_forced { SPEECH_RESULT_LATE_MS } else { 0 };
        Some(waiting_ms.max(self.opened_ms) + self.final_wait_ms() + late_ms)
    }

    /// When silence must stand in for audio.
    fn gap(&self) -> Option<i64> {
        self.link.is_open().then_some(self.audio_ms + GAP_MS)
    }
}

impl Transcriber for Flux {
    fn rate(&self) -> Rate {
        self.log.rate()
    }

    fn detects_turns(&self) -> bool {
        true
    }

    fn is_in_turn(&self) -> bool {
        self.turn.is_some()
    }

    fn final_wait_ms(&self) -> i64 {
        self.turn_ends_ms + TELLS_MS
    }

    fn hear(&mut self, now_ms: i64, samples: &[i16]) {
        if self.link.ended().is_some() || self.link.is_closing() {
            return;
        }
        self.link.begin(now_ms);
        self.audio_ms = now_ms;
        self.log.push(samples);
        self.pump(now_ms);
    }

    fn speech_began(&mut self, now_ms: i64) {
        self.is_speaking = true;
        self.is_answered = false;
        self.link.try_again(now_ms);
    }

    fn speech_ended(&mut self, now_ms: i64) {
        self.is_speaking = false;
        if let Some(failure) = self.link.ended() {
            self.events.push(TranscriberEvent::Failed(failure.clone()));
            return;
        }
        if std::mem::take(&mut self.is_answered) && self.turn.is_none() {
            return;
        }
        self.waiting_ms = Some(now_ms);
        self.is_forced = false;
        self.link.try_again(now_ms);
    }

    fn close(&mut self, now_ms: i64) {
        self.send_audio(now_ms, 1);
        if self.turn.is_some() {
            self.link.send_text(now_ms, r#"{"type":"ForceEndTurn"}"#);
        }
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
        if self.gap().is_some_and(|due_ms| now_ms >= due_ms) {
            self.audio_ms = now_ms;
            self.log.push_silence(GAP_MS);
            self.pump(now_ms);
        }
        if self.due().is_none_or(|due_ms| now_ms < due_ms) {
            return;
        }
        match self.turn.take_if(|_| self.is_forced) {
            // It does not even end the turn when told to. The next one is heard over another connection.
            Some(turn) => {
                self.log.forget_until(self.log.end());
                self.end_turn(turn.text);
                let failure = self.link.reporter.disturbed("did not end the turn in time", "");
                let change = self.link.broke(now_ms, failure);
                self.changed(now_ms, change);
            }
            // Nobody is there, or nobody any more.
            None if self.told_ms.is_none_or(|told_ms| Some(told_ms) < self.waiting_ms) => {
                let failure = self.link.reporter.disturbed("did not answer in time", "");
                self.fail(&failure);
                let change = self.link.broke(now_ms, failure);
                self.changed(now_ms, change);
            }
            // It heard nobody.
            None if self.turn.is_none() => self.end_turn(String::new()),
            None => {
                self.is_forced = true;
                self.link.send_text(now_ms, r#"{"type":"ForceEndTurn"}"#);
            }
        }
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.link.poll_transmit()
    }

    fn poll_event(&mut self) -> Option<TranscriberEvent> {
        self.events.pop()
    }

    fn poll_timeout(&self) -> Option<i64> {
        self.link.timeout().into_iter().chain(self.due()).chain(self.gap()).min()
    }

    fn billed_ms(&self) -> i64 {
        self.log.ms_of(self.billed_samples)
    }
}

#[derive(Deserialize)]
struct TurnInfo {
    event: String,
    turn_index: Option<u64>,
    transcript: Option<String>,
    audio_window_end: Option<f64>,
}

#[cfg(test)]
mod tests;
