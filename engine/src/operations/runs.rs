//! Runs of simulations: queued, running or completed.
pub(crate) mod batch;
pub(crate) mod delete;
pub(crate) mod follow;
pub(crate) mod get;
pub(crate) mod list;
pub(crate) mod start;

use serde::Serialize;
use serde_json::json;

use crate::base::error::Error;
use crate::base::ids::{BatchId, JobId, SimulationId};
use crate::base::limits::{RUNS_QUEUED_MAX, SNAPSHOT_BYTES_MAX, STATEMENT_LIST_BYTES_MAX};
use crate::base::time::Timestamp;
use crate::config::{Config, Talking};
use crate::live::simulated;
use crate::operations::checks;
use crate::operations::context::Context;
use crate::operations::operation::Output;
use crate::ports::statement::{Row, Statement};
use crate::speech::settings::TONE;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::jobs::{self, JobKind};
use crate::storage::runs::{Run, RunMode, RunStatus};
use crate::storage::snapshots::{AssistantSnapshot, SimulationSnapshot, Snapshot};
use crate::storage::spending;

/// The snapshot of a configuration. Refuses one that no row can hold; `field` is the field that selected it.
fn snapshot(value: &impl Serialize, field: &str) -> Result<Snapshot, Fault> {
    let snapshot = Snapshot::of(value)?;
    if snapshot.content.len() > SNAPSHOT_BYTES_MAX {
        let message = format!(
            "is too large to run: instructions, tools and knowledge, or persona, scenario and evaluations, take at most {SNAPSHOT_BYTES_MAX} bytes together"
        );
        return Err(Error::field(field, message).into());
    }
    Ok(snapshot)
}

/// Refuses a voice run whose assistant cannot talk on a line.
fn check_mode(mode: RunMode, assistant: &AssistantSnapshot, config: &Config) -> Result<(), Error> {
    if mode == RunMode::Chat {
        return Ok(());
    }
    let talking = Talking::from(assistant);
    config.transcriber_of(talking).map_err(|why| {
        let message = format!(
            "the assistant cannot talk on a line: {why}. Voice runs need the voice `{TONE}`, or one of a configured provider"
        );
        Error::field("mode", message)
    })?;
    let voice = simulated::callers_voice(config, assistant);
    if talking.is_tone() || config.speech.speaker(voice).is_some() {
        return Ok(());
    }
    let message = format!(
        "the simulated caller has no voice: `{voice}` is none of a configured provider. Give the assistant one, or set SIDETONE_DEFAULT_VOICE"
    );
    Err(Error::field("mode", message))
}

/// Whether a run may cost money.
fn spends(
    mode: RunMode,
    assistant: &AssistantSnapshot,
    simulation: &SimulationSnapshot,
    config: &Config,
) -> bool {
    let speech_may_cost = mode == RunMode::Voice && simulated::speech_may_cost(config, assistant);
    !spending::is_free(simulation.models(assistant), speech_may_cost)
}

/// The seed of a run that is started without one.
fn random_seed(context: &Context) -> i64 {
    let mut bytes = [0; 8];
    // 48 bits: exact in any JSON client.
    context.services.ports().random.fill(&mut bytes[..6]);
    i64::from_le_bytes(bytes)
}

/// A persona with a scenario, joined to a simulation.
const SIMULATION_COLUMNS: &str = "simulations.id AS id, simulations.name AS name, system_prompt, personas.model AS caller_model, judge_model, judge_votes, scenarios.instructions AS instructions, evaluations, conditions
    FROM simulations JOIN personas ON personas.id = simulations.persona_id JOIN scenarios ON scenarios.id = simulations.scenario_id";

fn simulation_snapshot(row: Row<'_>) -> Result<SimulationSnapshot, Fault> {
    Ok(SimulationSnapshot {
        name: row.text("name")?,
        persona: row.text("system_prompt")?,
        caller_model: row.optional_text("caller_model")?,
        judge_model: row.optional_text("judge_model")?,
        judge_votes: row.integer("judge_votes")?,
        scenario: row.text("instructions")?,
        evaluations: row.json("evaluations")?,
        conditions: row.json("conditions")?,
    })
}

/// What one or many runs are started with.
struct Launch<'a> {
    assistant: &'a AssistantSnapshot,
    mode: RunMode,
    batch_id: Option<BatchId>,
    max_cost_microusd: i64,
}

/// A run about to be queued.
struct Launched {
    run: Run,
    simulation: Snapshot,
}

