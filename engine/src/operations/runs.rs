//! Runs: a simulation that was started, is running, or is over.
pub mod batch;
pub mod delete;
pub mod get;
pub mod list;
pub mod start;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::context::Context;
use crate::error::{Error, Fault};
use crate::evaluation::Evaluation;
use crate::hash::sha256_hex;
use crate::ids::prefix;
use crate::jobs::{self, JobKind};
use crate::limits::{SNAPSHOT_BYTES_MAX, STATEMENT_LIST_BYTES_MAX};
use crate::models::ToolSpec;
use crate::operations::assistants::PipelineMode;
use crate::sql;
use crate::statement::{Row, Rows, Statement};
use crate::time;

/// How a run talks.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunMode {
    /// In text.
    #[default]
    Chat,
    /// In speech.
    Voice,
}

/// Where a run is.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "snake_case")]
pub enum RunStatus {
    /// Accepted and waiting.
    Queued,
    /// In progress.
    Running,
    /// Finished; `passed` says whether the assistant did well.
    Completed,
    /// The run itself broke; `error` says why.
    Error,
}

impl RunStatus {
    /// As it is stored.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Queued => "queued",
            Self::Running => "running",
            Self::Completed => "completed",
            Self::Error => "error",
        }
    }
}

/// Why a run broke.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunError {
    /// A word for programs.
    pub code: String,
    /// A sentence for people.
    pub message: String,
}

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// `run_…`
    pub id: String,
    /// The simulation it was started from.
    simulation_id: String,
    /// The batch that queued it, if any.
    batch_id: Option<String>,
    /// The assistant under test.
    assistant_id: String,
    /// The revision it ran with.
    assistant_revision: i64,
    /// How it talks.
    mode: RunMode,
    /// Where it is.
    pub status: RunStatus,
    /// Whether every evaluation passed; null until the run is completed.
    pub passed: Option<bool>,
    /// Why the run broke; null unless `status` is `error`.
    pub error: Option<RunError>,
    /// Lines spoken so far by both sides.
    pub turns: i64,
    /// The line spoken last, as far as a run in progress has told; null before the first.
    pub last_line: Option<String>,
    /// What models have cost so far, caller, assistant and judge together, in millionths of a US dollar.
    pub cost_microusd: i64,
    /// The conversation ends when it has cost this much.
    pub max_cost_microusd: i64,
    /// The same seed and configuration give the same offline run, to the byte.
    pub seed: i64,
    /// When it was queued.
    created_at: String,
    /// When it started.
    started_at: Option<String>,
    /// When it was over.
    pub completed_at: Option<String>,
    /// The call it is recorded as; null when none is linked.
    pub call_id: Option<String>,
}

/// The columns [`Run::read`] needs.
const COLUMNS: &str = "id, simulation_id, batch_id, assistant_id, assistant_revision, mode, status, passed, error, turns, last_line, cost_microusd, max_cost_microusd, seed, created_at, started_at, completed_at, call_id";

impl Run {
    /// One run of a workspace, for jobs.
    pub fn select(workspace_id: &str, id: &str) -> Statement {
        sql!(format!("SELECT {COLUMNS} FROM runs WHERE workspace_id = ?1 AND id = ?2"), workspace_id, id)
    }

    /// From a row of [`Run::select`] or of a list.
    pub fn read(row: Row<'_>) -> Result<Self, Fault> {
        let word = |text: String| serde_json::Value::String(text);
        let stored = |error: serde_json::Error| Fault::Bug(format!("stored run: {error}"));
        Ok(Self {
            id: row.text("id")?,
            simulation_id: row.text("simulation_id")?,
            batch_id: row.optional_text("batch_id")?,
            assistant_id: row.text("assistant_id")?,
            assistant_revision: row.integer("assistant_revision")?,
            mode: serde_json::from_value(word(row.text("mode")?)).map_err(stored)?,
            status: serde_json::from_value(word(row.text("status")?)).map_err(stored)?,
            passed: row.optional_integer("passed")?.map(|passed| passed != 0),
            error: match row.optional_text("error")? {
                Some(text) => serde_json::from_str(&text).map_err(stored)?,
                None => None,
            },
            turns: row.integer("turns")?,
            last_line: row.optional_text("last_line")?,
            cost_microusd: row.integer("cost_microusd")?,
            max_cost_microusd: row.integer("max_cost_microusd")?,
            seed: row.integer("seed")?,
            created_at: time::format(row.integer("created_at")?),
            started_at: time::format_optional(row.optional_integer("started_at")?),
            completed_at: time::format_optional(row.optional_integer("completed_at")?),
            call_id: row.optional_text("call_id")?,
        })
    }
}

/// The assistant as a run keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AssistantSnapshot {
    /// The assistant's id.
    pub id: String,
    /// The assistant's name.
    pub name: String,
    /// Its instructions.
    pub instructions: String,
    /// Its opening message.
    pub first_message: String,
    /// Its model.
    pub model: String,
    /// Its voice.
    pub voice: String,
    /// How speech is carried.
    pub pipeline_mode: PipelineMode,
    /// Its revision.
    pub revision: i64,
    /// Attached tools, in order.
    pub tools: Vec<ToolSnapshot>,
    /// Attached documents, in order.
    pub knowledge: Vec<crate::models::Knowledge>,
}

