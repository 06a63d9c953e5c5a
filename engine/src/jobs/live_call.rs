//! The job of a live conversation or a telephone call. While a conversation is under way its process holds the job's
//! lease: when the lease runs out, the process is gone, and the next one to claim the job ends the call with what its
//! journal holds. A telephone call has its job from the beginning: when it comes due unclaimed, the call was not connected
//! in time. Once the call has ended, the job analyzes it and is done.
use serde_json::{Value, json};

use super::Failure;
use crate::base::limits::{JOB_ATTEMPTS_MAX, LEASED_ATTEMPTS_MAX, LIVE_COST_MICROUSD_MAX, MODEL_TOTAL_MS};
use crate::base::time::Timestamp;
use crate::carriers::End;
use crate::conversation::EndedReason;
use crate::conversation::transcript::TranscriptRow;
use crate::live::call_journal::{self, SoFar};
use crate::live::end_call::{CallJob, EndOfCall, Line, end_call, ended};
use crate::live::telephony::leg::{Leg, Placing};
use crate::models::{AnalysisTurn, Analyst, RULES_MODEL, rules};
use crate::ports::statement::{Row, Rows};
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Analysis, AnalysisMethod, Call, CallStatus, EndedCall, NewCall};
use crate::storage::cost::Cost;
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::{Fault, retry_stale_within};
use crate::storage::jobs::Job;
use crate::storage::spending;

/// How long a model's answer may take, all its tries together.
const ANSWER_MS: i64 = MODEL_TOTAL_MS as i64;

/// Ends a call that nobody carries on, then analyzes it.
pub(super) async fn run(services: &Services, job: &Job) -> Result<(), Failure> {
    // The carrier may say something meanwhile.
    match retry_stale_within(LEASED_ATTEMPTS_MAX, || ended_call(services, job)).await? {
        Some(found) => analyze_call(services, job, &found).await,
        None => {
            services.ports().database.write(job.finished([])).await?;
            Ok(())
        }
    }
}

/// The call, ended here unless it was before; `None` when it is gone.
async fn ended_call(services: &Services, job: &Job) -> Result<Option<Found>, Fault> {
    match load(services, job).await? {
        Some(found) if !found.is_ended() => {
            end_abandoned_call(services, job, found).await?;
            // Read again, so that the event of the analysis shows what a read shows.
            load(services, job).await
        }
        found => Ok(found),
    }
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

    /// The analyzed call as a read will show it.
    fn analyzed(&self, services: &Services, analysis: &Analysis) -> Result<Value, Fault> {
        let mut call = json!(Call::read(self.row()?, &services.config().base_url)?);
        call["sentiment"] = json!(analysis.sentiment);
        call["analysis"] = json!(analysis);
        Ok(json!({ "call": call }))
    }
}

async fn load(services: &Services, job: &Job) -> Result<Option<Found>, Fault> {
    let [live, rows] = call_journal::select(&job.workspace_id, &job.subject_id);
    let reads = [
        calls::select_for(&job.workspace_id, &job.subject_id),
        events::subscribers(&job.workspace_id),
        live,
        rows,
        Leg::select(&job.workspace_id, &job.subject_id),
    ];
    let [call, subscribers, live, rows, leg] = services.read(reads).await?;
    let Some(row) = call.first() else {
        return Ok(None);
    };
    Ok(Some(Found {
        model: row.text("model")?,
        so_far: call_journal::read(&live, &rows)?,
        leg: Leg::first(Some(&leg))?,
        subscribers: Subscribers::read(&subscribers)?,
        row: call,
    }))
}

/// Ends a call that nobody carries on any more, or that nobody ever connected.
async fn end_abandoned_call(services: &Services, job: &Job, found: Found) -> Result<(), Fault> {
    let now = services.now();
    let call = NewCall::read(found.row()?, &job.workspace_id)?;
    let leg = found.leg.as_ref();
    let mut batch = Batch::from(job.extend(now.ms(), 0).statements);
    let end = EndOfCall {
        ended: match leg {
            Some(leg) if leg.media_started_at.is_none() => unconnected(leg, &call, now),
            _ => without_process(&call, found.so_far),
        },
        call: &call,
        leg,
        analysis: None,
        subscribers: &found.subscribers,
        job: CallJob::Ours,
        line: Line::HungUpByJob,
        now,
    };
    end_call(services, &mut batch, end)?;
    batch.write(services).await?;
    Ok(())
}

/// The end of a conversation whose process is gone, by its journal.
fn without_process(call: &NewCall, so_far: SoFar) -> EndedCall {
    // It was alive when it last wrote; for how long after that, nobody can tell.
    let answered_at = call.answered_at.unwrap_or(call.started_at);
    let ended_at = answered_at + so_far.offset_ms;
    ended::after_conversation(so_far, EndedReason::Aborted, None, answered_at, ended_at)
}

/// The end of a telephone call of which nothing more was heard.
fn unconnected(leg: &Leg, call: &NewCall, now: Timestamp) -> EndedCall {
    let reason = match (leg.hang_up_at, leg.placing) {
        (Some(_), _) => EndedReason::Canceled,
        // It was answered, and no audio ever came.
        (None, Placing::Incoming) => EndedReason::MediaLost,
        (None, _) if call.status == CallStatus::InProgress => EndedReason::MediaLost,
        (None, _) => EndedReason::Unsettled,
    };
    let end = leg.said.end.clone().unwrap_or_else(|| End::of(reason, ""));
    ended::never_connected(leg, &end, call.answered_at, now)
}

/// Finds out what an ended call was about. A model that fails leaves it to the rules.
async fn analyze_call(services: &Services, job: &Job, found: &Found) -> Result<(), Failure> {
    let transcript: Vec<TranscriptRow> = found.row()?.json("transcript")?;
    let turn = AnalysisTurn { transcript: &transcript };
    let by_rule = || Analysis::of(rules::analyse(&turn), AnalysisMethod::Rule);
    let analysis = match Analyst::new(&services.config().catalog, &found.model) {
        Ok(analyst) if found.model != RULES_MODEL && job.attempts <= JOB_ATTEMPTS_MAX => {
            let lease = job.extend(services.ports().clock.now_ms(), ANSWER_MS);
            services.ports().database.write(lease.statements).await?;
            let answer = analyst.analyse(services.ports(), &turn, LIVE_COST_MICROUSD_MAX).await;
            // In a batch of its own: it was paid whether or not the analysis can be written.
            let microusd = Cost::of(&answer).microusd;
            let paid = spending::add(&job.workspace_id, services.ports().clock.now_ms(), microusd);
            Batch::from(Vec::from_iter(paid)).write(services).await?;
            let found = answer.ok().map(|answered| Analysis::of(answered.reply, AnalysisMethod::Model));
            found.unwrap_or_else(by_rule)
        }
        Ok(_) | Err(_) => by_rule(),
    };
    let now_ms = services.ports().clock.now_ms();
    let mut batch = Batch::from(calls::write::analyzed(&job.workspace_id, &job.subject_id, &analysis));
    batch.emit(services, &job.workspace_id, &found.subscribers, EventKind::CallAnalyzed, now_ms, || {
        found.analyzed(services, &analysis)
    })?;
    batch.finish(job);
    batch.write(services).await?;
    Ok(())
}
