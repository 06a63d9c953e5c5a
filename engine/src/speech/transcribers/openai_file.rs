//! OpenAI's `POST /audio/transcriptions`, which most self-hosted recognisers have, too: one request for each utterance.
//!
//! There are no words before the end of an utterance. A long one is cut into pieces, at the quietest moment near the limit,
//! which are sent while it goes on; their texts are joined in order.
use std::collections::VecDeque;

use bytes::{Bytes, BytesMut};
use serde_json::Value;

use super::audio_log::AudioLog;
use super::events::{Events, append, spoken};
use super::multipart;
use super::report::Reporter;
use super::{TranscriberKind, TranscriberSettings};
use crate::base::limits::{
    SPEECH_CLOSE_MS, SPEECH_MESSAGE_BYTES_MAX, SPEECH_PRE_ROLL_MS, SPEECH_RETRY_MS, SPEECH_UTTERANCES_MAX,
    TRANSCRIPTION_CUT_MS, TRANSCRIPTION_DEADLINE_MS, TRANSCRIPTION_MS_MAX, TRANSCRIPTION_TOTAL_MS,
    TRANSCRIPTIONS_MAX,
};
use crate::base::provider_error::reported_error;
use crate::ports::{Egress, HttpRequest};
use crate::speech::audio::{FRAME_MS, Rate};
use crate::speech::exchange::{Arrival, ExchangeFailure, ExchangeId, SpeechFailure, Transmit};
use crate::speech::transcriber::{Transcriber, TranscriberEvent};

const KIND: TranscriberKind = TranscriberKind::OpenaiFile;
/// An exchange of which the driver has not told the end this long after its deadline has failed.
const DRIVER_LATE_MS: i64 = 2_000;

pub(super) struct OpenaiFile {
    settings: TranscriberSettings,
    reporter: Reporter,
    /// What was heard before the utterance in progress.
    log: AudioLog,
    events: Events,
    transmits: VecDeque<Transmit>,
    /// The audio of the utterance in progress that was not sent yet.
    speech: Option<Vec<i16>>,
    /// In order; the last one may be in progress.
    utterances: VecDeque<Utterance>,
    next_number: u64,
    pieces: VecDeque<Piece>,
    next_id: ExchangeId,
    /// Why no request is made any more.
    ended: Option<SpeechFailure>,
    close_by_ms: Option<i64>,
    billed_samples: u64,
}

struct Utterance {
    number: u64,
    has_ended: bool,
    /// The texts of its pieces; `None` where the answer is awaited.
    parts: VecDeque<Option<String>>,
    /// The texts of the pieces before these.
    text: String,
    parts_before: usize,
    failure: Option<SpeechFailure>,
}

/// A request.
struct Piece {
    /// How much audio it has.
    samples: u64,
    utterance: u64,
    part: usize,
    content_type: String,
    body: Bytes,
    attempts: usize,
    first_ms: i64,
    state: PieceState,
}

enum PieceState {
    Waiting { until_ms: i64 },
    Asked { id: ExchangeId, by_ms: i64, status: Option<u16>, reply: BytesMut },
}

impl OpenaiFile {
    pub(super) fn new(settings: TranscriberSettings, line_rate: Rate) -> Self {
        let rate = if line_rate == Rate::Khz8 { Rate::Khz8 } else { Rate::Khz16 };
        let reporter = Reporter::new(KIND, &settings);
        let is_url =
            url::Url::parse(&settings.base_url).is_ok_and(|url| matches!(url.scheme(), "http" | "https"));
        let ended = (!is_url).then(|| reporter.misconfigured("has an invalid base URL", ""));
        Self {
            settings,
            reporter,
            log: AudioLog::new(rate),
            events: Events::default(),
            transmits: VecDeque::new(),
            speech: None,
            utterances: VecDeque::new(),
            next_number: 0,
            pieces: VecDeque::new(),
            next_id: 0,
            ended,
            close_by_ms: None,
            billed_samples: 0,
        }
    }

    fn begin_utterance(&mut self) {
        let kept = self.log.end().saturating_sub(self.log.samples_in(SPEECH_PRE_ROLL_MS));
        self.speech = Some(self.log.read(kept, self.log.end()));
        self.log.forget_until(self.log.end());
        self.utterances.push_back(Utterance {
            number: self.next_number,
            has_ended: false,
            parts: VecDeque::new(),
            text: String::new(),
            parts_before: 0,
            failure: None,
        });
        self.next_number += 1;
    }

