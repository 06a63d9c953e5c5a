//! A live conversation's job. While the conversation is under way its process holds the job's lease:
//! when that runs out, the process is gone, and whoever claims the job ends the call as far as the
//! journal knows it. A call that is over is looked into; then the job is done.
use serde_json::{Value, json};

use super::spent::Spent;
use super::{DUE_AT_ONCE, Failure, Job, JobKind};
use crate::calls::{
    self, Analysis, AnalysisMethod, Call, CallFault, CallStatus, Costs, Direction, EndedCall, NewCall,
    Source, Usage,
};
use crate::conversation::EndedReason;
use crate::conversation::transcript::TranscriptRow;
use crate::engine::Engine;
use crate::events::{self, EventKind, Subscribers};
use crate::ids::prefix;
use crate::limits::{JOB_ATTEMPTS_MAX, LIVE_LEASE_MS, MODEL_TOTAL_MS};
use crate::live::journal::{self, SoFar};
use crate::models::{AnalysisTurn, Analyst, RULES_MODEL, rules};
use crate::spending;
use crate::sql;
use crate::statement::{Row, Rows, Statement};

/// How long a model's answer may take, all its tries together.
const ANSWER_MS: i64 = MODEL_TOTAL_MS as i64;

/// The lease that a live conversation holds on its own job.
#[derive(Debug, Clone)]
pub struct Hold {
    job_id: String,
    workspace_id: String,
    call_id: String,
    lease: String,
}

impl Hold {
    /// A job to be, for a call.
    pub fn new(engine: &Engine, workspace_id: &str, call_id: &str) -> Self {
        Self {
            job_id: engine.id(prefix::JOB),
            workspace_id: workspace_id.to_owned(),
            call_id: call_id.to_owned(),
            // Names no owner that gives its leases back: the conversation itself does.
            lease: format!("live:{}", engine.id(prefix::LEASE)),
        }
    }

    /// Puts the job there, leased.
    pub fn open(&self, now_ms: i64) -> Statement {
        sql!(
            "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, lease, attempts, created_at)
             VALUES (?1, ?2, ?3, ?4, ?5, ?6, 0, ?7)",
            &self.workspace_id,
            &self.job_id,
            JobKind::BrowserCall.as_str(),
            &self.call_id,
            now_ms + LIVE_LEASE_MS,
            &self.lease,
            now_ms
        )
    }

    /// Extends the lease; undoes the batch when somebody else has it.
    pub fn keep(&self, now_ms: i64) -> [Statement; 2] {
        let keep = sql!(
            "UPDATE jobs SET due_at = ?3 WHERE id = ?1 AND lease = ?2",
            &self.job_id,
            &self.lease,
            now_ms + LIVE_LEASE_MS
        );
        [self.guard(), keep]
    }

    /// Leaves an ended call to whoever looks into it; undoes the batch likewise.
    pub fn hand_over(&self) -> [Statement; 2] {
        let hand_over = sql!(
            "UPDATE jobs SET lease = NULL, due_at = ?3 WHERE id = ?1 AND lease = ?2",
            &self.job_id,
            &self.lease,
            DUE_AT_ONCE
        );
        [self.guard(), hand_over]
    }

    /// The job, to be woken once it is handed over.
    pub fn job_id(&self) -> &str {
        &self.job_id
    }

    fn guard(&self) -> Statement {
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND lease = ?2)",
            &self.job_id,
            &self.lease
        )
    }
}

/// How a live conversation ended, for its call.
pub fn ended(
    so_far: SoFar,
    reason: EndedReason,
    fault: CallFault,
    answered_at: i64,
    ended_at: i64,
) -> EndedCall {
    let SoFar { offset_ms, spent, transcript } = so_far;
    EndedCall {
        answered_at: Some(answered_at),
        ended_at,
        duration_ms: offset_ms,
        outcome: reason.outcome(),
        ended_reason: Some(reason),
        fault,
        transcript,
        costs: Costs::of(0, 0, spent.microusd, 0),
        usage: Usage { llm_input_tokens: spent.input_tokens, llm_output_tokens: spent.output_tokens },
    }
}

/// Settles a call whose process is gone, then looks into it.
pub(super) async fn run(engine: &Engine, job: &Job) -> Result<(), Failure> {
    let Some(found) = load(engine, job).await? else {
        engine.ports().database.write(job.finished([])).await?;
        return Ok(());
    };
    if found.is_ended() {
        return look_into(engine, job, &found).await;
    }
    settle(engine, job, found).await?;
    // What was written is read again, so that the event tells what a read shows.
    match load(engine, job).await? {
        Some(found) => look_into(engine, job, &found).await,
        None => Ok(()),
    }
}

/// What is known of the call.
struct Found {
    row: Rows,
    model: String,
    so_far: SoFar,
    subscribers: Subscribers,
}

