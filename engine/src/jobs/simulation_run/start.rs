//! The start of a run: whether its workspace has money for it, and how much of it the run may spend. A run for which there
//! is no money or no memory waits in the queue.
use serde_json::json;

use super::{Started, record};
use crate::base::error::Error;
use crate::base::limits::{LEASED_ATTEMPTS_MAX, RUN_WAIT_MS_MAX, RUN_WAIT_MS_MIN};
use crate::base::time::Timestamp;
use crate::jobs::Failure;
use crate::live::simulated;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::events::EventKind;
use crate::storage::fault::{Fault, retry_stale_within};
use crate::storage::jobs::{Job, JobKind};
use crate::storage::runs::{self, Run, RunDetail, RunError, RunStatus};
use crate::storage::spending::{self, Budget, Grant, Reservation};

/// The share of its age that a run waits until it asks again.
const WAIT_PER_AGE: i64 = 8;

/// Opens the run's call, with the cost limit that its workspace's money allows. False when the run does not start now: it
/// has ended in an error, or waits in the queue.
pub(super) async fn open(services: &Services, job: &Job, started: &mut Started) -> Result<bool, Failure> {
    let grant = retry_stale_within(LEASED_ATTEMPTS_MAX, || attempt(services, job, started)).await?;
    let Some(max_cost_microusd) = grant else { return Ok(false) };
    started.max_cost_microusd = max_cost_microusd;
    started.run.max_cost_microusd = max_cost_microusd;
    Ok(true)
}

/// One attempt; stale when somebody else took or returned money meanwhile. Returns the run's cost limit if it started.
async fn attempt(services: &Services, job: &Job, started: &Started) -> Result<Option<i64>, Fault> {
    let wanted = started.max_cost_microusd;
    let models = || started.simulation.models(&started.assistant);
    let config = services.config();
    let speech_may_cost = started.is_held() && simulated::speech_may_cost(config, &started.assistant);
    if spending::is_free(models(), speech_may_cost) {
        record::open_call(services, job, started, wanted, None).await?;
        return Ok(Some(wanted));
    }
    let now_ms = services.ports().clock.now_ms();
    let [found] = services.read([spending::select(services, now_ms).in_workspace(&job.workspace_id)]).await?;
    let budget = Budget::read(Some(&found))?;
    let catalog = &config.catalog;
    let may_cost = speech_may_cost || models().any(|model| catalog.may_cost(model));
    // However little the run may cost, it gets an answer: many runs that may cost next to nothing would pass the limit by
    // an answer each.
    let one_answer = started.first_answer_microusd(catalog);
    match budget.grant(if may_cost { wanted.max(one_answer) } else { 0 }) {
        Grant::Free => {
            record::open_call(services, job, started, wanted, None).await?;
            Ok(Some(wanted))
        }
        Grant::Reserve(microusd) => {
            let reservation = Some(Reservation::for_models(microusd));
            let may_cost = microusd.min(wanted);
            record::open_call(services, job, started, may_cost, reservation).await?;
            Ok(Some(may_cost))
        }
        Grant::AllReserved => {
            // What is left is reserved by calls under way, whose ends wake the run.
            let guard = spending::guard_all_reserved(services, &job.workspace_id, now_ms);
            wait_in_queue(services, job, &started.run, Some(guard)).await?;
            Ok(None)
        }
        Grant::Spent => {
            refuse(services, job, started, budget.refusal()).await?;
            Ok(None)
        }
    }
}

/// Puts the run back into the queue, if the `guard` allows it. The pause grows with the time that it has waited.
pub(super) async fn wait_in_queue(
    services: &Services,
    job: &Job,
    run: &Run,
    guard: Option<Statement>,
) -> Result<(), Fault> {
    let now_ms = services.ports().clock.now_ms();
    let age_ms = now_ms.saturating_sub(run.created_at.ms());
    let due_at = now_ms + (age_ms / WAIT_PER_AGE).clamp(RUN_WAIT_MS_MIN, RUN_WAIT_MS_MAX);
    let mut batch = Batch::from([job.guard()]);
    batch.extend(guard);
    batch.extend([job.put_back(due_at), runs::mark_queued(&job.workspace_id, &run.id)]);
    batch.wake(JobKind::SimulationRun, &job.id, due_at);
    batch.write(services).await?;
    Ok(())
}

/// Ends the run without a call, before any model was asked.
async fn refuse(services: &Services, job: &Job, started: &Started, why: Error) -> Result<(), Fault> {
    let now = services.now();
    let mut run = started.run.clone();
    run.status = RunStatus::Error;
    run.error = Some(RunError { code: why.code.as_str().to_owned(), message: why.message.into_owned() });
    run.started_at = None;
    run.completed_at = Some(Timestamp::from_ms(now.ms()));
    let update = sql!(
        "UPDATE runs SET status = :status, error = :error, started_at = NULL,
         completed_at = :now WHERE workspace_id = :ws AND id = :run",
        run = &run.id,
        status = run.status.as_str(),
        error = run.error.as_ref().map(|error| json!(error).to_string()),
        now = now,
    );
    let mut batch =
        Batch::from([update.in_workspace(&job.workspace_id), spending::wake_waiting(&job.workspace_id)]);
    let (subscribers, kind) = (&started.subscribers, EventKind::SimulationRunError);
    let about = kind.of_run(&started.run.id, None);
    batch.emit(services, &job.workspace_id, subscribers, about, now.ms(), || {
        Ok(json!({"run": RunDetail::of(run, started.simulation.name.clone(), started.call.variables.clone(), &[], None)?}))
    })?;
    batch.finish(job);
    batch.write(services).await?;
    Ok(())
}
