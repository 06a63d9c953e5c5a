//! `PUT /assistants/{id}/tools`: which tools an assistant may call.
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Assistant, found, once_each, refuse_unknown, select_one};
use crate::base::error::Error;
use crate::base::limits::TOOLS_PER_ASSISTANT_MAX;
use crate::base::time;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::sql;
use crate::storage::fault::Fault;

/// `PUT /assistants/{id}/tools`
pub const OPERATION: Operation = Operation {
    id: "set_assistant_tools",
    method: http::Method::PUT,
    path: "/assistants/{id}/tools",
    group: "Assistants",
    title: "Set an assistant's tools",
    description: "Replaces the whole list of attached tools, in the order given. An empty list detaches all. At most 64.",
    effects: Effects::Replace,
    success: Success::Ok,
    revision: true,
    query: None,
    body: BodySchema::whole(schema::of::<Body>),
    response: Some(schema::of::<Assistant>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

/// The new list.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Body {
    /// Ids of tools of this workspace; an id given twice counts once.
    tool_ids: Vec<String>,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Body { tool_ids } = input.body()?;
    let tool_ids = once_each(tool_ids);
    // Before anything is looked up, so that a list of thousands costs nothing.
    if tool_ids.len() > TOOLS_PER_ASSISTANT_MAX {
        let message = format!("takes at most {TOOLS_PER_ASSISTANT_MAX} tools, got {}", tool_ids.len());
        return Err(Error::field("tool_ids", message).into());
    }
    let list = serde_json::json!(tool_ids).to_string();
    let known = sql!(
        "SELECT id FROM tools WHERE workspace_id = :ws AND id IN (SELECT value FROM json_each(?1))",
        &list
    );
    let rows = context.read(vec![select_one(input.id()), known]).await?;
    let current = found(rows.first().and_then(|rows| rows.first()))?;
    current.check_revision(input)?;
    let known: Vec<String> = rows
        .iter()
        .skip(1)
        .flat_map(|rows| rows.iter())
        .map(|row| row.text("id"))
        .collect::<Result<_, _>>()?;
    refuse_unknown("tool_ids", "tool", &tool_ids, &known)?;
    if tool_ids == current.tool_ids {
        return current.output();
    }
    let now_ms = context.now_ms;
    let id = current.id.as_str();
    let statements = vec![
        crud::unchanged("assistants", id, current.revision),
        sql!("DELETE FROM assistant_tools WHERE workspace_id = :ws AND assistant_id = ?1", id),
        sql!(
            "INSERT INTO assistant_tools (workspace_id, assistant_id, tool_id, position)
             SELECT :ws, ?1, value, key FROM json_each(?2)",
            id,
            list
        ),
        sql!(
            "UPDATE assistants SET revision = revision + 1, updated_at = ?2 WHERE workspace_id = :ws AND id = ?1",
            id,
            now_ms
        ),
    ];
    let revision = current.revision + 1;
    let next = Assistant { tool_ids, revision, updated_at: time::format(now_ms), ..current };
    context.commit(statements, next.output()?).await
}
