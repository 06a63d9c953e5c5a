//! `GET /assistants`: all assistants of the workspace.
use super::{Assistant, COLUMNS};
use crate::operations::context::Context;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::operations::schema;
use crate::sql;
use crate::storage::fault::Fault;

/// `GET /assistants`
pub const OPERATION: Operation = Operation {
    id: "list_assistants",
    method: http::Method::GET,
    path: "/assistants",
    group: "Assistants",
    title: "List assistants",
    description: "Lists all assistants of the workspace, newest first.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Vec<Assistant>>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    let all = sql!(format!("SELECT {COLUMNS} FROM assistants WHERE workspace_id = :ws ORDER BY id DESC"));
    let rows = context.read(vec![all]).await?;
    let assistants: Vec<Assistant> =
        rows.iter().flat_map(|rows| rows.iter()).map(Assistant::read).collect::<Result<_, _>>()?;
    Output::ok(&assistants)
}
