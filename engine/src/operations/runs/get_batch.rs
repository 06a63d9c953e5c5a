//! `GET /simulations/batches/{id}`: what came of the runs of a batch.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::ids::{AssistantId, BatchId, RunId, SimulationId};
use crate::base::limits::{BATCH_FAILURE_CHARS_MAX, BATCH_FAILURES_MAX};
use crate::base::time::Timestamp;
use crate::base::values::{Metadata, Variables};
use crate::conversation::transcript::TranscriptRole;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::waiting::{self, Wait};
use crate::ports::statement::{Row, Rows};
use crate::simulation::evaluation::{EvaluationKind, EvaluationRole};
use crate::sql;
use crate::storage::archives;
use crate::storage::column::record;
use crate::storage::fault::Fault;
use crate::storage::runs::{RunMode, RunTools};

/// `GET /simulations/batches/{id}`
pub const OPERATION: Operation = Operation::get(
    "get_simulation_batch",
    "/simulations/batches/{id}",
    run!(run),
)
.docs(
    "Get a batch",
    "Tells how a batch was started, how far it is, what came of its runs, and which evaluations failed at which line. With \
            `wait_seconds`, it answers when all runs have ended.",
)
.query::<Wait>()
.returns::<BatchDetail>();

record! {
    /// The runs of a batch that are left, counted.
    pub struct BatchCounts {
        /// `batch_…`
        pub batch_id: BatchId,
        /// The assistant under test.
        pub assistant_id: AssistantId = "MIN(assistant_id)",
        /// How many runs there are. Those that were deleted do not count.
        pub total: i64 = "COUNT(*)",
        /// How many wait.
        pub queued: i64 = "SUM(status = 'queued')",
        /// How many are in progress.
        pub running: i64 = "SUM(status = 'running')",
        /// How many are completed: `passed`, `failed` and `undecided` together.
        pub completed: i64 = "SUM(status = 'completed')",
        /// How many could not be carried out: their `status` is `error`.
        pub errors: i64 = "SUM(status = 'error')",
        /// How many passed.
        pub passed: i64 = "COUNT(CASE WHEN passed = 1 THEN 1 END)",
        /// How many have an evaluation that failed.
        pub failed: i64 = "COUNT(CASE WHEN passed = 0 THEN 1 END)",
        /// How many are completed without a result: an evaluation was not decided, or there is none.
        pub undecided: i64 = "SUM(status = 'completed' AND passed IS NULL)",
        /// The costs of all runs so far, in millionths of a US dollar.
        pub total_cost_microusd: i64 = "SUM(cost_microusd)",
        /// When it was started.
        pub created_at: Timestamp = "MIN(created_at)",
        /// When its last run ended; null while one is queued or running.
        pub completed_at: Option<Timestamp> = "CASE WHEN SUM(status IN ('queued', 'running')) = 0 THEN MAX(completed_at) END",
    }
}

record! {
    /// How a batch was started, as its runs tell that are left.
    pub struct BatchStart {
        /// How caller and assistant communicate.
        pub mode: RunMode,
        /// What answered the assistant's tool calls.
        pub tools: RunTools = "MIN(tools)",
        /// The seed of the first run of each simulation; null if they differ.
        pub seed: Option<i64> = "CASE WHEN MIN(first_seed) = MAX(first_seed) THEN MIN(first_seed) END",
        /// How many runs each simulation has.
        pub repeat: i64 = "MAX(runs_of_one)",
        /// The cost limit of each run.
        pub max_cost_microusd: i64 = "MAX(max_cost_microusd)",
        /// The variables that all runs have in common: with these, the simulations run with the same again.
        pub variables: Variables = "(SELECT json_group_object(name, value) FROM common)",
        /// Texts of your own, by name, as the runs have them.
        pub metadata: Metadata = "MIN(metadata)",
    }
}

/// A batch of runs.
#[derive(Serialize, JsonSchema)]
struct BatchDetail {
    #[serde(flatten)]
    counts: BatchCounts,
    #[serde(flatten)]
    start: BatchStart,
    /// The first evaluations that failed, at most 20: one of each run, then a second one of each, and so on.
    failures: Vec<BatchFailure>,
    /// So many more evaluations failed, or more. `list_simulation_runs` with `passed` `false` lists their runs.
    failures_left_out: i64,
}

