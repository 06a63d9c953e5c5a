//! `POST /simulations/runs/batch`: queues every simulation of an assistant.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};
use serde_json::Value;

use super::{
    Kept, Launch, SIMULATION_COLUMNS, Seeds, check_mode, kept, memory, simulation_snapshot, snapshot, spends,
};
use crate::base::error::{Code, Error};
use crate::base::ids::{AssistantId, BatchId};
use crate::base::limits::{
    BATCH_RUNS_MAX, BATCH_SNAPSHOTS_BYTES_MAX, INTEGER_MAX, MCP_STARTED_RUNS_SHOWN, REPEAT_MAX,
    RUN_COST_MICROUSD_DEFAULT,
};
use crate::base::values::{Metadata, Variables};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output, Shortened};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::named_snapshots::Part;
use crate::storage::runs::{Run, RunMode, RunTools};
use crate::storage::snapshots::{assistant_reads, assistant_snapshot};
use crate::storage::spending::{self, Budget};

/// `POST /simulations/runs/batch`
pub const OPERATION: Operation = Operation::post(
    "start_simulation_batch",
    "/simulations/runs/batch",
    run!(run),
)
.spending()
.docs(
    "Start a batch of runs",
    "Queues runs of every simulation of an assistant, one of each or `repeat`, at most 1,000 together. Models and speech \
        can incur usage (the built-in ones are free). get_simulation_batch with `wait_seconds` tells what came of it.",
)
.body::<Body>()
.returns::<Batch<'static>>()
.shorter_over_mcp(first_runs)
.errors(&[Code::SpendLimitReached, Code::LimitReached, Code::MissingVariables]);

/// The answer to a start with its first runs: all of them are alike but for their ids and seeds.
pub(super) fn first_runs(body: &str) -> Option<Shortened> {
    let Ok(Value::Object(mut answer)) = serde_json::from_str(body) else { return None };
    let runs = answer.get_mut("runs")?.as_array_mut()?;
    let left_out = runs.len().checked_sub(MCP_STARTED_RUNS_SHOWN).filter(|count| *count > 0)?;
    runs.truncate(MCP_STARTED_RUNS_SHOWN);
    answer.insert("runs_left_out".to_owned(), left_out.into());
    Some(Shortened { body: Value::Object(answer).to_string(), note: None })
}

/// The simulations to run, and how to run them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// The assistant, all of whose simulations are run.
    assistant_id: AssistantId,
    /// How caller and assistant communicate.
    #[serde(default)]
    mode: RunMode,
    /// What answers the assistant's tool calls.
    #[serde(default)]
    tools: RunTools,
    /// The seed of the first run of each simulation; every further one has the next. Default: chosen at random for each
    /// simulation.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0, max = INTEGER_MAX))]
    seed: Option<i64>,
    /// How many runs each simulation has. Default: 1.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 1, max = REPEAT_MAX))]
    repeat: Option<i64>,
    /// Ends each conversation when its models have cost this much, in millionths of a US dollar. Default: 1,000,000.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0, max = INTEGER_MAX))]
    max_cost_microusd: Option<i64>,
    /// What fills in `{{name}}` in the assistant's instructions and opening message, by name, laid over the variables of the scenario.
    /// Names have small letters, digits and underscores; at most 64, each of up to 1,024 bytes, 16 KiB in all.
    #[serde(default)]
    variables: Variables,
    /// Texts of your own that are kept with the run and its call, by name. At most 50, with names of up to 64 characters and values of
    /// up to 512 bytes, 4 KiB in all.
    #[serde(default)]
    metadata: Metadata,
}

/// The queued runs.
#[derive(Serialize, JsonSchema)]
#[schemars(rename = "RunBatch")]
pub(super) struct Batch<'a> {
    /// `batch_…`
    pub batch_id: BatchId,
    /// The runs, in the order of their simulations and seeds.
    pub runs: Vec<&'a Run>,
}

