//! OpenAI's transcription sessions over a WebSocket (`intent=transcription`), which other servers have, too.
//!
//! The server's own turn detection is off: we send the audio of each utterance and commit it at its end. Each commit becomes
//! an item with an id, under which the words arrive. Items are matched to utterances by their ids and by
//! `previous_item_id`, never by the order in which results arrive. Servers of the beta protocol differ in the names of the
//! session's messages; both are understood.
use std::collections::VecDeque;

use serde_json::Value;

use self::wire::Message;
use super::audio_log::{AudioLog, Position};
use super::events::{Events, append_raw, joined, spoken};
use super::report::Reporter;
use super::socket_link::{Change, SocketLink, socket_request};
use super::{TranscriberKind, TranscriberSettings};
use crate::base::limits::{SPEECH_PRE_ROLL_MS, SPEECH_RESULT_LATE_MS, SPEECH_UTTERANCES_MAX};
use crate::base::provider_error::{ErrorClass, ProviderError};
use crate::speech::audio::Rate;
use crate::speech::exchange::{Arrival, ExchangeId, SpeechFailure, Transmit};
use crate::speech::transcriber::{Transcriber, TranscriberEvent};

mod wire;

const KIND: TranscriberKind = TranscriberKind::OpenaiRealtime;
/// The only rate of linear audio that the protocol knows.
const RATE: Rate = Rate::Khz24;
/// Audio in a message.
const CHUNK_MS: i64 = 60;
/// Audio in a message when much of it is to be sent.
const CHUNK_MS_MAX: i64 = 480;
/// Less audio than this cannot be committed; silence is added.
const COMMIT_MS_MIN: i64 = 200;
/// Ids of items that have their result, so that a repeated result is not taken for another utterance's.
const ITEMS_KEPT: usize = 32;
/// A longer id is none.
const ID_BYTES_MAX: usize = 200;

pub(super) struct OpenaiRealtime {
    link: SocketLink,
    log: AudioLog,
    events: Events,
    /// What describes the session, in both dialects.
    session: String,
    beta_session: String,
    is_speaking: bool,
    /// In order; the last one may be in progress.
    utterances: VecDeque<Utterance>,
    next_number: u64,
    /// Everything before it belongs to an utterance.
    taken_to: Position,
    done_items: VecDeque<String>,
    is_closing: bool,
    billed_samples: u64,
}

struct Utterance {
    number: u64,
    start: Position,
    /// `None` while it is in progress.
    end: Option<Position>,
    sent_to: Position,
    /// When it was committed over this connection.
    asked_ms: Option<i64>,
    item: Option<String>,
    /// Words of items that the server committed by itself.
    before: String,
    /// Pieces of words as they came.
    text: String,
    result: Option<Result<String, SpeechFailure>>,
}

impl OpenaiRealtime {
    pub(super) fn new(settings: &TranscriberSettings) -> Self {
        // OpenAI refuses a model beside the intent; compatible servers need it there.
        let mut query = vec![("intent", "transcription".to_owned())];
        let is_openai = url::Url::parse(&settings.base_url).is_ok_and(|url| {
            url.host_str().is_some_and(|host| host == "openai.com" || host.ends_with(".openai.com"))
        });
        if !is_openai {
            query.push(("model", settings.model.clone()));
        }
        let request = socket_request(settings, "/realtime", &query, "Bearer");
        Self {
            link: SocketLink::new(Reporter::new(KIND, settings), request, None),
            log: AudioLog::new(RATE),
            events: Events::default(),
            session: wire::session(settings),
            beta_session: wire::beta_session(settings),
            is_speaking: false,
            utterances: VecDeque::new(),
            next_number: 0,
            taken_to: 0,
            done_items: VecDeque::new(),
            is_closing: false,
            billed_samples: 0,
        }
    }

    /// Begins an utterance with the audio before it, as far as no other has it.
    fn begin_utterance(&mut self) {
        let pre_roll = self.log.samples_in(SPEECH_PRE_ROLL_MS);
        let start = self.log.end().saturating_sub(pre_roll).max(self.taken_to).max(self.log.start());
        let number = self.next_number;
        self.next_number += 1;
        self.utterances.push_back(Utterance {
            number,
            start,
            end: None,
            sent_to: start,
            asked_ms: None,
            item: None,
            before: String::new(),
            text: String::new(),
            result: None,
        });
    }

