//! The audit log: who changed what.
use crate::base::ids::AuditEntryId;
use crate::base::time::Timestamp;
use crate::operations::context::Context;
use crate::operations::listing::{self, List, Part};
use crate::operations::operation::{Input, Operation, Output};
use crate::storage::column::record;
use crate::storage::fault::Fault;

record! {
    /// A change of the workspace.
    pub struct AuditEntry {
        /// `aud_…`
        pub id: AuditEntryId,
        /// Who: the id of an API key (`key_…`) or of a person (`acct_…`), or `operator` for the service's command line.
        pub actor: String,
        /// How the key was named, or the person's e-mail address, at that time.
        pub actor_name: String,
        /// What: the operation, such as `update_assistant`.
        pub operation: String,
        /// The id of what was changed or created; null where there is no single one.
        pub subject: Option<String>,
        /// How that was called then, before a change or a deletion; null where it has no name.
        pub subject_name: Option<String>,
        /// When.
        pub created_at: Timestamp,
    }
}

/// `GET /audit`
pub const LIST: Operation = Operation::get("list_audit_entries", "/audit", run!(list))
    .docs(
        "List the audit log",
        "Lists who changed what in the workspace, newest first: changes with API keys, over MCP and in the dashboard. An \
        entry is written together with its change, and kept for 400 days.",
    )
    .query::<Part>()
    .returns::<Vec<AuditEntry>>()
    .for_admins();

async fn list(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let (table, columns, bytes, read) = ("audit_entries", AuditEntry::COLUMNS, "0", AuditEntry::read);
    let key = listing::Key::newest::<AuditEntryId>();
    let list = List { table, columns, bytes, key, filter: "", values: Vec::new(), read };
    listing::run(context, input.query()?, list).await
}
