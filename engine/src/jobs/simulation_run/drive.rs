//! Drives a simulated conversation over the ports: asks the models, calls the tools, keeps the journal.
use futures_util::future::join_all;
use serde_json::Value;

use super::Started;
use crate::base::limits::{CHECKPOINT_MS, LAST_LINE_BYTES_MAX, MODEL_TOTAL_MS};
use crate::base::text::truncate;
use crate::conversation::CallFault;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::jobs::Failure;
use crate::jobs::journal::{Journal, JournalEntry};
use crate::live::tool_callback::{self, Conversation};
use crate::models::{
    AnalysisTurn, Analyst, Answered, AssistantModel, CallerModel, FailureCode, JudgeModel, ModelFailure,
    RULES_MODEL, rules,
};
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::simulation::{
    Input, Output, SimulatedAssistant, Simulation, SimulationFailure, SimulationPart, SimulationResult,
    SimulationSetup,
};
use crate::sql;
use crate::storage::calls::{Analysis, AnalysisMethod};
use crate::storage::cost::Cost;
use crate::storage::events::{self, Subscribers};
use crate::storage::jobs::Job;

/// How long a model's answer may take, all its tries together.
const ANSWER_MS: i64 = MODEL_TOTAL_MS as i64;

/// What came of a conversation, and what it cost.
pub struct Driven {
    /// A simulation that broke says how.
    pub result: Result<SimulationResult, SimulationFailure>,
    /// What the assistant's own model has cost.
    pub assistant: Cost,
    /// What all models have cost.
    pub total: Cost,
    /// What kind of failure a model told of, and whose fault it is.
    pub failure: Option<(FailureCode, CallFault)>,
}

/// A simulation on its way.
pub struct Drive<'a> {
    services: &'a Services,
    job: &'a Job,
    started: &'a Started,
    simulation: Simulation,
    journal: Journal,
    assistant: Cost,
    total: Cost,
    failure: Option<(FailureCode, CallFault)>,
    /// It was tried often enough: nobody is asked any more.
    given_up: bool,
    /// Something outside was asked, which takes its time.
    has_waited: bool,
    saved_at_ms: i64,
    /// Until when the lease holds.
    leased_until_ms: i64,
}

struct ToolCall {
    id: String,
    name: String,
    arguments: Value,
}

enum Next {
    Caller,
    Assistant,
    Judge,
    Tools(Vec<ToolCall>),
    Over(Result<SimulationResult, SimulationFailure>),
}

impl<'a> Drive<'a> {
    /// The simulation as far as the journal knows it.
    pub fn new(
        services: &'a Services,
        job: &'a Job,
        started: &'a Started,
        journal: Journal,
        told: Vec<JournalEntry>,
    ) -> Self {
        let now_ms = services.ports().clock.now_ms();
        let mut drive = Self {
            services,
            job,
            started,
            simulation: Simulation::new(setup(job, started)),
            journal,
            assistant: Cost::default(),
            total: Cost::default(),
            failure: None,
            given_up: false,
            has_waited: false,
            saved_at_ms: now_ms,
            leased_until_ms: job.leased_until_ms,
        };
        if !told.is_empty() {
            for one in told {
                drive.simulation.forget_questions();
                drive.take(one);
            }
            // The last answer may have been the end: its result is still to be written.
            drive.simulation.forget_questions();
            drive.simulation.resume();
        }
        drive
    }

    /// The conversation so far as a failure of ours.
    pub fn interrupted(&mut self, reason: &str) -> Driven {
        self.given_up = true;
        let failure = self.simulation.failure(SimulationPart::Assistant, reason.to_owned());
        self.driven(Err(failure))
    }

    /// What forgets the journal.
    pub fn forget(&self) -> Statement {
        self.journal.forget()
    }

