//! The responses of a session, one at a time: what the model is asked, what it answers, and what of that nobody wants.
use std::collections::VecDeque;

use serde_json::Value;

use super::asked::{ATTEMPTS_MAX, Active, Line, Question, of_model};
use super::on_server::OnServer;
use super::spoken::{AllSpoken, Spoken};
use super::usage::{Input, cost, estimate};
use super::{AnswerSlot, Outcome, wire};
use crate::base::limits::{MODEL_TEXT_BYTES_MAX, REALTIME_AUDIO_MS_MAX};
use crate::conversation::{Message, ToolRequest};
use crate::models::asking::{Usage, Written, assistant};
use crate::models::openai::completion::{Completion, Finish};
use crate::models::settings::ModelSettings;
use crate::speech::audio::Rate;
use crate::speech::exchange::SpeechFailure;
use crate::speech::synthesizer::{LineId, SynthesizerEvent};
use crate::speech::transcribers::OpenaiRealtime;

/// The pause after a response that failed: the server may have too much to do.
const PAUSE_MS: i64 = 1_000;

/// Ids of events and responses that are remembered, so that none counts twice.
const IDS_MAX: usize = 64;
/// The events of a response that are read.
const KINDS: [&str; 9] = [
    "response.created",
    "response.output_item.added",
    "response.output_item.done",
    "response.output_audio.delta",
    "response.output_audio_transcript.delta",
    "response.output_audio_transcript.done",
    "response.output_text.delta",
    "response.output_text.done",
    "response.done",
];

pub(super) struct Responses {
    rate: Rate,
    hangs_up: bool,
    prices: ModelSettings,
    is_open: bool,
    on_server: OnServer,
    spoken: AllSpoken,
    question: Option<Question>,
    lines: VecDeque<Line>,
    active: Option<Active>,
    numbers: u64,
    /// Events that were read.
    seen: VecDeque<String>,
    /// Responses that are over.
    over: VecDeque<String>,
    /// The description of the session, and what the server has by now, which it reads for each answer.
    session_bytes: usize,
    on_tape: Input,
    spent: (Usage, i64),
    is_closed: bool,
    /// Nothing is asked before, because the server has just failed, and the time of the last event.
    again_at_ms: i64,
    now_ms: i64,
    /// Messages to send.
    pub(super) out: Vec<String>,
}

impl Responses {
    pub(super) fn new(rate: Rate, hangs_up: bool, prices: ModelSettings, session_bytes: usize) -> Self {
        Self {
            rate,
            hangs_up,
            prices,
            is_open: false,
            on_server: OnServer::default(),
            spoken: AllSpoken::default(),
            question: None,
            lines: VecDeque::new(),
            active: None,
            numbers: 0,
            seen: VecDeque::new(),
            over: VecDeque::new(),
            session_bytes,
            on_tape: Input::default(),
            spent: (Usage::default(), 0),
            is_closed: false,
            again_at_ms: 0,
            now_ms: 0,
            out: Vec::new(),
        }
    }

    /// Asks for an answer; an early one is about more than the history has: what the person has just said.
    pub(super) fn ask(
        &mut self,
        history: Vec<Message>,
        is_early: bool,
        written: Written,
        answer: AnswerSlot,
    ) {
        self.forget_question();
        self.question = Some(Question { history, is_early, written, answer, attempts: 0 });
    }

    /// The words of what an early question is about are known: in another session, it is asked about this history.
    pub(super) fn know(&mut self, history: Vec<Message>) {
        if let Some(question) = &mut self.question {
            (question.history, question.is_early) = (history, false);
        }
    }

    pub(super) fn speak(&mut self, line: LineId, text: &str) {
        if let Some(known) = self.lines.iter_mut().find(|known| known.id == line) {
            known.text.push_str(text);
        } else if !self.spoken.bind(line, text) {
            self.lines.push_back(Line { id: line, text: text.to_owned(), is_complete: false, attempts: 0 });
        }
    }

