//! `PATCH /assistants/{id}`: changes an assistant.
use super::{Assistant, Draft, load};
use crate::base::time;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::sql;
use crate::storage::fault::Fault;

/// `PATCH /assistants/{id}`
pub const OPERATION: Operation = Operation {
    id: "update_assistant",
    method: http::Method::PATCH,
    path: "/assistants/{id}",
    group: "Assistants",
    title: "Change an assistant",
    description: "Changes the fields given; the others keep their values. With the revision you read, a change \
        made by somebody else in between is refused instead of overwritten. Changing nothing keeps the revision.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: true,
    query: None,
    body: BodySchema::partial(schema::of::<Draft>),
    response: Some(schema::of::<Assistant>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = load(context, input.id()).await?;
    current.check_revision(input)?;
    let Some(draft) = crud::merged(&current.draft, &input.body)? else {
        return current.output();
    };
    draft.check(context.services.config())?;
    let now_ms = context.now_ms;
    let guard = crud::unchanged("assistants", &current.id, current.revision);
    let Draft { name, instructions, first_message, model, voice, pipeline_mode } = &draft;
    let update = sql!(
        "UPDATE assistants SET name = ?2, instructions = ?3, first_message = ?4, model = ?5, voice = ?6, pipeline_mode = ?7,
         revision = revision + 1, updated_at = ?8 WHERE workspace_id = :ws AND id = ?1",
        &current.id,
        name,
        instructions,
        first_message,
        model,
        voice,
        pipeline_mode.as_str(),
        now_ms,
    );
    let revision = current.revision + 1;
    let next = Assistant { draft, revision, updated_at: time::format(now_ms), ..current };
    context.commit(vec![guard, update], next.output()?).await
}
