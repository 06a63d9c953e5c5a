//! Asking the models of a conversation, whoever drives it: what an answer may cost, and what it has cost.
use crate::conversation::{AssistantReply, AssistantTurn, ToolSpec};
use crate::models::{Answered, AssistantModel, ModelFailure, RULES_MODEL};
use crate::services::Services;
use crate::storage::cost::Cost;
use crate::storage::snapshots::AssistantSnapshot;

/// A model, or why there is none to be asked.
pub(crate) type Model<M> = Result<M, ModelFailure>;

/// What came of a question, apart from its cost: a failure costs, too.
pub(crate) struct Asked<T> {
    pub(crate) answer: Result<T, ModelFailure>,
    pub(crate) cost: Cost,
}

impl<T> Asked<T> {
    /// The same about another answer.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Asked<U> {
        Asked { answer: self.answer.map(change), cost: self.cost }
    }
}

impl<T> From<Result<Answered<T>, ModelFailure>> for Asked<T> {
    fn from(answer: Result<Answered<T>, ModelFailure>) -> Self {
        Self { cost: Cost::of(&answer), answer: answer.map(|answered| answered.reply) }
    }
}

/// What the models of a conversation may cost.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostLimit {
    pub(crate) microusd: i64,
}

impl CostLimit {
    /// What an answer may cost after so much was spent.
    pub(crate) const fn left_microusd(self, spent: Cost) -> i64 {
        self.microusd - spent.microusd
    }

    /// Whether the model may be asked after so much was spent. [`RULES_MODEL`] costs nothing and always may.
    pub(crate) fn allows(self, model: &str, spent: Cost) -> bool {
        model == RULES_MODEL || self.left_microusd(spent) > 0
    }
}

/// The model of an assistant with these tools.
pub(crate) fn assistant_model(
    services: &Services,
    assistant: &AssistantSnapshot,
    tools: &[ToolSpec],
) -> Model<AssistantModel> {
    AssistantModel::new(&services.config().catalog, &assistant.model, &assistant.knowledge, tools)
}

/// Asks an assistant's model for its next step.
pub(crate) async fn ask_assistant(
    services: &Services,
    model: &Model<AssistantModel>,
    turn: &AssistantTurn<'_>,
    left_microusd: i64,
) -> Asked<AssistantReply> {
    match model {
        Ok(model) => model.reply(services.ports(), turn, left_microusd).await.into(),
        Err(failure) => Err(failure.clone()).into(),
    }
}