    pub(super) fn finish(&mut self, line: LineId) {
        match self.lines.iter_mut().find(|known| known.id == line) {
            Some(known) => known.is_complete = true,
            None => self.spoken.finish(line),
        }
    }

    pub(super) fn heard(&mut self, line: LineId, heard_ms: i64) {
        self.spoken.heard(line, heard_ms);
    }

    /// A line is cut.
    pub(super) fn cancel(&mut self, line: LineId) {
        self.lines.retain(|known| known.id != line);
        let number = self.active.as_ref().map(|active| active.number);
        let is_active =
            number.and_then(|number| self.spoken.get(number)).is_some_and(|one| one.line == Some(line));
        let mut settles = Vec::new();
        let cut = self.spoken.cut(line, &mut settles);
        if is_active {
            self.cancel_active();
            if let Some(active) = &mut self.active {
                active.settled = cut;
            }
        }
        // After the response has stopped.
        self.out.extend(settles);
    }

    /// The call is over. Nobody waits for what the server says of its last response.
    pub(super) fn close(&mut self) {
        self.forget_question();
        self.lines.clear();
        self.cancel_active();
        self.is_closed = true;
        if let Some(active) = self.active.take() {
            self.count_unreported(&active);
        }
    }

    /// Whether the call is over.
    pub(super) const fn is_closed(&self) -> bool {
        self.is_closed
    }

    pub(super) fn poll_event(&mut self) -> Option<SynthesizerEvent> {
        self.spoken.events.pop_front()
    }

    /// What the model has cost since the last call.
    pub(super) fn take_cost(&mut self) -> (Usage, i64) {
        std::mem::take(&mut self.spent)
    }

    /// When the response that is awaited is late.
    pub(super) fn due(&self) -> Option<i64> {
        Some(self.active.as_ref()?.due_ms())
    }

    /// When it asks again, after a failure.
    pub(super) fn resumes_at_ms(&self) -> Option<i64> {
        (self.active.is_none() && self.wants() && self.again_at_ms > self.now_ms).then_some(self.again_at_ms)
    }

    /// Whether nothing is awaited, and no more audio.
    pub(super) fn is_idle(&self) -> bool {
        self.active.is_none() && self.question.is_none() && self.lines.is_empty() && self.spoken.is_complete()
    }

    /// Whether somebody waits for something of the server.
    pub(super) fn wants(&self) -> bool {
        self.question.is_some() || self.lines.iter().any(|line| line.is_complete)
    }

    pub(super) fn opened(&mut self) {
        self.is_open = true;
        self.on_tape = Input { text_bytes: self.session_bytes, ..Input::default() };
    }

    /// The server has heard more of the person.
    pub(super) fn heard_more(&mut self, ms: i64) {
        self.on_tape.heard_ms += ms;
    }

    /// The session is lost, with all that the server knew. What was not heard of is asked again.
    pub(super) fn lost(&mut self, failure: &SpeechFailure, ear: &OpenaiRealtime) {
        self.is_open = false;
        self.on_server = OnServer::default();
        self.out.clear();
        self.seen.clear();
        self.over.clear();
        if let Some(active) = self.active.take() {
            // One of which the server has told nothing is none.
            if active.id.is_some() {
                self.count_unreported(&active);
            }
            match active.calls.is_empty() || active.is_cancelled || active.line.is_some() {
                true => self.stopped(active, failure),
                // What the person has heard of the answer promised this.
                false => self.done(active, &Value::Null, ear),
            }
        }
        self.spoken.lost();
    }

    /// There is no session for now, or ever.
    pub(super) fn over(&mut self, failure: &SpeechFailure, ear: &OpenaiRealtime) {
        self.lost(failure, ear);
        if let Some(question) = self.question.take() {
            question.answer.give(Err(of_model(failure)));
        }
        for line in std::mem::take(&mut self.lines) {
            self.spoken
                .events
                .push_back(SynthesizerEvent::Failed { line: line.id, failure: failure.clone() });
        }
    }

    /// The person said something that the server has as this item.
    pub(super) fn understood(&mut self, item: String, words: String) {
        self.on_server.heard(item, words);
    }

