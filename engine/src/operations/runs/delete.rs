//! `DELETE /simulations/runs/{id}`: removes a run that is not running.
use crate::base::error::{Code, Error};
use crate::operations::context::Context;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::sql;
use crate::storage::fault::Fault;

/// `DELETE /simulations/runs/{id}`
pub const OPERATION: Operation = Operation {
    id: "delete_simulation_run",
    method: http::Method::DELETE,
    path: "/simulations/runs/{id}",
    group: "Simulations",
    title: "Delete a run",
    description: "Deletes a run and its result for good. A queued run is cancelled; a running one is refused.",
    effects: Effects::Delete,
    success: Success::Empty,
    revision: false,
    query: None,
    body: None,
    response: None,
    errors: &[Code::RunInProgress],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    // One batch: either the runner has claimed the job and nothing is deleted, or job and run go.
    let statements = vec![
        sql!(
            "SELECT status, assistant_snapshot, simulation_snapshot FROM runs WHERE workspace_id = :ws AND id = ?1",
            id
        ),
        sql!(
            "DELETE FROM jobs WHERE workspace_id = :ws AND subject_id = ?1
             AND EXISTS (SELECT 1 FROM runs WHERE runs.workspace_id = :ws AND runs.id = ?1 AND status <> 'running')",
            id
        ),
        sql!(
            "DELETE FROM snapshots WHERE workspace_id = :ws AND id IN
             (SELECT assistant_snapshot FROM runs WHERE runs.workspace_id = :ws AND id = ?1 AND status <> 'running'
              UNION SELECT simulation_snapshot FROM runs WHERE runs.workspace_id = :ws AND id = ?1 AND status <> 'running')
             AND NOT EXISTS (SELECT 1 FROM runs AS other WHERE other.workspace_id = snapshots.workspace_id
                             AND other.assistant_snapshot = snapshots.id AND other.id <> ?1)
             AND NOT EXISTS (SELECT 1 FROM runs AS other WHERE other.workspace_id = snapshots.workspace_id
                             AND other.simulation_snapshot = snapshots.id AND other.id <> ?1)",
            id
        ),
        sql!("DELETE FROM runs WHERE workspace_id = :ws AND id = ?1 AND status <> 'running' RETURNING id", id),
    ];
    let rows = context.write(statements).await?;
    let Some(row) = rows.first().and_then(|rows| rows.first()) else {
        return Err(Error::not_found("run").into());
    };
    if row.text("status")? == "running" {
        let message = "The run is in progress. Wait until it is completed or in error, then delete it.";
        return Err(Error::new(Code::RunInProgress, message).into());
    }
    Ok(Output::empty())
}
