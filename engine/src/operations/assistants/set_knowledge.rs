//! `PUT /assistants/{id}/knowledge`: which documents an assistant answers from.
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Assistant, found, once_each, refuse_unknown, select_one};
use crate::base::error::Error;
use crate::base::limits::{DOCUMENTS_PER_ASSISTANT_MAX, KNOWLEDGE_PER_ASSISTANT_BYTES_MAX};
use crate::base::time;
use crate::operations::context::Context;
use crate::operations::knowledge::{knowledge_fits, too_much_knowledge};
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::sql;
use crate::storage::fault::Fault;

/// `PUT /assistants/{id}/knowledge`
pub const OPERATION: Operation = Operation {
    id: "set_assistant_knowledge",
    method: http::Method::PUT,
    path: "/assistants/{id}/knowledge",
    group: "Assistants",
    title: "Set an assistant's knowledge",
    description: "Replaces the whole list of attached documents, in the order given. An empty list detaches all. \
        At most 128 documents and 200 KiB in all.",
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
    /// Ids of knowledge documents of this workspace; an id given twice counts once.
    knowledge_ids: Vec<String>,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Body { knowledge_ids } = input.body()?;
    let knowledge_ids = once_each(knowledge_ids);
    // Before anything is looked up, so that a list of thousands costs nothing.
    if knowledge_ids.len() > DOCUMENTS_PER_ASSISTANT_MAX {
        let message =
            format!("takes at most {DOCUMENTS_PER_ASSISTANT_MAX} documents, got {}", knowledge_ids.len());
        return Err(Error::field("knowledge_ids", message).into());
    }
    let list = serde_json::json!(knowledge_ids).to_string();
    let known = sql!(
        "SELECT id, size_bytes FROM documents WHERE workspace_id = :ws AND id IN (SELECT value FROM json_each(?1))",
        &list
    );
    let rows = context.read(vec![select_one(input.id()), known]).await?;
    let current = found(rows.first().and_then(|rows| rows.first()))?;
    current.check_revision(input)?;
    let mut known = Vec::new();
    let mut total_bytes = 0;
    for row in rows.iter().skip(1).flat_map(|rows| rows.iter()) {
        known.push(row.text("id")?);
        total_bytes += row.integer("size_bytes")?;
    }
    refuse_unknown("knowledge_ids", "knowledge document", &knowledge_ids, &known)?;
    if total_bytes > KNOWLEDGE_PER_ASSISTANT_BYTES_MAX {
        return Err(too_much_knowledge("knowledge_ids").into());
    }
    if knowledge_ids == current.knowledge_ids {
        return current.output();
    }
    let now_ms = context.now_ms;
    let id = current.id.as_str();
    let statements = vec![
        crud::unchanged("assistants", id, current.revision),
        sql!("DELETE FROM assistant_documents WHERE workspace_id = :ws AND assistant_id = ?1", id),
        sql!(
            "INSERT INTO assistant_documents (workspace_id, assistant_id, document_id, position)
             SELECT :ws, ?1, value, key FROM json_each(?2)",
            id,
            list
        ),
        // A document may have grown since it was read.
        knowledge_fits("assistant_id", id),
        sql!(
            "UPDATE assistants SET revision = revision + 1, updated_at = ?2 WHERE workspace_id = :ws AND id = ?1",
            id,
            now_ms
        ),
    ];
    let revision = current.revision + 1;
    let next = Assistant { knowledge_ids, revision, updated_at: time::format(now_ms), ..current };
    context.commit(statements, next.output()?).await.map_err(|fault| match fault {
        Fault::Storage(error) if error.is_constraint("knowledge_limit") => Fault::Stale,
        other => other,
    })
}
