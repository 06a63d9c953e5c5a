//! Requests to the models of a conversation, with their cost limits; used by live conversations and simulation runs.
use crate::conversation::{AssistantReply, AssistantTurn};
use crate::models::{Allowance, Answered, AssistantModel, ModelFailure, RULES_MODEL, Written};
use crate::services::Services;
use crate::storage::cost::Cost;

/// A model, or the error that prevents its use.
pub(crate) type Model<M> = Result<M, ModelFailure>;

/// The result of a request and its cost: failures cost, too.
pub(crate) struct Asked<T> {
    pub(crate) answer: Result<T, ModelFailure>,
    pub(crate) cost: Cost,
}

impl<T> Asked<T> {
    /// Maps the answer and keeps the cost.
    pub(crate) fn map<U>(self, change: impl FnOnce(T) -> U) -> Asked<U> {
        Asked { answer: self.answer.map(change), cost: self.cost }
    }
}

impl<T> From<Result<Answered<T>, ModelFailure>> for Asked<T> {
    fn from(answer: Result<Answered<T>, ModelFailure>) -> Self {
        Self { cost: Cost::of(&answer), answer: answer.map(|answered| answered.reply) }
    }
}

/// The cost limit of a conversation.
#[derive(Debug, Clone, Copy)]
pub(crate) struct CostLimit {
    pub(crate) microusd: i64,
}

impl CostLimit {
    /// The remaining amount after `spent`.
    pub(crate) const fn left_microusd(self, spent: Cost) -> i64 {
        self.microusd - spent.microusd
    }

    /// What a question may cost after `spent`, with `first_microusd` for the first one of the conversation.
    pub(crate) const fn allowance(self, spent: Cost, first_microusd: i64) -> Allowance {
        let first_microusd = if spent.microusd == 0 { first_microusd } else { 0 };
        Allowance { left_microusd: self.left_microusd(spent), first_microusd }
    }

    /// Whether the model may be asked after `spent`. [`RULES_MODEL`] is free, and always allowed where nothing else costs
    /// anything: its answers may be spoken by a voice that does.
    pub(crate) fn allows(self, model: &str, spent: Cost) -> bool {
        (model == RULES_MODEL && spent.microusd == 0) || self.left_microusd(spent) > 0
    }
}

/// What a request costs that was dropped after so many bytes of its answer.
pub(crate) fn cost_of_dropped(
    model: &Model<AssistantModel>,
    turn: &AssistantTurn<'_>,
    written_bytes: usize,
) -> Cost {
    model.as_ref().map_or_else(|_| Cost::default(), |model| Cost::of(&Ok(model.dropped(turn, written_bytes))))
}

/// Asks an assistant's model for its next step. What it writes can be taken from `written` before that.
pub(crate) async fn ask_assistant(
    services: &Services,
    model: &Model<AssistantModel>,
    turn: &AssistantTurn<'_>,
    allowance: Allowance,
    written: Option<&Written>,
) -> Asked<AssistantReply> {
    match model {
        Ok(model) => model.reply(services.ports(), turn, allowance, written).await.into(),
        Err(failure) => Err(failure.clone()).into(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_free_model_is_asked_until_its_voice_has_used_up_the_limit() {
        let limit = CostLimit { microusd: 50_000 };
        let spent = |microusd| Cost { microusd, ..Cost::default() };
        assert!(CostLimit { microusd: 0 }.allows(RULES_MODEL, spent(0)), "nothing costs anything");
        assert!(limit.allows(RULES_MODEL, spent(49_999)) && limit.allows("openai/x", spent(49_999)));
        assert!(!limit.allows(RULES_MODEL, spent(50_000)) && !limit.allows("openai/x", spent(50_000)));
        assert!(!CostLimit { microusd: 0 }.allows("openai/x", spent(0)));
    }
}
