//! `POST /simulations/{id}/runs`: queues one run of a simulation. Every API key of the workspace may do so
//! (`operations/auth.rs`), within the workspace's spending limit (`storage/spending.rs`).
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Launch, SIMULATION_COLUMNS, check_mode, random_seed, simulation_snapshot, spends};
use crate::base::error::{Code, Error};
use crate::base::ids::SimulationId;
use crate::base::limits::{INTEGER_MAX, RUN_COST_MICROUSD_DEFAULT};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::runs::{Run, RunMode};
use crate::storage::snapshots::{assistant_reads, assistant_snapshot};
use crate::storage::spending::{self, Budget};

/// `POST /simulations/{id}/runs`
pub const OPERATION: Operation = Operation::post("start_simulation_run", "/simulations/{id}/runs", run!(run))
    .spending()
    .docs(
        "Start a run",
        "Queues one asynchronous run of a simulation with its current configuration. Models and speech can incur usage \
        (the built-in ones are free). Poll get_simulation_run until the run is completed or in error; do not start \
        another one meanwhile.",
    )
    .optional_body::<Body>()
    .returns::<Run>()
    .errors(&[Code::SpendLimitReached, Code::LimitReached]);

/// Options of the run; all have defaults.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Body {
    /// How caller and assistant communicate.
    #[serde(default)]
    mode: RunMode,
    /// Repeats a run: the same seed and configuration give the same offline run. Default: chosen at random.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0, max = INTEGER_MAX))]
    seed: Option<i64>,
    /// Ends the conversation when models have cost this much, in millionths of a US dollar. Default: 1,000,000.
    #[serde(default)]
    #[schemars(with = "i64", range(min = 0, max = INTEGER_MAX))]
    max_cost_microusd: Option<i64>,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Body { mode, seed, max_cost_microusd } = input.body()?;
    let id: SimulationId = input.id();
    let [assistant, tools, documents] =
        assistant_reads("(SELECT assistant_id FROM simulations WHERE workspace_id = :ws AND id = :id)", &id);
    let simulation = sql!(
        format!("SELECT {SIMULATION_COLUMNS} WHERE simulations.workspace_id = :ws AND simulations.id = :id"),
        id = &id
    );
    let budget = spending::select(&context.services, context.now_ms);
    let [attached @ .., simulation, budget] =
        context.read_each([assistant, tools, documents, simulation, budget]).await?;
    let (Some(assistant), Some(row)) = (assistant_snapshot(&attached)?, simulation.first()) else {
        return Err(Error::not_found("simulation").into());
    };
    let config = context.services.config();
    check_mode(mode, &assistant, config)?;
    let snapshot = simulation_snapshot(row)?;
    Budget::read(Some(&budget))?.check(spends(mode, &assistant, &snapshot, config))?;
    let launch = Launch {
        assistant: &assistant,
        mode,
        batch_id: None,
        max_cost_microusd: max_cost_microusd.unwrap_or(RUN_COST_MICROUSD_DEFAULT),
    };
    let seed = seed.unwrap_or_else(|| random_seed(context));
    let launched = launch.run(context, row.id("id")?, &snapshot, seed)?;
    let output = Output::created(&launched.run)?;
    launch.commit(context, &[launched], output).await
}
