//! `GET /calls/{id}`: one call.
use crate::base::error::Error;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::storage::calls::{self, Call};
use crate::storage::fault::Fault;

/// `GET /calls/{id}`
pub const OPERATION: Operation = Operation::get("get_call", "/calls/{id}", run!(run))
    .docs("Get a call", "Reads one call with its transcript, its analysis and its costs.")
    .returns::<Call>();

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let [rows] = context.read_each([calls::select(&input.id())]).await?;
    match rows.first() {
        Some(row) => {
            let call = Call::read(row, &context.services.config().base_url)?;
            if call.is_live() {
                // Whoever holds the call writes what it has not written yet: the next read finds it.
                context.services.ports().live.follow(&call.id, 0, 0).await;
            }
            Output::ok(&call)
        }
        None => Err(Error::not_found("call").into()),
    }
}