impl AssistantSnapshot {
    /// Its tools as a model sees them.
    pub fn tool_specs(&self) -> Vec<ToolSpec> {
        let spec = |tool: &ToolSnapshot| ToolSpec {
            name: tool.name.clone(),
            description: tool.description.clone(),
            parameters: tool.parameters.clone(),
        };
        self.tools.iter().map(spec).collect()
    }
}

/// A tool as a run keeps it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ToolSnapshot {
    /// The tool's id.
    pub id: String,
    /// Its function name.
    pub name: String,
    /// Where it is called.
    pub url: String,
    /// How it is called.
    pub method: String,
    /// What it is for.
    pub description: String,
    /// Its arguments' schema.
    pub parameters: serde_json::Value,
    /// How long a call may take.
    pub timeout_ms: i64,
    /// Which of its secrets signed when the run was started; a call asks for the one that does now.
    pub secret_version: i64,
}

impl SimulationSnapshot {
    /// The models that a run asks, the assistant's among them.
    fn models<'a>(&'a self, assistant: &'a AssistantSnapshot) -> impl Iterator<Item = &'a str> {
        let own = [self.caller_model.as_deref(), self.judge_model.as_deref()];
        std::iter::once(assistant.model.as_str()).chain(own.into_iter().flatten())
    }
}

/// The persona and the scenario as a run keeps them.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulationSnapshot {
    /// The simulation's name.
    pub name: String,
    /// The persona's instructions.
    pub persona: String,
    /// The model that speaks as the caller; none: the assistant's.
    #[serde(default)]
    pub caller_model: Option<String>,
    /// The model that judges; none: the assistant's.
    #[serde(default)]
    pub judge_model: Option<String>,
    /// The scenario's instructions.
    pub scenario: String,
    /// What decides whether the run passes.
    pub evaluations: Vec<Evaluation>,
}

/// A content-addressed snapshot.
struct Snapshot {
    id: String,
    content: String,
}

impl Snapshot {
    /// Refuses what no row can hold, by the name of the field that picked it.
    fn of(value: &impl Serialize, field: &str) -> Result<Self, Fault> {
        let content = serde_json::to_string(value)
            .map_err(|error| Fault::Bug(format!("a snapshot does not serialise: {error}")))?;
        if content.len() > SNAPSHOT_BYTES_MAX {
            let message = format!(
                "is too large to run: instructions, tools and knowledge, or persona, scenario and evaluations, take at most {SNAPSHOT_BYTES_MAX} bytes together"
            );
            return Err(Error::field(field, message).into());
        }
        Ok(Self { id: sha256_hex(content.as_bytes()), content })
    }
}

/// Refuses what this service cannot run, by the name of the field.
fn check_mode(mode: RunMode) -> Result<(), Error> {
    match mode {
        RunMode::Chat => Ok(()),
        RunMode::Voice => Err(Error::field(
            "mode",
            "voice runs need the speech pipeline, which this version does not have; use chat",
        )),
    }
}

/// A seed where none is given.
fn random_seed(context: &Context) -> i64 {
    let mut bytes = [0; 8];
    // 48 bits: exact in any JSON client.
    context.engine.ports().random.fill(&mut bytes[..6]);
    i64::from_le_bytes(bytes)
}

/// Reads everything attached to the assistant picked by `(sub)query` of one id.
pub(crate) fn assistant_reads(assistant: &'static str, parameter: &str) -> [Statement; 3] {
    [
        sql!(
            format!(
                "SELECT id, name, instructions, first_message, model, voice, pipeline_mode, revision
                 FROM assistants WHERE workspace_id = :ws AND id = {assistant}"
            ),
            parameter
        ),
        sql!(
            format!(
                "SELECT tools.id AS id, tools.name AS name, url, method, description, parameters, timeout_ms, secret_version
                 FROM assistant_tools AS attached JOIN tools ON tools.id = attached.tool_id
                 WHERE attached.workspace_id = :ws AND attached.assistant_id = {assistant} ORDER BY attached.position"
            ),
            parameter
        ),
        sql!(
            format!(
                "SELECT documents.name AS name, content
                 FROM assistant_documents AS attached JOIN documents ON documents.id = attached.document_id
                 WHERE attached.workspace_id = :ws AND attached.assistant_id = {assistant} ORDER BY attached.position"
            ),
            parameter
        ),
    ]
}

