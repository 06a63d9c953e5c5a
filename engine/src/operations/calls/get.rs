//! `GET /calls/{id}`: one call.
use crate::base::error::Error;
use crate::operations::context::Context;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::operations::schema;
use crate::storage::calls::{self, Call};
use crate::storage::fault::Fault;

/// `GET /calls/{id}`
pub const OPERATION: Operation = Operation {
    id: "get_call",
    method: http::Method::GET,
    path: "/calls/{id}",
    group: "Calls",
    title: "Get a call",
    description: "Reads one call with its transcript, its analysis and its costs.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Call>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let [rows] = context.read_each([calls::select(input.id())]).await?;
    match rows.first() {
        Some(row) => Output::ok(&Call::read(row, &context.services.config().base_url)?),
        None => Err(Error::not_found("call").into()),
    }
}
