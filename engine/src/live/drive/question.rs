//! Asks the model, and drops what it was asked when the conversation has gone on.
use futures_util::FutureExt as _;

use super::Drive;
use crate::base::limits::LIVE_COST_MICROUSD_MAX;
use crate::conversation::{AssistantReply, AssistantTurn, Input, Message};
use crate::live::asking::{Asked, ask_assistant, cost_of_dropped};
use crate::live::session::LiveSession;
use crate::models::Written;
use crate::ports::BoxFuture;
use crate::storage::cost::Cost;

/// A request to the model.
pub(super) struct Thinking<'a> {
    pub(super) request: u64,
    pub(super) question: Question<'a>,
}

/// What the model is asked.
pub(super) struct Question<'a> {
    pub(super) answer: BoxFuture<'a, Asked<AssistantReply>>,
    /// What it has written so far.
    pub(super) written: Written,
}

impl<'a> Drive<'a> {
    /// Drops the question whose answer is awaited; its cost counts, because the provider has the request.
    pub(super) fn forget_question(&mut self) {
        if let Some(thinking) = self.thinking.take()
            && self.session.realtime.is_none()
        {
            let turn =
                turn_of(self.session, self.conversation.history(), self.conversation.assistant_turn().seed);
            let written = thinking.question.written.bytes();
            self.spent.add(cost_of_dropped(self.session.assistant.model(), &turn, written));
        }
    }

    pub(super) fn ask(&mut self, request: u64) {
        self.forget_question();
        let limit = self.cost_limit();
        if !limit.allows(&self.session.assistant.model, self.spent) {
            return self.handle(Input::CostLimit);
        }
        let question =
            self.take_early().unwrap_or_else(|| self.question(self.conversation.history().to_vec()));
        self.thinking = Some(Thinking { request, question });
    }

    /// A request to the model about this history, a copy, because the user may continue while the model responds.
    pub(super) fn question(&self, history: Vec<Message>) -> Question<'a> {
        let session = self.session;
        let seed = self.conversation.assistant_turn().seed;
        if let Some(realtime) = &session.realtime {
            let (answer, written) = realtime.ask(self.now_ms(), history, seed);
            // What it costs is counted as it goes on.
            let asked = answer.map(|answer| Asked { answer, cost: Cost::default() });
            return Question { answer: Box::pin(asked), written };
        }
        let limit = self.cost_limit();
        let allowance = limit.allowance(self.spent, LIVE_COST_MICROUSD_MAX);
        let written = Written::default();
        // Only what is spoken can be used before it is complete.
        let speaks = session.is_spoken.then(|| written.clone());
        let answer = Box::pin(async move {
            let turn = turn_of(session, &history, seed);
            let model = session.assistant.model();
            ask_assistant(&session.services, model, &turn, allowance, speaks.as_ref()).await
        });
        Question { answer, written }
    }
}

/// The model's input with this history.
pub(super) fn turn_of<'a>(session: &'a LiveSession, history: &'a [Message], seed: u64) -> AssistantTurn<'a> {
    AssistantTurn {
        instructions: &session.texts.instructions,
        knowledge: &session.assistant.knowledge,
        tools: session.tools(),
        history,
        seed,
    }
}
