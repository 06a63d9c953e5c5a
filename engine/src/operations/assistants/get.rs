//! `GET /assistants/{id}`: one assistant.
use super::{Assistant, load};
use crate::operations::context::Context;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::operations::schema;
use crate::storage::fault::Fault;

/// `GET /assistants/{id}`
pub const OPERATION: Operation = Operation {
    id: "get_assistant",
    method: http::Method::GET,
    path: "/assistants/{id}",
    group: "Assistants",
    title: "Get an assistant",
    description: "Reads one assistant: its configuration, attached tools and documents, and its revision.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Assistant>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    load(context, input.id()).await?.output()
}