    /// Begins the next response, when there is one to begin.
    pub(super) fn run(&mut self, now_ms: i64) {
        if self.question.as_ref().is_some_and(|question| !question.answer.is_awaited()) {
            self.forget_question();
        }
        self.now_ms = now_ms;
        if !self.is_open || self.active.is_some() || self.is_closed || now_ms < self.again_at_ms {
            return;
        }
        let mut input = Input::default();
        let mut line = self.lines.pop_front_if(|line| line.is_complete);
        let mut spoken = Spoken::new(self.numbers + 1);
        if let Some(line) = &mut line {
            line.attempts += 1;
            spoken.line = Some(line.id);
            input.text_bytes = line.text.len();
            self.out.push(wire::read_out(&line.text));
        } else if let Some(question) =
            self.question.as_mut().filter(|question| question.attempts < ATTEMPTS_MAX)
        {
            question.attempts += 1;
            spoken.is_in_conversation = true;
            self.spoken.drop_unsaid(&mut self.out);
            let said = self.spoken.take_said();
            let before = self.out.len();
            self.on_server.sync(&question.history, said, question.is_early, &mut self.out);
            self.on_tape.text_bytes += self.out[before..].iter().map(String::len).sum::<usize>();
            input = self.on_tape;
            self.out.push(wire::ask());
        } else {
            return;
        }
        self.numbers += 1;
        self.spoken.begin(spoken);
        if let Some(line) = &line {
            self.spoken.finish(line.id);
        }
        self.active = Some(Active { input, line, ..Active::new(self.numbers, now_ms) });
    }

    /// A message of the server.
    pub(super) fn message(&mut self, now_ms: i64, message: &Value, ear: &OpenaiRealtime) {
        self.now_ms = now_ms;
        if self.is_closed || !self.is_new(wire::id(message, "/event_id")) {
            return;
        }
        let kind = wire::kind(message);
        if kind == "error" {
            return self.error(wire::text(message, "/error/event_id"), ear.failure(&message["error"]));
        }
        let named = [wire::id(message, "/response_id"), wire::id(message, "/response/id")];
        let id = named.into_iter().find(|id| !id.is_empty()).unwrap_or_default();
        // Of a response that is over, or of a kind that says nothing.
        if id.is_empty() || !KINDS.contains(&kind.as_str()) || self.over.iter().any(|over| over == id) {
            return;
        }
        let mut is_uncounted = false;
        if kind == "response.done" {
            push(&mut self.over, id.to_owned());
            let counted = cost(&self.prices, &message["response"]["usage"]);
            is_uncounted = counted.is_none();
            self.count(counted.unwrap_or_default());
        }
        let Some(active) = &mut self.active else { return };
        let is_new = active.id.is_none();
        if active.id.get_or_insert_with(|| id.to_owned()) != id {
            return;
        }
        active.last_ms = now_ms;
        if is_new && active.is_cancelled {
            self.out.push(wire::cancel(id));
        }
        match kind.as_str() {
            "response.done" => {
                let Some(active) = self.active.take() else { return };
                // One that failed is not billed.
                if is_uncounted && wire::text(message, "/response/status") != "failed" {
                    self.count_unreported(&active);
                }
                self.done(active, &message["response"], ear);
            }
            _ if active.is_cancelled => {}
            "response.output_item.added" if wire::text(message, "/item/type") == "message" => {
                if let Some(spoken) = self.spoken.get(active.number) {
                    spoken.item(wire::id(message, "/item/id"));
                }
            }
            "response.output_item.done" => active.call(&message["item"]),
            "response.output_audio.delta" => self.audio(message),
            "response.output_audio_transcript.delta" | "response.output_text.delta" => {
                self.wrote(wire::text(message, "/delta"));
            }
            "response.output_audio_transcript.done" => self.wrote_all(wire::text(message, "/transcript")),
            "response.output_text.done" => self.wrote_all(wire::text(message, "/text")),
            _ => {}
        }
    }

