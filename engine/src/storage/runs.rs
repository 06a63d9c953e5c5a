//! Runs as they are stored and read.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::time;
use crate::conversation::transcript::TranscriptRow;
use crate::ports::statement::{Row, Statement};
use crate::simulation::evaluation::EvaluationResult;
use crate::sql;
use crate::storage::calls::Call;
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

/// A run.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Run {
    /// `run_…`
    pub id: String,
    /// The simulation it was started from.
    pub simulation_id: String,
    /// The batch that queued it, if any.
    pub batch_id: Option<String>,
    /// The assistant under test.
    pub assistant_id: String,
    /// The revision it ran with.
    pub assistant_revision: i64,
    /// How it talks.
    pub mode: RunMode,
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
    pub created_at: String,
    /// When it started.
    pub started_at: Option<String>,
    /// When it was over.
    pub completed_at: Option<String>,
    /// The call it is recorded as; null when none is linked.
    pub call_id: Option<String>,
}

/// The columns [`Run::read`] needs.
pub(crate) const COLUMNS: &str = "id, simulation_id, batch_id, assistant_id, assistant_revision, mode, status, passed, error, turns, last_line, cost_microusd, max_cost_microusd, seed, created_at, started_at, completed_at, call_id";

impl Run {
    /// One run of a workspace, for jobs.
    pub fn select(workspace_id: &str, id: &str) -> Statement {
        sql!(format!("SELECT {COLUMNS} FROM runs WHERE workspace_id = ?1 AND id = ?2"), workspace_id, id)
    }

    /// From a row of [`Run::select`] or of a list.
    pub fn read(row: Row<'_>) -> Result<Self, Fault> {
        let stored = |error: serde_json::Error| Fault::Bug(format!("stored run: {error}"));
        Ok(Self {
            id: row.text("id")?,
            simulation_id: row.text("simulation_id")?,
            batch_id: row.optional_text("batch_id")?,
            assistant_id: row.text("assistant_id")?,
            assistant_revision: row.integer("assistant_revision")?,
            mode: row.word("mode")?,
            status: row.word("status")?,
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

    /// From a row with [`COLUMNS`], `evaluations` and `transcript`, and the call of the run.
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
        "UPDATE runs SET status = 'running', started_at = COALESCE(started_at, ?2) WHERE status = 'queued' AND id IN
         (SELECT subject_id FROM jobs WHERE lease = ?1 AND kind = 'simulation_run')",
        lease,
        now_ms
    )
}
