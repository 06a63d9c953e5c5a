//! Interim.
use super::rules::*;
use super::*;
use crate::conversation::transcript::TranscriptRow;
use crate::engine::Engine;

#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    pub input_tokens: i64,
    pub output_tokens: i64,
}
pub struct Answered<T> {
    pub reply: T,
    pub usage: Usage,
    pub cost_microusd: i64,
}
pub struct ModelFailure {
    pub code: &'static str,
    pub message: String,
    pub usage: Usage,
    pub cost_microusd: i64,
}
fn free<T>(reply: T) -> Result<Answered<T>, ModelFailure> {
    Ok(Answered { reply, usage: Usage::default(), cost_microusd: 0 })
}
pub struct AssistantModel(RulesAssistant);
impl AssistantModel {
    pub fn new(_: &Engine, _: &str, knowledge: &[Knowledge], tools: &[ToolSpec]) -> Self {
        Self(RulesAssistant::new(knowledge, tools))
    }
    pub fn is_local(&self) -> bool {
        true
    }
    pub async fn reply(
        &self,
        _: &Engine,
        turn: &AssistantTurn<'_>,
    ) -> Result<Answered<AssistantReply>, ModelFailure> {
        free(self.0.reply(turn))
    }
}
pub struct CallerModel(RulesCaller);
impl CallerModel {
    pub fn new(_: &Engine, _: &str, scenario: &str) -> Self {
        Self(RulesCaller::new(scenario))
    }
    pub fn is_local(&self) -> bool {
        true
    }
    pub async fn reply(
        &self,
        _: &Engine,
        turn: &CallerTurn<'_>,
    ) -> Result<Answered<CallerReply>, ModelFailure> {
        free(self.0.reply(turn))
    }
}
pub struct JudgeModel(RulesJudge);
impl JudgeModel {
    pub fn new(_: &Engine, _: &str) -> Self {
        Self(RulesJudge::new())
    }
    pub fn is_local(&self) -> bool {
        true
    }
    pub async fn judge(
        &mut self,
        _: &Engine,
        turn: &JudgeTurn<'_>,
    ) -> Result<Answered<Ruling>, ModelFailure> {
        free(self.0.judge(turn))
    }
}
pub struct Analyst;
pub struct Findings {
    pub summary: String,
    pub sentiment: String,
}
impl Analyst {
    pub fn new(_: &Engine, _: &str) -> Self {
        Self
    }
    pub fn by_rule(_: &[TranscriptRow]) -> Findings {
        Findings { summary: "s".into(), sentiment: "unknown".into() }
    }
    pub fn is_local(&self) -> bool {
        true
    }
    pub async fn analyse(&self, _: &Engine, _: &[TranscriptRow]) -> Result<Answered<Findings>, ModelFailure> {
        free(Findings { summary: String::new(), sentiment: "unknown".into() })
    }
}
