//! `DELETE /simulations/runs/{id}`: removes a run that is not running.
use crate::base::error::{Code, Error};
use crate::base::ids::RunId;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::ports::statement::{Rows, Statement};
use crate::sql;
use crate::storage::events::log;
use crate::storage::fault::Fault;
use crate::storage::idempotency;
use crate::storage::named_snapshots;

/// `DELETE /simulations/runs/{id}`
pub const OPERATION: Operation =
    Operation::delete("delete_simulation_run", "/simulations/runs/{id}", run!(run))
        .docs(
            "Delete a run",
            "Deletes a run, its result and its events permanently; its call stays. A queued run is canceled; a running one is refused.",
        )
        .errors(&[Code::RunInProgress]);

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id: &RunId = &input.id();
    let mut statements = vec![sql!("SELECT status FROM runs WHERE workspace_id = :ws AND id = :id", id = id)];
    statements.extend(erase(&serde_json::json!([id]).to_string(), ""));
    let rows = context.write(statements).await?;
    let row = rows.first().and_then(Rows::first).ok_or_else(|| Error::not_found("run"))?;
    if row.text("status")? == "running" {
        let message = "The run is in progress. Wait until it is completed or in error, then delete it.";
        return Err(Error::new(Code::RunInProgress, message).into());
    }
    Ok(Output::empty())
}

/// The statements that delete these runs of workspace `:ws`, but those that are running. `ids` is a JSON array; `still` (`AND …`,
/// of `runs`) is what must be so of a run. The last statement returns the ids of those that are gone. They are one batch: of each run, either the runner has claimed the job and nothing is
/// deleted, or job and run go.
pub(super) fn erase(ids: &str, still: &str) -> Vec<Statement> {
    // CROSS JOIN: by the listed ids, whatever SQLite knows of the table.
    let gone = |columns: &str| {
        format!(
            "SELECT {columns} FROM json_each(:ids) AS listed CROSS JOIN runs ON runs.id = listed.value
             WHERE runs.workspace_id = :ws AND runs.status <> 'running'{still}"
        )
    };
    let parts = format!("{} UNION {}", gone("runs.assistant_snapshot"), gone("runs.simulation_snapshot"));
    let stays = format!("r.id NOT IN ({})", gone("runs.id"));
    let [counted, parts, names] = named_snapshots::release(&gone("runs.snapshot"), Some(&parts), &stays, "1");
    // A deleted run is not read by repeating its start, alone or in a batch.
    let partly = "A run of this start was deleted, and the stored answer with it. Read the others (GET /simulations/runs), or start again with another Idempotency-Key.";
    let responses = [
        (Error::not_found("run"), "idempotency_keys_by_id", "id", gone("+runs.id")),
        (Error::new(Code::NotFound, partly), "idempotency_keys_by_batch", "batch_id", gone("+runs.batch_id")),
    ];
    let responses = responses.map(|(error, index, field, among)| {
        let (sql, mut values) = idempotency::replace_deleted(&error, index, field, &among);
        values.push(("ids", ids.into()));
        Statement::named(&sql, values)
    });
    let mut statements = Vec::from(responses);
    statements.extend(log::delete_of_runs(&gone("runs.id")).map(|text| sql!(text, ids = ids)));
    statements.extend([
        sql!(
            format!("DELETE FROM jobs WHERE +workspace_id = :ws AND subject_id IN ({})", gone("runs.id")),
            ids = ids
        ),
        sql!(counted, ids = ids),
        sql!(parts, ids = ids),
        sql!(names, ids = ids),
        sql!(
            format!(
                "DELETE FROM runs WHERE +workspace_id = :ws AND id IN ({}) RETURNING id",
                gone("runs.id")
            ),
            ids = ids
        ),
    ]);
    statements
}
