//! Drives a simulated conversation: asks the models, calls the tools, writes the journal.
use futures_util::future::join_all;

use super::Started;
use super::models::Models;
use crate::base::limits::{CHECKPOINT_MS, JUDGE_VOTES_MAX, MODEL_TOTAL_MS};
use crate::base::yielding::yield_now;
use crate::conversation::CallFault;
use crate::conversation::transcript::TranscriptRow;
use crate::jobs::Failure;
use crate::jobs::give_way::GiveWay;
use crate::jobs::run_journal::{Journal, JournalEntry};
use crate::live::admission::Growth;
use crate::live::asking::{Asked, CostLimit};
use crate::live::call_journal;
use crate::live::tool_calls::{CommittedCall, ToolAnswer, ToolCall, ToolCaller};
use crate::models::{AnalysisTurn, Analyst, FailureCode, RULES_MODEL, rules};
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::simulation::tool_mocks::Mocking;
use crate::simulation::{
    HeldConversation, Input, Output, SimulatedAssistant, Simulation, SimulationFailure, SimulationPart,
    SimulationResult, SimulationSetup, VoiceLine, VoiceSetup,
};
use crate::speech::turn_times::TurnTimes;
use crate::storage::calls::{Analysis, AnalysisMethod};
use crate::storage::cost::Cost;
use crate::storage::events::{self, Subscribers};
use crate::storage::jobs::{DUE_AT_ONCE, Job};
use crate::storage::runs;

/// The timeout of a model request, including its retries.
const ANSWER_MS: i64 = MODEL_TOTAL_MS as i64;

/// The result of a conversation and its cost.
pub struct Driven {
    /// The result, or the failure of the simulation.
    pub result: Result<SimulationResult, SimulationFailure>,
    /// The cost of the assistant's model.
    pub assistant: Cost,
    /// The cost of all models.
    pub total: Cost,
    /// The kind and the cause of a model's failure.
    pub failure: Option<(FailureCode, CallFault)>,
}

/// A simulation in progress.
pub struct Drive<'a> {
    services: &'a Services,
    job: &'a Job,
    started: &'a Started,
    tools: ToolCaller<'a>,
    mocking: Mocking<'a>,
    simulation: Simulation,
    journal: Journal,
    assistant: Cost,
    total: Cost,
    failure: Option<(FailureCode, CallFault)>,
    growth: Growth,
    /// Whether the job has used all of its attempts: no model is asked any more.
    attempts_exhausted: bool,
    /// Whether an external request was made.
    has_waited: bool,
    saved_at_ms: i64,
    /// The rows of the transcript that are stored as they will stay.
    saved_rows: usize,
    /// When the lease expires.
    leased_until_ms: i64,
}

enum Next {
    Ask(SimulationPart),
    CallTools(Vec<ToolCall>),
    End(Result<SimulationResult, SimulationFailure>),
}

impl<'a> Drive<'a> {
    /// Restores the simulation from the journal.
    pub fn new(
        services: &'a Services,
        job: &'a Job,
        started: &'a Started,
        journal: Journal,
        inputs: Vec<JournalEntry>,
    ) -> Self {
        let now_ms = services.ports().clock.now_ms();
        let mut drive = Self {
            services,
            job,
            started,
            tools: ToolCaller::new(services, &started.assistant, &started.call),
            mocking: Mocking::new(Some(&started.simulation.tool_mocks)),
            simulation: Simulation::new(setup(started)),
            journal,
            assistant: Cost::default(),
            total: Cost::default(),
            failure: None,
            growth: started.admission.growth(),
            attempts_exhausted: false,
            has_waited: false,
            saved_at_ms: now_ms,
            saved_rows: 0,
            leased_until_ms: job.leased_until_ms,
        };
        if !inputs.is_empty() {
            for one in inputs {
                drive.simulation.drop_open_requests();
                drive.apply(one);
            }
            // The last input may have ended the simulation: its result is not stored yet.
            drive.simulation.drop_open_requests();
            drive.simulation.resume();
        }
        drive
    }