    /// Makes a request of a piece of the utterance in progress.
    fn ask(&mut self, now_ms: i64, samples: &[i16]) {
        let rate = self.log.rate();
        let is_wanted = |utterance: &&mut Utterance| utterance.failure.is_none();
        let Some(utterance) = self.utterances.back_mut().filter(is_wanted) else { return };
        if samples.is_empty() {
            return;
        }
        let Ok(wav) = multipart::wav(samples, rate) else {
            // A file in memory can always be written; nothing but its size could be wrong.
            utterance.failure = Some(self.reporter.disturbed("was not asked: the audio is too long", ""));
            return;
        };
        let language = self.settings.primary_language();
        let terms = self.settings.fitting_keyterms().join(", ");
        let mut fields = vec![("model", self.settings.model.as_str()), ("response_format", "json")];
        fields.extend(language.as_deref().map(|language| ("language", language)));
        fields.extend((!terms.is_empty()).then_some(("prompt", terms.as_str())));
        let form = multipart::form(&fields, &wav);
        let piece = Piece {
            samples: samples.len() as u64,
            utterance: utterance.number,
            part: utterance.parts_before + utterance.parts.len(),
            content_type: form.content_type,
            body: form.body,
            attempts: 0,
            first_ms: now_ms,
            state: PieceState::Waiting { until_ms: now_ms },
        };
        utterance.parts.push_back(None);
        self.pieces.push_back(piece);
        if self.pieces.len() > TRANSCRIPTIONS_MAX
            && let Some(piece) = self.pieces.pop_front()
        {
            let failure = self.reporter.disturbed("is behind by too many requests", "");
            self.give_up(piece, failure);
        }
    }

    /// Sends what is due.
    fn send_due(&mut self, now_ms: i64) {
        for piece in &mut self.pieces {
            let PieceState::Waiting { until_ms } = piece.state else { continue };
            if now_ms < until_ms {
                continue;
            }
            let id = self.next_id;
            self.next_id += 1;
            let mut headers =
                vec![("content-type", piece.content_type.clone()), ("accept", "application/json".to_owned())];
            let key = self.settings.api_key.reveal();
            if !key.is_empty() {
                headers.push(("authorization", format!("Bearer {key}")));
            }
            let request = HttpRequest {
                method: "POST",
                url: format!("{}/audio/transcriptions", self.settings.base_url.trim_end_matches('/')),
                headers,
                body: piece.body.clone(),
                deadline_ms: TRANSCRIPTION_DEADLINE_MS,
                response_bytes_max: SPEECH_MESSAGE_BYTES_MAX,
                egress: Egress::Operator,
                party: self.settings.party.clone(),
                expected: &[],
            };
            piece.attempts += 1;
            let by_ms =
                now_ms + i64::try_from(TRANSCRIPTION_DEADLINE_MS).unwrap_or(i64::MAX) + DRIVER_LATE_MS;
            piece.state = PieceState::Asked { id, by_ms, status: None, reply: BytesMut::new() };
            self.transmits.push_back(Transmit::Request { id, request });
        }
    }

    /// The reply to a piece is complete.
    fn replied(&self, status: u16, reply: &[u8]) -> Result<String, SpeechFailure> {
        let is_page = reply.trim_ascii_start().starts_with(b"<");
        if !(200..300).contains(&status) || is_page {
            return Err(self.reporter.status(status, reply));
        }
        let value = serde_json::from_slice::<Value>(reply)
            .map_err(|_| self.reporter.disturbed("sent a reply that cannot be read", ""))?;
        match value.get("text").and_then(Value::as_str) {
            Some(text) => Ok(spoken(text)),
            None if reported_error(&value).is_some() => Err(self.reporter.message(&value)),
            None => Err(self.reporter.disturbed("sent a reply without a text", "")),
        }
    }

    /// A piece has its text, is tried again, or has failed.
    fn settle_piece(&mut self, now_ms: i64, index: usize, result: Result<String, SpeechFailure>) {
        let Some(piece) = self.pieces.get_mut(index) else { return };
        let failure = match result {
            Ok(text) => {
                let (number, part) = (piece.utterance, piece.part);
                // A request without a result is not billed.
                self.billed_samples += piece.samples;
                self.pieces.remove(index);
                if let Some(utterance) =
                    self.utterances.iter_mut().find(|utterance| utterance.number == number)
                    && let Some(slot) = utterance.parts.get_mut(part.wrapping_sub(utterance.parts_before))
                {
                    *slot = Some(text);
                    utterance.join();
                    if !utterance.has_ended {
                        self.events.partial(utterance.text.clone());
                    }
                }
                return;
            }
            Err(failure) => failure,
        };
        if let Some(pause_ms) = SPEECH_RETRY_MS.get(piece.attempts.saturating_sub(1))
            && failure.is_temporary
            && now_ms + pause_ms <= piece.first_ms + TRANSCRIPTION_TOTAL_MS
            && self.close_by_ms.is_none()
        {
            piece.state = PieceState::Waiting { until_ms: now_ms + pause_ms };
            return;
        }
        if let Some(mut piece) = self.pieces.remove(index) {
            // Its exchange is over.
            piece.state = PieceState::Waiting { until_ms: now_ms };
            self.give_up(piece, failure.clone());
        }
        if !failure.is_temporary {
            self.end(&failure);
        }
    }

