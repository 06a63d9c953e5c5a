//! A live conversation's job. While the conversation is under way its process holds the job's lease:
//! when that runs out, the process is gone, and whoever claims the job ends the call as far as the
//! journal knows it. A telephone call's job is there, unclaimed, before anybody talks: when it comes due the call was
//! not connected in time. A call that is over is looked into; then the job is done.
use serde_json::{Value, json};

use super::spent::Spent;
use super::{DUE_AT_ONCE, Failure, Job, JobKind};
use crate::batch::Batch;
use crate::calls::{self, Analysis, AnalysisMethod, Call, CallFault, CallStatus, Costs, EndedCall, NewCall};
use crate::carriers::End;
use crate::conversation::EndedReason;
use crate::conversation::transcript::TranscriptRow;
use crate::engine::Engine;
use crate::error::Fault;
use crate::events::{self, EventKind, Subscribers};
use crate::ids::prefix;
use crate::limits::{JOB_ATTEMPTS_MAX, LIVE_COST_MICROUSD_MAX, LIVE_LEASE_MS, MODEL_TOTAL_MS};
use crate::live::journal::{self, SoFar};
use crate::models::{AnalysisTurn, Analyst, RULES_MODEL, rules};
use crate::spending;
use crate::sql;
use crate::statement::{Row, Rows, Statement};
use crate::telephony;
use crate::telephony::leg::{Leg, Placing};

/// How long a model's answer may take, all its tries together.
const ANSWER_MS: i64 = MODEL_TOTAL_MS as i64;

/// How often a call is settled anew because its carrier said something meanwhile.
const SETTLE_ATTEMPTS_MAX: u32 = 8;

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
        Self::over(engine, workspace_id, call_id, &engine.id(prefix::JOB))
    }

    /// A job that is there, for a call: to be taken.
    pub fn over(engine: &Engine, workspace_id: &str, call_id: &str, job_id: &str) -> Self {
        Self {
            job_id: job_id.to_owned(),
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
            JobKind::LiveCall.as_str(),
            &self.call_id,
            now_ms + LIVE_LEASE_MS,
            &self.lease,
            now_ms
        )
    }

    /// Leases a job that is there; undoes the batch when somebody has it.
    pub fn take(&self, now_ms: i64) -> [Statement; 2] {
        let take = sql!(
            "UPDATE jobs SET lease = ?2, due_at = ?3 WHERE id = ?1 AND lease IS NULL",
            &self.job_id,
            &self.lease,
            now_ms + LIVE_LEASE_MS
        );
        [take, self.guard()]
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
        self.give_back(DUE_AT_ONCE)
    }

    /// Gives the job of a call back that was never connected: what becomes of it is settled when the carrier tells, or
    /// at `due_at`. Undoes the batch likewise.
    pub fn give_back(&self, due_at: i64) -> [Statement; 2] {
        let give_back = sql!(
            "UPDATE jobs SET lease = NULL, due_at = ?3 WHERE id = ?1 AND lease = ?2",
            &self.job_id,
            &self.lease,
            due_at
        );
        [self.guard(), give_back]
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

/// How a live conversation ended, for its call. `fault` is whose it is, where the reason does not say.
pub fn ended(
    so_far: SoFar,
    reason: EndedReason,
    fault: Option<CallFault>,
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
        fault: fault.unwrap_or_else(|| reason.fault()),
        transcript,
        costs: Costs::of(0, 0, spent.microusd, 0),
        usage: spent.usage(),
    }
}

/// Settles a call that nobody carries on, then looks into it.
pub(super) async fn run(engine: &Engine, job: &Job) -> Result<(), Failure> {
    for _ in 0..SETTLE_ATTEMPTS_MAX {
        let Some(found) = load(engine, job).await? else {
            engine.ports().database.write(job.finished([])).await?;
            return Ok(());
        };
        // What was written is read again, so that the event tells what a read shows.
        if found.is_ended() {
            return look_into(engine, job, &found).await;
        }
        match settle(engine, job, found).await {
            // The carrier has said something meanwhile; or the lease is somebody else's, and stays so.
            Ok(()) | Err(Failure::LostLease) => {}
            Err(failure) => return Err(failure),
        }
    }
    Err(Failure::LostLease)
}

/// What is known of the call.
struct Found {
    row: Rows,
    model: String,
    so_far: SoFar,
    /// The carrier's side of a telephone call.
    leg: Option<Leg>,
    subscribers: Subscribers,
}

