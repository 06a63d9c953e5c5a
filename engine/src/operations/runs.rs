//! Runs of simulations: queued, running or completed.
pub(crate) mod batch;
pub(crate) mod delete;
pub(crate) mod delete_many;
pub(crate) mod follow;
pub(crate) mod get;
pub(crate) mod get_batch;
pub(crate) mod inline;
pub(crate) mod list;
mod room;
pub(crate) mod start;

use std::sync::Arc;

use serde::Serialize;
use serde_json::json;

use self::room::{Kept, kept, memory};
use crate::base::error::Error;
use crate::base::ids::{BatchId, JobId, SimulationId};
use crate::base::limits::{
    INTEGER_MAX, MOCKS_UNUSED_MAX, RUNS_QUEUED_MAX, SNAPSHOT_BYTES_MAX, STARTED_METADATA_BYTES_MAX,
    STARTED_VARIABLES_BYTES_MAX, STATEMENT_LIST_BYTES_MAX,
};
use crate::base::time::Timestamp;
use crate::base::values::{Metadata, Variables};
use crate::config::{Config, Talking};
use crate::conversation::{Texts, Values};
use crate::live::simulated;
use crate::operations::context::Context;
use crate::operations::operation::Output;
use crate::operations::{checks, variables};
use crate::ports::statement::{Row, Statement};
use crate::simulation::tool_mocks::ToolMocks;
use crate::speech::settings::TONE;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::column::Column as _;
use crate::storage::fault::Fault;
use crate::storage::jobs::{self, JobKind};
use crate::storage::named_snapshots::{self, Name, Part};
use crate::storage::runs::{Run, RunMode, RunStatus, RunTools};
use crate::storage::snapshots::{AssistantSnapshot, SimulationSnapshot, Snapshot, count_added};
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

/// The seeds of the runs of one simulation, one after the other.
struct Seeds {
    first: Option<i64>,
    count: i64,
}

impl Seeds {
    fn new(first: Option<i64>, repeat: Option<i64>) -> Result<Self, Error> {
        let count = repeat.unwrap_or(1);
        if first.is_some_and(|first| first > INTEGER_MAX - (count - 1)) {
            let message =
                format!("is too large for {count} runs: the last one has a seed of at most {INTEGER_MAX}");
            return Err(Error::field("seed", message));
        }
        Ok(Self { first, count })
    }

    fn count(&self) -> usize {
        usize::try_from(self.count).unwrap_or(usize::MAX)
    }

    /// Those of a simulation; without a first seed they begin at random.
    fn of_simulation(&self, context: &Context) -> std::ops::Range<i64> {
        let first = self.first.unwrap_or_else(|| {
            let mut bytes = [0; 8];
            // 48 bits: exact in any JSON client.
            context.services.ports().random.fill(&mut bytes[..6]);
            i64::from_le_bytes(bytes)
        });
        first..first + self.count
    }
}

/// A persona with a scenario, joined to a simulation.
const SIMULATION_COLUMNS: &str = "simulations.id AS id, simulations.name AS name, system_prompt, personas.model AS caller_model, judge_model, judge_votes, scenarios.instructions AS instructions, evaluations, conditions, scenarios.variables AS variables, tool_mocks
    FROM simulations JOIN personas ON personas.id = simulations.persona_id JOIN scenarios ON scenarios.id = simulations.scenario_id";

/// What a run of the simulation in this row is started with. `variables` were sent; they are laid over those of the scenario.
fn simulation_snapshot(
    row: Row<'_>,
    tools: RunTools,
    variables: &Variables,
) -> Result<SimulationSnapshot, Fault> {
    Ok(SimulationSnapshot {
        name: row.text("name")?,
        persona: row.text("system_prompt")?,
        caller_model: row.optional_text("caller_model")?,
        judge_model: row.optional_text("judge_model")?,
        judge_votes: row.integer("judge_votes")?,
        scenario: row.text("instructions")?,
        evaluations: row.json("evaluations")?,
        conditions: row.json("conditions")?,
        tool_mocks: match tools {
            RunTools::Mock => row.json("tool_mocks")?,
            RunTools::Live => ToolMocks::default(),
        },
        variables: variables.over(&row.json("variables")?),
    })
}

