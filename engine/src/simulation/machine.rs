//! The state machine of a simulation.
mod held;
mod spoken;

use std::collections::VecDeque;

pub use held::{HeldConversation, HeldFailure};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::voice_line::{OpenLine, VoiceLine};
use super::{SimulationSetup, spoken_ms};
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{
    self, AssistantReply, AssistantTurn, Conversation, ConversationSetup, EndedReason, Party, WaitingFor,
};
use crate::models::{CallerReply, CallerTurn, Verdict};
use crate::simulation::evaluation::{
    Assessment, Evaluation, EvaluationResult, JudgeQuestion, ReadTranscript, all_passed,
};

/// An external input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// The response of the caller's model to [`Output::AskCaller`].
    CallerReply {
        /// The response.
        reply: CallerReply,
    },
    /// The response of the assistant's model to [`Output::AskAssistant`].
    AssistantReply {
        /// The response.
        reply: AssistantReply,
    },
    /// The result of [`Output::CallTool`]. A failure does not end the simulation: the assistant receives it.
    ToolResult {
        /// The id of the tool call.
        id: String,
        /// The tool's response, or the reason of its failure.
        text: String,
        /// Whether the tool failed.
        is_error: bool,
        /// Whether the scenario answered in place of the tool.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        mocked: bool,
        /// How much virtual time has passed meanwhile. Earlier versions had none.
        #[serde(default, skip_serializing_if = "is_zero")]
        after_ms: i64,
    },
    /// The response of the judge to [`Output::AskJudge`]. Stored journals have it as `ruling`.
    #[serde(rename = "ruling")]
    Verdict {
        /// The response.
        ruling: Verdict,
    },
    /// The run has reached its cost limit: the conversation ends, and the transcript is evaluated. In place of a judge's
    /// ruling, it ends the simulation with [`Output::Failed`].
    CostLimit,
    /// The model that was asked last failed. This ends the simulation with [`Output::Failed`].
    ModelFailed {
        /// The reason, in words fit for the assistant's owner.
        reason: String,
    },
    /// The conversation was held for real, outside of the simulation. Its evaluations follow.
    Held {
        /// The conversation.
        conversation: Box<HeldConversation>,
    },
}

/// The driver's next action. Each but the last two requires one [`Input`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    /// Ask the caller's model about [`Simulation::caller_turn`].
    AskCaller,
    /// Ask the assistant's model about [`Simulation::assistant_turn`].
    AskAssistant,
    /// Call this tool. Consecutive calls run concurrently.
    CallTool {
        /// Unique in the run and the same after a restart, so it can be an idempotency key.
        id: String,
        /// One of the assistant's tools.
        name: String,
        /// A JSON object; not validated against the tool's schema yet.
        arguments: Value,
    },
    /// Ask a judge about [`Simulation::judge_question`].
    AskJudge,
    /// The simulation is complete; nothing comes after this.
    Done {
        /// The result.
        result: SimulationResult,
    },
    /// The simulation itself failed; nothing comes after this.
    Failed {
        /// The failure.
        failure: SimulationFailure,
    },
}

/// The result of a complete simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulationResult {
    /// True when every evaluation passed, false when one failed, else null: one was not decided, or there is none.
    pub passed: Option<bool>,
    /// The result of each evaluation, in the scenario's order.
    pub evaluations: Vec<EvaluationResult>,
    /// The transcript.
    pub transcript: Vec<TranscriptRow>,
    /// Why the conversation ended.
    pub ended_reason: EndedReason,
    /// Lines spoken by both sides.
    pub turns: u32,
    /// How long the conversation took, in its own (virtual) time.
    pub duration_ms: i64,
}

/// The failure of a simulation. It says nothing about the assistant's performance.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulationFailure {
    /// The role whose model failed.
    pub part: SimulationPart,
    /// The driver's reason.
    pub reason: String,
    /// Whether its model was not asked, because the run had reached its cost limit.
    #[serde(default)]
    pub is_cost_limit: bool,
    /// The transcript so far.
    pub transcript: Vec<TranscriptRow>,
    /// Why the conversation ended.
    pub ended_reason: EndedReason,
    /// Lines spoken by both sides.
    pub turns: u32,
    /// How long the conversation took, in its own (virtual) time.
    pub duration_ms: i64,
}