/// An evaluation that failed. Its texts are cut to 500 characters.
#[derive(Serialize, JsonSchema)]
struct BatchFailure {
    /// The run.
    run_id: RunId,
    /// The simulation that was run, if it is a stored one.
    simulation_id: Option<SimulationId>,
    /// The seed of the run.
    seed: i64,
    /// `mocks_unused` of the run: tools that the scenario answers for and that the assistant does not have.
    mocks_unused: Vec<String>,
    /// The `kind` of the evaluation.
    kind: EvaluationKind,
    /// The `role` of the evaluation.
    role: EvaluationRole,
    /// The `includes` of the evaluation.
    includes: String,
    /// The reason.
    reason: String,
    /// The row of the transcript that decided, else the last line of the evaluation's `role`; null if there is none, or if
    /// the transcript was deleted or is lost.
    turn: Option<BatchFailureTurn>,
}

/// A row of a transcript.
#[derive(Serialize, Deserialize, JsonSchema)]
struct BatchFailureTurn {
    /// The index of the row, from 0.
    index: i64,
    /// The source of the row.
    role: TranscriptRole,
    /// The text of the row.
    text: String,
    /// Whether the evaluation's `matched_index` says that this row decides.
    decides: bool,
}

/// What an evaluation's result has that a failure shows.
#[derive(Deserialize)]
struct Missed {
    kind: EvaluationKind,
    role: EvaluationRole,
    includes: String,
    reason: String,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id: &BatchId = &input.id();
    let goes_on = sql!(
        "SELECT 1 AS goes_on FROM runs INDEXED BY runs_under_way WHERE workspace_id = :ws AND batch_id = :id AND status IN ('queued', 'running') LIMIT 1",
        id = id
    );
    waiting::until_over(context, input, goes_on).await?;
    let counts = sql!(
        format!(
            "SELECT {} FROM runs WHERE workspace_id = :ws AND batch_id = :id GROUP BY batch_id",
            BatchCounts::COLUMNS
        ),
        id = id
    );
    // Only so many runs are looked into, however many have failed: their evaluations can be long.
    let failures = sql!(
        format!(
            "WITH failed AS MATERIALIZED (SELECT id AS run_id, NULLIF(simulation_id, '') AS simulation_id, seed, call_id, evaluations, mocks_unused FROM runs
               WHERE workspace_id = :ws AND batch_id = :id AND +passed = 0 ORDER BY id LIMIT {BATCH_FAILURES_MAX}),
             missed AS MATERIALIZED (SELECT failed.run_id AS of_run, e.value AS result, json_extract(e.value, '$.matched_index') AS matched,
               ROW_NUMBER() OVER (PARTITION BY failed.run_id ORDER BY e.key) AS nth, COUNT(*) OVER () AS found
               FROM failed CROSS JOIN json_each(failed.evaluations) AS e WHERE json_extract(e.value, '$.passed') = 0),
             listed AS MATERIALIZED (SELECT * FROM missed ORDER BY nth, of_run LIMIT {BATCH_FAILURES_MAX})
             SELECT run_id, simulation_id, seed, mocks_unused, found,
               json_object('kind', json_extract(result, '$.kind'), 'role', json_extract(result, '$.role'),
                 'includes', substr(json_extract(result, '$.includes'), 1, {BATCH_FAILURE_CHARS_MAX}),
                 'reason', substr(json_extract(result, '$.reason'), 1, {BATCH_FAILURE_CHARS_MAX})) AS missed,
               {} AS turn, matched, c.id AS id, '[]' AS transcript, {}
             FROM listed JOIN failed ON run_id = of_run LEFT JOIN calls AS c ON c.workspace_id = :ws AND c.id = failed.call_id
             LEFT JOIN call_transcripts AS t ON t.seq = c.seq ORDER BY nth, run_id",
            turn("t.content"),
            archives::COLUMNS
        ),
        id = id
    );
    // The runs of a simulation have the same variables, so one of each is looked into: one that has them still. They go with
    // its call.
    let start = sql!(
        format!(
            "WITH firsts AS MATERIALIZED (SELECT COALESCE(MIN(id) FILTER (WHERE call_id IS NOT NULL OR status IN ('queued', 'running')),
                 MIN(id)) AS first_id, MIN(seed) AS first_seed, COUNT(*) AS runs_of_one FROM runs
               WHERE workspace_id = :ws AND batch_id = :id GROUP BY simulation_id),
             common AS (SELECT e.key AS name, e.value AS value FROM firsts CROSS JOIN runs ON runs.id = first_id AND workspace_id = :ws
               CROSS JOIN json_each(runs.variables) AS e GROUP BY e.key, e.value HAVING COUNT(*) = (SELECT COUNT(*) FROM firsts))
             SELECT {} FROM firsts CROSS JOIN runs ON runs.id = first_id AND workspace_id = :ws GROUP BY mode",
            BatchStart::COLUMNS
        ),
        id = id
    );
    let [counts, failures, start] = context.read_each([counts, failures, start]).await?;
    let missing = || Error::not_found("batch");
    let counts = BatchCounts::read(counts.first().ok_or_else(missing)?)?;
    let start = BatchStart::read(start.first().ok_or_else(missing)?)?;
    let failures_left_out = left_out(&counts, &failures)?;
    let failures = unarchived(context, failures).await?;
    let failures = failures.iter().map(BatchFailure::read).collect::<Result<_, Fault>>()?;
    Output::ok(&BatchDetail { counts, start, failures, failures_left_out })
}