impl Launch<'_> {
    fn run(
        &self,
        context: &Context,
        simulation_id: SimulationId,
        simulation: &SimulationSnapshot,
        seed: i64,
    ) -> Result<Launched, Fault> {
        let run = Run {
            id: context.services.new_id(),
            simulation_id,
            batch_id: self.batch_id.clone(),
            assistant_id: self.assistant.id.clone(),
            assistant_revision: self.assistant.revision,
            mode: self.mode,
            status: RunStatus::Queued,
            passed: None,
            error: None,
            turns: 0,
            last_line: None,
            failed_evaluation: None,
            cost_microusd: 0,
            max_cost_microusd: self.max_cost_microusd,
            seed,
            created_at: Timestamp::from_ms(context.now_ms),
            started_at: None,
            completed_at: None,
            call_id: None,
        };
        Ok(Launched { run, simulation: snapshot(simulation, "simulation_id")? })
    }

    /// Queues `launched`, with few statements however many runs there are, since the lists go in as JSON.
    async fn commit(
        &self,
        context: &mut Context,
        launched: &[Launched],
        output: Output,
    ) -> Result<Output, Fault> {
        let mut batch = Batch::from([checks::room("runs", " AND status = 'queued'", RUNS_QUEUED_MAX)]);
        self.queue(context, launched, &mut batch)?;
        let committed = context.commit(batch, output).await;
        committed.map_err(|fault| checks::explain_room(fault, "queued run", RUNS_QUEUED_MAX))
    }

    fn queue(&self, context: &Context, launched: &[Launched], batch: &mut Batch) -> Result<(), Fault> {
        let assistant = snapshot(self.assistant, "assistant_id")?;
        let snapshots = std::iter::once(&assistant).chain(launched.iter().map(|one| &one.simulation));
        batch.extend(insert_snapshots(snapshots));
        let mut rows = Vec::with_capacity(launched.len());
        for one in launched {
            let job_id: JobId = context.services.new_id();
            batch.wake(JobKind::SimulationRun, &job_id, context.now_ms);
            rows.push(json!({
                "run_id": one.run.id, "simulation_id": one.run.simulation_id, "snapshot": one.simulation.id,
                "seed": one.run.seed, "job_id": job_id,
            }));
        }
        let list = serde_json::Value::Array(rows).to_string();
        batch.push(jobs::insert_for_runs(&list, context.now_ms));
        batch.push(sql!(
            "INSERT INTO runs (workspace_id, id, simulation_id, batch_id, assistant_id, assistant_revision, assistant_snapshot,
             simulation_snapshot, mode, seed, max_cost_microusd, status, evaluations, transcript, created_at)
             SELECT :ws, json_extract(value, '$.run_id'), json_extract(value, '$.simulation_id'), :batch_id, :assistant_id, :revision, :assistant,
             json_extract(value, '$.snapshot'), :mode, json_extract(value, '$.seed'), :max_cost, 'queued', '[]', '[]', :now FROM json_each(:list)",
            list = list,
            batch_id = self.batch_id.as_ref(),
            assistant_id = &self.assistant.id,
            revision = self.assistant.revision,
            assistant = &assistant.id,
            mode = self.mode.as_str(),
            max_cost = self.max_cost_microusd,
            now = context.now_ms
        ));
        Ok(())
    }
}

/// Inserts each snapshot once, in statements of bounded size.
fn insert_snapshots<'a>(snapshots: impl Iterator<Item = &'a Snapshot>) -> Vec<Statement> {
    let mut seen = std::collections::BTreeSet::new();
    let mut statements = Vec::new();
    let mut large = Vec::new();
    let mut list: Vec<serde_json::Value> = Vec::new();
    let mut list_bytes = 0;
    let mut flush = |list: &mut Vec<serde_json::Value>| {
        if !list.is_empty() {
            let rows = serde_json::Value::Array(std::mem::take(list)).to_string();
            statements.push(sql!(
                "INSERT INTO snapshots (workspace_id, id, content)
                 SELECT :ws, json_extract(value, '$.id'), json_extract(value, '$.content') FROM json_each(:rows) WHERE true
                 ON CONFLICT DO NOTHING",
                rows = rows
            ));
        }
    };
    for snapshot in snapshots.filter(|snapshot| seen.insert(&snapshot.id)) {
        if snapshot.content.len() > STATEMENT_LIST_BYTES_MAX {
            // Inside a list it would be escaped once more, and might no longer fit.
            large.push(sql!(
                "INSERT INTO snapshots (workspace_id, id, content) VALUES (:ws, :id, :content) ON CONFLICT DO NOTHING",
                id = &snapshot.id,
                content = &snapshot.content
            ));
            continue;
        }
        if list_bytes + snapshot.content.len() > STATEMENT_LIST_BYTES_MAX {
            flush(&mut list);
            list_bytes = 0;
        }
        list_bytes += snapshot.content.len();
        list.push(json!({"id": snapshot.id, "content": snapshot.content}));
    }
    flush(&mut list);
    statements.append(&mut large);
    statements
}