/// What one or many runs are started with.
struct Launch<'a> {
    assistant: &'a AssistantSnapshot,
    /// The assistant as it is stored.
    stored: Snapshot,
    /// What counts of it.
    part: Part,
    mode: RunMode,
    tools: RunTools,
    batch_id: Option<BatchId>,
    max_cost_microusd: i64,
    /// The variables that were sent, without the defaults of scenarios.
    variables: Variables,
    metadata: Metadata,
}

/// The tools that a simulation answers for and that its assistant does not have.
fn mocks_unused(assistant: &AssistantSnapshot, simulation: &SimulationSnapshot) -> Vec<String> {
    let is_tool = |name: &str| assistant.tools.iter().any(|tool| tool.name == name);
    simulation.tool_mocks.unused(is_tool).take(MOCKS_UNUSED_MAX).map(str::to_owned).collect()
}

/// A run about to be queued.
struct Launched {
    run: Run,
    /// Shared by all runs of the simulation.
    simulation: Arc<Snapshot>,
    variables: Arc<Variables>,
    name: Arc<Name>,
}

impl Launch<'_> {
    /// The runs of a simulation, or of one that is not stored.
    fn runs(
        &self,
        context: &Context,
        simulation_id: Option<&SimulationId>,
        simulation: &SimulationSnapshot,
        seeds: &Seeds,
    ) -> Result<Vec<Launched>, Fault> {
        let variables = Arc::new(simulation.variables.clone());
        let unused = mocks_unused(self.assistant, simulation);
        let simulation = Arc::new(snapshot(simulation, "simulation_id")?);
        let name = Arc::new(Name::of_run(&self.part, &Part::simulation(&simulation)?, self.mode));
        let run = |seed| Launched {
            run: Run { mocks_unused: unused.clone(), ..self.run(context, simulation_id, seed, &name) },
            simulation: simulation.clone(),
            variables: variables.clone(),
            name: name.clone(),
        };
        Ok(seeds.of_simulation(context).map(run).collect())
    }

    fn run(&self, context: &Context, simulation_id: Option<&SimulationId>, seed: i64, name: &Name) -> Run {
        Run {
            id: context.services.new_id(),
            simulation_id: simulation_id.cloned(),
            batch_id: self.batch_id.clone(),
            assistant_id: self.assistant.id.clone(),
            assistant_revision: self.assistant.revision,
            snapshot: Some(name.hash.clone()),
            mode: self.mode,
            tools: self.tools,
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
            metadata: self.metadata.clone(),
            mocks_unused: Vec::new(),
        }
    }

    /// Refuses a start whose rows would be too large: each run and each call has the variables. So would be its answer, which is
    /// stored under an Idempotency-Key: each run shows the metadata.
    fn check_size(&self, launched: &[Launched]) -> Result<(), Error> {
        let variables: usize = launched.iter().map(|one| one.variables.bytes()).sum();
        if variables > STARTED_VARIABLES_BYTES_MAX {
            let message = format!(
                "have more than {STARTED_VARIABLES_BYTES_MAX} bytes for all runs together, with those of the scenarios; start fewer runs at once, or send less"
            );
            return Err(Error::field("variables", message));
        }
        if launched.len() * self.metadata.bytes() > STARTED_METADATA_BYTES_MAX {
            let message = format!(
                "has more than {STARTED_METADATA_BYTES_MAX} bytes for all runs together; start fewer runs at once, or send less"
            );
            return Err(Error::field("metadata", message));
        }
        Ok(())
    }

    /// Refuses runs whose variables do not fill in the assistant's texts. Names that several runs miss are told together.
    fn check_variables(&self, context: &Context, launched: &[Launched]) -> Result<(), Error> {
        let wanted = Texts::of(self.assistant).wanted();
        let now = Timestamp::from_ms(context.now_ms);
        let mut incomplete = launched.iter().filter(|one| {
            let values = Values::without_telephone(&one.variables, now);
            wanted.missing(&values).next().is_some()
        });
        if let Some(first) = incomplete.next() {
            let first = Variables::clone(&first.variables);
            let common = incomplete.fold(first, |common, one| common.common(&one.variables));
            return variables::check(&wanted, &Values::without_telephone(&common, now));
        }
        let check =
            |one: &Launched| variables::check(&wanted, &Values::without_telephone(&one.variables, now));
        launched.iter().try_for_each(check)
    }

    /// Queues `launched`, with few statements however many runs there are, since the lists go in as JSON.
    async fn commit(
        &self,
        context: &mut Context,
        launched: &[Launched],
        output: Output,
        kept: &Kept,
    ) -> Result<Output, Fault> {
        kept.check_response(context, &output)?;
        let mut batch = Batch::from([checks::room("runs", " AND status = 'queued'", RUNS_QUEUED_MAX)]);
        self.queue(context, launched, &mut batch)?;
        let committed = context.commit(batch, output).await;
        committed.map_err(|fault| checks::explain_room(fault, "queued run", RUNS_QUEUED_MAX))
    }

    fn queue(&self, context: &Context, launched: &[Launched], batch: &mut Batch) -> Result<(), Fault> {
        let snapshots = std::iter::once(&self.stored).chain(launched.iter().map(|one| &*one.simulation));
        batch.push(count_added(distinct(snapshots.clone()), "true"));
        batch.extend(insert_snapshots(snapshots));
        batch.push(named_snapshots::insert(launched.iter().map(|one| &*one.name), context.now_ms));
        let mut jobs = Vec::with_capacity(launched.len());
        let mut rows = StatementLists::default();
        for one in launched {
            let job_id: JobId = context.services.new_id();
            batch.wake(JobKind::SimulationRun, &job_id, context.now_ms);
            jobs.push(json!({"run_id": one.run.id, "job_id": job_id}));
            rows.push(&json!({
                "run_id": one.run.id, "simulation_id": one.run.simulation_id, "simulation": one.simulation.id,
                "seed": one.run.seed, "variables": one.variables, "snapshot": one.name.hash,
                "mocks_unused": one.run.mocks_unused,
            }));
        }
        batch.push(jobs::insert_for_runs(&serde_json::Value::Array(jobs).to_string(), context.now_ms));
        batch.extend(rows.finish().iter().map(|list| self.insert(context, list)));
        Ok(())
    }

    /// Inserts the runs of a list.
    fn insert(&self, context: &Context, list: &str) -> Statement {
        sql!(
            "INSERT INTO runs (workspace_id, id, simulation_id, batch_id, assistant_id, assistant_revision, assistant_snapshot,
             simulation_snapshot, snapshot, mode, tools, seed, max_cost_microusd, status, evaluations, transcript, created_at, variables, metadata, mocks_unused)
             SELECT :ws, json_extract(value, '$.run_id'), COALESCE(json_extract(value, '$.simulation_id'), ''), :batch_id, :assistant_id, :revision, :assistant,
             json_extract(value, '$.simulation'), json_extract(value, '$.snapshot'), :mode, :tools, json_extract(value, '$.seed'), :max_cost,
             'queued', '[]', '[]', :now, json_extract(value, '$.variables'), :metadata, json_extract(value, '$.mocks_unused') FROM json_each(:list)",
            list = list,
            batch_id = self.batch_id.as_ref(),
            assistant_id = &self.assistant.id,
            revision = self.assistant.revision,
            assistant = &self.stored.id,
            mode = self.mode.as_str(),
            tools = self.tools.as_str(),
            max_cost = self.max_cost_microusd,
            metadata = self.metadata.value(),
            now = context.now_ms
        )
    }
}

