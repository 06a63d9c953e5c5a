//! The job of a live conversation or a telephone call. During a conversation, its process holds the job's lease: when
//! the lease expires, the process is gone, and the next process that claims the job ends the call from its journal. A
//! telephone call has its job from the beginning: if the job becomes due unclaimed, the call was not connected in time.
//! After the end of the call, the job analyzes it and finishes.
use serde_json::{Value, json};

use super::Failure;
use crate::base::ids::CallId;
use crate::base::limits::{JOB_ATTEMPTS_MAX, LEASED_ATTEMPTS_MAX, LIVE_COST_MICROUSD_MAX, MODEL_TOTAL_MS};
use crate::base::time::Timestamp;
use crate::carriers::End;
use crate::conversation::EndedReason;
use crate::conversation::transcript::TranscriptRow;
use crate::live::call_journal::{self, CallProgress};
use crate::live::end_call::{CallJob, EndOfCall, LineEnd, end_call, ended};
use crate::live::telephony::leg::{Leg, Placing};
use crate::models::{AnalysisTurn, Analyst, RULES_MODEL, rules};
use crate::ports::statement::{Row, Rows};
use crate::services::Services;
use crate::speech::settings::TONE;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Analysis, AnalysisMethod, Call, CallStatus, EndedCall, NewCall};
use crate::storage::cost::Cost;
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::{Fault, retry_stale_within};
use crate::storage::jobs::{Job, JobKind};
use crate::storage::recordings;
use crate::storage::spending::{self, Budget, Grant, Reservation};

/// The timeout of a model request, including its retries.
const ANSWER_MS: i64 = MODEL_TOTAL_MS as i64;

/// Ends an abandoned call, then analyzes it.
pub(super) async fn run(services: &Services, job: &Job, call_id: &CallId) -> Result<(), Failure> {
    // The carrier may report something meanwhile.
    match retry_stale_within(LEASED_ATTEMPTS_MAX, || ended_call(services, job, call_id)).await? {
        Ended::Call(found) => analyze_call(services, job, call_id, &found).await,
        Ended::Deleted => Ok(job.finish(services).await?),
        Ended::Later => Ok(()),
    }
}

/// The call of a job.
enum Ended {
    /// It has ended.
    Call(Box<Found>),
    Deleted,
    /// What comes of its transfer is not known yet: the job goes on then.
    Later,
}

/// The call, ended here if it had not ended.
async fn ended_call(services: &Services, job: &Job, call_id: &CallId) -> Result<Ended, Fault> {
    match load(services, job, call_id).await? {
        Some(found) if !found.is_ended() => {
            let now_ms = services.ports().clock.now_ms();
            if let Some((leg, until_ms)) = found.rings(now_ms) {
                let mut batch = Batch::from([job.guard(), job.put_back(until_ms)]);
                batch.extend(leg.change());
                batch.wake(JobKind::LiveCall, &job.id, until_ms);
                batch.write(services).await?;
                return Ok(Ended::Later);
            }
            end_abandoned_call(services, job, found).await?;
            // Read again, so that the analysis event equals a read of the call.
            let found = load(services, job, call_id).await?;
            Ok(found.map_or(Ended::Deleted, |found| Ended::Call(Box::new(found))))
        }
        Some(found) => Ok(Ended::Call(Box::new(found))),
        None => Ok(Ended::Deleted),
    }
}

/// A call and its rows.
struct Found {
    row: Rows,
    model: String,
    progress: CallProgress,
    /// The leg of a telephone call.
    leg: Option<Leg>,
    subscribers: Subscribers,
    /// What was recorded of a call that has not ended.
    recorded_ms: Option<i64>,
}