/// What [`assistant_reads`] found.
pub(crate) fn assistant_snapshot(rows: &[Rows]) -> Result<Option<AssistantSnapshot>, Fault> {
    let [assistant, tools, documents] = rows else {
        return Err(Fault::Bug("an assistant's snapshot needs three answers".to_owned()));
    };
    let Some(row) = assistant.first() else {
        return Ok(None);
    };
    let tools = tools
        .iter()
        .map(|row| {
            Ok(ToolSnapshot {
                id: row.text("id")?,
                name: row.text("name")?,
                url: row.text("url")?,
                method: row.text("method")?,
                description: row.text("description")?,
                parameters: row.json("parameters")?,
                timeout_ms: row.integer("timeout_ms")?,
                secret_version: row.integer("secret_version")?,
            })
        })
        .collect::<Result<_, Fault>>()?;
    let knowledge = documents
        .iter()
        .map(|row| Ok(crate::models::Knowledge { name: row.text("name")?, content: row.text("content")? }))
        .collect::<Result<_, Fault>>()?;
    let pipeline_mode = serde_json::from_value(json!(row.text("pipeline_mode")?))
        .map_err(|error| Fault::Bug(format!("stored pipeline_mode: {error}")))?;
    Ok(Some(AssistantSnapshot {
        id: row.text("id")?,
        name: row.text("name")?,
        instructions: row.text("instructions")?,
        first_message: row.text("first_message")?,
        model: row.text("model")?,
        voice: row.text("voice")?,
        pipeline_mode,
        revision: row.integer("revision")?,
        tools,
        knowledge,
    }))
}

/// A persona with a scenario, joined to a simulation.
const SIMULATION_COLUMNS: &str = "simulations.id AS id, simulations.name AS name, system_prompt, personas.model AS caller_model, judge_model, scenarios.instructions AS instructions, evaluations
    FROM simulations JOIN personas ON personas.id = simulations.persona_id JOIN scenarios ON scenarios.id = simulations.scenario_id";

fn simulation_snapshot(row: Row<'_>) -> Result<SimulationSnapshot, Fault> {
    Ok(SimulationSnapshot {
        name: row.text("name")?,
        persona: row.text("system_prompt")?,
        caller_model: row.optional_text("caller_model")?,
        judge_model: row.optional_text("judge_model")?,
        scenario: row.text("instructions")?,
        evaluations: row.json("evaluations")?,
    })
}

/// What one or many runs are started with.
struct Launch<'a> {
    assistant: &'a AssistantSnapshot,
    mode: RunMode,
    batch_id: Option<String>,
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
        simulation_id: String,
        simulation: &SimulationSnapshot,
        seed: i64,
    ) -> Result<Launched, Fault> {
        let run = Run {
            id: context.id(prefix::RUN),
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
            cost_microusd: 0,
            max_cost_microusd: self.max_cost_microusd,
            seed,
            created_at: time::format(context.now_ms),
            started_at: None,
            completed_at: None,
            call_id: None,
        };
        Ok(Launched { run, simulation: Snapshot::of(simulation, "simulation_id")? })
    }

    /// The statements that queue `launched`: few however many runs there are, since the lists go in
    /// as JSON.
    fn statements(&self, context: &mut Context, launched: &[Launched]) -> Result<Vec<Statement>, Fault> {
        let assistant = Snapshot::of(self.assistant, "assistant_id")?;
        let snapshots = std::iter::once(&assistant).chain(launched.iter().map(|one| &one.simulation));
        let mut statements = insert_snapshots(snapshots);
        let mode = match self.mode {
            RunMode::Chat => "chat",
            RunMode::Voice => "voice",
        };
        let mut rows = Vec::with_capacity(launched.len());
        for one in launched {
            let job_id = context.id(prefix::JOB);
            context.wake_after_write(JobKind::SimulationRun, &job_id, context.now_ms);
            rows.push(json!({
                "run_id": one.run.id, "simulation_id": one.run.simulation_id, "snapshot": one.simulation.id,
                "seed": one.run.seed, "job_id": job_id,
            }));
        }
        let list = serde_json::Value::Array(rows).to_string();
        statements.push(jobs::insert_for_runs(&list, context.now_ms));
        statements.push(sql!(
            "INSERT INTO runs (workspace_id, id, simulation_id, batch_id, assistant_id, assistant_revision, assistant_snapshot,
             simulation_snapshot, mode, seed, max_cost_microusd, status, evaluations, transcript, created_at)
             SELECT :ws, json_extract(value, '$.run_id'), json_extract(value, '$.simulation_id'), ?2, ?3, ?4, ?5,
             json_extract(value, '$.snapshot'), ?6, json_extract(value, '$.seed'), ?7, 'queued', '[]', '[]', ?8 FROM json_each(?1)",
            list,
            self.batch_id.clone(),
            &self.assistant.id,
            self.assistant.revision,
            &assistant.id,
            mode,
            self.max_cost_microusd,
            context.now_ms,
        ));
        Ok(statements)
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
                 SELECT :ws, json_extract(value, '$.id'), json_extract(value, '$.content') FROM json_each(?1) WHERE true
                 ON CONFLICT DO NOTHING",
                rows
            ));
        }
    };
    for snapshot in snapshots.filter(|snapshot| seen.insert(&snapshot.id)) {
        if snapshot.content.len() > STATEMENT_LIST_BYTES_MAX {
            // Inside a list it would be escaped once more, and might no longer fit.
            large.push(sql!(
                "INSERT INTO snapshots (workspace_id, id, content) VALUES (:ws, ?1, ?2) ON CONFLICT DO NOTHING",
                &snapshot.id,
                &snapshot.content
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