    /// Runs it to its end. The error is ours: the job is put back, or is no longer ours.
    pub async fn run(&mut self) -> Result<Driven, Failure> {
        let Started { assistant, simulation, .. } = self.started;
        let services = self.services;
        let specs = assistant.tool_specs();
        let caller = simulation.caller_model.as_deref().unwrap_or(&assistant.model);
        let judge = simulation.judge_model.as_deref().unwrap_or(&assistant.model);
        let [caller_is_free, model_is_free, judge_is_free] =
            [caller, &assistant.model, judge].map(|name| name == RULES_MODEL);
        let caller = CallerModel::new(&services.config().catalog, caller, &simulation.scenario);
        let model =
            AssistantModel::new(&services.config().catalog, &assistant.model, &assistant.knowledge, &specs);
        let mut judge = JudgeModel::new(&services.config().catalog, judge);
        loop {
            match self.next() {
                Next::Over(result) => return Ok(self.driven(result)),
                Next::Tools(calls) => self.call_tools(calls).await?,
                Next::Caller if self.is_spent(caller_is_free) => self.cost_limit(),
                Next::Assistant if self.is_spent(model_is_free) => self.cost_limit(),
                Next::Judge if self.is_spent(judge_is_free) => {
                    let reason = "The run has cost as much as it may, so the judge was not asked.".to_owned();
                    self.tell(Input::ModelFailed { reason }, Cost::default());
                }
                Next::Caller => {
                    self.before_asking(caller_is_free).await?;
                    let answer = match &caller {
                        Ok(caller) => {
                            caller
                                .reply(services.ports(), &self.simulation.caller_turn(), self.left_microusd())
                                .await
                        }
                        Err(failure) => Err(failure.clone()),
                    };
                    self.answered(answer, |reply| Input::CallerReply { reply });
                }
                Next::Assistant => {
                    self.before_asking(model_is_free).await?;
                    let answer = match &model {
                        Ok(model) => {
                            model
                                .reply(
                                    services.ports(),
                                    &self.simulation.assistant_turn(),
                                    self.left_microusd(),
                                )
                                .await
                        }
                        Err(failure) => Err(failure.clone()),
                    };
                    self.answered(answer, |reply| Input::AssistantReply { reply });
                }
                Next::Judge => {
                    self.before_asking(judge_is_free).await?;
                    match self.simulation.judge_question() {
                        Some(question) => {
                            let answer = match &mut judge {
                                Ok(judge) => {
                                    judge.rule(services.ports(), &question.turn(), self.left_microusd()).await
                                }
                                Err(failure) => Err(failure.clone()),
                            };
                            self.answered(answer, |ruling| Input::Verdict { ruling });
                        }
                        None => {
                            let reason = "There was nothing to rule on.".to_owned();
                            self.tell(Input::ModelFailed { reason }, Cost::default());
                        }
                    }
                }
            }
        }
    }

    fn next(&mut self) -> Next {
        let mut calls = Vec::new();
        while let Some(output) = self.simulation.poll() {
            match output {
                Output::AskCaller => return Next::Caller,
                Output::AskAssistant => return Next::Assistant,
                Output::AskJudge => return Next::Judge,
                Output::CallTool { id, name, arguments } => calls.push(ToolCall { id, name, arguments }),
                Output::Done { result } => return Next::Over(Ok(result)),
                Output::Failed { failure } => return Next::Over(Err(failure)),
            }
        }
        if calls.is_empty() {
            let reason = "The conversation came to a halt.".to_owned();
            return Next::Over(Err(self.simulation.failure(SimulationPart::Assistant, reason)));
        }
        Next::Tools(calls)
    }

    /// Whether a model may not be asked any more. One that costs nothing always may.
    fn is_spent(&self, free: bool) -> bool {
        !free && self.left_microusd() <= 0
    }

    /// What the run may still cost.
    fn left_microusd(&self) -> i64 {
        self.started.max_cost_microusd - self.total.microusd
    }

    fn cost_limit(&mut self) {
        self.tell(Input::CostLimit, Cost::default());
    }

