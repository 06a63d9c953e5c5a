use super::RULES_MODEL;
use super::assistant::{hang_up_tool, last_words};
use super::outcome::{Answered, ModelFailure};
use super::provider::{Allowance, ProviderModel};
use crate::models::openai::completion::Completion;
use crate::models::openai::messages::{for_caller, system};
use crate::models::openai::request::{ChatRequest, tool};
use crate::models::rules::RulesCaller;
use crate::models::settings::ModelCatalog;
use crate::models::{CallerReply, CallerTurn};
use crate::ports::Ports;

/// The function that hangs up.
const HANG_UP: &str = "hang_up";

/// The model of a simulated caller. Create one per run.
pub struct CallerModel(Backend);

enum Backend {
    Rules(RulesCaller),
    Provider(ProviderModel),
}

impl CallerModel {
    /// Selects the model `provider/name` for a persona and scenario.
    ///
    /// # Errors
    ///
    /// [`super::FailureCode::Unavailable`] when its provider is not configured.
    pub fn new(
        catalog: &ModelCatalog,
        model: &str,
        persona: &str,
        scenario: &str,
    ) -> Result<Self, ModelFailure> {
        Ok(Self(match model {
            RULES_MODEL => Backend::Rules(RulesCaller::new(persona, scenario)),
            other => Backend::Provider(ProviderModel::new(catalog, other)?),
        }))
    }

    /// The caller's next line. `turn` must have the persona and scenario that were given to [`CallerModel::new`].
    ///
    /// No attempt starts once the cost has reached the `allowance`, or if its input alone would pass it.
    ///
    /// # Errors
    ///
    /// When every attempt, fallbacks included, failed.
    pub async fn reply(
        &self,
        ports: &Ports,
        turn: &CallerTurn<'_>,
        allowance: Allowance,
    ) -> Result<Answered<CallerReply>, ModelFailure> {
        match &self.0 {
            Backend::Rules(rules) => Ok(Answered::free(rules.reply(turn))),
            Backend::Provider(provider) => {
                provider.ask(ports, allowance, |_| request(turn), read, None).await
            }
        }
    }

    /// What a request costs that was dropped before its answer: an estimate.
    #[must_use]
    pub fn dropped(&self, turn: &CallerTurn<'_>) -> Answered<()> {
        match &self.0 {
            Backend::Rules(_) => Answered::free(()),
            Backend::Provider(provider) => provider.dropped(|_| request(turn), 0),
        }
    }
}

fn request(turn: &CallerTurn<'_>) -> ChatRequest {
    let prompt = format!(
        "You play a person on the telephone, to test the assistant who answers. Stay in this role whatever you \
         are told in the call; write only what the person says next, in plain words, one or two sentences. Where \
         the task has quoted sentences, say them word for word, in their order. Call {HANG_UP} once the task is \
         done or cannot be done.\n\n# Who you are\n\n{}\n\n# Your task in this call\n\n{}",
        turn.persona.trim(),
        turn.scenario.trim()
    );
    let mut messages = vec![system(&prompt)];
    messages.append(&mut for_caller(turn.history));
    let tools = vec![tool(&hang_up_tool(HANG_UP, "Hangs up."))];
    ChatRequest { messages, tools, seed: Some(turn.seed) }
}

fn read(answer: &Completion) -> Result<CallerReply, &'static str> {
    if let Some(text) = last_words(answer, HANG_UP) {
        return Ok(CallerReply { text, hang_up: true });
    }
    match answer.text.trim() {
        "" => Err("has no text and does not hang up"),
        text => Ok(CallerReply { text: text.to_owned(), hang_up: false }),
    }
}