impl Found {
    fn row(&self) -> Result<Row<'_>, Fault> {
        self.row.first().ok_or_else(|| Fault::Bug("the call does not exist".to_owned()))
    }

    fn is_ended(&self) -> bool {
        self.row.first().and_then(|row| row.str("status").ok()) == Some("ended")
    }

    /// The leg of a call that was handed over and rings there, and until when its carrier says what comes of it.
    fn rings(&self, now_ms: i64) -> Option<(&Leg, i64)> {
        let leg = self.leg.as_ref()?;
        let rings = leg.transfer == Some(Placing::Accepted) && leg.facts.end.is_none();
        Some((leg, leg.facts.rings_until_ms.filter(|until_ms| rings && *until_ms > now_ms)?))
    }

    /// The analyzed call as a read will return it.
    fn analyzed(&self, services: &Services, analysis: &Analysis) -> Result<Value, Fault> {
        let mut call = json!(Call::read(self.row()?, &services.config().base_url)?);
        call["sentiment"] = json!(analysis.sentiment);
        call["analysis"] = json!(analysis);
        Ok(json!({ "call": call }))
    }
}

async fn load(services: &Services, job: &Job, call_id: &CallId) -> Result<Option<Found>, Fault> {
    let [live, rows, turns] = call_journal::select(&job.workspace_id, call_id);
    let reads = [
        calls::select_for(&job.workspace_id, call_id),
        events::subscribers(&job.workspace_id),
        live,
        rows,
        turns,
        Leg::select(&job.workspace_id, call_id),
        recordings::in_progress(&job.workspace_id, call_id),
    ];
    let [mut call, subscribers, live, rows, turns, leg, recording] = services.read(reads).await?;
    // An analysis can come so late that the transcript is archived.
    services.unarchive(&job.workspace_id, &mut call).await?;
    let Some(row) = call.first() else {
        return Ok(None);
    };
    Ok(Some(Found {
        model: row.text("model")?,
        progress: call_journal::read(&live, &rows, &turns)?,
        leg: Leg::first(Some(&leg))?,
        subscribers: Subscribers::read(&subscribers)?,
        recorded_ms: recording.first().map(|row| row.integer("duration_ms")).transpose()?,
        row: call,
    }))
}

/// Ends a call that has lost its process, or was never connected.
async fn end_abandoned_call(services: &Services, job: &Job, mut found: Found) -> Result<(), Fault> {
    let now = services.now();
    let call = NewCall::read(found.row()?, &job.workspace_id)?;
    let mut batch = Batch::from(job.extend(now.ms(), 0).statements);
    if let Some(leg) = &mut found.leg {
        batch.append(leg.rings_no_more());
    }
    let leg = found.leg.as_ref();
    let end = EndOfCall {
        ended: match leg {
            Some(leg) if leg.media_started_at.is_none() => without_audio(leg, &call, now),
            _ => without_process(&call, leg, found.progress),
        },
        call: &call,
        leg,
        analysis: None,
        recorded_ms: found.recorded_ms,
        subscribers: &found.subscribers,
        job: CallJob::LeasedByCaller,
        line_end: LineEnd::HangUpByJob,
        now,
    };
    end_call(services, &mut batch, end)?;
    batch.write(services).await?;
    Ok(())
}

/// The end of a conversation whose process is gone, from its journal.
fn without_process(call: &NewCall, leg: Option<&Leg>, progress: CallProgress) -> EndedCall {
    // The process was alive at its last write; how much longer is unknown.
    let answered_at = call.answered_at.unwrap_or(call.started_at);
    let began_at = leg.and_then(|leg| leg.media_started_at).unwrap_or(answered_at);
    let ended_at = began_at + progress.offset_ms;
    ended::after_conversation(progress, EndedReason::Aborted, None, answered_at, ended_at)
}

