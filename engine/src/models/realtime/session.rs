//! Joins the ear, which owns the connection, and the responses.
use std::mem::take;

use super::builtin::Builtin;
use super::responses::Responses;
use super::{Answer, RealtimeSettings, wire};
use crate::base::limits::REALTIME_SESSION_MS;
use crate::conversation::Message;
use crate::models::asking::{Usage, Written};
use crate::speech::audio::Rate;
use crate::speech::transcriber::Transcriber as _;
use crate::speech::transcribers::{Conversing, OpenaiRealtime, Told, conversation_request};

/// An answer to what the person has said last, whose words are not known yet.
struct Anticipated {
    /// The history before those words.
    before: Vec<Message>,
    answer: Answer,
    written: Written,
}

pub(super) struct Session {
    anticipated: Option<Anticipated>,
    ear: OpenaiRealtime,
    /// How much of what it has sent is told to the responses.
    heard_ms: i64,
    responses: Responses,
    /// When it is replaced, once it is open: servers end a session after a time.
    renew_at_ms: i64,
    /// The server, if it is inside the process.
    builtin: Option<Builtin>,
}

impl Session {
    pub(super) fn new(settings: &RealtimeSettings, rate: Rate) -> Self {
        let conversing = Conversing {
            request: conversation_request(&settings.transcription, &settings.model),
            update: wire::session(settings, rate),
            rate,
        };
        let session_bytes = conversing.update.len();
        Self {
            anticipated: None,
            ear: OpenaiRealtime::conversing(&settings.transcription, conversing),
            heard_ms: 0,
            responses: Responses::new(rate, settings.hangs_up, settings.prices.clone(), session_bytes),
            renew_at_ms: i64::MAX,
            builtin: settings.builtin.clone().map(|assistant| Builtin::new(assistant, settings, rate)),
        }
    }

    pub(super) const fn ear(&self) -> &OpenaiRealtime {
        &self.ear
    }

    pub(super) const fn ear_mut(&mut self) -> &mut OpenaiRealtime {
        &mut self.ear
    }

    /// The responses, for what sends nothing.
    pub(super) const fn responses(&mut self) -> &mut Responses {
        &mut self.responses
    }

    /// Something concerns the ear.
    pub(super) fn heard(&mut self, now_ms: i64, change: impl FnOnce(&mut OpenaiRealtime)) {
        change(&mut self.ear);
        self.run(now_ms);
    }

    /// Something concerns the responses.
    pub(super) fn respond(&mut self, now_ms: i64, change: impl FnOnce(&mut Responses)) {
        change(&mut self.responses);
        self.run(now_ms);
    }

    pub(super) fn ask(&mut self, now_ms: i64, history: Vec<Message>, seed: u64) -> (Answer, Written) {
        if let Some(builtin) = &mut self.builtin {
            builtin.seed = seed;
        }
        let anticipated = self.anticipated.take().filter(|one| {
            matches!(history.strip_prefix(one.before.as_slice()), Some([Message::User { .. }]))
        });
        if let Some(Anticipated { answer, written, .. }) = anticipated {
            self.responses.know(history);
            return (answer, written);
        }
        self.begin(now_ms, history, false)
    }

    pub(super) fn anticipate(&mut self, now_ms: i64, history: Vec<Message>) {
        let before = history.clone();
        let (answer, written) = self.begin(now_ms, history, true);
        self.anticipated = Some(Anticipated { before, answer, written });
    }

    pub(super) fn forget_anticipated(&mut self, now_ms: i64) {
        if self.anticipated.take().is_some() {
            self.run(now_ms);
        }
    }

    fn begin(&mut self, now_ms: i64, history: Vec<Message>, is_early: bool) -> (Answer, Written) {
        let (answer, written) = (Answer::default(), Written::default());
        let slot = answer.slot();
        self.respond(now_ms, |responses| responses.ask(history, is_early, written.clone(), slot));
        (answer, written)
    }

    pub(super) fn take_cost(&mut self) -> (Usage, i64) {
        self.responses.take_cost()
    }

    pub(super) fn tick(&mut self, now_ms: i64) {
        self.ear.tick(now_ms);
        self.run(now_ms);
        if self.responses.is_closed() {
            return;
        }
        if self.responses.due().is_some_and(|due_ms| now_ms >= due_ms) {
            let failure = self.ear.disturbed("did not answer in time");
            self.responses.lost(&failure, &self.ear);
            self.ear.replace(now_ms, &failure);
        } else if self.renews_at_ms().is_some_and(|due_ms| now_ms >= due_ms) {
            self.ear.renew(now_ms);
        }
        self.run(now_ms);
    }

    pub(super) fn timeout(&self) -> Option<i64> {
        let own = if self.responses.is_closed() {
            [None; 3]
        } else {
            [self.responses.due(), self.responses.resumes_at_ms(), self.renews_at_ms()]
        };
        self.ear.poll_timeout().into_iter().chain(own.into_iter().flatten()).min()
    }

    pub(super) fn close(&mut self, now_ms: i64) {
        self.anticipated = None;
        self.respond(now_ms, Responses::close);
        self.ear.close(now_ms);
    }

    /// When the session is replaced: between two turns.
    fn renews_at_ms(&self) -> Option<i64> {
        let is_between_turns = self.responses.is_idle() && self.ear.is_quiet();
        is_between_turns.then_some(self.renew_at_ms).filter(|at_ms| *at_ms < i64::MAX)
    }

    fn run(&mut self, now_ms: i64) {
        self.settle(now_ms);
        if self.responses.wants() {
            match self.ear.ended().cloned() {
                Some(failure) => self.responses.over(&failure, &self.ear),
                None => self.ear.want(now_ms),
            }
        }
        while let Some(builtin) = &mut self.builtin
            && let Some(transmit) = self.ear.poll_transmit()
        {
            for (id, arrival) in builtin.transmitted(transmit) {
                self.ear.arrived(now_ms, id, arrival);
            }
            self.settle(now_ms);
        }
    }

    /// Takes what the ear tells, and sends what follows.
    fn settle(&mut self, now_ms: i64) {
        while let Some(told) = self.ear.poll_told() {
            self.told(now_ms, told);
        }
        let heard_ms = self.ear.billed_ms();
        self.responses.heard_more(heard_ms - std::mem::replace(&mut self.heard_ms, heard_ms));
        self.responses.run(now_ms);
        for text in take(&mut self.responses.out) {
            self.ear.send(now_ms, text);
        }
    }

    fn told(&mut self, now_ms: i64, told: Told) {
        match told {
            Told::Opened => {
                self.renew_at_ms = now_ms + REALTIME_SESSION_MS;
                self.responses.opened();
            }
            Told::Lost => {
                // What the person said is lost with it.
                self.anticipated = None;
                self.renew_at_ms = i64::MAX;
                let failure = self.ear.disturbed("lost the connection");
                self.responses.lost(&failure, &self.ear);
            }
            Told::Over(failure) => {
                self.anticipated = None;
                self.renew_at_ms = i64::MAX;
                self.responses.over(&failure, &self.ear);
            }
            Told::Understood { item, words } => self.responses.understood(item, words),
            Told::Message(text) => {
                if let Ok(message) = serde_json::from_str(&text) {
                    self.responses.message(now_ms, &message, &self.ear);
                }
            }
        }
    }
}
