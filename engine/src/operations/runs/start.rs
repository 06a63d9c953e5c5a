//! `POST /simulations/{id}/runs`: queues one run of a simulation. Every API key of the workspace may do so
//! (`operations/auth.rs`), within the workspace's spending limit (`storage/spending.rs`).
use schemars::JsonSchema;
use serde::Deserialize;

use super::{
    Kept, Launch, SIMULATION_COLUMNS, Seeds, check_mode, kept, memory, simulation_snapshot, snapshot, spends,
};
use crate::base::error::{Code, Error};
use crate::base::ids::SimulationId;
use crate::base::limits::{INTEGER_MAX, RUN_COST_MICROUSD_DEFAULT};
use crate::base::values::{Metadata, Variables};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::named_snapshots::Part;
use crate::storage::runs::{Run, RunMode, RunTools};
use crate::storage::snapshots::{assistant_reads, assistant_snapshot};
use crate::storage::spending::{self, Budget};

/// `POST /simulations/{id}/runs`
pub const OPERATION: Operation = Operation::post("start_simulation_run", "/simulations/{id}/runs", run!(run))
    .spending()
    .docs(
        "Start a run",
        "Queues one asynchronous run of a simulation with its current configuration. Models and speech can incur usage \
        (the built-in ones are free). get_simulation_run with `wait_seconds` tells when the run is completed or in error; \
        do not start another one meanwhile.",
    )
    .optional_body::<Body>()
    .returns::<Run>()
    .errors(&[Code::SpendLimitReached, Code::LimitReached, Code::MissingVariables]);

/// Options of the run; all have defaults.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// How caller and assistant communicate.
    #[serde(default)]
    mode: RunMode,
    /// What answers the assistant's tool calls.
    #[serde(default)]
    tools: RunTools,
    /// Repeats a run: the same seed and configuration give the same offline run. Default: chosen at random.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0, max = INTEGER_MAX))]
    seed: Option<i64>,
    /// Ends the conversation when models have cost this much, in millionths of a US dollar. Default: 1,000,000.
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

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Body { mode, tools, seed, max_cost_microusd, variables, metadata } = input.body()?;
    let id: SimulationId = input.id();
    let [assistant, attached_tools, documents] =
        assistant_reads("(SELECT assistant_id FROM simulations WHERE workspace_id = :ws AND id = :id)", &id);
    let simulation = sql!(
        format!("SELECT {SIMULATION_COLUMNS} WHERE simulations.workspace_id = :ws AND simulations.id = :id"),
        id = &id
    );
    let budget = spending::select(&context.services, context.now_ms);
    let reads = [assistant, attached_tools, documents, simulation, kept(), budget];
    let [attached @ .., simulation, kept, budget] = context.read_each(reads).await?;
    let kept = Kept::read(&kept)?;
    let _memory = memory(context, attached.iter().chain([&simulation]))?;
    let (Some(assistant), Some(row)) = (assistant_snapshot(&attached)?, simulation.first()) else {
        return Err(Error::not_found("simulation").into());
    };
    let config = context.services.config();
    check_mode(mode, &assistant, config)?;
    let simulation = simulation_snapshot(row, tools, &variables)?;
    Budget::read(Some(&budget))?.check(spends(mode, &assistant, &simulation, config))?;
    let stored = snapshot(&assistant, "assistant_id")?;
    let launch = Launch {
        part: Part::assistant(&stored)?,
        stored,
        assistant: &assistant,
        mode,
        tools,
        batch_id: None,
        max_cost_microusd: max_cost_microusd.unwrap_or(RUN_COST_MICROUSD_DEFAULT),
        variables,
        metadata,
    };
    let launched = launch.runs(context, Some(&row.id("id")?), &simulation, &Seeds::new(seed, None)?)?;
    launch.check_variables(context, &launched)?;
    let output = match launched.first() {
        Some(launched) => Output::created(&launched.run)?,
        None => return Err(Fault::Bug("a start without a run".to_owned())),
    };
    launch.commit(context, &launched, output, &kept).await
}