    /// Sends the audio of utterances that was not sent yet, and commits those that have ended.
    fn pump(&mut self, now_ms: i64) {
        let (chunk, chunk_max) = (self.log.samples_in(CHUNK_MS), self.log.samples_in(CHUNK_MS_MAX));
        let least = self.log.samples_in(COMMIT_MS_MIN);
        for utterance in &mut self.utterances {
            if !self.link.is_open() || utterance.result.is_some() || utterance.asked_ms.is_some() {
                continue;
            }
            utterance.sent_to = utterance.sent_to.max(self.log.start());
            let until = utterance.end.unwrap_or(self.log.end());
            let enough = if utterance.end.is_some() { 1 } else { chunk };
            while until.saturating_sub(utterance.sent_to) >= enough {
                let to = until.min(utterance.sent_to + chunk_max);
                let samples = self.log.read(utterance.sent_to, to);
                self.billed_samples += samples.len() as u64;
                self.link.send_text(now_ms, wire::appended(&samples));
                utterance.sent_to = to;
            }
            let Some(end) = utterance.end else { continue };
            let missing = least.saturating_sub(end.saturating_sub(utterance.start));
            if missing > 0 {
                self.link.send_text(
                    now_ms,
                    wire::appended(&vec![0; usize::try_from(missing).unwrap_or_default()]),
                );
            }
            self.link.send_text(now_ms, wire::commit(utterance.number));
            utterance.asked_ms = Some(now_ms);
        }
    }

    fn changed(&mut self, now_ms: i64, change: Change) {
        match change {
            Change::Opened => {
                self.link.send_text(now_ms, self.session.clone());
                let start = self.log.start();
                for utterance in &mut self.utterances {
                    utterance.start = utterance.start.max(start);
                    utterance.sent_to = utterance.start;
                    if utterance.end.is_some_and(|end| end <= start) && utterance.result.is_none() {
                        let failure = self.link.reporter.disturbed("gave no answer for too long", "");
                        utterance.result = Some(Err(failure));
                    }
                }
                self.pump(now_ms);
                self.settle();
            }
            Change::Text(text) => self.read(now_ms, &text),
            Change::Lost => {
                for utterance in self.utterances.iter_mut().filter(|utterance| utterance.result.is_none()) {
                    utterance.asked_ms = None;
                    utterance.item = None;
                    utterance.text.clear();
                    utterance.before.clear();
                }
                self.done_items.clear();
            }
            Change::Over(failure) => self.fail_all(&failure),
            Change::Closed { .. } => {
                if let Some(failure) = self.link.ended().cloned() {
                    self.fail_all(&failure);
                }
            }
        }
    }

    fn read(&mut self, now_ms: i64, text: &str) {
        let Ok(message) = serde_json::from_str::<Message>(text) else {
            if let Some(change) = self.link.unreadable(now_ms) {
                self.changed(now_ms, change);
            }
            return;
        };
        self.link.worked();
        let name = message.kind.strip_prefix("conversation.item.input_audio_transcription.");
        match (message.kind.as_str(), name) {
            ("transcription_session.created", _) => {
                self.link.send_text(now_ms, self.beta_session.clone());
            }
            ("error", _) => self.error(now_ms, message.error.unwrap_or_default()),
            // GA says `added`, beta `created`; all of them tell where an item belongs.
            ("input_audio_buffer.committed" | "conversation.item.added" | "conversation.item.created", _) => {
                self.item(&message);
            }
            (_, Some("delta")) => {
                if let Some(utterance) = self.item(&message) {
                    append_raw(&mut utterance.text, message.delta.as_deref().unwrap_or_default());
                    let so_far = joined(&utterance.before, &spoken(&utterance.text));
                    let number = utterance.number;
                    self.partial(number, so_far);
                }
            }
            (_, Some("updated")) => {
                if let Some(utterance) = self.item(&message) {
                    utterance.text = spoken(message.transcript.as_deref().unwrap_or_default());
                    let (number, so_far) = (utterance.number, joined(&utterance.before, &utterance.text));
                    self.partial(number, so_far);
                }
            }
            (_, Some("completed")) => {
                let words = spoken(message.transcript.as_deref().unwrap_or_default());
                self.finish_item(&message, Ok(words));
            }
            (_, Some("failed")) => {
                let failure = self.link.reporter.message(&message.error.clone().unwrap_or_default());
                self.finish_item(&message, Err(failure));
            }
            _ => {}
        }
        self.settle();
    }

