//! `POST /tools/{id}/rotate-secret`: a new signing secret for a tool's callbacks.
use super::{COLUMNS, Tool};
use crate::base::time;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::rotation::{Body, Rotated, Rotation};
use crate::operations::{crud, schema};
use crate::ports::statement::Row;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::idempotency::OneTimeSecret;

/// `POST /tools/{id}/rotate-secret`
pub const OPERATION: Operation = Operation {
    id: "rotate_tool_secret",
    method: http::Method::POST,
    path: "/tools/{id}/rotate-secret",
    group: "Tools",
    title: "Rotate a tool's secret",
    description: "Makes a new signing secret, which the answer shows once. For `overlap_ms` callbacks carry two \
        signatures, of the new secret and of the one before it; conversations under way follow. Only the latest two \
        secrets ever sign.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::optional(schema::of::<Body>),
    response: Some(schema::of::<Rotated<Tool>>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let rotation = Rotation::of(context, input)?;
    let select = sql!(
        format!("SELECT {COLUMNS}, secret_version FROM tools WHERE workspace_id = :ws AND id = ?1"),
        input.id()
    );
    let read = |row: Row<'_>| Ok((Tool::read(row)?, row.integer("secret_version")?));
    let (current, version) = crud::one(context, select, "tool", read).await?;
    let statements = rotation.statements(context, "tools", &current.id, current.revision);
    let next = Tool { updated_at: time::format(context.now_ms), ..current };
    let reveal = OneTimeSecret::Tool { id: next.id.clone(), version: version + 1 };
    context.commit(statements, Output::created(&rotation.answer(&next))?.revealing(reveal)).await
}