    /// The result of a run that has used all of its attempts.
    pub fn exhausted(&mut self, reason: &str) -> Driven {
        self.attempts_exhausted = true;
        let failure = self.simulation.failure(SimulationPart::Assistant, reason.to_owned());
        self.driven(Err(failure))
    }

    /// The conversation of the run, if it was held for real.
    pub const fn held(&self) -> Option<&HeldConversation> {
        self.simulation.held()
    }

    /// The conversation was held for real, and cost this much on each side.
    pub fn was_held(&mut self, held: HeldConversation, assistant: Cost, caller: Cost) {
        let mut spent = assistant;
        spent.add(caller);
        self.has_waited = true;
        let input = Input::Held { conversation: Box::new(held) };
        let entry = JournalEntry { input, spent, assistant: Some(assistant) };
        self.journal.add_input(&entry);
        self.apply(entry);
    }

    /// Stores that the conversation was held, before its evaluations.
    pub async fn store_held(&mut self) -> Result<(), Failure> {
        if self.journal.is_unsaved() {
            self.checkpoint(0, Vec::new()).await?;
        }
        Ok(())
    }

    /// The times of the caller's turns.
    pub fn turn_times(&self) -> Vec<TurnTimes> {
        match (self.held(), self.voice()) {
            (Some(held), _) => held.turn_times.clone(),
            (None, Some(voice)) => voice.turns().to_vec(),
            (None, None) => Vec::new(),
        }
    }

    /// The line of a voice run.
    pub const fn voice(&self) -> Option<&VoiceLine> {
        self.simulation.voice()
    }

    /// Extends the lease for a write that may be slow.
    pub async fn before_write(&mut self) -> Result<(), Failure> {
        let now_ms = self.services.ports().clock.now_ms();
        if now_ms + ANSWER_MS >= self.leased_until_ms {
            self.checkpoint(ANSWER_MS, Vec::new()).await?;
        }
        Ok(())
    }

    /// The statement that deletes the journal.
    pub fn delete_journal(&self) -> Statement {
        self.journal.delete()
    }

    /// Runs the simulation to its end. An error is internal: the job is released, or another process holds its lease.
    pub async fn run(&mut self, give_way: &GiveWay) -> Result<Driven, Failure> {
        let mut models = Models::new(self.services, self.started);
        loop {
            let next = self.next();
            if give_way.is_asked() && !matches!(next, Next::End(_)) {
                return Err(self.give_way().await?);
            }
            match next {
                Next::End(result) => return Ok(self.driven(result)),
                Next::CallTools(calls) => self.call_tools(calls).await?,
                Next::Ask(part) => self.ask(part, &mut models).await?,
            }
            // Models within the engine answer without waiting: a long run would keep its thread from other workspaces.
            yield_now().await;
        }
    }

    fn next(&mut self) -> Next {
        let mut calls = Vec::new();
        while let Some(output) = self.simulation.poll() {
            match output {
                Output::AskCaller => return Next::Ask(SimulationPart::Caller),
                Output::AskAssistant => return Next::Ask(SimulationPart::Assistant),
                Output::AskJudge => return Next::Ask(SimulationPart::Judge),
                Output::CallTool { id, name, arguments } => {
                    let mocked = self.mocking.answer(self.simulation.conversation().transcript(), &id);
                    calls.push(ToolCall { id, name, arguments, mocked });
                }
                Output::Done { result } => return Next::End(Ok(result)),
                Output::Failed { failure } => return Next::End(Err(failure)),
            }
        }
        if calls.is_empty() {
            let reason = "The conversation stalled.".to_owned();
            return Next::End(Err(self.simulation.failure(SimulationPart::Assistant, reason)));
        }
        Next::CallTools(calls)
    }

