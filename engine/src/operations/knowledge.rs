//! Knowledge: plain-text documents an assistant answers from.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::{Code, Error};
use crate::base::ids::prefix;
use crate::base::{limits, time};
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::ports::statement::{Row, Statement};
use crate::sql;
use crate::storage::fault::Fault;

/// `GET /knowledge`
pub const LIST: Operation = Operation {
    id: "list_knowledge_documents",
    method: http::Method::GET,
    path: "/knowledge",
    group: "Knowledge",
    title: "List knowledge documents",
    description: "Lists all documents of the workspace, newest first, without their content.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Vec<Summary>>),
    errors: &[],
    run: |context, input| Box::pin(list(context, input)),
};

/// `GET /knowledge/{id}`
pub const GET: Operation = Operation {
    id: "get_knowledge_document",
    path: "/knowledge/{id}",
    title: "Get a knowledge document",
    description: "Reads one document with its content.",
    response: Some(schema::of::<Document>),
    run: |context, input| Box::pin(get(context, input)),
    ..LIST
};

/// `POST /knowledge`
pub const CREATE: Operation = Operation {
    id: "create_knowledge_document",
    method: http::Method::POST,
    path: "/knowledge",
    group: "Knowledge",
    title: "Create a knowledge document",
    description: "Creates a plain-text document of at most 50 KiB. An assistant uses it once it is attached.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::whole(schema::of::<Draft>),
    response: Some(schema::of::<Document>),
    errors: &[Code::NameTaken],
    run: |context, input| Box::pin(create(context, input)),
};

/// `PATCH /knowledge/{id}`
pub const UPDATE: Operation = Operation {
    id: "update_knowledge_document",
    method: http::Method::PATCH,
    path: "/knowledge/{id}",
    group: "Knowledge",
    title: "Change a knowledge document",
    description: "Changes the fields given; the others keep their values. Refused when an assistant it is attached to \
        would pass 200 KiB of knowledge.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: false,
    query: None,
    body: BodySchema::partial(schema::of::<Draft>),
    response: Some(schema::of::<Document>),
    errors: &[Code::NameTaken],
    run: |context, input| Box::pin(update(context, input)),
};

/// `DELETE /knowledge/{id}`
pub const DELETE: Operation = Operation {
    id: "delete_knowledge_document",
    method: http::Method::DELETE,
    path: "/knowledge/{id}",
    group: "Knowledge",
    title: "Delete a knowledge document",
    description: "Deletes a document for good and detaches it from every assistant, whose revisions rise.",
    effects: Effects::Delete,
    success: Success::Empty,
    revision: false,
    query: None,
    body: None,
    response: None,
    errors: &[],
    run: |context, input| Box::pin(delete(context, input)),
};

/// What a client may set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Unique in the workspace.
    #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
    name: String,
    /// Plain text, at most 50 KiB.
    #[schemars(length(min = 1, max = limits::DOCUMENT_BYTES_MAX))]
    content: String,
    /// Where it is from.
    #[serde(default = "default_source")]
    #[schemars(length(min = 1, max = limits::SOURCE_CHARS_MAX))]
    source: String,
}

fn default_source() -> String {
    "text".to_owned()
}

/// A knowledge document.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Document {
    /// `doc_…`
    id: String,
    /// What a client may set.
    #[serde(flatten)]
    draft: Draft,
    /// The content's size.
    size_bytes: i64,
    /// When it was made.
    created_at: String,
    /// When it last changed.
    updated_at: String,
    /// Guards concurrent changes; not shown.
    #[serde(skip)]
    revision: i64,
}

/// A document in a list, without its content.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
#[schemars(rename = "DocumentSummary")]
pub struct Summary {
    /// `doc_…`
    id: String,
    /// Unique in the workspace.
    name: String,
    /// Where it is from.
    source: String,
    /// The content's size.
    size_bytes: i64,
    /// When it was made.
    created_at: String,
    /// When it last changed.
    updated_at: String,
}

impl Document {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            draft: Draft {
                name: row.text("name")?,
                content: row.text("content")?,
                source: row.text("source")?,
            },
            size_bytes: row.integer("size_bytes")?,
            created_at: time::format(row.integer("created_at")?),
            updated_at: time::format(row.integer("updated_at")?),
            revision: row.integer("revision")?,
        })
    }
}

impl Summary {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            name: row.text("name")?,
            source: row.text("source")?,
            size_bytes: row.integer("size_bytes")?,
            created_at: time::format(row.integer("created_at")?),
            updated_at: time::format(row.integer("updated_at")?),
        })
    }
}

impl Draft {
    fn size_bytes(&self) -> i64 {
        i64::try_from(self.content.len()).unwrap_or(i64::MAX)
    }

