//! Knowledge: plain-text documents that an assistant answers from, each at most `DOCUMENT_BYTES_MAX` long.
use crate::base::error::{Code, Error};
use crate::base::ids::{DocumentId, Id};
use crate::base::limits;
use crate::base::time::Timestamp;
use crate::base::values::Metadata;
use crate::operations::assistants::attachments;
use crate::operations::context::Context;
use crate::operations::listing::{self, List, Part};
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::resource::{self, Declared, Resource, resource};
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::column::record;
use crate::storage::fault::Fault;

resource! {
    /// A knowledge document.
    #[schemars(rename = "KnowledgeDocument")]
    pub struct Document {
        /// `doc_…`
        id: DocumentId,
        draft: {
            /// The name of the document, unique in the workspace.
            #[schemars(length(min = 1, max = limits::NAME_CHARS_MAX))]
            name: String,
            /// Plain text, at most 50 KiB (51,200 bytes). Split a longer text into several documents.
            #[schemars(length(min = 1, max = limits::DOCUMENT_BYTES_MAX), extend("x-max-bytes" = limits::DOCUMENT_BYTES_MAX))]
            content: String,
            /// A label of your choice that says where the text comes from.
            #[serde(default = "default_source")]
            #[schemars(length(min = 1, max = limits::SOURCE_CHARS_MAX))]
            source: String,
            /// Texts of your own, by name. At most 50, with names of up to 64 characters and values of up to 512 bytes, 4 KiB in all. An
            /// update replaces all of them.
            #[serde(default)]
            metadata: Metadata,
        },
        derived: {
            /// The size of `content` in bytes.
            size_bytes: i64 = size_bytes,
        },
        #[serde(skip)]
        revision,
    }
    noun: "knowledge document", table: "documents", path: "/knowledge"
}

record! {
    /// A document in a list, without its content.
    #[schemars(rename = "KnowledgeDocumentSummary")]
    pub struct DocumentSummary {
        /// `doc_…`
        pub id: DocumentId,
        /// The name of the document, unique in the workspace.
        pub name: String,
        /// A label of your choice that says where the text comes from.
        pub source: String,
        /// The size of `content` in bytes.
        pub size_bytes: i64,
        /// Texts of your own, by name.
        pub metadata: Metadata,
        /// When it was created.
        pub created_at: Timestamp,
        /// When it last changed.
        pub updated_at: Timestamp,
    }
}

/// `GET /knowledge`
pub const LIST: Operation = Operation::get("list_knowledge_documents", Document::PATH, run!(list))
    .docs(
        "List knowledge documents",
        "Lists the documents of the workspace, newest first, without their content.",
    )
    .query::<Part>()
    .returns::<Vec<DocumentSummary>>();

/// `GET /knowledge/{id}`
pub const GET: Operation = resource::get::<Document>("get_knowledge_document")
    .docs("Get a knowledge document", "Returns one document with its content.");

/// `POST /knowledge`
pub const CREATE: Operation = resource::create::<Document>("create_knowledge_document")
    .docs(
        "Create a knowledge document",
        "Creates a plain-text document of at most 50 KiB. Attach it to an assistant to use it.",
    )
    .errors(&[Code::NameTaken, Code::LimitReached]);

/// `PATCH /knowledge/{id}`
pub const UPDATE: Operation = resource::update::<Document>("update_knowledge_document")
    .docs(
        "Update a knowledge document",
        "Changes the given fields; the others keep their values. Refused when an assistant it is attached to would \
        exceed 200 KiB of knowledge.",
    )
    .errors(&[Code::NameTaken]);

/// `DELETE /knowledge/{id}`
pub const DELETE: Operation = resource::delete::<Document>("delete_knowledge_document").docs(
    "Delete a knowledge document",
    "Deletes a document permanently and detaches it from all assistants, whose revisions increase. With many assistants \
    it does so in steps: if the request breaks off, repeat it.",
);

impl Resource for Document {
    const LIMIT: i64 = limits::DOCUMENTS_MAX;
    const HELD_BY: &'static str = attachments::DOCUMENT_IS_ATTACHED;

    fn updated_with(&self, _: &Self, _: &Context) -> Batch {
        Batch::from([knowledge_fits("document_id", &self.id)])
    }

    fn deleted_with(id: &DocumentId, now: Timestamp) -> Vec<Statement> {
        attachments::DOCUMENTS.detach(id, now)
    }

    fn explain(&self, fault: Fault) -> Fault {
        match fault {
            Fault::Storage(error) if error.is_constraint("knowledge_limit") => {
                too_much_knowledge("content").into()
            }
            other => resource::name_taken::<Self>(other, &self.draft.name),
        }
    }
}

/// Undoes the batch when an assistant, selected by `column = value` of its attachments, has too much knowledge.
pub(crate) fn knowledge_fits(column: &'static str, value: &impl Id) -> Statement {
    sql!(
        format!(
            "INSERT INTO batch_guard (knowledge_fits) SELECT 0 WHERE EXISTS
             (SELECT 1 FROM assistant_documents AS attached JOIN documents ON documents.id = attached.document_id
              WHERE attached.assistant_id IN
                (SELECT assistant_id FROM assistant_documents WHERE workspace_id = :ws AND {column} = :value)
              GROUP BY attached.assistant_id HAVING SUM(documents.size_bytes) > {})",
            limits::KNOWLEDGE_PER_ASSISTANT_BYTES_MAX
        ),
        value = value
    )
}

/// The error for what [`knowledge_fits`] undoes.
pub(crate) fn too_much_knowledge(field: &str) -> Error {
    let most = limits::KNOWLEDGE_PER_ASSISTANT_BYTES_MAX;
    let message = format!(
        "an assistant takes at most {most} bytes of knowledge in all; attach less or shorten a document"
    );
    Error::field(field, message)
}

async fn list(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let (columns, read) = (DocumentSummary::COLUMNS, DocumentSummary::read);
    let all = resource::all::<Document>();
    let list =
        List { columns, bytes: "0", read, table: all.table, key: all.key, filter: "", values: Vec::new() };
    listing::run(context, input.query()?, list).await
}

fn size_bytes(draft: &Draft) -> i64 {
    i64::try_from(draft.content.len()).unwrap_or(i64::MAX)
}

fn default_source() -> String {
    "text".to_owned()
}
