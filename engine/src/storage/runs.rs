//! Runs as they are stored and read.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::ids::{AssistantId, BatchId, CallId, RunId, SimulationId};
use crate::base::time::Timestamp;
use crate::conversation::transcript::TranscriptRow;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Statement, Value};
use crate::simulation::evaluation::EvaluationResult;
use crate::sql;
use crate::storage::calls::Call;
use crate::storage::column::{Column, record};
use crate::storage::fault::Fault;

crate::words! {
    /// How a run talks.
    #[derive(Default)]
    json RunMode {
        /// In text.
        #[default]
        Chat = "chat",
        /// In speech.
        Voice = "voice",
    }
}

crate::words! {
    /// Where a run is.
    json RunStatus {
        /// Accepted and waiting.
        Queued = "queued",
        /// In progress.
        Running = "running",
        /// Finished; `passed` says whether the assistant did well.
        Completed = "completed",
        /// The run itself broke; `error` says why.
        Error = "error",
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

record! {
    /// A run.
    pub struct Run {
        /// `run_…`
        pub id: RunId,
        /// The simulation it was started from.
        pub simulation_id: SimulationId,
        /// The batch it was queued with, if any.
        pub batch_id: Option<BatchId>,
        /// The assistant under test.
        pub assistant_id: AssistantId,
        /// The assistant's revision when the run was started.
        pub assistant_revision: i64,
        /// Text or speech.
        pub mode: RunMode,
        /// The state of the run.
        pub status: RunStatus,
        /// Whether every evaluation passed; null until the run is completed.
        pub passed: Option<bool>,
        /// Why the run failed; null unless `status` is `error`.
        pub error: Option<RunError>,
        /// Lines spoken so far by both sides.
        pub turns: i64,
        /// The latest line reported by a run in progress; null before the first.
        pub last_line: Option<String>,
        /// What the models of caller, assistant and judge have cost so far, in millionths of a US dollar.
        pub cost_microusd: i64,
        /// The conversation ends when it has cost this much.
        pub max_cost_microusd: i64,
        /// The same seed and configuration give the same offline run, to the byte.
        pub seed: i64,
        /// When it was queued.
        pub created_at: Timestamp,
        /// When it started.
        pub started_at: Option<Timestamp>,
        /// When it ended.
        pub completed_at: Option<Timestamp>,
        /// The call it is recorded as; null when none is linked.
        pub call_id: Option<CallId>,
    }
}

impl Run {
    /// One run of a workspace, for jobs.
    pub fn select(workspace_id: &str, id: &str) -> Statement {
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

/// A run with all that came of it.
#[derive(Serialize, JsonSchema)]
pub struct RunDetail {
    /// The run.
    #[serde(flatten)]
    run: Run,
    /// What each evaluation found.
    #[schemars(with = "Vec<EvaluationResult>")]
    evaluations: Box<RawValue>,
    /// What was said, oldest first; times count from the start of the conversation.
    #[schemars(with = "Vec<TranscriptRow>")]
    transcript: Box<RawValue>,
    /// The call it is recorded as; null until the run starts.
    call: Option<Call>,
}

impl RunDetail {
    /// What reading the run will show once all this is written: an event's payload is the same as the
    /// read, to the byte.
    pub fn of(run: Run, evaluations: &[EvaluationResult], call: Call) -> Result<Self, Fault> {
        let evaluations = serde_json::value::to_raw_value(evaluations)
            .map_err(|error| Fault::Bug(format!("evaluations do not serialise: {error}")))?;
        Ok(Self { run, evaluations, transcript: call.transcript(), call: Some(call) })
    }

    /// From a row with [`Run::COLUMNS`], `evaluations` and `transcript`, and the call of the run.
    pub(crate) fn read(row: Row<'_>, call: Option<Call>) -> Result<Self, Fault> {
        // A run of before there were calls keeps its transcript itself.
        let transcript = match &call {
            Some(call) => call.transcript(),
            None => row.json("transcript")?,
        };
        Ok(Self { run: Run::read(row)?, evaluations: row.json("evaluations")?, transcript, call })
    }
}

/// Goes into the batch that claims jobs: their runs are in progress from then on.
pub fn mark_running(lease: &str, now_ms: i64) -> Statement {
    sql!(
        "UPDATE runs SET status = 'running', started_at = COALESCE(started_at, :now) WHERE status = 'queued' AND id IN
         (SELECT subject_id FROM jobs WHERE lease = :lease AND kind = 'simulation_run')",
        lease = lease,
        now = now_ms
    )
}