/// The row of a transcript that an evaluation (`result`, and `matched` of it) failed at, or that comes closest to it.
fn turn(content: &str) -> String {
    format!(
        "(SELECT json_object('index', e.key, 'role', json_extract(e.value, '$.role'),
           'text', substr(json_extract(e.value, '$.text'), 1, {BATCH_FAILURE_CHARS_MAX}),
           'decides', json(CASE WHEN matched IS NULL THEN 'false' ELSE 'true' END))
         FROM json_each({content}) AS e
         WHERE CASE WHEN matched IS NOT NULL THEN e.key = matched
           WHEN json_extract(result, '$.kind') IN ('transcript', 'transcript_excludes', 'judge') THEN CASE json_extract(result, '$.role')
             WHEN 'assistant' THEN json_extract(e.value, '$.role') = 'assistant'
             WHEN 'user' THEN json_extract(e.value, '$.role') IN ('user', 'dtmf')
             WHEN 'tool' THEN json_extract(e.value, '$.role') IN ('tool_call', 'tool_result')
             ELSE json_extract(e.value, '$.role') IN ('user', 'assistant') END
           ELSE json_extract(e.value, '$.role') IN ('user', 'assistant') END
         ORDER BY e.key DESC LIMIT 1)"
    )
}

/// Finds the `turn` of those failures whose transcript is archived, one after the other: transcripts can be large.
async fn unarchived(context: &mut Context, failures: Rows) -> Result<Rows, Fault> {
    let Rows { columns, values } = failures;
    let place = columns.iter().position(|column| column == "turn");
    let mut found = Rows { columns: columns.clone(), values: Vec::with_capacity(values.len()) };
    for value in values {
        let mut one = Rows { columns: columns.clone(), values: vec![value] };
        context.unarchive_list(&mut one).await?;
        let row = one
            .first()
            .filter(|row| row.optional_integer("archive_bytes").is_ok_and(|bytes| bytes > Some(0)));
        // It is NULL if it is lost.
        let transcript = row.map(|row| row.optional_text("transcript")).transpose()?.flatten();
        if let Some(row) = row
            && let Some(transcript) = transcript
        {
            let select = sql!(
                format!(
                    "SELECT {} AS turn FROM (SELECT CAST(:matched AS INTEGER) AS matched, :result AS result)",
                    turn(":transcript")
                ),
                matched = row.optional_integer("matched")?,
                result = row.text("missed")?,
                transcript = transcript
            );
            // It reads no table.
            let [turn] = context.services.read([select]).await?;
            let turn = turn.first().map(|row| row.optional_text("turn")).transpose()?.flatten();
            if let Some(value) = place.and_then(|place| one.values.first_mut()?.get_mut(place)) {
                *value = turn.into();
            }
        }
        found.values.append(&mut one.values);
    }
    Ok(found)
}

/// Of the runs that were looked into, what is not listed; of the others, one evaluation at least.
fn left_out(counts: &BatchCounts, failures: &Rows) -> Result<i64, Fault> {
    let found = failures.first().map_or(Ok(0), |row| row.integer("found"))?;
    let listed = i64::try_from(failures.values.len()).unwrap_or(i64::MAX);
    let other_runs = counts.failed - counts.failed.min(BATCH_FAILURES_MAX);
    Ok(found - listed + other_runs)
}

impl BatchFailure {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        let Missed { kind, role, includes, reason } = row.json("missed")?;
        let turn = match row.optional_text("turn")? {
            Some(_) => Some(row.json("turn")?),
            None => None,
        };
        Ok(Self {
            run_id: row.id("run_id")?,
            simulation_id: row.optional_id("simulation_id")?,
            seed: row.integer("seed")?,
            mocks_unused: row.json("mocks_unused")?,
            kind,
            role,
            includes,
            reason,
            turn,
        })
    }
}
