//! A live conversation's job. While the conversation is under way its process holds the job's lease:
//! when that runs out, the process is gone, and whoever claims the job ends the call as far as the
//! journal knows it. A telephone call's job is there, unclaimed, before anybody talks: when it comes due the call was
//! not connected in time. A call that is over is looked into; then the job is done.
use serde_json::{Value, json};

use super::Failure;
use crate::base::limits::{JOB_ATTEMPTS_MAX, LIVE_COST_MICROUSD_MAX, MODEL_TOTAL_MS};
use crate::carriers::End;
use crate::conversation::EndedReason;
use crate::conversation::transcript::TranscriptRow;
use crate::live::ended::ended;
use crate::live::journal::{self, SoFar};
use crate::live::telephony;
use crate::live::telephony::leg::{Leg, Placing};
use crate::models::{AnalysisTurn, Analyst, RULES_MODEL, rules};
use crate::ports::statement::{Row, Rows};
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Analysis, AnalysisMethod, Call, CallStatus, EndedCall, NewCall};
use crate::storage::cost::Cost;
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::jobs::Job;
use crate::storage::spending;

/// How long a model's answer may take, all its tries together.
const ANSWER_MS: i64 = MODEL_TOTAL_MS as i64;

/// How often a call is settled anew because its carrier said something meanwhile.
const SETTLE_ATTEMPTS_MAX: u32 = 8;

/// Settles a call that nobody carries on, then looks into it.
pub(super) async fn run(services: &Services, job: &Job) -> Result<(), Failure> {
    for _ in 0..SETTLE_ATTEMPTS_MAX {
        let Some(found) = load(services, job).await? else {
            services.ports().database.write(job.finished([])).await?;
            return Ok(());
        };
        // What was written is read again, so that the event tells what a read shows.
        if found.is_ended() {
            return analyze_call(services, job, &found).await;
        }
        match settle(services, job, found).await {
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
    fn analyzed(&self, services: &Services, analysis: &Analysis) -> Result<Value, Fault> {
        let mut call = json!(Call::read(self.row()?, &services.config().base_url)?);
        call["sentiment"] = json!(analysis.sentiment);
        call["analysis"] = json!(analysis);
        Ok(json!({ "call": call }))
    }
}

async fn load(services: &Services, job: &Job) -> Result<Option<Found>, Failure> {
    let [live, rows] = journal::select(&job.workspace_id, &job.subject_id);
    let batch = vec![
        calls::select_for(&job.workspace_id, &job.subject_id),
        events::subscribers(&job.workspace_id),
        live,
        rows,
        Leg::select(&job.workspace_id, &job.subject_id),
    ];
    let mut found = services.ports().database.read(batch).await?;
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
async fn settle(services: &Services, job: &Job, found: Found) -> Result<(), Failure> {
    let now_ms = services.ports().clock.now_ms();
    let call = NewCall::read(found.row()?, &job.workspace_id)?;
    let mut ended = match &found.leg {
        Some(leg) if leg.media_started_at.is_none() => unconnected(leg, &call, now_ms),
        _ => abandoned(&call, found.so_far.clone()),
    };
    let mut batch = Batch::from(job.extend(now_ms, 0).statements);
    if let Some(leg) = &found.leg {
        leg.settle(&mut ended, services.config().carriers.rates());
        batch.extend(Leg { is_over: true, ..leg.clone() }.change());
        leg.hang_up_later(services, now_ms, &mut batch);
    }
    batch.extend(calls::write::end(&job.workspace_id, &job.subject_id, &ended, None));
    batch.extend(journal::forget(&job.workspace_id, &job.subject_id));
    batch.extend(spending::add(&job.workspace_id, now_ms, ended.costs.total_microusd));
    batch.emit(services, &job.workspace_id, &found.subscribers, EventKind::CallEnded, now_ms, || {
        Ok(json!({"call": Call::of(&call, Some(&ended), None)?}))
    })?;
    batch.write(services).await?;
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
async fn analyze_call(services: &Services, job: &Job, found: &Found) -> Result<(), Failure> {
    let transcript: Vec<TranscriptRow> = found.row()?.json("transcript")?;
    let turn = AnalysisTurn { transcript: &transcript };
    let by_rule = || Analysis::of(rules::analyse(&turn), AnalysisMethod::Rule);
    let analysis = match Analyst::new(&services.config().catalog, &found.model) {
        Ok(analyst) if found.model != RULES_MODEL && job.attempts <= JOB_ATTEMPTS_MAX => {
            let lease = job.extend(services.ports().clock.now_ms(), ANSWER_MS);
            services.ports().database.write(lease.statements).await?;
            let answer = analyst.analyse(services.ports(), &turn, LIVE_COST_MICROUSD_MAX).await;
            // By itself, for it was paid whether or not what follows can be written.
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