/// The roles of a simulation's models.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum SimulationPart {
    /// The simulated caller.
    Caller,
    /// The assistant under test.
    Assistant,
    /// The judge of an evaluation.
    Judge,
}

/// One simulation: the conversation, then its evaluations.
///
/// The loop of a driver: call [`poll`](Self::poll) until it returns `None`, execute each output and pass its result to
/// [`handle`](Self::handle); stop at [`Output::Done`] or [`Output::Failed`]. Only one request is open at a time, or
/// several tool calls. [`run_offline`](super::run_offline) is such a loop. Unrequested inputs are ignored.
///
/// Time is virtual. It starts at 0 and each line takes as long as [`spoken_ms`] says; models take none, and tools only
/// what the scenario says of its own answers. So the same inputs always produce the same bytes.
///
/// The whole state serialises; after loading it, [`resume`](Self::resume) repeats the open requests.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    conversation: Conversation,
    persona: String,
    scenario: String,
    evaluations: Vec<Evaluation>,
    /// How often the judge rules on each criterion.
    #[serde(default)]
    judge_votes: usize,
    /// Its rulings so far on the current one.
    #[serde(default)]
    rulings: Vec<Verdict>,
    seed: u64,
    now_ms: i64,
    /// The line of a voice run.
    #[serde(default)]
    voice: Option<VoiceLine>,
    /// The line that the assistant is speaking, and that the caller talks over.
    #[serde(default)]
    open_line: Option<OpenLine>,
    /// The conversation, if it was held for real.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    held: Option<HeldConversation>,
    phase: Phase,
    /// Results so far; an evaluation that waits for its judge has none.
    results: Vec<Option<EvaluationResult>>,
    outputs: VecDeque<Output>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Phase {
    Talking,
    /// The index of the evaluation that waits for the judge.
    Judging {
        place: usize,
    },
    Over,
}

impl Simulation {
    /// A new simulation.
    #[must_use]
    pub fn new(setup: SimulationSetup) -> Self {
        let conversation = Conversation::new(ConversationSetup {
            id: setup.run_id.to_string(),
            instructions: setup.assistant.instructions,
            first_message: setup.assistant.first_message,
            knowledge: setup.assistant.knowledge,
            tools: setup.assistant.tools,
            has_transfers: setup.assistant.has_transfers,
            seed: setup.seed,
            limits: setup.limits,
            // Time is virtual, and no user can be silent.
            is_spoken: false,
            apology: String::new(),
            still_there: String::new(),
            not_understood: String::new(),
            keys: false,
            opening_note: String::new(),
            voicemail: None,
            filler: String::new(),
        });
        let mut simulation = Self {
            conversation,
            persona: setup.persona,
            scenario: setup.scenario,
            evaluations: setup.evaluations,
            judge_votes: setup.judge_votes,
            rulings: Vec::new(),
            seed: setup.seed,
            now_ms: 0,
            voice: setup.voice.map(|voice| VoiceLine::new(voice, setup.seed)),
            open_line: None,
            held: None,
            phase: Phase::Talking,
            results: Vec::new(),
            outputs: VecDeque::new(),
        };
        simulation.tell(conversation::Input::Start);
        simulation.proceed();
        simulation
    }

