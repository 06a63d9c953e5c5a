//! OpenAI's transcription sessions over a WebSocket (`intent=transcription`), which other servers have, too.
//!
//! The server's own turn detection is off: we send the audio of each utterance and commit it at its end. Each commit becomes
//! an item with an id, under which the words arrive. Items are matched to utterances by their ids and by
//! `previous_item_id`, never by the order in which results arrive. Servers of the beta protocol differ in the names of the
//! session's messages; both are understood.
//!
//! The same machine is the ear of a session in which a model also answers ([`OpenaiRealtime::conversing`]): it owns the
//! connection and the person's utterances, and tells its owner the rest ([`Told`]).
use std::collections::VecDeque;

use serde_json::Value;

use self::wire::Message;
use super::audio_log::{AudioLog, Position};
use super::events::{Events, append_raw, joined, spoken};
use super::report::Reporter;
use super::socket_link::{Change, SocketLink, socket_request};
use super::{TranscriberKind, TranscriberSettings};
use crate::base::limits::{
    CLIENT_MESSAGE_BYTES_MAX, SPEECH_PRE_ROLL_MS, SPEECH_RESULT_LATE_MS, SPEECH_UTTERANCES_MAX,
};
use crate::base::provider_error::{ErrorClass, ProviderError};
use crate::speech::audio::Rate;
use crate::speech::exchange::{Arrival, ExchangeId, SocketRequest, SpeechFailure, Transmit};
use crate::speech::transcriber::{Transcriber, TranscriberEvent};

mod wire;

pub(crate) use self::wire::{encoded, transcription as transcription_of};

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
/// The event id of what describes the session.
const SESSION: &str = "session";

/// A session in which a model also answers.
pub(crate) struct Conversing {
    /// The socket; `None` where the base URL is none.
    pub(crate) request: Option<SocketRequest>,
    /// The `session.update` that describes the session, with the event id `session`.
    pub(crate) update: String,
    /// The rate of the audio: mu-law at 8 kHz, linear at 24 kHz.
    pub(crate) rate: Rate,
}

/// What such a session tells its owner.
#[derive(Debug, PartialEq)]
pub(crate) enum Told {
    /// It is open, and empty.
    Opened,
    /// It broke, and is being opened again.
    Lost,
    /// It cannot be opened for now, or, if the failure is not temporary, ever.
    Over(SpeechFailure),
    /// A message that is not about what the person says.
    Message(String),
    /// An item with words of the person.
    Understood {
        /// The item's id.
        item: String,
        /// Its words; empty if it has none.
        words: String,
    },
}

/// The socket of a session with this model.
pub(crate) fn conversation_request(settings: &TranscriberSettings, model: &str) -> Option<SocketRequest> {
    socket_request(settings, "/realtime", &[("model", model.to_owned())], "Bearer")
}

/// The words of an item that the server heard and did not transcribe: the model has heard them.
pub(crate) const NOT_TRANSCRIBED: &str = "(not transcribed)";
/// How long after the end of an utterance its words are awaited, if the server has heard it: an answer waits for them.
const TRANSCRIBED_MS: i64 = 4_000;