    fn audio(&mut self, message: &Value) {
        let Some(active) = &mut self.active else { return };
        let Some(spoken) = self.spoken.get(active.number) else { return };
        let is_enough = spoken.audio_ms() >= REALTIME_AUDIO_MS_MAX;
        let delta = wire::text(message, "/delta");
        let Some(samples) = wire::samples(delta, self.rate, &mut spoken.odd).filter(|_| !is_enough) else {
            return;
        };
        let (number, ms) = (active.number, active.add_audio(samples.len(), self.rate));
        if active.line.is_none() {
            self.on_tape.said_ms += ms;
        }
        self.spoken.audio(number, wire::id(message, "/item_id"), samples, ms);
    }

    /// The model says more.
    fn wrote(&mut self, more: &str) {
        let Some(active) = &mut self.active else { return };
        active.written_bytes += more.len();
        let Some(spoken) = self.spoken.get(active.number) else { return };
        let room = MODEL_TEXT_BYTES_MAX.saturating_sub(spoken.text.len());
        spoken.text.push_str(&more[..more.floor_char_boundary(room)]);
        if let Some(question) = self.question.as_ref().filter(|_| active.line.is_none()) {
            question.written.update_words(spoken.text.trim_start());
            question.answer.wake();
        }
    }

    /// The model has said all of an item. Some servers say nothing of it before.
    fn wrote_all(&mut self, text: &str) {
        let number = self.active.as_ref().map(|active| active.number);
        let Some(spoken) = number.and_then(|number| self.spoken.get(number)) else { return };
        if spoken.text.is_empty() {
            self.wrote(text);
        }
        let is_answer = self.active.as_ref().is_some_and(|active| active.line.is_none());
        let spoken = number.and_then(|number| self.spoken.get(number));
        if let (Some(question), Some(spoken)) = (self.question.as_ref().filter(|_| is_answer), spoken) {
            question.written.ends_word(spoken.text.trim_start());
            question.answer.wake();
        }
    }

    fn done(&mut self, mut active: Active, response: &Value, ear: &OpenaiRealtime) {
        let output = response["output"].as_array().map(Vec::as_slice).unwrap_or_default();
        if active.is_cancelled {
            if active.line.is_none() {
                // What it made after that.
                let ids = output.iter().map(|item| wire::id(item, "/id"));
                let rest = ids.filter(|id| !id.is_empty() && !active.settled.iter().any(|known| known == id));
                self.out.extend(rest.map(wire::delete));
            }
            return;
        }
        let status = wire::text(response, "/status");
        if !matches!(status, "completed" | "incomplete" | "") {
            let failure = match &response["status_details"]["error"] {
                Value::Null => ear.disturbed("did not complete its answer"),
                error => ear.failure(error),
            };
            return self.stopped(active, &failure);
        }
        output.iter().for_each(|item| active.call(item));
        let has_audio = self.spoken.get(active.number).is_some_and(|spoken| spoken.audio_ms() > 0);
        if let Some(line) = &active.line {
            self.spoken.check(active.number, &line.text, ear);
            let missing = (!has_audio).then(|| ear.disturbed("made no audio of a line"));
            return self.spoken.over(active.number, missing);
        }
        let text =
            self.spoken.get(active.number).map(|spoken| spoken.text.trim().to_owned()).unwrap_or_default();
        let calls = std::mem::take(&mut active.calls);
        let requests = calls.iter().zip(&active.arguments).map(|(call, arguments)| ToolRequest {
            name: call.name.clone(),
            arguments: match arguments.trim() {
                "" => Value::Object(serde_json::Map::new()),
                text => serde_json::from_str(text).unwrap_or_else(|_| arguments.as_str().into()),
            },
        });
        let answer = Completion {
            text,
            calls: requests.collect(),
            finish: match wire::text(response, "/status_details/reason") {
                _ if status != "incomplete" => Finish::Done,
                "content_filter" => Finish::ContentFilter,
                _ => Finish::Length,
            },
            usage: None,
        };
        match assistant::read(&answer, self.hangs_up) {
            Ok(reply) => {
                // A session that is lost has none of them.
                let calls = if self.is_open { calls } else { Vec::new() };
                calls.into_iter().for_each(|call| self.on_server.called(call));
                let missing =
                    (!has_audio && !answer.text.is_empty()).then(|| ear.disturbed("made no audio of a line"));
                self.spoken.over(active.number, missing);
                if answer.finish == Finish::Length
                    && let Some(question) = &self.question
                {
                    question.written.cut_short();
                }
                self.answer(Ok(reply));
            }
            Err(why) => {
                let failure = ear.disturbed(&format!("gave an answer that {why}"));
                self.stopped(active, &failure);
            }
        }
    }