    /// The utterance of a piece is lost.
    fn give_up(&mut self, piece: Piece, failure: SpeechFailure) {
        if let PieceState::Asked { id, .. } = piece.state {
            self.transmits.push_back(Transmit::Drop { id });
        }
        let number = piece.utterance;
        if let Some(utterance) = self.utterances.iter_mut().find(|utterance| utterance.number == number) {
            utterance.failure.get_or_insert(failure);
        }
        let (lost, kept): (VecDeque<Piece>, VecDeque<Piece>) =
            std::mem::take(&mut self.pieces).into_iter().partition(|other| other.utterance == number);
        self.pieces = kept;
        for id in lost.iter().filter_map(Piece::id) {
            self.transmits.push_back(Transmit::Drop { id });
        }
    }

    /// No request is made any more, and none is awaited.
    fn end(&mut self, failure: &SpeechFailure) {
        self.ended.get_or_insert_with(|| failure.clone());
        while let Some(piece) = self.pieces.pop_front() {
            self.give_up(piece, failure.clone());
        }
        for utterance in &mut self.utterances {
            utterance.failure.get_or_insert_with(|| failure.clone());
        }
        self.speech = None;
    }

    /// Tells the results that are next.
    fn settle(&mut self) {
        while let Some(first) = self.utterances.front_mut()
            && first.has_ended
        {
            let event = match first.failure.take() {
                Some(failure) => TranscriberEvent::Failed(failure),
                None if first.parts.is_empty() => TranscriberEvent::Final(std::mem::take(&mut first.text)),
                None => break,
            };
            self.utterances.pop_front();
            self.events.push(event);
        }
        if self.close_by_ms.is_some() && self.utterances.is_empty() {
            self.close_by_ms = None;
            self.ended = Some(self.over());
        }
    }

    fn over(&self) -> SpeechFailure {
        self.reporter.disturbed("had not answered when the call was over", "")
    }
}

impl Utterance {
    /// Takes the texts that are next into the whole.
    fn join(&mut self) {
        while let Some(Some(_)) = self.parts.front() {
            let part = self.parts.pop_front().flatten().unwrap_or_default();
            append(&mut self.text, &part);
            self.parts_before += 1;
        }
    }
}

impl Piece {
    fn id(&self) -> Option<ExchangeId> {
        match self.state {
            PieceState::Asked { id, .. } => Some(id),
            PieceState::Waiting { .. } => None,
        }
    }

    fn due_ms(&self) -> i64 {
        match self.state {
            PieceState::Waiting { until_ms } => until_ms,
            PieceState::Asked { by_ms, .. } => by_ms,
        }
    }
}

impl Transcriber for OpenaiFile {
    fn rate(&self) -> Rate {
        self.log.rate()
    }

    fn has_words_meanwhile(&self) -> bool {
        false
    }

    fn final_wait_ms(&self) -> i64 {
        KIND.final_wait_ms()
    }

    fn hear(&mut self, now_ms: i64, samples: &[i16]) {
        if self.ended.is_some() || self.close_by_ms.is_some() {
            return;
        }
        let Some(speech) = &mut self.speech else {
            self.log.push(samples);
            let kept = self.log.end().saturating_sub(self.log.samples_in(SPEECH_PRE_ROLL_MS));
            self.log.forget_until(kept);
            return;
        };
        speech.extend_from_slice(samples);
        let most = usize::try_from(self.log.samples_in(TRANSCRIPTION_MS_MAX)).unwrap_or(usize::MAX);
        while let Some(speech) = &mut self.speech
            && speech.len() > most
        {
            let rest = speech.split_off(quietest(speech.get(..most).unwrap_or_default(), self.log.rate()));
            let piece = std::mem::replace(speech, rest);
            self.ask(now_ms, &piece);
        }
        self.send_due(now_ms);
        self.settle();
    }

    fn speech_began(&mut self, _now_ms: i64) {
        if self.speech.is_none() && self.ended.is_none() && self.close_by_ms.is_none() {
            self.begin_utterance();
        }
    }

    fn speech_ended(&mut self, now_ms: i64) {
        let failure = self.ended.clone().or_else(|| self.close_by_ms.map(|_| self.over()));
        if let Some(failure) = failure {
            if self.utterances.back().is_none_or(|last| last.has_ended) {
                self.begin_utterance();
                self.speech = None;
            }
            if let Some(utterance) = self.utterances.back_mut() {
                utterance.has_ended = true;
                utterance.failure = Some(failure);
            }
            self.settle();
            return;
        }
        if self.speech.is_none() {
            self.begin_utterance();
        }
        let speech = self.speech.take().unwrap_or_default();
        self.ask(now_ms, &speech);
        if let Some(utterance) = self.utterances.back_mut() {
            utterance.has_ended = true;
        }
        if self.utterances.len() > SPEECH_UTTERANCES_MAX
            && let Some(first) = self.utterances.front_mut()
        {
            let failure = self.reporter.disturbed("is behind by too many utterances", "");
            first.failure.get_or_insert(failure);
        }
        self.send_due(now_ms);
        self.settle();
    }