    /// Handles an input. Drain [`poll`](Self::poll) afterwards.
    pub fn handle(&mut self, input: Input) {
        let waiting = (self.phase, self.conversation.waiting_for());
        match (waiting, input) {
            ((Phase::Talking, WaitingFor::User), Input::CallerReply { reply }) => {
                self.caller_reply(reply);
            }
            ((Phase::Talking, WaitingFor::Model), Input::AssistantReply { reply }) => {
                let request = self.conversation.request();
                if let Some(voice) = &mut self.voice {
                    voice.answered(self.now_ms);
                }
                self.tell(conversation::Input::AssistantReply { request, reply });
            }
            (
                (Phase::Talking, WaitingFor::Tool),
                Input::ToolResult { id, text, is_error, mocked, after_ms },
            ) if self.conversation.is_calling(&id) => {
                self.now_ms = self.now_ms.saturating_add(after_ms.max(0));
                self.tell(conversation::Input::ToolResult { id, text, is_error, mocked });
            }
            ((Phase::Judging { place }, _), Input::Verdict { ruling }) => self.ruling(place, ruling),
            ((Phase::Talking, _), Input::CostLimit) => {
                self.outputs.clear();
                self.finish_line();
                self.tell(conversation::Input::CostLimit);
            }
            ((Phase::Talking, WaitingFor::User), Input::ModelFailed { reason }) => {
                self.finish_line();
                self.tell(conversation::Input::Stop { reason: EndedReason::ModelFailed });
                return self.fail(SimulationPart::Caller, reason);
            }
            ((Phase::Talking, WaitingFor::Model), Input::ModelFailed { reason }) => {
                let request = self.conversation.request();
                self.tell(conversation::Input::ModelFailed { request, reason: reason.clone() });
                return self.fail(SimulationPart::Assistant, reason);
            }
            ((Phase::Judging { .. }, _), Input::ModelFailed { reason }) => {
                return self.fail(SimulationPart::Judge, reason);
            }
            ((Phase::Judging { .. }, _), Input::CostLimit) => {
                let reason = "The run reached its cost limit, so the judge was not asked.".to_owned();
                let failure = self.failure(SimulationPart::Judge, reason);
                return self.fail_as(SimulationFailure { is_cost_limit: true, ..failure });
            }
            ((Phase::Talking, _), Input::Held { conversation }) => return self.was_held(*conversation),
            _ => return,
        }
        self.proceed();
    }

    /// The next output; `None` until the next [`handle`](Self::handle).
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Drops open requests, for a driver that replays known inputs. Results are still returned by [`poll`](Self::poll).
    pub fn drop_open_requests(&mut self) {
        self.outputs.retain(|output| matches!(output, Output::Done { .. } | Output::Failed { .. }));
    }

    /// Repeats the open requests with the same ids, for a driver that loaded a stored state. Results that were polled
    /// before are not repeated.
    pub fn resume(&mut self) {
        if self.outputs.is_empty() && self.phase != Phase::Over {
            self.conversation.resume();
            self.proceed();
        }
    }

