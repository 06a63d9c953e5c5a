//! `GET /calls/{id}`: one call.
use crate::base::error::Error;
use crate::base::ids::CallId;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::waiting::{self, Wait};
use crate::sql;
use crate::storage::calls::{self, Call};
use crate::storage::fault::Fault;

/// `GET /calls/{id}`
pub const OPERATION: Operation = Operation::get("get_call", "/calls/{id}", run!(run))
    .docs("Get a call", "Reads one call with its transcript, its analysis and its costs. With `wait_seconds`, it answers when the call has ended.")
    .query::<Wait>()
    .returns::<Call>();

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id: CallId = input.id();
    let goes_on = sql!(
        "SELECT 1 AS goes_on FROM calls WHERE workspace_id = :ws AND id = :id AND status <> 'ended'",
        id = &id
    );
    waiting::until_over(context, input, goes_on).await?;
    let [mut rows] = context.read_each([calls::select(&id)]).await?;
    context.unarchive(&mut rows).await?;
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
