//! `GET /simulations/runs/{id}`: one run with its evaluations and what was said.

use crate::base::error::Error;
use crate::operations::context::Context;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::operations::schema;
use crate::sql;
use crate::storage::calls::{self, Call};
use crate::storage::fault::Fault;
use crate::storage::runs::{COLUMNS, RunDetail};

/// `GET /simulations/runs/{id}`
pub const OPERATION: Operation = Operation {
    id: "get_simulation_run",
    method: http::Method::GET,
    path: "/simulations/runs/{id}",
    group: "Simulations",
    title: "Get a run",
    description: "Reads one run with its evaluations, its transcript and its call. The first two are empty until it is over.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<RunDetail>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let select = sql!(
        format!("SELECT {COLUMNS}, evaluations, transcript FROM runs WHERE workspace_id = :ws AND id = ?1"),
        input.id()
    );
    let rows = context.read(vec![select, calls::select_of_run(input.id())]).await?;
    let Some(row) = rows.first().and_then(|rows| rows.first()) else {
        return Err(Error::not_found("run").into());
    };
    let call = match rows.last().and_then(|rows| rows.first()) {
        Some(row) => Some(Call::read(row, &context.services.config().base_url)?),
        None => None,
    };
    Output::ok(&RunDetail::read(row, call)?)
}
