//! Runs as they are stored and read.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::ids::{AssistantId, BatchId, CallId, RunId, SimulationId, WorkspaceId};
use crate::base::limits::LAST_LINE_BYTES_MAX;
use crate::base::text::{truncate, without_controls};
use crate::base::time::Timestamp;
use crate::base::values::{Metadata, Variables};
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement, Value};
use crate::simulation::evaluation::EvaluationResult;
use crate::sql;
use crate::storage::calls::Call;
use crate::storage::column::{Column, record};
use crate::storage::fault::Fault;

crate::words! {
    /// Whether caller and assistant exchange text or speech.
    #[derive(Default)]
    json RunMode {
        /// The two sides exchange text.
        #[default]
        Chat = "chat",
        /// The two sides exchange speech, on a line with the scenario's `conditions`. The call is recorded. With the voice
        /// `builtin/tone` it is computed at once; with a provider's voice it is spoken in real time, for ten minutes at most,
        /// and costs what speech costs. `builtin/browser` cannot be used.
        Voice = "voice",
    }
}

crate::words! {
    /// What answers the assistant's tool calls.
    #[derive(Default)]
    json RunTools {
        /// The scenario's `tool_mocks`, where it has them for a tool. The other tools are called.
        #[default]
        Mock = "mock",
        /// The tools themselves: the endpoints are called.
        Live = "live",
    }
}

crate::words! {
    /// The status of a run.
    json RunStatus {
        /// Accepted and waiting.
        Queued = "queued",
        /// In progress.
        Running = "running",
        /// Finished; `passed` has the result.
        Completed = "completed",
        /// The run itself failed; `error` says why.
        Error = "error",
    }
}

/// Why a run failed.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct RunError {
    /// The error code.
    pub code: String,
    /// A message for people.
    pub message: String,
}

record! {
    /// A run.
    pub struct Run {
        /// `run_…`
        pub id: RunId,
        /// The simulation that was run; null of a run whose persona and scenario were given with its start.
        pub simulation_id: Option<SimulationId> = "NULLIF(simulation_id, '')",
        /// The batch it was queued with, if any.
        pub batch_id: Option<BatchId>,
        /// The assistant under test.
        pub assistant_id: AssistantId,
        /// The assistant's revision when the run was started.
        pub assistant_revision: i64,
        /// The hash of what the run was started with, for `GET /snapshots/{hash}`: the same assistant, persona, scenario and
        /// mode have the same. Null for runs of earlier versions.
        pub snapshot: Option<String>,
        /// How caller and assistant communicate.
        pub mode: RunMode,
        /// What answered the assistant's tool calls.
        pub tools: RunTools,
        /// The state of the run.
        pub status: RunStatus,
        /// True if every evaluation passed, false if one failed. Null until the run is completed, and where nothing decides:
        /// an evaluation was not decided, or there is none.
        pub passed: Option<bool>,
        /// Why the run failed; null unless `status` is `error`.
        pub error: Option<RunError>,
        /// Lines spoken so far by both sides.
        pub turns: i64,
        /// The latest line that was spoken, shortened to 200 bytes; null before the first. It stays after the run ends.
        pub last_line: Option<String>,
        /// The first evaluation that failed, else the first that was not decided, and why, shortened to 200 bytes; null if
        /// all passed.
        pub failed_evaluation: Option<String>,
        /// The costs of caller, assistant and judge so far, with speech, in millionths of a US dollar.
        pub cost_microusd: i64,
        /// The cost limit, which ends the conversation. As the run starts, it is lowered to what is left of the
        /// workspace's money.
        pub max_cost_microusd: i64,
        /// The seed: the same seed and configuration produce the same offline run, byte for byte.
        pub seed: i64,
        /// When it was queued.
        pub created_at: Timestamp,
        /// When it started.
        pub started_at: Option<Timestamp>,
        /// When it ended.
        pub completed_at: Option<Timestamp>,
        /// The call of the run; null if there is none.
        pub call_id: Option<CallId>,
        /// Texts of your own, by name, as the run was started with them. Its call has them, too.
        pub metadata: Metadata,
        /// Tools that the scenario answers for (`tool_mocks`) and that the assistant does not have, by name, at most 8: none of these
        /// answers is given. Look for misspelled names, since the endpoint of a tool that is not answered for is called.
        pub mocks_unused: Vec<String>,
    }
}

impl Run {
    /// One run of a workspace, for jobs.
    pub fn select(workspace_id: &WorkspaceId, id: &RunId) -> Statement {
        let columns = Self::COLUMNS;
        sql!(
            format!("SELECT {columns} FROM runs WHERE workspace_id = :workspace_id AND id = :id"),
            workspace_id = workspace_id,
            id = id
        )
    }
}

