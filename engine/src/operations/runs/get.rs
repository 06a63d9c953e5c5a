//! `GET /simulations/runs/{id}`: one run with its evaluations and what was said.

use crate::base::error::Error;
use crate::base::ids::RunId;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::waiting::{self, Wait};
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::calls::{self, Call};
use crate::storage::fault::Fault;
use crate::storage::runs::{Run, RunDetail};

/// `GET /simulations/runs/{id}`
pub const OPERATION: Operation = Operation::get("get_simulation_run", "/simulations/runs/{id}", run!(run))
    .docs(
        "Get a run",
        "Returns one run with its evaluations and its call, which has the transcript. Evaluations are empty until the run ends; with a provider's model, the transcript of a run in progress has what was said so far. With `wait_seconds`, it answers when the run has ended.",
    )
    .query::<Wait>()
    .returns::<RunDetail>();

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    let goes_on = sql!(
        "SELECT 1 AS goes_on FROM runs WHERE workspace_id = :ws AND id = :id AND status IN ('queued', 'running')",
        id = &id
    );
    waiting::until_over(context, input, goes_on).await?;
    let [run, mut call] = context.read_each([select(&id), calls::select_of_run(&id)]).await?;
    let run = run.first().ok_or_else(|| Error::not_found("run"))?;
    context.unarchive(&mut call).await?;
    let base_url = &context.services.config().base_url;
    let call = call.first().map(|row| Call::read(row, base_url)).transpose()?;
    Output::ok(&RunDetail::read(run, call)?)
}

/// A run of the caller's workspace, for [`RunDetail::read`].
pub(crate) fn select(id: &RunId) -> Statement {
    sql!(
        format!(
            "SELECT {}, {} FROM runs WHERE workspace_id = :ws AND id = :id",
            Run::COLUMNS,
            RunDetail::MORE_COLUMNS
        ),
        id = id
    )
}