    fn close(&mut self, now_ms: i64) {
        if self.ended.is_some() || self.close_by_ms.is_some() {
            return;
        }
        if self.speech.take().is_some() {
            // Nobody waits for words that our detector did not report.
            let dropped = self.utterances.pop_back().map(|utterance| utterance.number);
            let (lost, kept): (VecDeque<Piece>, VecDeque<Piece>) = std::mem::take(&mut self.pieces)
                .into_iter()
                .partition(|piece| Some(piece.utterance) == dropped);
            self.pieces = kept;
            for id in lost.iter().filter_map(Piece::id) {
                self.transmits.push_back(Transmit::Drop { id });
            }
        }
        if self.utterances.is_empty() {
            self.ended = Some(self.over());
        } else {
            self.close_by_ms = Some(now_ms + SPEECH_CLOSE_MS);
        }
    }

    fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival) {
        let Some(index) = self.pieces.iter().position(|piece| piece.id() == Some(id)) else { return };
        let Some(piece) = self.pieces.get_mut(index) else { return };
        let PieceState::Asked { status, reply, .. } = &mut piece.state else { return };
        let result = match arrival {
            Arrival::Head { status: told, .. } => {
                *status = Some(told);
                return;
            }
            Arrival::Body(bytes) if reply.len() + bytes.len() <= SPEECH_MESSAGE_BYTES_MAX => {
                reply.extend_from_slice(&bytes);
                return;
            }
            Arrival::Body(_) => {
                self.transmits.push_back(Transmit::Drop { id });
                Err(self.reporter.exchange(&ExchangeFailure::TooLarge))
            }
            Arrival::End => {
                let (status, reply) = (status.unwrap_or_default(), std::mem::take(reply));
                self.replied(status, &reply)
            }
            // It was reached: what broke is its answer.
            Arrival::Failed(ExchangeFailure::Broken(_)) if status.is_some() => {
                Err(self.reporter.disturbed("broke off its answer", ""))
            }
            Arrival::Failed(failure) => Err(self.reporter.exchange(&failure)),
            // These belong to sockets.
            Arrival::Opened | Arrival::Message(_) | Arrival::Closed { .. } => return,
        };
        self.settle_piece(now_ms, index, result);
        self.send_due(now_ms);
        self.settle();
    }

    fn tick(&mut self, now_ms: i64) {
        if self.close_by_ms.is_some_and(|by_ms| now_ms >= by_ms) {
            self.close_by_ms = None;
            let failure = self.over();
            self.end(&failure);
        }
        let is_late =
            |piece: &Piece| matches!(piece.state, PieceState::Asked { by_ms, .. } if now_ms >= by_ms);
        while let Some(index) = self.pieces.iter().position(is_late) {
            let id = self.pieces.get(index).and_then(Piece::id);
            self.transmits.extend(id.map(|id| Transmit::Drop { id }));
            let failure = self.reporter.exchange(&ExchangeFailure::Timeout);
            self.settle_piece(now_ms, index, Err(failure));
        }
        self.send_due(now_ms);
        self.settle();
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.transmits.pop_front()
    }

    fn poll_event(&mut self) -> Option<TranscriberEvent> {
        self.events.pop()
    }

    fn poll_timeout(&self) -> Option<i64> {
        self.pieces.iter().map(Piece::due_ms).chain(self.close_by_ms).min()
    }

    fn billed_ms(&self) -> i64 {
        self.log.ms_of(self.billed_samples)
    }
}

/// Where to cut: the quietest frames at the end of a piece.
fn quietest(samples: &[i16], rate: Rate) -> usize {
    let frame = rate.frame_samples();
    let frames = usize::try_from(TRANSCRIPTION_CUT_MS / FRAME_MS).unwrap_or_default();
    let from = samples.len().saturating_sub(frames * frame);
    let volume = |at: usize| -> u64 {
        let part = samples.get(at..(at + 5 * frame).min(samples.len())).unwrap_or_default();
        part.iter().map(|sample| u64::from(sample.unsigned_abs())).sum()
    };
    let places = (from..samples.len().saturating_sub(5 * frame)).step_by(frame);
    places.min_by_key(|at| volume(*at)).map_or(samples.len(), |at| at + 5 * frame / 2)
}

#[cfg(test)]
mod tests;
