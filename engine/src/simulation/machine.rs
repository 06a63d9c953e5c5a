//! The state machine of a simulation.
use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{SimulationSetup, spoken_ms};
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{
    self, AssistantReply, AssistantTurn, Conversation, ConversationSetup, EndedReason, Party, WaitingFor,
};
use crate::models::{CallerReply, CallerTurn, Verdict};
use crate::simulation::evaluation::{
    Assessment, Evaluation, EvaluationResult, JudgeQuestion, ReadTranscript,
};

/// What happened outside.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// The caller's model answered [`Output::AskCaller`].
    CallerReply {
        /// The answer.
        reply: CallerReply,
    },
    /// The assistant's model answered [`Output::AskAssistant`].
    AssistantReply {
        /// The answer.
        reply: AssistantReply,
    },
    /// The tool of [`Output::CallTool`] answered or failed. A failed tool fails nothing else: the
    /// assistant is told.
    ToolResult {
        /// The id called with.
        id: String,
        /// The answer, or why there is none.
        text: String,
        /// True when `text` says why the tool failed.
        is_error: bool,
    },
    /// The judge answered [`Output::AskJudge`].
    Verdict {
        /// The answer.
        ruling: Verdict,
    },
    /// The run has cost as much as it may: the conversation ends here, and what was said is
    /// evaluated. Ignored when it is over.
    CostLimit,
    /// Whoever was asked last, caller, assistant or judge, could not answer. It ends the
    /// simulation with [`Output::Failed`].
    ModelFailed {
        /// Why, in words fit for the assistant's owner.
        reason: String,
    },
}

/// What the driver does next. Each but the last two is answered by one [`Input`].
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    /// Ask the caller's model about [`Simulation::caller_turn`].
    AskCaller,
    /// Ask the assistant's model about [`Simulation::assistant_turn`].
    AskAssistant,
    /// Call this tool. Several may follow one another: they run together.
    CallTool {
        /// Unique in the run and the same after a restart: fit to be an idempotency key.
        id: String,
        /// One of the assistant's tools.
        name: String,
        /// A JSON object; not yet checked against the tool's schema.
        arguments: Value,
    },
    /// Ask a judge about [`Simulation::judge_question`].
    AskJudge,
    /// The simulation is complete; nothing comes after this.
    Done {
        /// What came of it.
        result: SimulationResult,
    },
    /// The simulation itself broke; nothing comes after this.
    Failed {
        /// How.
        failure: SimulationFailure,
    },
}

/// What came of a complete simulation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulationResult {
    /// True when every evaluation passed. A scenario without evaluations passes when one of the
    /// sides ended the conversation of its own will, rather than a limit.
    pub passed: bool,
    /// The result of each evaluation, in the scenario's order.
    pub evaluations: Vec<EvaluationResult>,
    /// What was said and done.
    pub transcript: Vec<TranscriptRow>,
    /// Why the conversation ended.
    pub ended_reason: EndedReason,
    /// Lines spoken by both sides.
    pub turns: u32,
    /// How long the conversation took, in its own (virtual) time.
    pub duration_ms: i64,
}

/// Why a simulation broke. It says nothing about the assistant's doing.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
pub struct SimulationFailure {
    /// Whose model failed.
    pub part: SimulationPart,
    /// Why, as the driver put it.
    pub reason: String,
    /// What was said and done until then.
    pub transcript: Vec<TranscriptRow>,
    /// Why the conversation ended.
    pub ended_reason: EndedReason,
    /// Lines spoken by both sides.
    pub turns: u32,
    /// How long the conversation took, in its own (virtual) time.
    pub duration_ms: i64,
}

/// The models a simulation asks.
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
/// The run loop is: [`poll`](Self::poll) until it gives `None`, doing what each output says and
/// handing the answer to [`handle`](Self::handle); stop at [`Output::Done`] or
/// [`Output::Failed`]. Only one thing is ever under way, or several tool calls. [`run_offline`](super::run_offline) is
/// such a loop. Answers to what was not asked are ignored.
///
/// Time is virtual. It starts at 0 and each line takes as long as [`spoken_ms`] says; models and
/// tools take none. So the same answers give the same bytes, whenever and wherever it runs.
///
/// The whole state serialises; after loading one, [`resume`](Self::resume) asks again for what was
/// under way.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Simulation {
    conversation: Conversation,
    persona: String,
    scenario: String,
    evaluations: Vec<Evaluation>,
    seed: u64,
    now_ms: i64,
    phase: Phase,
    /// Results so far; an evaluation that waits for its judge has none.
    results: Vec<Option<EvaluationResult>>,
    outputs: VecDeque<Output>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
enum Phase {
    Talking,
    /// The judge is asked about the evaluation at this place.
    Judging {
        place: usize,
    },
    Over,
}

impl Simulation {
    /// A simulation ready to be polled.
    #[must_use]
    pub fn new(setup: SimulationSetup) -> Self {
        let conversation = Conversation::new(ConversationSetup {
            id: setup.run_id,
            instructions: setup.assistant.instructions,
            first_message: setup.assistant.first_message,
            knowledge: setup.assistant.knowledge,
            tools: setup.assistant.tools,
            seed: setup.seed,
            limits: setup.limits,
            // Its time is virtual, and nobody waits in it.
            is_spoken: false,
        });
        let mut simulation = Self {
            conversation,
            persona: setup.persona,
            scenario: setup.scenario,
            evaluations: setup.evaluations,
            seed: setup.seed,
            now_ms: 0,
            phase: Phase::Talking,
            results: Vec::new(),
            outputs: VecDeque::new(),
        };
        simulation.tell(conversation::Input::Start);
        simulation.proceed();
        simulation
    }