/// The end of a telephone call without audio.
fn without_audio(leg: &Leg, call: &NewCall, now: Timestamp) -> EndedCall {
    let reason = match (leg.hang_up_at, leg.placing) {
        (Some(_), _) => EndedReason::Canceled,
        // The call was answered, but no audio arrived.
        (None, Placing::Incoming) => EndedReason::MediaLost,
        (None, _) if call.status == CallStatus::InProgress => EndedReason::MediaLost,
        (None, _) => EndedReason::Unsettled,
    };
    let end = leg.facts.end.clone().unwrap_or_else(|| End::of(reason, ""));
    ended::never_connected(leg, &end, call.answered_at, now)
}

/// Analyzes an ended call. The rules do it if the model fails.
async fn analyze_call(
    services: &Services,
    job: &Job,
    call_id: &CallId,
    found: &Found,
) -> Result<(), Failure> {
    let transcript: Vec<TranscriptRow> = found.row()?.json("transcript")?;
    let turn = AnalysisTurn { transcript: &transcript };
    let by_rule = || Analysis::of(rules::analyse(&turn), AnalysisMethod::Rule);
    let analysis = match Analyst::new(&services.config().catalog, &found.model) {
        Ok(analyst) if found.model != RULES_MODEL && job.attempts <= JOB_ATTEMPTS_MAX => {
            let reserve = || reserve_analysis(services, job, call_id, &found.model);
            match retry_stale_within(LEASED_ATTEMPTS_MAX, reserve).await? {
                Grant::AllReserved | Grant::Spent => by_rule(),
                grant @ (Grant::Free | Grant::Reserve(_)) => {
                    let most_microusd = grant.reserved().unwrap_or(LIVE_COST_MICROUSD_MAX);
                    let answer = analyst.analyse(services.ports(), &turn, most_microusd.into()).await;
                    // In a separate batch: the request was paid for, even if storing the analysis fails.
                    let microusd = Cost::of(&answer).microusd;
                    let paid = spending::add(&job.workspace_id, services.ports().clock.now_ms(), microusd);
                    let mut batch = Batch::from(Vec::from_iter(paid));
                    // Here, too: the call may be deleted meanwhile, and its job with it.
                    if grant.reserved().is_some() {
                        batch.extend(spending::release(&job.workspace_id, call_id));
                    }
                    batch.write(services).await?;
                    let found = answer.ok().map(|one| Analysis::of(one.reply, AnalysisMethod::Model));
                    found.unwrap_or_else(by_rule)
                }
            }
        }
        Ok(_) | Err(_) => by_rule(),
    };
    let now_ms = services.ports().clock.now_ms();
    let mut batch = Batch::from(calls::write::analyzed(&job.workspace_id, call_id, &analysis));
    let about = EventKind::CallAnalyzed.of_call(call_id);
    batch.emit(services, &job.workspace_id, &found.subscribers, about, now_ms, || {
        found.analyzed(services, &analysis)
    })?;
    // What an attempt had reserved that did not finish.
    batch.extend(spending::release(&job.workspace_id, call_id));
    batch.finish(job);
    batch.write(services).await?;
    Ok(())
}

/// Reserves what the analysis may cost and extends the lease, if there is money for it.
async fn reserve_analysis(
    services: &Services,
    job: &Job,
    call_id: &CallId,
    model: &str,
) -> Result<Grant, Fault> {
    let workspace_id = &job.workspace_id;
    let now_ms = services.ports().clock.now_ms();
    let select = spending::select_beside(services, now_ms, Some(call_id)).in_workspace(workspace_id);
    let [budget] = services.read([select]).await?;
    let grant = Budget::read(Some(&budget))?.grant(spending::wanted_by_models(services, model, TONE));
    if matches!(grant, Grant::AllReserved | Grant::Spent) {
        return Ok(grant);
    }
    let mut statements = job.extend(now_ms, ANSWER_MS).statements;
    if let Some(microusd) = grant.reserved() {
        let reservation = Reservation::for_models(microusd);
        statements.extend(spending::reserve(services, workspace_id, call_id, now_ms, reservation));
    }
    services.ports().database.write(statements).await?;
    Ok(grant)
}