/// The characters that the simulations of assistant `:id` take together.
const SIZE: &str =
    "COALESCE(SUM(LENGTH(system_prompt) + LENGTH(scenarios.instructions) + LENGTH(evaluations) + LENGTH(tool_mocks)), 0) AS size
    FROM simulations JOIN personas ON personas.id = simulations.persona_id
    JOIN scenarios ON scenarios.id = simulations.scenario_id
    WHERE simulations.workspace_id = :ws AND simulations.assistant_id = :id";

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Body { assistant_id, mode, tools, seed, repeat, max_cost_microusd, variables, metadata } =
        input.body()?;
    let seeds = Seeds::new(seed, repeat)?;
    let [assistant, attached_tools, documents] = assistant_reads(":id", &assistant_id);
    let size = sql!(format!("SELECT {SIZE}"), id = &assistant_id);
    // Texts that are too large together are not even read.
    let simulations = sql!(
        format!(
            "SELECT {SIMULATION_COLUMNS} WHERE simulations.workspace_id = :ws AND simulations.assistant_id = :id
             AND (SELECT {SIZE}) <= :most ORDER BY simulations.id LIMIT {}",
            BATCH_RUNS_MAX + 1
        ),
        id = &assistant_id,
        most = BATCH_SNAPSHOTS_BYTES_MAX
    );
    let budget = spending::select(&context.services, context.now_ms);
    let reads = [assistant, attached_tools, documents, size, simulations, kept(), budget];
    let [attached @ .., size, simulations, kept, budget] = context.read_each(reads).await?;
    let kept = Kept::read(&kept)?;
    let _memory = memory(context, attached.iter().chain([&simulations]))?;
    if let Some(row) = size.first()
        && row.integer("size")? > BATCH_SNAPSHOTS_BYTES_MAX
    {
        let message = format!(
            "has simulations whose texts are more than {BATCH_SNAPSHOTS_BYTES_MAX} characters together; start their runs one by one"
        );
        return Err(Error::field("assistant_id", message).into());
    }
    let Some(assistant) = assistant_snapshot(&attached)? else {
        return Err(Error::field("assistant_id", "is no assistant of this workspace").into());
    };
    let config = context.services.config();
    check_mode(mode, &assistant, config)?;
    let batch_id: BatchId = context.services.new_id();
    let stored = snapshot(&assistant, "assistant_id")?;
    let launch = Launch {
        part: Part::assistant(&stored)?,
        stored,
        assistant: &assistant,
        mode,
        tools,
        batch_id: Some(batch_id.clone()),
        max_cost_microusd: max_cost_microusd.unwrap_or(RUN_COST_MICROUSD_DEFAULT),
        variables,
        metadata,
    };
    let found = simulations.values.len();
    if found == 0 {
        let message = "has no simulation; create one first";
        return Err(Error::field("assistant_id", message).into());
    }
    if found > BATCH_RUNS_MAX {
        let message = format!("has more than {BATCH_RUNS_MAX} simulations; start their runs one by one");
        return Err(Error::field("assistant_id", message).into());
    }
    if found * seeds.count() > BATCH_RUNS_MAX {
        let message = format!("makes more than {BATCH_RUNS_MAX} runs of the assistant's {found} simulations");
        return Err(Error::field("repeat", message).into());
    }
    let mut launched = Vec::new();
    let mut may_spend = false;
    for row in simulations.iter() {
        let snapshot = simulation_snapshot(row, tools, &launch.variables)?;
        may_spend |= spends(mode, &assistant, &snapshot, config);
        launched.extend(launch.runs(context, Some(&row.id("id")?), &snapshot, &seeds)?);
    }
    Budget::read(Some(&budget))?.check(may_spend)?;
    launch.check_variables(context, &launched)?;
    launch.check_size(&launched)?;
    let runs: Vec<&Run> = launched.iter().map(|one| &one.run).collect();
    let output = Output::created(&Batch { batch_id, runs })?;
    launch.commit(context, &launched, output, &kept).await
}
