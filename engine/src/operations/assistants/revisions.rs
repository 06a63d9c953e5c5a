//! Earlier revisions of an assistant: kept when it changes, listed, restored.
use serde::Serialize;

use super::{Assistant, attachments};
use crate::base::error::Error;
use crate::base::ids::{DocumentId, Id as _, ToolId};
use crate::base::limits::ASSISTANT_REVISIONS_KEPT;
use crate::base::time::Timestamp;
use crate::base::whole_number;
use crate::operations::context::Context;
use crate::operations::knowledge::{knowledge_fits, too_much_knowledge};
use crate::operations::listing::{self, Part};
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::operations::resource::{self, Declared, Resource};
use crate::operations::webhooks::Nothing;
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::fault::Fault;

/// `GET /assistants/{id}/revisions`
pub const LIST: Operation = Operation::get("list_assistant_revisions", "/assistants/{id}/revisions", run!(list))
    .docs(
        "List revisions",
        "Lists an assistant as it was after each change, newest first: the current revision and up to 50 earlier ones. \
        `updated_at` is when that revision was made.",
    )
    .query::<Part>()
    .returns::<Vec<Assistant>>();

/// `POST /assistants/{id}/revisions/{revision}/restore`
pub const RESTORE: Operation =
    Operation::post("restore_assistant_revision", "/assistants/{id}/revisions/{revision}/restore", run!(restore))
        .with_effects(Effects::Update)
        .with_success(Success::Ok)
        .reaching_out()
        .with_revision()
        .docs(
            "Restore a revision",
            "Makes an earlier revision the current one, as a new revision: its settings, and its tools and documents as \
            far as they still exist.",
        )
        .optional_body::<Nothing>()
        .returns::<Assistant>();

/// Keeps the current revision, before a statement that changes it, and forgets the oldest one.
pub(super) fn keep(current: &Assistant) -> Vec<Statement> {
    let oldest = sql!(
        "DELETE FROM assistant_revisions WHERE workspace_id = :ws AND id = :id AND revision <= :revision",
        id = &current.id,
        revision = current.revision - ASSISTANT_REVISIONS_KEPT
    );
    vec![keep_where("id = :id", current.id.as_str()), oldest]
}

/// Keeps the current revision of each assistant that `filter`, which names `:id`, selects.
pub(super) fn keep_where(filter: &str, id: &str) -> Statement {
    let (names, columns) = (Assistant::NAMES, Assistant::COLUMNS);
    sql!(
        format!(
            "INSERT OR IGNORE INTO assistant_revisions (workspace_id, {names})
             SELECT workspace_id, {columns} FROM assistants WHERE workspace_id = :ws AND {filter}"
        ),
        id = id
    )
}

/// Deletes the revisions of an assistant.
pub(super) fn forget(current: &Assistant) -> Statement {
    sql!("DELETE FROM assistant_revisions WHERE workspace_id = :ws AND id = :id", id = &current.id)
}

async fn list(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let names = Assistant::NAMES;
    let earlier = sql!(
        format!(
            "SELECT {names} FROM assistant_revisions WHERE workspace_id = :ws AND id = :id
             ORDER BY revision DESC LIMIT :most"
        ),
        id = input.path_value(),
        most = ASSISTANT_REVISIONS_KEPT
    );
    let select = resource::select_one::<Assistant>(&input.id());
    let [current, earlier] = context.read_each([select, earlier]).await?;
    let mut revisions = vec![Revision::of(resource::found(&current)?)];
    for row in earlier.iter() {
        revisions.push(Revision::of(Assistant::read(row)?));
    }
    listing::of_all(&input.query()?, &revisions, |revision| &revision.key)
}

/// A row of the list, and what orders it.
#[derive(Serialize)]
struct Revision {
    #[serde(skip)]
    key: String,
    #[serde(flatten)]
    assistant: Assistant,
}

impl Revision {
    fn of(assistant: Assistant) -> Self {
        Self { key: assistant.revision.to_string(), assistant }
    }
}

async fn restore(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let names = Assistant::NAMES;
    // No revision is 0.
    let revision =
        input.path.get(1).and_then(|text| whole_number::revision(&text.as_str().into())).unwrap_or(0);
    let wanted = sql!(
        format!(
            "SELECT {names} FROM assistant_revisions WHERE workspace_id = :ws AND id = :id AND revision = :revision"
        ),
        id = input.path_value(),
        revision = revision
    );
    // What it had attached may be gone.
    let existing = |table: &str, column: &str| {
        sql!(
            format!(
                "SELECT t.id AS id FROM assistant_revisions AS r, json_each(r.{column}) AS e, {table} AS t
                 WHERE r.workspace_id = :ws AND r.id = :id AND r.revision = :revision
                 AND t.workspace_id = :ws AND t.id = e.value ORDER BY e.key"
            ),
            id = input.path_value(),
            revision = revision
        )
    };
    let select = resource::select_one::<Assistant>(&input.id());
    let (tools, documents) = (existing("tools", "tool_ids"), existing("documents", "knowledge_ids"));
    let [current, wanted, tools, documents] = context.read_each([select, wanted, tools, documents]).await?;
    let current: Assistant = resource::found(&current)?;
    if revision == current.revision {
        return resource::ok(&current);
    }
    let wanted = wanted.first().ok_or_else(|| Error::not_found("revision"))?;
    let wanted = Assistant::read(wanted)?;
    current.check_revision(input)?;
    Assistant::check(&wanted.draft, context.services.config())?;
    let tool_ids = tools.iter().map(|row| row.id("id")).collect::<Result<Vec<ToolId>, _>>()?;
    let knowledge_ids = documents.iter().map(|row| row.id("id")).collect::<Result<Vec<DocumentId>, _>>()?;
    let lists = (serde_json::json!(tool_ids).to_string(), serde_json::json!(knowledge_ids).to_string());
    let now = Timestamp::from_ms(context.now_ms);
    let next = Assistant {
        draft: wanted.draft,
        tool_ids,
        knowledge_ids,
        revision: current.revision + 1,
        updated_at: now,
        ..current.clone()
    };
    let mut statements = keep(&current);
    statements.extend(resource::change(&current, &next));
    statements.extend(attachments::TOOLS.replace(&next.id, lists.0));
    statements.extend(attachments::DOCUMENTS.replace(&next.id, lists.1));
    statements.push(knowledge_fits("assistant_id", &next.id));
    statements.push(attachments::own_tools_are_free("assistant_id", &next.id));
    context.commit(statements, resource::ok(&next)?).await.map_err(|fault| match fault {
        Fault::Storage(error) if error.is_constraint("knowledge_limit") => {
            too_much_knowledge("revision").into()
        }
        other => attachments::own_tool_taken(other, Some("revision")),
    })
}
