//! The conversation of a voice run whose assistant speaks with a provider's voice: held for real, in real time, by the driver
//! of live calls. It is held once. An attempt that is interrupted meanwhile leaves what was heard, and the run ends with it.
use std::sync::Arc;

use super::Started;
use super::drive::Drive;
use crate::conversation::EndedReason;
use crate::jobs::Failure;
use crate::jobs::give_way::GiveWay;
use crate::live::call_journal::{self, CallProgress};
use crate::live::lease::JobLease;
use crate::live::simulated::{CallerOfRun, Rehearsal, RunCosts, RunOfSession};
use crate::models::CallerModel;
use crate::services::Services;
use crate::simulation::{HeldConversation, HeldFailure, SimulationPart};
use crate::storage::cost::Cost;
use crate::storage::jobs::Job;
use crate::storage::recordings;

/// Holds the conversation, unless an earlier attempt did.
pub(super) async fn hold(
    services: &Services,
    job: &Job,
    started: &Started,
    drive: &mut Drive<'_>,
    give_way: &GiveWay,
) -> Result<(), Failure> {
    if drive.held().is_some() || recover(services, started, drive).await? {
        return drive.store_held().await;
    }
    let call = &started.call;
    services.write([job.guard(), call_journal::open(&call.workspace_id, &call.id)]).await?;
    let simulation = &started.simulation;
    let model_name = simulation.caller_model.as_deref().unwrap_or(&started.assistant.model);
    let model =
        &CallerModel::new(&services.config().catalog, model_name, &simulation.persona, &simulation.scenario);
    let seed = started.seed.unsigned_abs();
    let costs = Arc::new(RunCosts::default());
    let rehearsal = Rehearsal {
        call: call.clone(),
        lease: JobLease::of_run(job, &call.id),
        assistant: started.assistant.clone(),
        texts: started.texts.clone(),
        admission: started.admission.clone(),
        run: RunOfSession {
            id: started.run.id.clone(),
            seed,
            costs: costs.clone(),
            mocks: Arc::new(simulation.tool_mocks.clone()),
        },
        caller: CallerOfRun {
            model_name,
            model,
            persona: &simulation.persona,
            scenario: &simulation.scenario,
            conditions: simulation.conditions,
            seed,
        },
        max_cost_microusd: started.max_cost_microusd,
    };
    // A conversation cannot go on later.
    give_way.must_stay(true);
    let held = Box::pin(rehearsal.hold(services)).await;
    give_way.must_stay(false);
    let mut held = held?;
    if matches!(held.ended_reason, EndedReason::Aborted | EndedReason::MediaLost) {
        held.failure.get_or_insert_with(interrupted);
    }
    drive.was_held(held, costs.assistant(), costs.caller());
    drive.store_held().await
}

/// Takes what an earlier attempt left in the middle of the conversation. False if it had not begun.
pub(super) async fn recover(
    services: &Services,
    started: &Started,
    drive: &mut Drive<'_>,
) -> Result<bool, Failure> {
    let call = &started.call;
    let [live, rows, turns] = services.read(call_journal::select(&call.workspace_id, &call.id)).await?;
    if live.first().is_none() {
        return Ok(false);
    }
    let CallProgress { offset_ms, spent, transcript, turns } = call_journal::read(&live, &rows, &turns)?;
    let held = HeldConversation {
        transcript,
        ended_reason: EndedReason::Aborted,
        fault: None,
        turns: u32::try_from(started.run.turns).unwrap_or(0),
        duration_ms: offset_ms,
        ended_at_ms: call.started_at.ms().saturating_add(offset_ms),
        turn_times: turns,
        failure: Some(interrupted()),
    };
    let caller = started.run.cost_microusd.saturating_sub(spent.microusd).max(0);
    drive.was_held(held, spent, Cost { microusd: caller, ..Cost::default() });
    Ok(true)
}

/// How much of the call was recorded.
pub(super) async fn recorded_ms(services: &Services, started: &Started) -> Result<Option<i64>, Failure> {
    let call = &started.call;
    let [recording] = services.read([recordings::in_progress(&call.workspace_id, &call.id)]).await?;
    Ok(recording.first().map(|row| row.integer("duration_ms")).transpose()?)
}

fn interrupted() -> HeldFailure {
    HeldFailure {
        part: SimulationPart::Assistant,
        code: "interrupted".to_owned(),
        message: "The service stopped during the conversation. It was spoken in real time, so it cannot be continued; \
                  the transcript and the recording have what was heard. Start another run."
            .to_owned(),
    }
}