    /// The current input for the caller's model.
    #[must_use]
    pub fn caller_turn(&self) -> CallerTurn<'_> {
        CallerTurn {
            persona: &self.persona,
            scenario: &self.scenario,
            history: self.conversation.history(),
            seed: self.seed,
        }
    }

    /// The current input for the assistant's model.
    #[must_use]
    pub fn assistant_turn(&self) -> AssistantTurn<'_> {
        self.conversation.assistant_turn()
    }

    /// The current question for the judge, after [`Output::AskJudge`].
    #[must_use]
    pub fn judge_question(&self) -> Option<JudgeQuestion<'_>> {
        let Phase::Judging { place } = self.phase else {
            return None;
        };
        match self.evaluations.get(place)?.assess(self.conversation.transcript()) {
            Assessment::AskJudge(question) => {
                Some(JudgeQuestion { vote: u64::try_from(self.rulings.len()).unwrap_or(0), ..question })
            }
            Assessment::Decided(_) => None,
        }
    }

    /// The line of a voice run.
    #[must_use]
    pub const fn voice(&self) -> Option<&VoiceLine> {
        self.voice.as_ref()
    }

    /// The conversation, read-only.
    #[must_use]
    pub const fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    fn caller_reply(&mut self, reply: CallerReply) {
        if self.voice.is_some() {
            return self.caller_speaks(&reply);
        }
        if reply.text.trim().is_empty() {
            if !reply.hang_up {
                self.tell(conversation::Input::Silence);
            }
        } else {
            let duration_ms = spoken_ms(&reply.text);
            self.now_ms = self.now_ms.saturating_add(duration_ms);
            let (text, hangs_up) = (reply.text, reply.hang_up);
            return self.tell(if hangs_up {
                conversation::Input::UserGoodbye { text, duration_ms }
            } else {
                conversation::Input::UserText { text, duration_ms, silence_ms: 0 }
            });
        }
        if reply.hang_up {
            self.tell(conversation::Input::HangUp { by: Party::User });
        }
    }

    fn ruling(&mut self, place: usize, ruling: Verdict) {
        self.rulings.push(ruling);
        if self.rulings.len() < self.judge_votes {
            return;
        }
        let rulings = std::mem::take(&mut self.rulings);
        let transcript = self.conversation.transcript();
        let result = self.evaluations.get(place).map(|one| one.ruled(&rulings, transcript));
        if let Some(slot) = self.results.get_mut(place) {
            *slot = result;
        }
    }

    fn tell(&mut self, input: conversation::Input) {
        self.conversation.handle(self.now_ms, input);
    }

    fn drop_questions(&mut self) {
        while self.conversation.poll().is_some() {}
    }

    /// Executes the conversation's outputs until the driver has to act.
    fn proceed(&mut self) {
        while let Some(output) = self.conversation.poll() {
            match output {
                conversation::Output::Say { text } if self.voice.is_some() => self.assistant_speaks(text),
                conversation::Output::Say { text } => {
                    self.now_ms = self.now_ms.saturating_add(spoken_ms(&text));
                    self.tell(conversation::Input::Spoken { until_ms: None });
                }
                conversation::Output::AskModel { .. } => {
                    self.outputs.push_back(Output::AskAssistant);
                }
                // Nobody in a simulation has a telephone.
                conversation::Output::PressKeys { .. } | conversation::Output::Hush => {}
                conversation::Output::CallTool { id, name, arguments } => {
                    self.outputs.push_back(Output::CallTool { id, name, arguments });
                }
                conversation::Output::Ended { .. } => {}
            }
        }
        match self.conversation.waiting_for() {
            WaitingFor::User => self.outputs.push_back(Output::AskCaller),
            WaitingFor::Nothing => self.evaluate(),
            WaitingFor::Start | WaitingFor::Model | WaitingFor::Tool | WaitingFor::Machine => {}
        }
    }

    /// Decides the evaluations that the transcript decides, and asks the judge about the first remaining one.
    fn evaluate(&mut self) {
        if self.phase == Phase::Talking {
            let tools = self.conversation.tool_names().collect();
            let transcript = ReadTranscript::new(self.conversation.transcript()).with_tools(tools);
            let results = self.evaluations.iter().map(|one| match one.assess_read(&transcript) {
                Assessment::Decided(result) => Some(result),
                Assessment::AskJudge(_) => None,
            });
            self.results = results.collect();
        }
        match self.results.iter().position(Option::is_none) {
            Some(place) => {
                self.phase = Phase::Judging { place };
                self.outputs.push_back(Output::AskJudge);
            }
            None => self.complete(),
        }
    }

    fn complete(&mut self) {
        self.phase = Phase::Over;
        let evaluations: Vec<_> = self.results.drain(..).flatten().collect();
        let ended_reason = self.ended_reason();
        let result = SimulationResult {
            passed: all_passed(&evaluations),
            evaluations,
            transcript: self.conversation.transcript().to_vec(),
            ended_reason,
            turns: self.conversation.turns(),
            duration_ms: self.now_ms,
        };
        self.outputs.push_back(Output::Done { result });
    }

    fn fail(&mut self, part: SimulationPart, reason: String) {
        self.fail_as(self.failure(part, reason));
    }

    fn fail_as(&mut self, failure: SimulationFailure) {
        self.phase = Phase::Over;
        self.drop_questions();
        self.outputs.push_back(Output::Failed { failure });
    }

    pub(crate) fn failure(&self, part: SimulationPart, reason: String) -> SimulationFailure {
        SimulationFailure {
            part,
            reason,
            is_cost_limit: false,
            transcript: self.conversation.transcript().to_vec(),
            ended_reason: self.ended_reason(),
            turns: self.conversation.turns(),
            duration_ms: self.now_ms,
        }
    }

    fn ended_reason(&self) -> EndedReason {
        self.conversation.ended().unwrap_or(EndedReason::Aborted)
    }
}

const fn is_zero(ms: &i64) -> bool {
    *ms == 0
}

#[cfg(test)]
mod tests;