    async fn ask(&mut self, part: SimulationPart, models: &mut Models<'_>) -> Result<(), Failure> {
        let model = models.name(part);
        if !self.cost_limit().allows(model, self.total) {
            self.record_input(Input::CostLimit, Cost::default());
            return Ok(());
        }
        self.before_asking(model).await?;
        let first_microusd = match part {
            // It has heard the whole conversation.
            SimulationPart::Judge => 0,
            SimulationPart::Caller | SimulationPart::Assistant => {
                self.started.first_answer_microusd(&self.services.config().catalog)
            }
        };
        let allowance = self.cost_limit().allowance(self.total, first_microusd);
        let (input, cost) = match models.ask(part, &self.simulation, allowance).await {
            Some(Asked { answer: Ok(input), cost }) => (input, cost),
            Some(Asked { answer: Err(failure), cost }) if failure.code == FailureCode::CostLimit => {
                (Input::CostLimit, cost)
            }
            Some(Asked { answer: Err(failure), cost }) => {
                self.failure = Some((failure.code, failure.fault));
                (Input::ModelFailed { reason: failure.message }, cost)
            }
            None => {
                let reason = "There was no question for the judge.".to_owned();
                (Input::ModelFailed { reason }, Cost::default())
            }
        };
        self.record_input(input, cost);
        Ok(())
    }

    const fn cost_limit(&self) -> CostLimit {
        CostLimit { microusd: self.started.max_cost_microusd }
    }

    fn record_input(&mut self, input: Input, spent: Cost) {
        let entry = JournalEntry { input, spent, assistant: None };
        self.journal.add_input(&entry);
        self.apply(entry);
    }

    fn apply(&mut self, entry: JournalEntry) {
        self.total.add(entry.spent);
        if matches!(entry.input, Input::AssistantReply { .. }) {
            self.assistant.add(entry.spent);
        }
        self.assistant.add(entry.assistant.unwrap_or_default());
        self.simulation.handle(entry.input);
        self.growth.count(self.simulation.conversation().transcript_bytes());
    }

    /// Sends the tool calls of one reply together. Each is stored first, with an id that is the same in every retry.
    async fn call_tools(&mut self, calls: Vec<ToolCall>) -> Result<(), Failure> {
        for call in &calls {
            self.journal.add_tool_call(&call.id, &call.name);
        }
        self.has_waited = true;
        let calls = self.checkpoint(self.tools.slowest_ms(&calls), calls).await?;
        let mut answers = join_all(calls.into_iter().map(CommittedCall::make)).await;
        // They were called together: in virtual time, the fastest answers first.
        answers.sort_by_key(|answer| answer.delay_ms);
        let mut passed_ms = 0;
        for ToolAnswer { id, text, is_error, mocked, delay_ms } in answers {
            let after_ms = delay_ms - std::mem::replace(&mut passed_ms, delay_ms);
            self.record_input(Input::ToolResult { id, text, is_error, mocked, after_ms }, Cost::default());
        }
        // The results are stored before anything follows from them.
        self.checkpoint(0, Vec::new()).await?;
        Ok(())
    }

    /// Before a slow request to a provider's model: stores the run's progress and extends the lease.
    async fn before_asking(&mut self, model: &str) -> Result<(), Failure> {
        if model == RULES_MODEL {
            return Ok(());
        }
        self.has_waited = true;
        let now_ms = self.services.ports().clock.now_ms();
        let stale = self.journal.is_unsaved() && now_ms - self.saved_at_ms >= CHECKPOINT_MS;
        if stale || now_ms + ANSWER_MS >= self.leased_until_ms {
            self.checkpoint(ANSWER_MS, Vec::new()).await?;
        }
        Ok(())
    }