    /// Words so far are those of the oldest utterance without a result; others are told once they are final.
    fn partial(&mut self, number: u64, so_far: String) {
        let first = self.utterances.iter().find(|utterance| utterance.result.is_none());
        if first.is_some_and(|first| first.number == number) {
            self.events.partial(so_far);
        }
    }

    /// The utterance to which a message's item belongs; it is given to one if it is new.
    fn item(&mut self, message: &Message) -> Option<&mut Utterance> {
        let id = message.id().filter(|id| id.len() <= ID_BYTES_MAX)?;
        if self.done_items.iter().any(|done| done == id) {
            return None;
        }
        let known = |utterance: &Utterance, id: &str| utterance.item.as_deref() == Some(id);
        let index = self.utterances.iter().position(|utterance| known(utterance, id)).or_else(|| {
            let after = message.previous_item_id.as_deref().and_then(|previous| {
                Some(self.utterances.iter().position(|utterance| known(utterance, previous))? + 1)
            });
            let rest = self.utterances.iter().enumerate().skip(after.unwrap_or_default());
            let mut free = rest.filter(|(_, utterance)| {
                let was_sent = utterance.asked_ms.is_some() || utterance.sent_to > utterance.start;
                utterance.item.is_none() && utterance.result.is_none() && was_sent
            });
            free.next().map(|(index, _)| index)
        })?;
        let utterance = self.utterances.get_mut(index)?;
        if utterance.item.is_none() {
            utterance.item = Some(id.to_owned());
        }
        Some(utterance)
    }

    /// An item has its result, and with it its utterance, unless the server committed the item by itself before the end.
    fn finish_item(&mut self, message: &Message, result: Result<String, SpeechFailure>) {
        let Some(utterance) = self.item(message) else { return };
        let done = utterance.item.take();
        let so_far = std::mem::take(&mut utterance.text);
        // Words that were heard stay when the end has none.
        match result.map(|words| if words.is_empty() { spoken(&so_far) } else { words }) {
            Ok(words) if utterance.asked_ms.is_none() => utterance.before = joined(&utterance.before, &words),
            Ok(words) => utterance.result = Some(Ok(joined(&utterance.before, &words))),
            Err(failure) => utterance.result = Some(Err(failure)),
        }
        self.done_items.extend(done);
        while self.done_items.len() > ITEMS_KEPT {
            self.done_items.pop_front();
        }
    }

    fn error(&mut self, now_ms: i64, error: Value) {
        let code = error.get("code").and_then(Value::as_str).unwrap_or_default();
        let event = error.get("event_id").and_then(Value::as_str).unwrap_or_default();
        let number = wire::committed_number(event);
        if let Some(number) = number {
            let mut asked = self.utterances.iter_mut().filter(|utterance| utterance.asked_ms.is_some());
            if let Some(utterance) = asked.find(|utterance| utterance.number == number) {
                let is_empty = code == "input_audio_buffer_commit_empty";
                let failure = self.link.reporter.message(&error);
                let words = std::mem::take(&mut utterance.before);
                utterance.result = Some(if is_empty { Ok(words) } else { Err(failure) });
            }
            return;
        }
        let told = ProviderError::read(&error, None);
        // A beta server does not know our first description of the session.
        let is_harmless =
            told.class() == ErrorClass::Request && !told.is_unknown_model() && code != "session_expired";
        if !is_harmless {
            let failure = self.link.reporter.message(&error);
            let change = self.link.broke(now_ms, failure);
            self.changed(now_ms, change);
        }
    }

