//! `GET /simulations/runs/{id}/events`: a run as it goes on.
use crate::base::error::Code;
use crate::operations::context::Context;
use crate::operations::following::{self, Subject};
use crate::operations::operation::{Input, Operation, Output, Success};
use crate::storage::fault::Fault;

/// `GET /simulations/runs/{id}/events`
pub const OPERATION: Operation =
    Operation::get("follow_simulation_run", "/simulations/runs/{id}/events", run!(run))
        .with_success(Success::Events)
    .errors(&[Code::InvalidParameter])
        .docs(
            "Follow a run",
            "Sends a run as server-sent events while it goes on: `status` (the run), `transcript` and `turn` as in \
            `GET /calls/{id}/events`, and `ended` (the run with its evaluations and its call) as the last. A run of the \
            offline models is over before anything of it is stored.",
        );

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    following::begin(context, Subject::Run(input.id()), input.after_event).await
}
