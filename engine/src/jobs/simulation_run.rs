//! A simulation run: reads the run's configuration, opens its call, drives the conversation, stores the result. An
//! interrupted run continues from its journal; without models of a provider, the result has the same bytes either way.
mod drive;
mod held;
mod models;
mod record;
mod recording;
mod start;

use std::sync::Arc;

use crate::base::ids::{CallId, RunId};
use crate::base::limits::SIMULATION_MEMORY_PER_BYTE;
use crate::base::values::Variables;
use crate::config::Talking;
use crate::conversation::FilledTexts;
use crate::jobs::Failure;
use crate::jobs::give_way::GiveWay;
use crate::jobs::run_journal::{Journal, JournalEntry};
use crate::live::admission::{Admission, HeldAudio, Starter, admit};
use crate::live::assistants::{self, Stored};
use crate::models::AssistantInUse;
use crate::models::settings::ModelCatalog;
use crate::ports::statement::Row;
use crate::services::Services;
use crate::simulation::callers_phone::RATE;
use crate::simulation::{HeldFailure, SimulationFailure, SimulationPart};
use crate::sql;
use crate::storage::calls::NewCall;
use crate::storage::events::{self, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::jobs::Job;
use crate::storage::runs::{Run, RunError, RunMode};
use crate::storage::snapshots::{SimulationSnapshot, Snapshot};
use drive::{Drive, Driven};

/// Runs the simulation of the job.
pub async fn run(services: &Services, job: &Job, run_id: &RunId, give_way: &GiveWay) -> Result<(), Failure> {
    let Some(Loaded { mut started, journal, inputs, is_open }) = load(services, job, run_id).await? else {
        return nothing_to_do(services, job).await;
    };
    if !is_open && !start::open(services, job, &mut started).await? {
        return Ok(());
    }
    let mut drive = Drive::new(services, job, &started, journal, inputs);
    if started.is_held() {
        held::hold(services, job, &started, &mut drive, give_way).await?;
    }
    let driven = drive.run(give_way).await?;
    let error = driven.result.as_ref().err().map(|failure| run_error(&drive, &driven, failure));
    let recorded_ms = recording::store(services, job, &started, &mut drive, &driven).await?;
    record::end_run(services, job, &started, &mut drive, driven, recorded_ms, error).await
}

/// Ends a run that has used all of its attempts, with its results so far.
pub async fn end_exhausted(services: &Services, job: &Job, run_id: &RunId) -> Result<(), Failure> {
    let Some(Loaded { started, journal, inputs, is_open }) = load(services, job, run_id).await? else {
        return nothing_to_do(services, job).await;
    };
    if !is_open {
        // No model is asked any more, so nothing is reserved.
        record::open_call(services, job, &started, started.max_cost_microusd, None).await?;
    }
    let message = "The run was started several times and never finished.";
    let mut drive = Drive::new(services, job, &started, journal, inputs);
    let mut recorded_ms = None;
    if started.is_held() {
        if drive.held().is_none() {
            held::recover(services, &started, &mut drive).await?;
        }
        recorded_ms = held::recorded_ms(services, &started).await?;
    } else {
        recording::abandon(services, job, &started).await?;
    }
    let driven = drive.exhausted(message);
    let error = RunError { code: "gave_up".to_owned(), message: message.to_owned() };
    record::end_run(services, job, &started, &mut drive, driven, recorded_ms, Some(error)).await
}

/// The run was deleted, or another process has finished it.
async fn nothing_to_do(services: &Services, job: &Job) -> Result<(), Failure> {
    Ok(job.finish(services).await?)
}

fn run_error(drive: &Drive<'_>, driven: &Driven, failure: &SimulationFailure) -> RunError {
    if let Some(HeldFailure { code, message, .. }) = drive.held().and_then(|held| held.failure.clone()) {
        return RunError { code, message };
    }
    if failure.is_cost_limit {
        return RunError { code: "cost_limit".to_owned(), message: failure.reason.clone() };
    }
    let part = match failure.part {
        SimulationPart::Caller => "caller",
        SimulationPart::Assistant => "assistant",
        SimulationPart::Judge => "judge",
    };
    let code = driven.failure.map_or_else(|| format!("{part}_failed"), |(code, _)| code.as_str().to_owned());
    let message = format!("The {part}'s model failed: {}", failure.reason);
    RunError { code, message }
}

/// The configuration of a run.
struct Started {
    run: Run,
    seed: i64,
    max_cost_microusd: i64,
    call: NewCall,
    assistant: Arc<AssistantInUse>,
    texts: FilledTexts,
    admission: Arc<Admission>,
    simulation: SimulationSnapshot,
    subscribers: Subscribers,
}

impl Started {
    fn is_voice(&self) -> bool {
        self.run.mode == RunMode::Voice
    }

    /// What the first answer of caller or assistant may cost, whichever costs more. The judge is asked when there is something
    /// to rule on, and never beyond the limit.
    fn first_answer_microusd(&self, catalog: &ModelCatalog) -> i64 {
        let Self { assistant, texts, simulation, .. } = self;
        let caller = simulation.caller_model.as_deref().unwrap_or(&assistant.model);
        let heard = simulation.persona.len() + simulation.scenario.len() + texts.first_message.len();
        let caller = catalog.answer_may_cost_microusd(caller, heard as u64);
        caller.max(catalog.answer_may_cost_microusd(&assistant.model, assistant.request_bytes()))
    }

    /// Whether the conversation is held for real: with the tone code, it is computed.
    fn is_held(&self) -> bool {
        self.is_voice() && !Talking::from(&**self.assistant).is_tone()
    }
}

/// A run as it is stored.
struct Loaded {
    started: Started,
    journal: Journal,
    inputs: Vec<JournalEntry>,
    /// Whether its call was opened by an earlier attempt, with the cost limit that the run has.
    is_open: bool,
}

/// Reads the run, once there is memory for it.
async fn load(services: &Services, job: &Job, run_id: &RunId) -> Result<Option<Loaded>, Failure> {
    let workspace_id = &job.workspace_id;
    let sizes = sql!(
        "SELECT started_at, variables, runs.assistant_snapshot AS assistant, OCTET_LENGTH(assistants.content) AS assistant_bytes,
         runs.simulation_snapshot AS simulation, OCTET_LENGTH(simulations.content) AS simulation_bytes FROM runs
         JOIN snapshots AS assistants ON assistants.workspace_id = runs.workspace_id AND assistants.id = runs.assistant_snapshot
         JOIN snapshots AS simulations ON simulations.workspace_id = runs.workspace_id AND simulations.id = runs.simulation_snapshot
         WHERE runs.id = :id AND runs.workspace_id = :workspace_id AND status = 'running'",
        id = run_id,
        workspace_id = workspace_id
    );
    let [run, row, subscribers] =
        services.read([Run::select(workspace_id, run_id), sizes, events::subscribers(workspace_id)]).await?;
    let (Some(run), Some(row)) = (run.first(), row.first()) else {
        return Ok(None);
    };
    let run = Run::read(run)?;
    let call_id = run.call_id.clone().unwrap_or_else(|| services.new_id::<CallId>());
    let variables = row.json("variables")?;
    let Some(Roomed { admission, assistant, call, texts }) =
        room(services, job, &run, row, call_id, variables).await?
    else {
        start::wait_in_queue(services, job, &run, None).await?;
        return Err(Failure::GaveWay);
    };
    let simulation = Snapshot::select(workspace_id, row.str("simulation")?);
    let [simulation, journal] = services.read([simulation, Journal::select(job, run_id)]).await?;
    let Some(simulation) = simulation.first() else {
        return Ok(None);
    };
    let is_open = run.call_id.is_some();
    let started = Started {
        seed: run.seed,
        max_cost_microusd: run.max_cost_microusd,
        call,
        assistant,
        texts,
        admission: Arc::new(admission),
        simulation: simulation.json("content")?,
        subscribers: Subscribers::read(&subscribers)?,
        run,
    };
    let (journal, inputs) = Journal::read(job, run_id, &journal)?;
    Ok(Some(Loaded { started, journal, inputs, is_open }))
}

/// What a run has memory for.
struct Roomed {
    admission: Admission,
    assistant: Arc<AssistantInUse>,
    call: NewCall,
    texts: FilledTexts,
}

/// Memory for the run, and what it is taken for; `None` while others have it.
async fn room(
    services: &Services,
    job: &Job,
    run: &Run,
    row: Row<'_>,
    call_id: CallId,
    variables: Variables,
) -> Result<Option<Roomed>, Fault> {
    let Some(mut admission) = admit(services, &job.workspace_id, Starter::Run) else {
        return Ok(None);
    };
    let bytes = |column| Ok::<_, Fault>(row.integer(column)?.unsigned_abs());
    if !admission.fits(bytes("simulation_bytes")?.saturating_mul(SIMULATION_MEMORY_PER_BYTE)) {
        return Ok(None);
    }
    let stored = Stored { id: row.str("assistant")?, bytes: bytes("assistant_bytes")? };
    let assistant = assistants::of_run(services, &job.workspace_id, stored, &mut admission).await?;
    let Some(assistant) = assistant else { return Ok(None) };
    let talking = Talking::from(&**assistant);
    let is_held = run.mode == RunMode::Voice && !talking.is_tone();
    let audio = HeldAudio { is_recorded: assistant.record, is_realtime: talking.is_realtime() };
    let started_at_ms = row.integer("started_at")?;
    let call = NewCall {
        variables,
        metadata: run.metadata.clone(),
        ..record::new_call(job, &run.id, call_id, &assistant, run.snapshot.clone(), started_at_ms)
    };
    // An interrupted run goes on with the same texts.
    let texts = admission.filled(&assistant, &call, started_at_ms, false);
    let fits = !is_held || admission.fits_audio(services, RATE, audio);
    Ok(texts.filter(|_| fits).map(|texts| Roomed { admission, assistant, call, texts }))
}