    /// Stores the journal and the run's progress, and extends the lease by `busy_ms`. Fails when another process holds
    /// the lease. Returns the calls that may be sent.
    async fn checkpoint(
        &mut self,
        busy_ms: i64,
        calls: Vec<ToolCall>,
    ) -> Result<Vec<CommittedCall<'a>>, Failure> {
        let now_ms = self.services.ports().clock.now_ms();
        let lease = self.job.extend(now_ms, busy_ms);
        self.leased_until_ms = lease.until_ms;
        let mut statements = lease.statements;
        statements.extend(self.journal.save());
        statements.extend(self.progress());
        let committed = self.tools.commit(statements, calls, None).await?;
        self.saved_at_ms = now_ms;
        Ok(committed.calls)
    }

    /// Stores the journal and the run's progress, and releases the lease. The journal continues elsewhere.
    async fn give_way(&mut self) -> Result<Failure, Failure> {
        let mut statements = vec![self.job.guard()];
        statements.extend(self.journal.save());
        statements.extend(self.progress());
        statements.push(self.job.put_back(DUE_AT_ONCE));
        self.services.ports().database.write(statements).await?;
        Ok(Failure::GaveWay)
    }

    /// The statements that store how far the run is, with what was said since the last time. Nothing is said any more once
    /// a conversation was held for real; its driver has stored the rows.
    fn progress(&mut self) -> Vec<Statement> {
        let conversation = self.simulation.conversation();
        let (turns, rows) = (conversation.turns(), conversation.transcript());
        let (workspace_id, call_id) = (&self.job.workspace_id, &self.started.call.id);
        let mut statements =
            vec![runs::progress(workspace_id, &self.started.run.id, turns, rows, self.total.microusd)];
        if !self.started.is_held() {
            let new = rows.get(self.saved_rows..).unwrap_or_default();
            statements.push(call_journal::open(workspace_id, call_id));
            statements.extend(call_journal::save_rows(workspace_id, call_id, new));
            self.saved_rows = conversation.first_open_line().unwrap_or(rows.len());
        }
        statements
    }

    /// The webhooks that subscribe to the end. They are read again after an external request, since they may have
    /// changed meanwhile; a run without external requests began a moment ago.
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

    /// Analyzes the conversation. The rules do it if the model fails, or if the cost limit is reached.
    pub async fn analyse(&mut self, transcript: &[TranscriptRow]) -> Result<(Analysis, Cost), Failure> {
        if let Some(known) = self.journal.analysed() {
            return Ok(known);
        }
        let turn = AnalysisTurn { transcript };
        let by_rule = || Analysis::of(rules::analyse(&turn), AnalysisMethod::Rule);
        let model = &self.started.assistant.model;
        // A model is not asked again after it has just failed, or after its responses were lost repeatedly.
        let silent = self.attempts_exhausted || self.failure.is_some() || transcript.is_empty();
        if model == RULES_MODEL || silent || !self.cost_limit().allows(model, self.total) {
            return Ok((by_rule(), Cost::default()));
        }
        self.before_asking(model).await?;
        let allowance = self.cost_limit().allowance(self.total, 0);
        let answer = match Analyst::new(&self.services.config().catalog, model) {
            Ok(analyst) => analyst.analyse(self.services.ports(), &turn, allowance).await,
            Err(failure) => Err(failure),
        };
        let Asked { answer, cost: spent } = Asked::from(answer);
        let analysis = answer.map_or_else(|_| by_rule(), |found| Analysis::of(found, AnalysisMethod::Model));
        // Stored with its cost: if storing the end fails, the analysis is not paid again.
        self.journal.add_analysis(&analysis, spent);
        self.checkpoint(0, Vec::new()).await?;
        Ok((analysis, spent))
    }
}

fn setup(started: &Started) -> SimulationSetup {
    let Started { assistant, texts, simulation, .. } = started;
    SimulationSetup {
        run_id: started.run.id.clone(),
        assistant: SimulatedAssistant {
            instructions: texts.instructions.clone(),
            first_message: texts.first_message.clone(),
            knowledge: assistant.knowledge.clone(),
            tools: assistant.specs().clone(),
            has_transfers: !assistant.transfers.is_empty(),
        },
        persona: simulation.persona.clone(),
        scenario: simulation.scenario.clone(),
        evaluations: simulation.evaluations.clone(),
        // The built-in rules always rule the same.
        judge_votes: match simulation.judge_model.as_deref().unwrap_or(&assistant.model) {
            RULES_MODEL => 1,
            // A queued run may be from a file that somebody made up.
            _ => simulation.judge_votes.clamp(1, JUDGE_VOTES_MAX).try_into().unwrap_or(1),
        },
        seed: started.seed.unsigned_abs(),
        limits: SimulationSetup::default_limits(),
        voice: (started.is_voice() && !started.is_held()).then(|| VoiceSetup {
            conditions: simulation.conditions,
            is_interruptible: assistant.speech.interruptible,
        }),
    }
}
