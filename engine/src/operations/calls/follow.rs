//! `GET /calls/{id}/events`: a call as it goes on.
use crate::base::error::Code;
use crate::operations::context::Context;
use crate::operations::following::{self, Subject};
use crate::operations::operation::{Input, Operation, Output, Success};
use crate::storage::fault::Fault;

/// `GET /calls/{id}/events`
pub const OPERATION: Operation = Operation::get("follow_call", "/calls/{id}/events", run!(run))
    .with_success(Success::Events)
    .errors(&[Code::InvalidParameter])
    .docs(
        "Follow a call",
        "Sends a call as server-sent events while it goes on: `status` (the call without its transcript), `transcript` \
        (a row that is new or has changed: replace the row with its `index`), `turn` (the times of a spoken turn: replace \
        the one with its `end_of_speech_ms`), and `ended` (the whole call) as the last. A stream ends after four minutes at \
        the latest; connect again with the last id as `Last-Event-ID` to get what came after it. A client that has \
        everything gets 204. MCP does not offer it: `get_call` has the transcript so far.",
    );

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    following::begin(context, Subject::Call(input.id()), input.after_event).await
}