    /// Takes in an answer. Drain [`poll`](Self::poll) afterwards.
    pub fn handle(&mut self, input: Input) {
        let waiting = (self.phase, self.conversation.waiting_for());
        match (waiting, input) {
            ((Phase::Talking, WaitingFor::User), Input::CallerReply { reply }) => {
                self.caller_reply(reply);
            }
            ((Phase::Talking, WaitingFor::Model), Input::AssistantReply { reply }) => {
                let request = self.conversation.request();
                self.tell(conversation::Input::AssistantReply { request, reply });
            }
            ((Phase::Talking, WaitingFor::Tool), Input::ToolResult { id, text, is_error })
                if self.conversation.is_calling(&id) =>
            {
                self.tell(conversation::Input::ToolResult { id, text, is_error });
            }
            ((Phase::Judging { place }, _), Input::Verdict { ruling }) => self.ruling(place, ruling),
            ((Phase::Talking, _), Input::CostLimit) => {
                self.outputs.clear();
                self.tell(conversation::Input::CostLimit);
            }
            ((Phase::Talking, WaitingFor::User), Input::ModelFailed { reason }) => {
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
            _ => return,
        }
        self.proceed();
    }

    /// The next thing to do; `None` until the next [`handle`](Self::handle).
    pub fn poll(&mut self) -> Option<Output> {
        self.outputs.pop_front()
    }

    /// Forgets what it has asked for. For a driver that knows the answers already; what the simulation came to stays
    /// to be polled.
    pub fn forget_questions(&mut self) {
        self.outputs.retain(|output| matches!(output, Output::Done { .. } | Output::Failed { .. }));
    }

    /// Asks again for what was under way, with the same ids. For a driver that loaded a stored
    /// state; a result that was polled before is not repeated.
    pub fn resume(&mut self) {
        if self.outputs.is_empty() && self.phase != Phase::Over {
            self.conversation.resume();
            self.proceed();
        }
    }

    /// What the caller's model is asked about now.
    #[must_use]
    pub fn caller_turn(&self) -> CallerTurn<'_> {
        CallerTurn {
            persona: &self.persona,
            scenario: &self.scenario,
            history: self.conversation.history(),
            seed: self.seed,
        }
    }

    /// What the assistant's model is asked about now.
    #[must_use]
    pub fn assistant_turn(&self) -> AssistantTurn<'_> {
        self.conversation.assistant_turn()
    }

    /// What the judge is asked about now, after [`Output::AskJudge`].
    #[must_use]
    pub fn judge_question(&self) -> Option<JudgeQuestion<'_>> {
        let Phase::Judging { place } = self.phase else {
            return None;
        };
        match self.evaluations.get(place)?.assess(self.conversation.transcript()) {
            Assessment::AskJudge(question) => Some(question),
            Assessment::Decided(_) => None,
        }
    }

    /// The conversation, for looking on.
    #[must_use]
    pub const fn conversation(&self) -> &Conversation {
        &self.conversation
    }

    fn caller_reply(&mut self, reply: CallerReply) {
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
                conversation::Input::UserText { text, duration_ms }
            });
        }
        if reply.hang_up {
            self.tell(conversation::Input::HangUp { by: Party::User });
        }
    }

    fn ruling(&mut self, place: usize, ruling: Verdict) {
        let transcript = self.conversation.transcript();
        let result = self.evaluations.get(place).map(|one| one.ruled(ruling, transcript));
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

    /// Carries out what the conversation wants until the driver has to act.
    fn proceed(&mut self) {
        while let Some(output) = self.conversation.poll() {
            match output {
                conversation::Output::Say { text } => {
                    self.now_ms = self.now_ms.saturating_add(spoken_ms(&text));
                    self.tell(conversation::Input::Spoken);
                }
                conversation::Output::AskModel { .. } => {
                    self.outputs.push_back(Output::AskAssistant);
                }
                conversation::Output::CallTool { id, name, arguments } => {
                    self.outputs.push_back(Output::CallTool { id, name, arguments });
                }
                conversation::Output::Ended { .. } => {}
            }
        }
        match self.conversation.waiting_for() {
            WaitingFor::User => self.outputs.push_back(Output::AskCaller),
            WaitingFor::Nothing => self.evaluate(),
            WaitingFor::Start | WaitingFor::Model | WaitingFor::Tool => {}
        }
    }

    /// Decides what the transcript decides, and asks the judge about the first evaluation left.
    fn evaluate(&mut self) {
        if self.phase == Phase::Talking {
            let transcript = ReadTranscript::new(self.conversation.transcript());
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
        let passed = if evaluations.is_empty() {
            ended_reason.is_proper()
        } else {
            evaluations.iter().all(|result| result.passed)
        };
        let result = SimulationResult {
            passed,
            evaluations,
            transcript: self.conversation.transcript().to_vec(),
            ended_reason,
            turns: self.conversation.turns(),
            duration_ms: self.now_ms,
        };
        self.outputs.push_back(Output::Done { result });
    }

    fn fail(&mut self, part: SimulationPart, reason: String) {
        self.phase = Phase::Over;
        self.drop_questions();
        let failure = self.failure(part, reason);
        self.outputs.push_back(Output::Failed { failure });
    }

    pub(crate) fn failure(&self, part: SimulationPart, reason: String) -> SimulationFailure {
        SimulationFailure {
            part,
            reason,
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

#[cfg(test)]
mod tests;
