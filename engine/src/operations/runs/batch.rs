//! `POST /simulations/runs/batch`: queues every simulation of an assistant.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::{Launch, SIMULATION_COLUMNS, check_mode, random_seed, simulation_snapshot, spends};
use crate::base::error::{Code, Error};
use crate::base::ids::{AssistantId, BatchId};
use crate::base::limits::{
    BATCH_RUNS_MAX, BATCH_SNAPSHOTS_BYTES_MAX, INTEGER_MAX, RUN_COST_MICROUSD_DEFAULT,
};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::runs::{Run, RunMode};
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
    "Queues one run of every simulation of an assistant, at most 1,000. Models and speech can incur usage \
        (the built-in ones are free). Poll list_simulation_runs with the batch_id.",
)
.body::<Body>()
.returns::<Batch<'static>>()
.errors(&[Code::SpendLimitReached, Code::LimitReached]);

/// The simulations to run, and how to run them.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// The assistant, all of whose simulations are run once.
    assistant_id: AssistantId,
    /// How caller and assistant communicate.
    #[serde(default)]
    mode: RunMode,
    /// The seed of every run. Default: one chosen at random for each.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0, max = INTEGER_MAX))]
    seed: Option<i64>,
    /// Ends each conversation when its models have cost this much, in millionths of a US dollar. Default: 1,000,000.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0, max = INTEGER_MAX))]
    max_cost_microusd: Option<i64>,
}

/// The queued runs.
#[derive(Serialize, JsonSchema)]
struct Batch<'a> {
    /// `batch_…`
    batch_id: BatchId,
    /// The runs, in the order of their simulations.
    runs: Vec<&'a Run>,
}

/// The characters that the simulations of assistant `:id` take together.
const SIZE: &str =
    "COALESCE(SUM(LENGTH(system_prompt) + LENGTH(scenarios.instructions) + LENGTH(evaluations)), 0) AS size
    FROM simulations JOIN personas ON personas.id = simulations.persona_id
    JOIN scenarios ON scenarios.id = simulations.scenario_id
    WHERE simulations.workspace_id = :ws AND simulations.assistant_id = :id";

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Body { assistant_id, mode, seed, max_cost_microusd } = input.body()?;
    let [assistant, tools, documents] = assistant_reads(":id", &assistant_id);
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
    let [attached @ .., size, simulations, budget] =
        context.read_each([assistant, tools, documents, size, simulations, budget]).await?;
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
    let launch = Launch {
        assistant: &assistant,
        mode,
        batch_id: Some(batch_id.clone()),
        max_cost_microusd: max_cost_microusd.unwrap_or(RUN_COST_MICROUSD_DEFAULT),
    };
    let mut launched = Vec::new();
    let mut may_spend = false;
    for row in simulations.iter() {
        let seed = seed.unwrap_or_else(|| random_seed(context));
        let snapshot = simulation_snapshot(row)?;
        may_spend |= spends(mode, &assistant, &snapshot, config);
        launched.push(launch.run(context, row.id("id")?, &snapshot, seed)?);
    }
    Budget::read(Some(&budget))?.check(may_spend)?;
    if launched.is_empty() {
        let message = "has no simulation; create one first";
        return Err(Error::field("assistant_id", message).into());
    }
    if launched.len() > BATCH_RUNS_MAX {
        let message = format!("has more than {BATCH_RUNS_MAX} simulations; start their runs one by one");
        return Err(Error::field("assistant_id", message).into());
    }
    let runs: Vec<&Run> = launched.iter().map(|one| &one.run).collect();
    let output = Output::created(&Batch { batch_id, runs })?;
    launch.commit(context, &launched, output).await
}