    fn answered<T>(&mut self, answer: Result<Answered<T>, ModelFailure>, input: impl FnOnce(T) -> Input) {
        let spent = Cost::of(&answer);
        let input = match answer {
            Ok(answered) => input(answered.reply),
            Err(failure) => {
                self.failure = Some((failure.code, failure.fault));
                Input::ModelFailed { reason: failure.message }
            }
        };
        self.tell(input, spent);
    }

    fn tell(&mut self, input: Input, spent: Cost) {
        let told = JournalEntry { input, spent };
        self.journal.told(&told);
        self.take(told);
    }

    fn take(&mut self, told: JournalEntry) {
        self.total.add(told.spent);
        if matches!(told.input, Input::AssistantReply { .. }) {
            self.assistant.add(told.spent);
        }
        self.simulation.handle(told.input);
    }

    /// The calls of one reply go out together. Each stands in the journal before, under the id that
    /// it keeps whoever makes it.
    async fn call_tools(&mut self, calls: Vec<ToolCall>) -> Result<(), Failure> {
        for call in &calls {
            self.journal.calling(&call.id, &call.name);
        }
        self.has_waited = true;
        let tools = &self.started.assistant.tools;
        let tool = |name: &str| tools.iter().find(|tool| tool.name == name);
        let slowest_ms = calls.iter().filter_map(|call| tool(&call.name)).map(|tool| tool.timeout_ms).max();
        let secrets = calls.iter().filter_map(|call| tool(&call.name));
        let secrets = secrets.map(|tool| tool_callback::secrets(tool, &self.job.workspace_id)).collect();
        let mut secrets = self.checkpoint(slowest_ms.unwrap_or(0), secrets).await?.into_iter();
        let mut made = Vec::with_capacity(calls.len());
        for call in &calls {
            made.push(match tool(&call.name) {
                Some(tool) => Some((tool, tool_callback::read_secrets(tool, secrets.next().as_ref())?)),
                None => None,
            });
        }
        let conversation = Conversation {
            from: None,
            to: None,
            id: &self.started.call_id,
            source: "simulation",
            assistant_id: &self.started.assistant.id,
            assistant_revision: self.started.assistant.revision,
        };
        let answers = join_all(calls.iter().zip(made).map(async |(call, made)| {
            match made {
                Some((tool, secrets)) => {
                    tool_callback::call(
                        self.services,
                        tool,
                        secrets,
                        &call.id,
                        &call.arguments,
                        &conversation,
                    )
                    .await
                }
                None => Err(format!("there is no tool named {}", call.name)),
            }
        }))
        .await;
        for (call, answer) in calls.into_iter().zip(answers) {
            let is_error = answer.is_err();
            let text = answer.unwrap_or_else(|reason| reason);
            self.tell(Input::ToolResult { id: call.id, text, is_error }, Cost::default());
        }
        // What came back is on disk before anything follows from it.
        self.checkpoint(0, Vec::new()).await?;
        Ok(())
    }

    /// Before a model is asked that takes its time: tells how far the run is, and keeps the lease.
    async fn before_asking(&mut self, local: bool) -> Result<(), Failure> {
        self.has_waited |= !local;
        let now_ms = self.services.ports().clock.now_ms();
        let stale = self.journal.is_unsaved() && now_ms - self.saved_at_ms >= CHECKPOINT_MS;
        if local || (!stale && now_ms + ANSWER_MS < self.leased_until_ms) {
            return Ok(());
        }
        self.checkpoint(ANSWER_MS, Vec::new()).await?;
        Ok(())
    }

