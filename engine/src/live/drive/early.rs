//! Asks the model before the user's turn has ended for certain. What it answers is held back until the turn has ended with
//! the same words, and dropped if the user goes on; so its tools are never called early either.
use std::future::ready;
use std::task::{Context, Poll};

use super::Drive;
use super::question::{Question, turn_of};
use crate::base::limits::EARLY_QUESTIONS_MAX;
use crate::base::text::truncate;
use crate::conversation::{AssistantReply, Message, TEXT_BYTES_MAX, WaitingFor};
use crate::live::asking::{Asked, cost_of_dropped};
use crate::live::peer::PeerEvent;
use crate::models::{RULES_MODEL, Written};
use crate::storage::cost::Cost;

/// A question that was asked early.
pub(super) struct Early<'a> {
    /// What the model was asked about: the history with the line that the user has probably said.
    history: Vec<Message>,
    answer: Answer<'a>,
}

enum Answer<'a> {
    Awaited(Question<'a>),
    There(Asked<AssistantReply>, Written),
}

impl Early<'_> {
    /// Takes the answer if it has come.
    pub(super) fn poll(&mut self, context: &mut Context<'_>) {
        if let Answer::Awaited(question) = &mut self.answer
            && let Poll::Ready(asked) = question.answer.as_mut().poll(context)
        {
            self.answer = Answer::There(asked, question.written.clone());
        }
    }
}

impl<'a> Drive<'a> {
    /// Whether the model may be asked before the user's turn has ended for certain.
    fn may_think_early(&self) -> bool {
        let assistant = &self.session.assistant;
        assistant.speech.think_early
            // It answers at once.
            && assistant.model != RULES_MODEL
            && self.conversation.waiting_for() == WaitingFor::User
            && self.early_questions < EARLY_QUESTIONS_MAX
            && self.cost_limit().allows(&assistant.model, self.spent)
    }

    /// A model that hears answers what the user has said before its words are known, unless it is being spoken: then the words
    /// decide whether they interrupt.
    pub(super) fn answer_voice(&mut self, event: &PeerEvent) {
        let Some(realtime) = &self.session.realtime else { return };
        match event {
            PeerEvent::VoiceEnded if self.may_think_early() && self.conversation.speaking().is_none() => {
                self.early_questions += 1;
                realtime.anticipate(self.now_ms(), self.conversation.history().to_vec());
            }
            PeerEvent::VoiceBegan | PeerEvent::Noise | PeerEvent::NotUnderstood => {
                realtime.forget_anticipated(self.now_ms());
            }
            _ => {}
        }
    }

    /// The user has probably said this.
    pub(super) fn think_early(&mut self, text: String) {
        if !self.may_think_early() {
            return;
        }
        let mut history = self.conversation.history().to_vec();
        history.push(Message::User { text: truncate(text, TEXT_BYTES_MAX) });
        if self.early.as_ref().is_some_and(|early| early.history == history) {
            return;
        }
        self.forget_early();
        self.early_questions += 1;
        let answer = Answer::Awaited(self.question(history.clone()));
        self.early = Some(Early { history, answer });
    }

    /// Drops the early question; its cost counts.
    pub(super) fn forget_early(&mut self) {
        let Some(Early { history, answer }) = self.early.take() else { return };
        self.spent.add(match answer {
            Answer::There(asked, _) => asked.cost,
            Answer::Awaited(_) if self.session.realtime.is_some() => Cost::default(),
            Answer::Awaited(question) => {
                let turn = turn_of(self.session, &history, self.conversation.assistant_turn().seed);
                cost_of_dropped(self.session.assistant.model(), &turn, question.written.bytes())
            }
        });
    }

    /// The early question, if it is the one to ask now and has not failed.
    pub(super) fn take_early(&mut self) -> Option<Question<'a>> {
        self.early_questions = 0;
        if self.early.as_ref()?.history != self.conversation.history() {
            self.forget_early();
            return None;
        }
        match self.early.take()?.answer {
            Answer::Awaited(question) => Some(question),
            Answer::There(asked, before) if asked.answer.is_ok() => {
                Some(Question { answer: Box::pin(ready(asked)), written: before.unsaid() })
            }
            Answer::There(failed, _) => {
                self.spent.add(failed.cost);
                None
            }
        }
    }
}
