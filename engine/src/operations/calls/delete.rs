//! `DELETE /calls/{id}`: removes a call that has ended, and everything that tells about it.
use crate::base::error::{Code, Error};
use crate::base::ids::CallId;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::ports::statement::Rows;
use crate::sql;
use crate::storage::calls::write::erase::{Which, erase};
use crate::storage::fault::Fault;
use crate::storage::recordings;

/// `DELETE /calls/{id}`
pub const OPERATION: Operation = Operation::delete("delete_call", "/calls/{id}", run!(run))
    .docs(
        "Delete a call",
        "Permanently deletes a call that has ended: its transcript, analysis and recording, its events and what waits \
        to be delivered of them. Statistics no longer count it; a simulation run keeps its results, without the \
        transcript. What the call cost stays in the month's spending.",
    )
    .errors(&[Code::CallInProgress]);

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id: &CallId = &input.id();
    let mut statements = vec![
        sql!("SELECT status FROM calls WHERE workspace_id = :ws AND id = :id", id = id),
        sql!(
            // `<> 'abandoned'` says nothing more, and lets SQLite use the index of what is not.
            "SELECT id, segments FROM recordings WHERE workspace_id = :ws AND call_id = :id AND state = 'ready' AND state <> 'abandoned'",
            id = id
        ),
    ];
    statements.extend(erase(Which::One(id), context.now_ms));
    let rows = context.write(statements).await?;
    let call = rows.first().and_then(Rows::first).ok_or_else(|| Error::not_found("call"))?;
    if call.text("status")? != "ended" {
        let message =
            "The call is in progress. Hang it up or wait until its status is `ended`, then delete it.";
        return Err(Error::new(Code::CallInProgress, message).into());
    }
    if let Some(recording) = rows.get(1).and_then(Rows::first)
        && let Err(error) =
            recordings::remove(&context.services, context.workspace_id()?, id, &recording).await?
    {
        context.incident = Some(format!("a recording's blob is left to the sweep: {error:?}"));
    }
    Ok(Output::empty())
}
