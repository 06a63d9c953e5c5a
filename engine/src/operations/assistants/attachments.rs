//! The tools that an assistant can call and the documents that it answers from.
use schemars::JsonSchema;
use serde::Deserialize;

use super::{Assistant, revisions};
use crate::base::error::{Error, FieldProblem};
use crate::base::ids::{AssistantId, DocumentId, Id, ToolId};
use crate::base::limits::{
    DETACHED_AT_ONCE, DOCUMENTS_PER_ASSISTANT_MAX, KNOWLEDGE_PER_ASSISTANT_BYTES_MAX, TOOLS_PER_ASSISTANT_MAX,
};
use crate::base::time::Timestamp;
use crate::conversation::{AssistantSnapshot, SEND_KEYS, TRANSFER_TOOL};
use crate::operations::context::Context;
use crate::operations::knowledge::{knowledge_fits, too_much_knowledge};
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::{resource, validate};
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::fault::Fault;

/// `PUT /assistants/{id}/tools`
pub const SET_TOOLS: Operation = Operation::put(
    "set_assistant_tools",
    "/assistants/{id}/tools",
    run!(set_tools),
)
.reaching_out()
.with_revision()
.docs(
    "Set an assistant's tools",
    "Replaces the whole list of attached tools, in the given order. An empty list detaches all. At most 64.",
)
.body::<Tools>()
.returns::<Assistant>();

/// `PUT /assistants/{id}/knowledge`
pub const SET_KNOWLEDGE: Operation =
    Operation::put("set_assistant_knowledge", "/assistants/{id}/knowledge", run!(set_knowledge))
        .reaching_out()
        .with_revision()
        .docs(
            "Set an assistant's knowledge",
            "Replaces the whole list of attached documents, in the given order. An empty list detaches all. At most 128 \
            documents and 200 KiB in total.",
        )
        .body::<Knowledge>()
        .returns::<Assistant>();

/// A table of attachments: which resources of one kind are attached to which assistants, in order.
pub(crate) struct Attachments {
    table: &'static str,
    /// The column with the id of what is attached.
    column: &'static str,
}

/// The attached tools.
pub(crate) const TOOLS: Attachments = Attachments { table: "assistant_tools", column: "tool_id" };
/// The attached documents.
pub(crate) const DOCUMENTS: Attachments = Attachments { table: "assistant_documents", column: "document_id" };

/// Whether a tool is attached; whether a document is. SQL that names `:id`.
pub(crate) const TOOL_IS_ATTACHED: &str = "EXISTS (SELECT 1 FROM assistant_tools WHERE tool_id = :id)";
/// See [`TOOL_IS_ATTACHED`].
pub(crate) const DOCUMENT_IS_ATTACHED: &str =
    "EXISTS (SELECT 1 FROM assistant_documents WHERE document_id = :id)";

impl Attachments {
    /// Detaches a resource from the first [`DETACHED_AT_ONCE`] assistants; their revisions rise.
    pub(crate) fn detach(&self, id: &impl Id, now: Timestamp) -> Vec<Statement> {
        let Self { table, column } = self;
        let first = format!(
            "(SELECT assistant_id FROM {table} WHERE {column} = :id ORDER BY assistant_id LIMIT {DETACHED_AT_ONCE})"
        );
        vec![
            revisions::keep_where(&format!("id IN {first}"), id.as_str()),
            sql!(
                format!(
                    "UPDATE assistants SET revision = revision + 1, updated_at = :now WHERE workspace_id = :ws AND id IN {first}"
                ),
                id = id,
                now = now
            ),
            sql!(
                format!(
                    "DELETE FROM {table} WHERE workspace_id = :ws AND {column} = :id AND assistant_id IN {first}"
                ),
                id = id
            ),
        ]
    }

