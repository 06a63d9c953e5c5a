//! The simulated caller's model.
use super::RULES_MODEL;
use super::assistant::{hang_up_tool, last_words};
use super::outcome::{Answered, ModelFailure};
use super::provider::Provider;
use crate::models::openai::answer::Answer;
use crate::models::openai::messages::{for_caller, system};
use crate::models::openai::request::{ChatRequest, tool};
use crate::models::rules::RulesCaller;
use crate::models::settings::ModelCatalog;
use crate::models::{CallerReply, CallerTurn};
use crate::ports::Ports;

/// What the model calls to hang up.
const HANG_UP: &str = "hang_up";

/// The model that plays a caller. Keep one for a run.
pub struct CallerModel(Backend);

enum Backend {
    Rules(RulesCaller),
    Provider(Provider),
}

impl CallerModel {
    /// The model `provider/name`, ready for a scenario.
    ///
    /// # Errors
    ///
    /// [`super::FailureCode::Unavailable`] when the settings do not know its provider.
    pub fn new(catalog: &ModelCatalog, model: &str, scenario: &str) -> Result<Self, ModelFailure> {
        Ok(Self(match model {
            RULES_MODEL => Backend::Rules(RulesCaller::new(scenario)),
            other => Backend::Provider(Provider::new(catalog, other)?),
        }))
    }

    /// The caller's next line. `turn` must have the scenario this was made with.
    ///
    /// `most_microusd` is what it may cost: no try is begun beyond that.
    ///
    /// # Errors
    ///
    /// When no model answered, after what tries there were.
    pub async fn reply(
        &self,
        ports: &Ports,
        turn: &CallerTurn<'_>,
        most_microusd: i64,
    ) -> Result<Answered<CallerReply>, ModelFailure> {
        match &self.0 {
            Backend::Rules(rules) => Ok(Answered::free(rules.reply(turn))),
            Backend::Provider(provider) => provider.ask(ports, most_microusd, |_| request(turn), read).await,
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

fn read(answer: &Answer) -> Result<CallerReply, &'static str> {
    if let Some(text) = last_words(answer, HANG_UP) {
        return Ok(CallerReply { text, hang_up: true });
    }
    match answer.text.trim() {
        "" => Err("has no words and does not hang up"),
        text => Ok(CallerReply { text: text.to_owned(), hang_up: false }),
    }
}