/// JSON lists that each fit into one statement.
#[derive(Default)]
struct StatementLists {
    whole: Vec<String>,
    list: String,
}

impl StatementLists {
    fn push(&mut self, row: &serde_json::Value) {
        let row = row.to_string();
        if self.list.len() + row.len() > STATEMENT_LIST_BYTES_MAX {
            self.end();
        }
        self.list.push(if self.list.is_empty() { '[' } else { ',' });
        self.list.push_str(&row);
    }

    fn end(&mut self) {
        if !self.list.is_empty() {
            self.whole.push(std::mem::take(&mut self.list) + "]");
        }
    }

    fn finish(mut self) -> Vec<String> {
        self.end();
        self.whole
    }
}

/// Each snapshot once.
fn distinct<'a>(snapshots: impl Iterator<Item = &'a Snapshot>) -> impl Iterator<Item = &'a Snapshot> {
    let mut seen = std::collections::BTreeSet::new();
    snapshots.filter(move |snapshot| seen.insert(&snapshot.id))
}

/// Inserts each snapshot once, in statements of bounded size.
fn insert_snapshots<'a>(snapshots: impl Iterator<Item = &'a Snapshot>) -> Vec<Statement> {
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
    for snapshot in distinct(snapshots) {
        if snapshot.content.len() > STATEMENT_LIST_BYTES_MAX {
            // Inside a list it would be escaped once more, and might no longer fit.
            large.push(snapshot.insert());
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