    /// Replaces the list of an assistant by `list`, a JSON array of ids.
    pub(super) fn replace(&self, assistant_id: &AssistantId, list: String) -> [Statement; 2] {
        let Self { table, column } = self;
        [
            sql!(
                format!("DELETE FROM {table} WHERE workspace_id = :ws AND assistant_id = :id"),
                id = assistant_id
            ),
            sql!(
                format!(
                    "INSERT INTO {table} (workspace_id, assistant_id, {column}, position)
                     SELECT :ws, :id, value, key FROM json_each(:list)"
                ),
                id = assistant_id,
                list = list
            ),
        ]
    }
}

/// The tools that replace the attached ones.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Tools {
    /// Ids of tools of this workspace; an id given twice counts once.
    tool_ids: Vec<ToolId>,
}

/// The documents that replace the attached ones.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Knowledge {
    /// Ids of knowledge documents of this workspace; an id given twice counts once.
    knowledge_ids: Vec<DocumentId>,
}

async fn set_tools(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Tools { tool_ids } = input.body()?;
    let tool_ids = once_each(tool_ids);
    check_count("tool_ids", &tool_ids, TOOLS_PER_ASSISTANT_MAX, "tools")?;
    let list = serde_json::json!(tool_ids).to_string();
    let known = sql!(
        "SELECT id FROM tools WHERE workspace_id = :ws AND id IN (SELECT value FROM json_each(:list))",
        list = &list
    );
    let select = resource::select_one::<Assistant>(&input.id());
    let [current, known] = context.read_each([select, known]).await?;
    let current: Assistant = resource::found(&current)?;
    current.check_revision(input)?;
    let known = known.iter().map(|row| row.id("id")).collect::<Result<Vec<ToolId>, _>>()?;
    refuse_unknown("tool_ids", "tool", &tool_ids, &known)?;
    if tool_ids == current.tool_ids {
        return resource::ok(&current);
    }
    let now = Timestamp::from_ms(context.now_ms);
    let next = Assistant { tool_ids, revision: current.revision + 1, updated_at: now, ..current.clone() };
    let [guard, update] = resource::change(&current, &next);
    let [delete, insert] = TOOLS.replace(&next.id, list);
    let mut statements = revisions::keep(&current);
    statements.extend([guard, delete, insert, update, own_tools_are_free("assistant_id", &next.id)]);
    let committed = context.commit(statements, resource::ok(&next)?).await;
    committed.map_err(|fault| own_tool_taken(fault, Some("tool_ids")))
}

async fn set_knowledge(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Knowledge { knowledge_ids } = input.body()?;
    let knowledge_ids = once_each(knowledge_ids);
    check_count("knowledge_ids", &knowledge_ids, DOCUMENTS_PER_ASSISTANT_MAX, "documents")?;
    let list = serde_json::json!(knowledge_ids).to_string();
    let known = sql!(
        "SELECT id, size_bytes FROM documents WHERE workspace_id = :ws AND id IN (SELECT value FROM json_each(:list))",
        list = &list
    );
    let select = resource::select_one::<Assistant>(&input.id());
    let [current, rows] = context.read_each([select, known]).await?;
    let current: Assistant = resource::found(&current)?;
    current.check_revision(input)?;
    let (mut known, mut total_bytes) = (Vec::new(), 0);
    for row in rows.iter() {
        known.push(row.id("id")?);
        total_bytes += row.integer("size_bytes")?;
    }
    refuse_unknown("knowledge_ids", "knowledge document", &knowledge_ids, &known)?;
    if total_bytes > KNOWLEDGE_PER_ASSISTANT_BYTES_MAX {
        return Err(too_much_knowledge("knowledge_ids").into());
    }
    if knowledge_ids == current.knowledge_ids {
        return resource::ok(&current);
    }
    let now = Timestamp::from_ms(context.now_ms);
    let next =
        Assistant { knowledge_ids, revision: current.revision + 1, updated_at: now, ..current.clone() };
    let [guard, update] = resource::change(&current, &next);
    let [delete, insert] = DOCUMENTS.replace(&next.id, list);
    // A document may have grown since it was read.
    let fits = knowledge_fits("assistant_id", &next.id);
    let mut statements = revisions::keep(&current);
    statements.extend([guard, delete, insert, fits, update]);
    context.commit(statements, resource::ok(&next)?).await.map_err(|fault| match fault {
        Fault::Storage(error) if error.is_constraint("knowledge_limit") => Fault::Stale,
        other => other,
    })
}