impl Column for RunError {
    fn read(row: Row<'_>, column: &str) -> Result<Self, DatabaseError> {
        row.json(column)
    }

    fn value(&self) -> Value {
        serde_json::json!(self).to_string().into()
    }
}

/// A run with its results.
#[derive(Serialize, JsonSchema)]
pub struct RunDetail {
    /// The run.
    #[serde(flatten)]
    run: Run,
    /// What the simulation was called when the run was started. A persona and a scenario that were given with the start, and
    /// not stored, are called by both names: `persona × scenario`.
    simulation_name: String,
    /// What fills in the names in the assistant's texts, without what is built in: the scenario's, with those of the run laid over
    /// them.
    variables: Variables,
    /// The result of each evaluation.
    #[schemars(with = "Vec<EvaluationResult>")]
    evaluations: Box<RawValue>,
    /// The call of the run, with the transcript; null until the run starts, and for a run that ended without starting.
    call: Option<Call>,
}

impl RunDetail {
    /// The columns of a run that only a read of it has.
    pub(crate) const MORE_COLUMNS: &str = "variables, evaluations, COALESCE((SELECT json_extract(content, '$.name') FROM snapshots
         WHERE snapshots.workspace_id = runs.workspace_id AND snapshots.id = simulation_snapshot), '') AS simulation_name";

    /// The run as a read returns it after these values have been written: the payload of an event equals that response
    /// byte for byte.
    pub fn of(
        run: Run,
        simulation_name: String,
        variables: Variables,
        evaluations: &[EvaluationResult],
        call: Option<Call>,
    ) -> Result<Self, Fault> {
        let evaluations = serde_json::value::to_raw_value(evaluations)
            .map_err(|error| Fault::Bug(format!("evaluations do not serialise: {error}")))?;
        Ok(Self { run, simulation_name, variables, evaluations, call })
    }

    /// Reads a row with [`Run::COLUMNS`], [`Self::MORE_COLUMNS`], and the call of the run.
    pub(crate) fn read(row: Row<'_>, call: Option<Call>) -> Result<Self, Fault> {
        let variables = row.json("variables")?;
        let simulation_name = row.text("simulation_name")?;
        Ok(Self {
            run: Run::read(row)?,
            simulation_name,
            variables,
            evaluations: row.json("evaluations")?,
            call,
        })
    }
}

/// The statement that stores how far a run is.
pub fn progress(
    workspace_id: &WorkspaceId,
    id: &RunId,
    turns: u32,
    transcript: &[TranscriptRow],
    cost_microusd: i64,
) -> Statement {
    sql!(
        "UPDATE runs SET turns = :turns, last_line = :last_line, cost_microusd = :cost_microusd
         WHERE workspace_id = :workspace_id AND id = :id",
        workspace_id = workspace_id,
        id = id,
        turns = i64::from(turns),
        last_line = last_line(transcript),
        cost_microusd = cost_microusd,
    )
}

/// The latest line, truncated for lists.
pub fn last_line(transcript: &[TranscriptRow]) -> Option<String> {
    let spoken = |row: &&TranscriptRow| matches!(row.role, TranscriptRole::User | TranscriptRole::Assistant);
    let row = transcript.iter().rev().find(spoken)?;
    Some(truncate(without_controls(&row.text), LAST_LINE_BYTES_MAX))
}

/// The first evaluation that failed, else the first that is open, and why, truncated for lists.
pub fn failed_evaluation(evaluations: &[EvaluationResult]) -> Option<String> {
    let first = |passed: Option<bool>| evaluations.iter().find(|one| one.passed == passed);
    let failed = first(Some(false)).or_else(|| first(None))?;
    let includes = truncate(without_controls(&failed.includes), LAST_LINE_BYTES_MAX / 2);
    Some(truncate(format!("“{includes}”: {}", without_controls(&failed.reason)), LAST_LINE_BYTES_MAX))
}

/// Marks a run as queued again, because it could not start. One whose call is open stays in progress.
pub fn mark_queued(workspace_id: &WorkspaceId, id: &RunId) -> Statement {
    sql!(
        "UPDATE runs SET status = 'queued', started_at = NULL
         WHERE workspace_id = :workspace_id AND id = :id AND status = 'running' AND call_id IS NULL",
        workspace_id = workspace_id,
        id = id
    )
}

/// Marks the runs of claimed jobs as in progress, in the batch that claims the jobs.
pub fn mark_running(lease: &str, now_ms: i64) -> Statement {
    sql!(
        "UPDATE runs SET status = 'running', started_at = COALESCE(started_at, :now) WHERE status = 'queued' AND id IN
         (SELECT subject_id FROM jobs WHERE lease = :lease AND kind = 'simulation_run')",
        lease = lease,
        now = now_ms
    )
}