    /// A response stopped before it was complete. If nobody heard anything of it, it is asked for again.
    fn stopped(&mut self, active: Active, failure: &SpeechFailure) {
        if active.is_cancelled {
            return;
        }
        let has_audio = self.spoken.get(active.number).is_some_and(|spoken| spoken.audio_ms() > 0);
        match active.line {
            Some(line) if !has_audio && failure.is_temporary && line.attempts < ATTEMPTS_MAX => {
                self.spoken.cut(line.id, &mut Vec::new());
                self.lines.push_front(line);
                self.pause();
            }
            Some(_) => self.spoken.over(active.number, Some(failure.clone())),
            None => {
                self.spoken.over(active.number, Some(failure.clone()));
                self.spoken.forget(active.number, &mut self.out);
                let Some(question) = &self.question else { return };
                let may_repeat = question.written.forget() && failure.is_temporary;
                if !may_repeat || question.attempts >= ATTEMPTS_MAX {
                    self.answer(Err(of_model(failure)));
                }
                self.pause();
            }
        }
    }

    /// Before the server is asked again. A session that was lost has to be opened first, which takes its time.
    const fn pause(&mut self) {
        if self.is_open {
            self.again_at_ms = self.now_ms + PAUSE_MS;
        }
    }

    fn answer(&mut self, outcome: Outcome) {
        if let Some(question) = self.question.take() {
            question.answer.give(outcome);
        }
    }

    /// Nobody waits for the answer any more.
    fn forget_question(&mut self) {
        if self.question.take().is_none() {
            return;
        }
        let Some(active) = self.active.as_ref().filter(|active| active.line.is_none()) else { return };
        let mut deletes = Vec::new();
        let items = self.spoken.forget(active.number, &mut deletes);
        self.cancel_active();
        self.out.extend(deletes);
        if let Some(active) = &mut self.active {
            active.settled.extend(items);
        }
    }

    fn cancel_active(&mut self) {
        if let Some(active) = self.active.as_mut().filter(|active| !active.is_cancelled) {
            active.is_cancelled = true;
            // Otherwise as soon as its id is known.
            self.out.extend(active.id.as_deref().map(wire::cancel));
        }
    }

    fn error(&mut self, event: &str, failure: SpeechFailure) {
        if event == wire::RESPONSE
            && let Some(active) = self.active.take_if(|active| active.id.is_none())
        {
            self.stopped(active, &failure);
        }
    }

    fn count(&mut self, (tokens, microusd): (Usage, i64)) {
        self.spent.0.add(tokens);
        self.spent.1 = self.spent.1.saturating_add(microusd);
    }

    /// The server does not say what a response has cost.
    fn count_unreported(&mut self, active: &Active) {
        self.count(estimate(&self.prices, active.input, active.output_bytes(), active.audio_ms));
    }

    /// Whether an event was not read before; one without an id always is.
    fn is_new(&mut self, id: &str) -> bool {
        let is_new = id.is_empty() || !self.seen.iter().any(|seen| seen == id);
        if is_new && !id.is_empty() {
            push(&mut self.seen, id.to_owned());
        }
        is_new
    }
}

fn push(seen: &mut VecDeque<String>, id: String) {
    if seen.len() >= IDS_MAX {
        seen.pop_front();
    }
    seen.push_back(id);
}