/// The tools that an assistant has of its own: the constraint that an attached tool of the same name violates, the name, the
/// assistant's field that gives it the tool.
const OWN_TOOLS: [(&str, &str, &str); 2] =
    [("send_keys_taken", SEND_KEYS, "keys"), ("transfer_call_taken", TRANSFER_TOOL, "transfers")];

/// Undoes the batch when an assistant, selected by `column = value` of its attachments, has a tool attached whose name is that of
/// one that it has of its own.
pub(crate) fn own_tools_are_free(column: &'static str, value: &impl Id) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (send_keys_is_free, transfer_call_is_free)
             SELECT tools.name <> :send_keys, tools.name <> :transfer_call
             FROM assistant_tools AS attached JOIN tools ON tools.id = attached.tool_id
             JOIN assistants ON assistants.id = attached.assistant_id
             WHERE attached.workspace_id = :ws AND attached.{column} = :value
             AND (tools.name = :send_keys AND assistants.keys = 1
                  OR tools.name = :transfer_call AND assistants.transfers <> '[]')"
        ),
        value = value,
        send_keys = SEND_KEYS,
        transfer_call = TRANSFER_TOOL
    )
}

/// The error for what [`own_tools_are_free`] undoes: of `field`, or of the assistant's field that gives it the tool.
pub(crate) fn own_tool_taken(fault: Fault, field: Option<&str>) -> Fault {
    let Fault::Storage(error) = &fault else { return fault };
    let Some((_, tool, own)) = OWN_TOOLS.into_iter().find(|(constraint, ..)| error.is_constraint(constraint))
    else {
        return fault;
    };
    own_tool(tool, own, field.unwrap_or(own)).into()
}

/// The same rule for an assistant that is not stored.
pub(crate) fn check_own_tools(assistant: &AssistantSnapshot) -> Result<(), Error> {
    let is_attached = |name: &str| assistant.tools.iter().any(|tool| tool.name == name);
    for (_, tool, own) in OWN_TOOLS {
        let has = if tool == SEND_KEYS { assistant.keys } else { !assistant.transfers.is_empty() };
        if has && is_attached(tool) {
            return Err(own_tool(tool, own, own));
        }
    }
    Ok(())
}

fn own_tool(tool: &str, own: &str, field: &str) -> Error {
    let message =
        format!("an assistant with `{own}` has a tool `{tool}` of its own; give yours another name");
    Error::field(field, message)
}

/// Each id once, in the given order.
pub(crate) fn once_each<I: Id + Ord + Clone>(ids: Vec<I>) -> Vec<I> {
    let mut seen = std::collections::BTreeSet::new();
    ids.into_iter().filter(|id| seen.insert(id.clone())).collect()
}

/// Called before any lookup, so that a list of thousands costs nothing.
pub(crate) fn check_count<I>(field: &str, ids: &[I], most: usize, nouns: &str) -> Result<(), Error> {
    if ids.len() <= most {
        return Ok(());
    }
    Err(Error::field(field, format!("takes at most {most} {nouns}, got {}", ids.len())))
}

/// Refuses the ids that are not in `known`, each by its position.
pub(crate) fn refuse_unknown<I: PartialEq>(
    field: &str,
    noun: &str,
    ids: &[I],
    known: &[I],
) -> Result<(), Error> {
    let problem =
        |at: usize| FieldProblem::new(format!("{field}[{at}]"), format!("is no {noun} of this workspace"));
    let unknown = ids.iter().enumerate().filter(|(_, id)| !known.contains(id));
    let problems: Vec<FieldProblem> = unknown.map(|(at, _)| problem(at)).collect();
    validate::refuse(&problems)
}