    /// Tells the results that are next.
    fn settle(&mut self) {
        while let Some(first) = self.utterances.front_mut()
            && first.end.is_some()
            && let Some(result) = first.result.take()
        {
            self.utterances.pop_front();
            self.events.push(match result {
                Ok(words) => TranscriberEvent::Final(words),
                Err(failure) => TranscriberEvent::Failed(failure),
            });
        }
        let idle = self.log.end().saturating_sub(self.log.samples_in(SPEECH_PRE_ROLL_MS));
        self.log.forget_until(self.utterances.front().map_or(idle, |first| first.start.min(idle)));
        if self.is_closing && self.utterances.is_empty() && self.link.is_closing() {
            self.link.end();
        }
    }

    fn fail_all(&mut self, failure: &SpeechFailure) {
        for utterance in self.utterances.iter_mut().filter(|utterance| utterance.end.is_some()) {
            utterance.result.get_or_insert_with(|| Err(failure.clone()));
        }
        self.settle();
    }

    /// When the oldest utterance without a result must have it. One whose words are coming has longer.
    fn due(&self) -> Option<i64> {
        let first = self.utterances.iter().find(|utterance| utterance.result.is_none())?;
        Some(first.asked_ms? + if first.text.is_empty() { 1 } else { 2 } * SPEECH_RESULT_LATE_MS)
    }
}

impl Transcriber for OpenaiRealtime {
    fn rate(&self) -> Rate {
        RATE
    }

    fn has_words_meanwhile(&self) -> bool {
        false
    }

    fn final_wait_ms(&self) -> i64 {
        KIND.final_wait_ms()
    }

    fn hear(&mut self, now_ms: i64, samples: &[i16]) {
        if self.link.ended().is_some() || self.is_closing {
            return;
        }
        self.link.begin(now_ms);
        self.log.push(samples);
        self.pump(now_ms);
        self.settle();
    }

    fn speech_began(&mut self, now_ms: i64) {
        if !self.is_speaking && self.link.ended().is_none() && !self.is_closing {
            self.is_speaking = true;
            self.begin_utterance();
            self.link.try_again(now_ms);
            self.pump(now_ms);
        }
    }

    fn speech_ended(&mut self, now_ms: i64) {
        if let Some(failure) = self.link.ended() {
            self.events.push(TranscriberEvent::Failed(failure.clone()));
            return;
        }
        if !std::mem::take(&mut self.is_speaking) {
            self.begin_utterance();
        }
        let end = self.log.end();
        self.taken_to = end;
        if let Some(utterance) = self.utterances.back_mut() {
            utterance.end = Some(end);
        }
        if self.utterances.len() > SPEECH_UTTERANCES_MAX
            && let Some(first) = self.utterances.front_mut()
        {
            let failure = self.link.reporter.disturbed("is behind by too many utterances", "");
            first.result = Some(Err(failure));
        }
        self.link.try_again(now_ms);
        self.pump(now_ms);
        self.settle();
    }

    fn close(&mut self, now_ms: i64) {
        self.is_closing = true;
        if self.is_speaking {
            // Nobody waits for words that our detector did not report.
            self.is_speaking = false;
            self.utterances.pop_back();
        }
        if let Some(change) = self.link.close(now_ms, None) {
            self.changed(now_ms, change);
        }
        self.settle();
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
        if self.due().is_none_or(|due_ms| now_ms < due_ms) {
            return;
        }
        let first = self.utterances.iter_mut().find(|utterance| utterance.result.is_none());
        if let Some(first) = first.filter(|first| !first.text.is_empty()) {
            // The words came, and their end did not.
            first.result = Some(Ok(joined(&first.before, &spoken(&first.text))));
            self.done_items.extend(first.item.take());
            self.settle();
        } else {
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
        self.link.timeout().into_iter().chain(self.due()).min()
    }

    fn billed_ms(&self) -> i64 {
        self.log.ms_of(self.billed_samples)
    }
}

#[cfg(test)]
mod tests;