pub(crate) struct OpenaiRealtime {
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
    /// Of a session in which a model also answers.
    told: Option<VecDeque<Told>>,
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
    pub(crate) fn new(settings: &TranscriberSettings) -> Self {
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
            told: None,
        }
    }

    /// The ear of a session in which a model also answers.
    pub(crate) fn conversing(settings: &TranscriberSettings, conversing: Conversing) -> Self {
        let Conversing { request, update, rate } = conversing;
        let link = SocketLink::new(Reporter::labelled("the realtime model", settings), request, None)
            .with_messages_up_to(CLIENT_MESSAGE_BYTES_MAX);
        Self {
            link,
            log: AudioLog::new(rate),
            session: update,
            beta_session: String::new(),
            told: Some(VecDeque::new()),
            ..Self::new(settings)
        }
    }

    /// What the session told next.
    pub(crate) fn poll_told(&mut self) -> Option<Told> {
        self.told.as_mut()?.pop_front()
    }

    /// Sends a message if the session is open.
    pub(crate) fn send(&mut self, now_ms: i64, text: String) {
        self.link.send_text(now_ms, text);
    }

    /// Opens the session if it is not, and no attempt is under way.
    pub(crate) fn want(&mut self, now_ms: i64) {
        self.link.try_again(now_ms);
    }

    /// Opens another session in place of this one, which serves no more.
    pub(crate) fn replace(&mut self, now_ms: i64, why: &SpeechFailure) {
        let change = self.link.broke(now_ms, why.clone());
        self.changed(now_ms, change);
    }

    /// Opens another session in place of this one, which is old.
    pub(crate) fn renew(&mut self, now_ms: i64) {
        self.link.renew(now_ms);
        self.changed(now_ms, Change::Lost);
    }

    /// Why no session will ever be open.
    pub(crate) fn ended(&self) -> Option<&SpeechFailure> {
        self.link.ended()
    }

    /// Whether nothing that the person said waits for its words.
    pub(crate) fn is_quiet(&self) -> bool {
        self.utterances.is_empty()
    }

    /// An error in the provider's words, for the assistant's owner.
    pub(crate) fn failure(&self, error: &Value) -> SpeechFailure {
        self.link.reporter.message(error)
    }

    /// A failure of the provider.
    pub(crate) fn disturbed(&self, what: &str) -> SpeechFailure {
        self.link.reporter.disturbed(what, "")
    }

    fn tell(&mut self, told: Told) {
        if let Some(waiting) = &mut self.told {
            waiting.push_back(told);
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
                self.link.send_text(now_ms, wire::appended(&samples, self.log.rate()));
                utterance.sent_to = to;
            }
            let Some(end) = utterance.end else { continue };
            let missing = least.saturating_sub(end.saturating_sub(utterance.start));
            if missing > 0 {
                let silence = vec![0; usize::try_from(missing).unwrap_or_default()];
                self.link.send_text(now_ms, wire::appended(&silence, self.log.rate()));
            }
            self.link.send_text(now_ms, wire::commit(utterance.number));
            utterance.asked_ms = Some(now_ms);
        }
    }

    fn changed(&mut self, now_ms: i64, change: Change) {
        match change {
            Change::Opened => {
                self.link.send_text(now_ms, self.session.clone());
                self.tell(Told::Opened);
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
                self.tell(Told::Lost);
                for utterance in self.utterances.iter_mut().filter(|utterance| utterance.result.is_none()) {
                    utterance.asked_ms = None;
                    utterance.item = None;
                    utterance.text.clear();
                    utterance.before.clear();
                }
                self.done_items.clear();
            }
            Change::Over(failure) => {
                self.fail_all(&failure);
                self.tell(Told::Over(failure));
            }
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
        let is_conversation = self.told.is_some();
        if is_conversation && message.kind.starts_with("response.") {
            return self.tell(Told::Message(text.to_owned()));
        }
        let name = message.kind.strip_prefix("conversation.item.input_audio_transcription.");
        match (message.kind.as_str(), name) {
            ("transcription_session.created", _) => {
                self.link.send_text(now_ms, self.beta_session.clone());
            }
            ("error", _) => self.error(now_ms, message.error.unwrap_or_default()),
            // In a conversation, most items are others.
            ("conversation.item.added" | "conversation.item.created", _) if is_conversation => {}
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
                let lost = if is_conversation { Ok(NOT_TRANSCRIBED.to_owned()) } else { Err(failure) };
                self.finish_item(&message, lost);
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
        let result = result.map(|words| if words.is_empty() { spoken(&so_far) } else { words });
        let understood = result.as_ref().ok().zip(done.as_ref());
        let understood =
            understood.map(|(words, item)| Told::Understood { item: item.clone(), words: words.clone() });
        match result {
            Ok(words) if utterance.asked_ms.is_none() => utterance.before = joined(&utterance.before, &words),
            Ok(words) => utterance.result = Some(Ok(joined(&utterance.before, &words))),
            Err(failure) => utterance.result = Some(Err(failure)),
        }
        if let Some(understood) = understood {
            self.tell(understood);
        }
        self.item_is_done(done);
    }

    /// Whatever else is said of this item is not heard.
    fn item_is_done(&mut self, item: Option<String>) {
        self.done_items.extend(item);
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
        if self.told.is_some()
            && (event != SESSION && told.class() == ErrorClass::Request || is_idle_cancel(&told))
        {
            // About something else that its owner has sent. A session that has expired is opened again.
            if code != "session_expired" {
                return self.tell(Told::Message(format!(r#"{{"type":"error","error":{error}}}"#)));
            }
        }
        // A beta server does not know our first description of the session.
        let is_harmless = self.told.is_none()
            && told.class() == ErrorClass::Request
            && !told.is_unknown_model()
            && code != "session_expired";
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

    /// In a conversation, the item of the oldest utterance without a result: the server has heard it.
    fn heard_item(&self) -> Option<Message> {
        let first = self.utterances.iter().find(|utterance| utterance.result.is_none())?;
        self.told.as_ref()?;
        Some(Message::about(first.item.clone()?))
    }

    /// When the oldest utterance without a result must have it. One whose words are coming has longer.
    fn due(&self) -> Option<i64> {
        let first = self.utterances.iter().find(|utterance| utterance.result.is_none())?;
        let wait_ms =
            if self.told.is_some() && first.item.is_some() { TRANSCRIBED_MS } else { SPEECH_RESULT_LATE_MS };
        Some(first.asked_ms? + if first.text.is_empty() { 1 } else { 2 } * wait_ms)
    }
}

/// Cancelling what is over already; xAI says so in a text without a code.
fn is_idle_cancel(error: &ProviderError) -> bool {
    error.message.starts_with("Cancellation failed")
}

impl Transcriber for OpenaiRealtime {
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
        let first = self.utterances.iter().find(|utterance| utterance.result.is_none());
        if let Some(first) = first.filter(|first| !first.text.is_empty()) {
            // The words came, and their end did not.
            let words = spoken(&first.text);
            if let Some(item) = self.heard_item() {
                self.finish_item(&item, Ok(words));
            } else if let Some(first) =
                self.utterances.iter_mut().find(|utterance| utterance.result.is_none())
            {
                first.result = Some(Ok(joined(&first.before, &words)));
                let item = first.item.take();
                self.item_is_done(item);
            }
            self.settle();
        } else if let Some(item) = self.heard_item() {
            self.finish_item(&item, Ok(NOT_TRANSCRIBED.to_owned()));
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
