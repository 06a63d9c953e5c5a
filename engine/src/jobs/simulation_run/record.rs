//! What a simulation run leaves behind: its call, its own row, and the events that tell of them,
//! each change in one batch.
use serde_json::json;

use super::Started;
use super::drive::{Drive, Driven};
use crate::base::time;
use crate::conversation::EndedReason;
use crate::jobs::Failure;
use crate::services::Services;
use crate::simulation::SimulationResult;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call, CallStatus, Costs, Direction, EndedCall, NewCall, Source};
use crate::storage::events::EventKind;
use crate::storage::jobs::Job;
use crate::storage::runs::{RunDetail, RunError, RunStatus};
use crate::storage::snapshots::AssistantSnapshot;
use crate::storage::spending;

/// Opens the run's call.
pub async fn opened(services: &Services, job: &Job, started: &Started) -> Result<(), Failure> {
    let new = &started.call;
    let mut batch = Batch::from([job.guard()]);
    batch.extend(calls::write::insert(new));
    batch.push(sql!(
        "UPDATE runs SET call_id = ?3 WHERE workspace_id = ?1 AND id = ?2",
        &job.workspace_id,
        &job.subject_id,
        &new.id
    ));
    let (subscribers, now_ms) = (&started.subscribers, services.ports().clock.now_ms());
    batch.emit(services, &job.workspace_id, subscribers, EventKind::CallStarted, now_ms, || {
        Ok(json!({"call": Call::of(new, None, None)?}))
    })?;
    batch.write(services).await?;
    Ok(())
}

/// Ends the run and its call. An `error` says that the run itself broke.
pub async fn over(
    services: &Services,
    job: &Job,
    started: &Started,
    drive: &mut Drive<'_>,
    driven: Driven,
    error: Option<RunError>,
) -> Result<(), Failure> {
    let (result, broke) = match driven.result {
        Ok(result) => (result, false),
        Err(failure) => {
            let result = SimulationResult {
                passed: false,
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
    let mut of_call = driven.assistant;
    of_call.add(spent);
    let ended_reason = result.ended_reason;
    // The judge's failure is none of the call's.
    let of_model = driven.failure.filter(|_| ended_reason == EndedReason::ModelFailed);
    let new = &started.call;
    let ended = EndedCall {
        answered_at: new.answered_at,
        ended_at: now_ms,
        duration_ms: result.duration_ms,
        outcome: ended_reason.outcome(),
        ended_reason: Some(ended_reason),
        fault: of_model.map_or(ended_reason.fault(), |(_, fault)| fault),
        transcript: result.transcript,
        costs: Costs::of(0, 0, of_call.microusd, 0),
        usage: of_call.usage(),
    };
    let call = Call::of(new, Some(&ended), Some(&analysis))?;

    let mut run = started.run.clone();
    run.status = if broke { RunStatus::Error } else { RunStatus::Completed };
    run.passed = (!broke).then_some(result.passed);
    run.error = error;
    run.turns = i64::from(result.turns);
    run.last_line = super::drive::last_line(&ended.transcript);
    run.cost_microusd = total.microusd;
    run.completed_at = Some(time::format(now_ms));
    run.call_id = Some(new.id.clone());

    let mut batch = Batch::from(calls::write::end(&job.workspace_id, &new.id, &ended, Some(&analysis)));
    batch.push(sql!(
        "UPDATE runs SET status = ?3, passed = ?4, error = ?5, evaluations = ?6, turns = ?7, last_line = ?8,
         cost_microusd = ?9, completed_at = ?10 WHERE workspace_id = ?1 AND id = ?2",
        &job.workspace_id,
        &job.subject_id,
        run.status.as_str(),
        run.passed,
        run.error.as_ref().map(|error| json!(error).to_string()),
        json!(result.evaluations).to_string(),
        run.turns,
        run.last_line.clone(),
        run.cost_microusd,
        now_ms,
    ));
    batch.push(drive.forget());
    batch.extend(spending::add(&job.workspace_id, now_ms, total.microusd));
    for kind in [EventKind::CallEnded, EventKind::CallAnalyzed] {
        let told = || Ok(json!({"call": &call}));
        batch.emit(services, &job.workspace_id, &subscribers, kind, now_ms, told)?;
    }
    let kind = if broke { EventKind::SimulationRunError } else { EventKind::SimulationRunCompleted };
    batch.emit(services, &job.workspace_id, &subscribers, kind, now_ms, || {
        Ok(json!({"run": RunDetail::of(run, &result.evaluations, call)?}))
    })?;
    batch.finish(job);
    batch.write(services).await?;
    Ok(())
}

/// The call of a run.
pub fn new_call(job: &Job, id: String, assistant: &AssistantSnapshot, started_at_ms: i64) -> NewCall {
    NewCall {
        workspace_id: job.workspace_id.clone(),
        id,
        assistant_id: assistant.id.clone(),
        assistant_revision: assistant.revision,
        source: Source::Simulation,
        direction: Direction::Inbound,
        status: CallStatus::InProgress,
        from: None,
        to: None,
        user_number: None,
        provider: None,
        carrier_call_id: None,
        model: assistant.model.clone(),
        voice: assistant.voice.clone(),
        started_at: started_at_ms,
        answered_at: Some(started_at_ms),
        simulation_run_id: Some(job.subject_id.clone()),
    }
}