    fn check(&self) -> Result<(), Error> {
        if self.content.len() > limits::DOCUMENT_BYTES_MAX {
            let message = format!(
                "must have at most {} bytes, has {}; split the text into several documents",
                limits::DOCUMENT_BYTES_MAX,
                self.content.len()
            );
            return Err(Error::field("content", message));
        }
        Ok(())
    }
}

/// Undoes the batch when an assistant picked by `column = value` of its attachments has too much
/// knowledge.
pub fn knowledge_fits(column: &'static str, value: &str) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (knowledge_fits) SELECT 0 WHERE EXISTS
             (SELECT 1 FROM assistant_documents AS attached JOIN documents ON documents.id = attached.document_id
              WHERE attached.assistant_id IN
                (SELECT assistant_id FROM assistant_documents WHERE workspace_id = :ws AND {column} = ?1)
              GROUP BY attached.assistant_id HAVING SUM(documents.size_bytes) > {})",
            limits::KNOWLEDGE_PER_ASSISTANT_BYTES_MAX
        ),
        value
    )
}

/// 422 for what [`knowledge_fits`] undoes.
pub fn too_much_knowledge(field: &str) -> Error {
    Error::field(
        field,
        format!(
            "an assistant takes at most {} bytes of knowledge in all; attach less or shorten a document",
            limits::KNOWLEDGE_PER_ASSISTANT_BYTES_MAX
        ),
    )
}

fn select_one(id: &str) -> Statement {
    sql!(
        "SELECT id, name, content, source, size_bytes, revision, created_at, updated_at
         FROM documents WHERE workspace_id = :ws AND id = ?1",
        id
    )
}

async fn list(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    let all = sql!(
        "SELECT id, name, source, size_bytes, created_at, updated_at
         FROM documents WHERE workspace_id = :ws ORDER BY id DESC"
    );
    crud::list(context, all, Summary::read).await
}

async fn get(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let select = select_one(input.id());
    Output::ok(&crud::one(context, select, "knowledge document", Document::read).await?)
}

async fn create(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let draft: Draft = input.body()?;
    draft.check()?;
    let now_ms = context.now_ms;
    let document = Document {
        id: context.id(prefix::DOCUMENT),
        size_bytes: draft.size_bytes(),
        draft,
        created_at: time::format(now_ms),
        updated_at: time::format(now_ms),
        revision: 1,
    };
    let draft = &document.draft;
    let insert = sql!(
        "INSERT INTO documents (workspace_id, id, name, content, source, size_bytes, revision, created_at, updated_at)
         VALUES (:ws, ?1, ?2, ?3, ?4, ?5, 1, ?6, ?6)",
        &document.id,
        &draft.name,
        &draft.content,
        &draft.source,
        document.size_bytes,
        now_ms,
    );
    let output = Output::created(&document)?;
    context.commit(vec![insert], output).await.map_err(|fault| mapped(fault, draft))
}

async fn update(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let select = select_one(input.id());
    let current = crud::one(context, select, "knowledge document", Document::read).await?;
    let Some(draft) = crud::merged(&current.draft, &input.body)? else {
        return Output::ok(&current);
    };
    draft.check()?;
    let now_ms = context.now_ms;
    let statements = vec![
        crud::unchanged("documents", &current.id, current.revision),
        sql!(
            "UPDATE documents SET name = ?2, content = ?3, source = ?4, size_bytes = ?5, revision = revision + 1, updated_at = ?6
             WHERE workspace_id = :ws AND id = ?1",
            &current.id,
            &draft.name,
            &draft.content,
            &draft.source,
            draft.size_bytes(),
            now_ms,
        ),
        knowledge_fits("document_id", &current.id),
    ];
    let next =
        Document { size_bytes: draft.size_bytes(), draft, updated_at: time::format(now_ms), ..current };
    let output = Output::ok(&next)?;
    context.commit(statements, output).await.map_err(|fault| mapped(fault, &next.draft))
}

fn mapped(fault: Fault, draft: &Draft) -> Fault {
    match fault {
        Fault::Storage(error) if error.is_constraint("knowledge_limit") => {
            too_much_knowledge("content").into()
        }
        other => crud::name_taken(other, "documents.name", "knowledge document", &draft.name),
    }
}

async fn delete(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    let statements = vec![
        sql!(
            "UPDATE assistants SET revision = revision + 1, updated_at = ?2 WHERE workspace_id = :ws AND id IN
             (SELECT assistant_id FROM assistant_documents WHERE document_id = ?1)",
            id,
            context.now_ms
        ),
        sql!("DELETE FROM assistant_documents WHERE workspace_id = :ws AND document_id = ?1", id),
        sql!("DELETE FROM documents WHERE workspace_id = :ws AND id = ?1 RETURNING id", id),
    ];
    crud::delete(context, statements, "knowledge document").await
}