    /// Puts on disk what was told so far and how far the run is, and keeps the lease for what takes
    /// `busy_ms`. Fails when the lease is somebody else's. What `reads` find at that moment comes back.
    async fn checkpoint(&mut self, busy_ms: i64, reads: Vec<Statement>) -> Result<Vec<Rows>, Failure> {
        let now_ms = self.services.ports().clock.now_ms();
        let lease = self.job.extend(now_ms, busy_ms);
        self.leased_until_ms = lease.until_ms;
        let mut statements = lease.statements;
        statements.extend(self.journal.save());
        let conversation = self.simulation.conversation();
        statements.push(sql!(
            "UPDATE runs SET turns = ?3, last_line = ?4, cost_microusd = ?5 WHERE workspace_id = ?1 AND id = ?2",
            &self.job.workspace_id,
            &self.job.subject_id,
            i64::from(conversation.turns()),
            last_line(conversation.transcript()),
            self.total.microusd
        ));
        let written = statements.len();
        statements.extend(reads);
        let mut rows = self.services.ports().database.write(statements).await?;
        self.saved_at_ms = now_ms;
        Ok(rows.split_off(written.min(rows.len())))
    }

    /// Who wants to know that it is over. That may have changed while something outside was asked; a run that has only
    /// computed began a moment ago.
    pub async fn subscribers(&self) -> Result<Subscribers, Failure> {
        if !self.has_waited {
            return Ok(self.started.subscribers.clone());
        }
        let read = vec![events::subscribers(&self.job.workspace_id)];
        let rows = self.services.ports().database.read(read).await?;
        let found = rows.first().ok_or_else(|| Failure::Again("a batch lacks answers".to_owned()))?;
        Ok(Subscribers::read(found)?)
    }

    fn driven(&self, result: Result<SimulationResult, SimulationFailure>) -> Driven {
        Driven { result, assistant: self.assistant, total: self.total, failure: self.failure }
    }

    /// Finds out what a conversation that is over was about. A model that fails, or must cost nothing
    /// more, leaves it to the rules.
    pub async fn analyse(&mut self, transcript: &[TranscriptRow]) -> Result<(Analysis, Cost), Failure> {
        if let Some(known) = self.journal.analysed() {
            return Ok(known);
        }
        let turn = AnalysisTurn { transcript };
        let by_rule = || Analysis::of(rules::analyse(&turn), AnalysisMethod::Rule);
        let model = &self.started.assistant.model;
        // A model that has just failed is not asked again, nor one whose answers were lost time and again.
        let silent = self.given_up || self.failure.is_some() || transcript.is_empty();
        if model == RULES_MODEL || self.is_spent(false) || silent {
            return Ok((by_rule(), Cost::default()));
        }
        self.before_asking(false).await?;
        let answer = match Analyst::new(&self.services.config().catalog, model) {
            Ok(analyst) => analyst.analyse(self.services.ports(), &turn, self.left_microusd()).await,
            Err(failure) => Err(failure),
        };
        let spent = Cost::of(&answer);
        let analysis = match answer {
            Ok(answered) => Analysis::of(answered.reply, AnalysisMethod::Model),
            Err(_) => by_rule(),
        };
        // It is paid: should the end fail to be written, nobody is asked for it again.
        self.journal.looked_into(&analysis, spent);
        self.checkpoint(0, Vec::new()).await?;
        Ok((analysis, spent))
    }
}

/// What was said last, cut to what a list shows.
pub fn last_line(transcript: &[TranscriptRow]) -> Option<String> {
    let spoken = |row: &&TranscriptRow| matches!(row.role, TranscriptRole::User | TranscriptRole::Assistant);
    let row = transcript.iter().rev().find(spoken)?;
    Some(truncate(row.text.clone(), LAST_LINE_BYTES_MAX))
}

fn setup(job: &Job, started: &Started) -> SimulationSetup {
    let Started { assistant, simulation, .. } = started;
    SimulationSetup {
        run_id: job.subject_id.clone(),
        assistant: SimulatedAssistant {
            instructions: assistant.instructions.clone(),
            first_message: assistant.first_message.clone(),
            knowledge: assistant.knowledge.clone(),
            tools: assistant.tool_specs(),
        },
        persona: simulation.persona.clone(),
        scenario: simulation.scenario.clone(),
        evaluations: simulation.evaluations.clone(),
        seed: started.seed.unsigned_abs(),
        limits: SimulationSetup::default_limits(),
    }
}