impl Found {
    fn row(&self) -> Result<Row<'_>, Fault> {
        self.row.first().ok_or_else(|| Fault::Bug("the call is not there".to_owned()))
    }

    fn is_ended(&self) -> bool {
        self.row.first().and_then(|row| row.str("status").ok()) == Some("ended")
    }

    /// The ended call with what was found out about it, as a read will show it.
    fn analyzed(&self, engine: &Engine, analysis: &Analysis) -> Result<Value, Fault> {
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
        Leg::select(&job.workspace_id, &job.subject_id),
    ];
    let mut found = engine.ports().database.read(batch).await?;
    let [call, subscribers, live, rows, leg] = &mut found[..] else {
        return Err(Failure::Again("a batch lacks answers".to_owned()));
    };
    let Some(row) = call.first() else {
        return Ok(None);
    };
    Ok(Some(Found {
        model: row.text("model")?,
        so_far: journal::read(live, rows)?,
        leg: Leg::first(Some(leg))?,
        subscribers: Subscribers::read(subscribers)?,
        row: std::mem::take(call),
    }))
}

/// Ends a call that nobody carries on any more, or that nobody ever connected.
async fn settle(engine: &Engine, job: &Job, found: Found) -> Result<(), Failure> {
    let now_ms = engine.ports().clock.now_ms();
    let call = NewCall::read(found.row()?, &job.workspace_id)?;
    let mut ended = match &found.leg {
        Some(leg) if leg.talked_at.is_none() => unconnected(leg, &call, now_ms),
        _ => abandoned(&call, found.so_far.clone()),
    };
    let mut batch = Batch::from(job.extend(now_ms, 0).statements);
    if let Some(leg) = &found.leg {
        leg.settle(&mut ended, engine.config().carriers.rates());
        batch.extend(Leg { is_over: true, ..leg.clone() }.change());
        leg.hang_up_later(engine, now_ms, &mut batch);
    }
    batch.extend(calls::write::end(&job.workspace_id, &job.subject_id, &ended, None));
    batch.extend(journal::forget(&job.workspace_id, &job.subject_id));
    batch.extend(spending::add(&job.workspace_id, now_ms, ended.costs.total_microusd));
    batch.emit(engine, &job.workspace_id, &found.subscribers, EventKind::CallEnded, now_ms, || {
        Ok(json!({"call": Call::of(&call, Some(&ended), None)?}))
    })?;
    batch.write(engine).await?;
    Ok(())
}

/// A conversation whose process is gone, with what its journal holds.
fn abandoned(call: &NewCall, so_far: SoFar) -> EndedCall {
    // It was alive when it last wrote; for how long after that, nobody can tell.
    let answered_at = call.answered_at.unwrap_or(call.started_at);
    let ended_at = answered_at + so_far.offset_ms;
    ended(so_far, EndedReason::Aborted, None, answered_at, ended_at)
}

/// A telephone call of which nothing more was heard.
fn unconnected(leg: &Leg, call: &NewCall, now_ms: i64) -> EndedCall {
    let reason = match (leg.hang_up_at, leg.placing) {
        (Some(_), _) => EndedReason::Canceled,
        // It was answered, and no audio ever came.
        (None, Placing::Incoming) => EndedReason::MediaLost,
        (None, _) if call.status == CallStatus::InProgress => EndedReason::MediaLost,
        (None, _) => EndedReason::Unsettled,
    };
    let end = leg.said.end.clone().unwrap_or_else(|| End::of(reason, ""));
    telephony::status::unconnected(leg, &end, call.answered_at, now_ms)
}

/// Finds out what an ended call was about. A model that fails leaves it to the rules.
async fn look_into(engine: &Engine, job: &Job, found: &Found) -> Result<(), Failure> {
    let transcript: Vec<TranscriptRow> = found.row()?.json("transcript")?;
    let turn = AnalysisTurn { transcript: &transcript };
    let by_rule = || Analysis::of(rules::analyse(&turn), AnalysisMethod::Rule);
    let analysis = match Analyst::new(engine, &found.model) {
        Ok(analyst) if found.model != RULES_MODEL && job.attempts <= JOB_ATTEMPTS_MAX => {
            let lease = job.extend(engine.ports().clock.now_ms(), ANSWER_MS);
            engine.ports().database.write(lease.statements).await?;
            let answer = analyst.analyse(engine, &turn, LIVE_COST_MICROUSD_MAX).await;
            // By itself, for it was paid whether or not what follows can be written.
            let microusd = Spent::of(&answer).microusd;
            let paid = spending::add(&job.workspace_id, engine.ports().clock.now_ms(), microusd);
            Batch::from(Vec::from_iter(paid)).write(engine).await?;
            let found = answer.ok().map(|answered| Analysis::of(answered.reply, AnalysisMethod::Model));
            found.unwrap_or_else(by_rule)
        }
        Ok(_) | Err(_) => by_rule(),
    };
    let now_ms = engine.ports().clock.now_ms();
    let mut batch = Batch::from(calls::write::analyzed(&job.workspace_id, &job.subject_id, &analysis));
    batch.emit(engine, &job.workspace_id, &found.subscribers, EventKind::CallAnalyzed, now_ms, || {
        found.analyzed(engine, &analysis)
    })?;
    batch.finish(job);
    batch.write(engine).await?;
    Ok(())
}
