//! `DELETE /assistants/{id}`: removes an assistant with its bindings and simulations.
use super::load;
use crate::operations::context::Context;
use crate::operations::crud;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::sql;
use crate::storage::fault::Fault;

/// `DELETE /assistants/{id}`
pub const OPERATION: Operation = Operation {
    id: "delete_assistant",
    method: http::Method::DELETE,
    path: "/assistants/{id}",
    group: "Assistants",
    title: "Delete an assistant",
    description: "Deletes an assistant for good, with its number bindings and simulations. Runs stay, with what they ran with.",
    effects: Effects::Delete,
    success: Success::Empty,
    revision: true,
    query: None,
    body: None,
    response: None,
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = load(context, input.id()).await?;
    current.check_revision(input)?;
    let id = &current.id;
    let mut statements = vec![crud::unchanged("assistants", id, current.revision)];
    for table in ["numbers", "simulations", "assistant_tools", "assistant_documents"] {
        statements
            .push(sql!(format!("DELETE FROM {table} WHERE workspace_id = :ws AND assistant_id = ?1"), id));
    }
    statements.push(sql!("DELETE FROM assistants WHERE workspace_id = :ws AND id = ?1", id));
    context.commit(statements, Output::empty()).await
}
