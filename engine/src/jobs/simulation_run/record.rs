//! Records the beginning and the end of a simulation run: its call, its own row and their events, each in one batch.
use serde_json::json;

use super::Started;
use super::drive::{Drive, Driven};
use crate::base::ids::{CallId, RunId};
use crate::base::time::Timestamp;
use crate::conversation::EndedReason;
use crate::jobs::Failure;
use crate::live::end_call::{CallJob, EndOfCall, LineEnd, end_call};
use crate::services::Services;
use crate::simulation::SimulationResult;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call, Costs, EndedCall, NewCall, Source};
use crate::storage::events::EventKind;
use crate::storage::fault::Fault;
use crate::storage::jobs::Job;
use crate::storage::runs::{self, RunDetail, RunError, RunStatus};
use crate::storage::snapshots::AssistantSnapshot;
use crate::storage::spending::{self, Reservation};

/// Opens the call of the run, which may cost `max_cost_microusd`.
pub async fn open_call(
    services: &Services,
    job: &Job,
    started: &Started,
    max_cost_microusd: i64,
    reservation: Option<Reservation>,
) -> Result<(), Fault> {
    let new = &started.call;
    let mut batch = Batch::from([job.guard()]);
    batch.extend(calls::write::insert(new));
    let update = sql!(
        "UPDATE runs SET call_id = :call, max_cost_microusd = :max_cost WHERE workspace_id = :ws AND id = :run",
        run = &started.run.id,
        call = &new.id,
        max_cost = max_cost_microusd,
    );
    batch.push(update.in_workspace(&job.workspace_id));
    let (subscribers, now_ms) = (&started.subscribers, services.ports().clock.now_ms());
    if let Some(reservation) = reservation {
        batch.extend(spending::reserve(services, &job.workspace_id, &new.id, now_ms, reservation));
    }
    let about = EventKind::CallStarted.of_call(&new.id);
    batch.emit(services, &job.workspace_id, subscribers, about, now_ms, || {
        Ok(json!({"call": Call::of(new, None, None)?}))
    })?;
    batch.write(services).await?;
    Ok(())
}

/// Ends the run and its call. `error` is set if the run itself failed.
pub async fn end_run(
    services: &Services,
    job: &Job,
    started: &Started,
    drive: &mut Drive<'_>,
    driven: Driven,
    recorded_ms: Option<i64>,
    error: Option<RunError>,
) -> Result<(), Failure> {
    let (result, has_failed) = match driven.result {
        Ok(result) => (result, false),
        Err(failure) => {
            let result = SimulationResult {
                passed: None,
                evaluations: Vec::new(),
                transcript: failure.transcript,
                ended_reason: failure.ended_reason,
                turns: failure.turns,
                duration_ms: failure.duration_ms,
            };
            (result, true)
        }
    };
    let (analysis, spent) = drive.analyse(&result.transcript).await?;
    let subscribers = drive.subscribers().await?;
    let now_ms = services.ports().clock.now_ms();
    let mut total = driven.total;
    total.add(spent);
    let mut call_cost = driven.assistant;
    call_cost.add(spent);
    let ended_reason = result.ended_reason;
    // A failure of the judge is no failure of the call.
    let model_failure = driven.failure.filter(|_| ended_reason == EndedReason::ModelFailed);
    let held = drive.held();
    let fault = held.and_then(|held| held.fault).or(model_failure.map(|(_, fault)| fault));
    let new = &started.call;
    let ended = EndedCall {
        answered_at: new.answered_at,
        ended_at: Timestamp::from_ms(held.map_or(now_ms, |held| held.ended_at_ms)),
        duration_ms: result.duration_ms,
        outcome: ended_reason.outcome(),
        ended_reason: Some(ended_reason),
        fault: fault.unwrap_or_else(|| ended_reason.fault()),
        transcript: result.transcript,
        turns: drive.turn_times(),
        costs: Costs::of(0, call_cost.stt_microusd, call_cost.models_microusd(), call_cost.tts_microusd),
        usage: call_cost.usage(),
    };
    let mut call = Call::of(new, Some(&ended), Some(&analysis))?;
    if let Some(recorded_ms) = recorded_ms {
        call = call.recorded(&services.config().base_url, recorded_ms);
    }
    let last_line = runs::last_line(&ended.transcript);
    let call_microusd = ended.costs.total_microusd;

    let mut batch = Batch::default();
    let end = EndOfCall {
        call: new,
        leg: None,
        ended,
        analysis: Some(&analysis),
        recorded_ms,
        subscribers: &subscribers,
        // The job belongs to the run, and finishes with it.
        job: CallJob::LeasedByCaller,
        line_end: LineEnd::HangUpByJob,
        now: Timestamp::from_ms(now_ms),
    };
    end_call(services, &mut batch, end)?;
    // The call's costs do not include the simulated caller and the judge.
    batch.extend(spending::add(&job.workspace_id, now_ms, total.microusd - call_microusd));
    let about = EventKind::CallAnalyzed.of_call(&new.id);
    batch.emit(services, &job.workspace_id, &subscribers, about, now_ms, || Ok(json!({"call": &call})))?;

    let mut run = started.run.clone();
    run.status = if has_failed { RunStatus::Error } else { RunStatus::Completed };
    run.passed = result.passed.filter(|_| !has_failed);
    run.error = error;
    run.turns = i64::from(result.turns);
    run.last_line = last_line;
    run.failed_evaluation = runs::failed_evaluation(&result.evaluations);
    run.cost_microusd = total.microusd;
    run.completed_at = Some(Timestamp::from_ms(now_ms));
    run.call_id = Some(new.id.clone());

    let update = sql!(
        "UPDATE runs SET status = :status, passed = :passed, error = :error, evaluations = :evaluations, turns = :turns,
         last_line = :last_line, failed_evaluation = :failed, cost_microusd = :cost, completed_at = :now WHERE workspace_id = :ws AND id = :run",
        run = &started.run.id,
        status = run.status.as_str(),
        passed = run.passed,
        error = run.error.as_ref().map(|error| json!(error).to_string()),
        evaluations = json!(result.evaluations).to_string(),
        turns = run.turns,
        last_line = run.last_line.clone(),
        failed = run.failed_evaluation.clone(),
        cost = run.cost_microusd,
        now = now_ms,
    );
    batch.push(update.in_workspace(&job.workspace_id));
    batch.push(drive.delete_journal());
    let kind = if has_failed { EventKind::SimulationRunError } else { EventKind::SimulationRunCompleted };
    let about = kind.of_run(&started.run.id, Some(&new.id));
    batch.emit(services, &job.workspace_id, &subscribers, about, now_ms, || {
        Ok(json!({"run": RunDetail::of(run, started.simulation.name.clone(), new.variables.clone(), &result.evaluations, Some(call))?}))
    })?;
    batch.finish(job);
    batch.write(services).await?;
    Ok(())
}

/// The call of a run.
pub fn new_call(
    job: &Job,
    run_id: &RunId,
    id: CallId,
    assistant: &AssistantSnapshot,
    snapshot: Option<String>,
    started_at_ms: i64,
) -> NewCall {
    let at = Timestamp::from_ms(started_at_ms);
    NewCall {
        simulation_run_id: Some(run_id.clone()),
        snapshot,
        ..NewCall::without_telephone(job.workspace_id.clone(), id, Source::Simulation, assistant, at)
    }
}
