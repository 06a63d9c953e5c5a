//! `DELETE /simulations/runs/{id}`: removes a run that is not running.
use crate::base::error::{Code, Error};
use crate::base::ids::RunId;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::ports::statement::Rows;
use crate::sql;
use crate::storage::fault::Fault;

/// `DELETE /simulations/runs/{id}`
pub const OPERATION: Operation =
    Operation::delete("delete_simulation_run", "/simulations/runs/{id}", run!(run))
        .docs(
            "Delete a run",
            "Deletes a run and its result permanently. A queued run is canceled; a running one is refused.",
        )
        .errors(&[Code::RunInProgress]);

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id: &RunId = &input.id();
    // One batch: either the runner has claimed the job and nothing is deleted, or job and run go.
    let statements = vec![
        sql!(
            "SELECT status, assistant_snapshot, simulation_snapshot FROM runs WHERE workspace_id = :ws AND id = :id",
            id = id
        ),
        sql!(
            "DELETE FROM jobs WHERE workspace_id = :ws AND subject_id = :id
             AND EXISTS (SELECT 1 FROM runs WHERE runs.workspace_id = :ws AND runs.id = :id AND status <> 'running')",
            id = id
        ),
        sql!(
            "DELETE FROM snapshots WHERE workspace_id = :ws AND id IN
             (SELECT assistant_snapshot FROM runs WHERE runs.workspace_id = :ws AND id = :id AND status <> 'running'
              UNION SELECT simulation_snapshot FROM runs WHERE runs.workspace_id = :ws AND id = :id AND status <> 'running')
             AND NOT EXISTS (SELECT 1 FROM runs AS other WHERE other.workspace_id = snapshots.workspace_id
                             AND other.assistant_snapshot = snapshots.id AND other.id <> :id)
             AND NOT EXISTS (SELECT 1 FROM runs AS other WHERE other.workspace_id = snapshots.workspace_id
                             AND other.simulation_snapshot = snapshots.id AND other.id <> :id)",
            id = id
        ),
        sql!("DELETE FROM runs WHERE workspace_id = :ws AND id = :id AND status <> 'running' RETURNING id", id = id),
    ];
    let rows = context.write(statements).await?;
    let row = rows.first().and_then(Rows::first).ok_or_else(|| Error::not_found("run"))?;
    if row.text("status")? == "running" {
        let message = "The run is in progress. Wait until it is completed or in error, then delete it.";
        return Err(Error::new(Code::RunInProgress, message).into());
    }
    Ok(Output::empty())
}