impl Found {
    fn row(&self) -> Result<Row<'_>, Failure> {
        self.row.first().ok_or_else(|| Failure::Again("the call is not there".to_owned()))
    }

    fn is_ended(&self) -> bool {
        self.row.first().and_then(|row| row.str("status").ok()) == Some("ended")
    }

    /// The call as it began.
    fn new_call(&self, job: &Job) -> Result<NewCall, Failure> {
        let row = self.row()?;
        Ok(NewCall {
            workspace_id: job.workspace_id.clone(),
            id: job.subject_id.clone(),
            assistant_id: row.text("assistant_id")?,
            assistant_revision: row.integer("assistant_revision")?,
            source: Source::Browser,
            direction: Direction::Inbound,
            status: CallStatus::InProgress,
            from: None,
            to: None,
            user_number: None,
            provider: None,
            carrier_call_id: None,
            model: row.text("model")?,
            voice: row.text("voice")?,
            started_at: row.integer("started_at")?,
            answered_at: row.optional_integer("answered_at")?,
            simulation_run_id: None,
        })
    }

    /// The ended call with what was found out about it, as a read will show it.
    fn analyzed(&self, engine: &Engine, analysis: &Analysis) -> Result<Value, Failure> {
        let mut call = json!(Call::read(self.row()?, &engine.config().base_url)?);
        call["sentiment"] = json!(analysis.sentiment);
        call["analysis"] = json!(analysis);
        Ok(json!({ "call": call }))
    }
}

async fn load(engine: &Engine, job: &Job) -> Result<Option<Found>, Failure> {
    let [live, rows] = journal::select(&job.workspace_id, &job.subject_id);
    let batch = vec![
        calls::select_for(&job.workspace_id, &job.subject_id),
        events::subscribers(&job.workspace_id),
        live,
        rows,
    ];
    let mut found = engine.ports().database.read(batch).await?;
    let [call, subscribers, live, rows] = &mut found[..] else {
        return Err(Failure::Again("a batch lacks answers".to_owned()));
    };
    let Some(row) = call.first() else {
        return Ok(None);
    };
    Ok(Some(Found {
        model: row.text("model")?,
        so_far: journal::read(live, rows)?,
        subscribers: Subscribers::read(subscribers)?,
        row: std::mem::take(call),
    }))
}

/// Ends a call that nobody carries on any more, with what its journal holds.
async fn settle(engine: &Engine, job: &Job, found: Found) -> Result<(), Failure> {
    let row = found.row()?;
    let now_ms = engine.ports().clock.now_ms();
    let started_at = row.integer("started_at")?;
    let answered_at = row.optional_integer("answered_at")?.unwrap_or(started_at);
    let spent = found.so_far.spent;
    // It was alive when it last wrote; for how long after that, nobody can tell.
    let ended_at = started_at + found.so_far.offset_ms;
    let reason = EndedReason::Aborted;
    let ended = ended(found.so_far.clone(), reason, CallFault::Platform, answered_at, ended_at);
    let mut statements = job.extend(now_ms, 0).statements;
    statements.extend(calls::write::end(&job.workspace_id, &job.subject_id, &ended, None));
    statements.extend(journal::forget(&job.workspace_id, &job.subject_id));
    statements.extend(spending::add(&job.workspace_id, now_ms, spent.microusd));
    let mut wake = Vec::new();
    if found.subscribers.want(EventKind::CallEnded) {
        let data = json!({"call": Call::of(&found.new_call(job)?, Some(&ended), None)?});
        let emitted =
            events::emit(engine, &job.workspace_id, &found.subscribers, EventKind::CallEnded, &data, now_ms);
        statements.extend(emitted.statements);
        wake = emitted.wake;
    }
    write(engine, statements, &wake).await
}

/// Finds out what an ended call was about. A model that fails leaves it to the rules.
async fn look_into(engine: &Engine, job: &Job, found: &Found) -> Result<(), Failure> {
    let transcript: Vec<TranscriptRow> = found.row()?.json("transcript")?;
    let turn = AnalysisTurn { transcript: &transcript };
    let by_rule = || Analysis::of(rules::analyse(&turn), AnalysisMethod::Rule);
    let (analysis, spent) = match Analyst::new(engine, &found.model) {
        Ok(analyst) if found.model != RULES_MODEL && job.attempts <= JOB_ATTEMPTS_MAX => {
            let lease = job.extend(engine.ports().clock.now_ms(), ANSWER_MS);
            engine.ports().database.write(lease.statements).await?;
            let answer = analyst.analyse(engine, &turn).await;
            let spent = Spent::of(&answer);
            let found = answer.ok().map(|answered| Analysis::of(answered.reply, AnalysisMethod::Model));
            (found.unwrap_or_else(by_rule), spent)
        }
        Ok(_) | Err(_) => (by_rule(), Spent::default()),
    };
    let now_ms = engine.ports().clock.now_ms();
    let mut statements = calls::write::analyzed(&job.workspace_id, &job.subject_id, &analysis);
    statements.extend(spending::add(&job.workspace_id, now_ms, spent.microusd));
    let mut wake = Vec::new();
    if found.subscribers.want(EventKind::CallAnalyzed) {
        let data = found.analyzed(engine, &analysis)?;
        let emitted = events::emit(
            engine,
            &job.workspace_id,
            &found.subscribers,
            EventKind::CallAnalyzed,
            &data,
            now_ms,
        );
        statements.extend(emitted.statements);
        wake = emitted.wake;
    }
    write(engine, job.finished(statements), &wake).await
}

async fn write(engine: &Engine, statements: Vec<Statement>, wake: &[String]) -> Result<(), Failure> {
    let ports = engine.ports();
    ports.database.write(statements).await?;
    for job_id in wake {
        ports.queue.wake(job_id, ports.clock.now_ms());
    }
    Ok(())
}
