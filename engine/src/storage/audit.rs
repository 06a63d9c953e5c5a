//! Entries of the audit log, written in the batch of the change that they tell about.
use crate::base::ids::{AccountId, AuditEntryId, WorkspaceId};
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;

/// The entry of a change with the API key of this hash, in the workspace `:ws`. `if_changed`: only if the statement
/// before it changed a row.
pub(crate) fn entry_of_key(
    services: &Services,
    hash: &str,
    operation: &str,
    subject: Option<&str>,
    if_changed: bool,
) -> Statement {
    let id: AuditEntryId = services.new_id();
    sql!(
        "INSERT INTO audit_entries (id, workspace_id, actor, actor_name, operation, subject, created_at)
         SELECT :id, :ws, k.id, k.name, :operation, :subject, :now FROM api_keys AS k
         WHERE k.hash = :hash AND k.workspace_id = :ws AND (:always OR changes() > 0)",
        id = &id,
        operation = operation,
        subject = subject,
        now = services.now(),
        hash = hash,
        always = !if_changed
    )
}

/// The same of a person.
pub(crate) fn entry_in_session(
    services: &Services,
    account_id: &AccountId,
    operation: &str,
    subject: Option<&str>,
    if_changed: bool,
) -> Statement {
    let id: AuditEntryId = services.new_id();
    sql!(
        "INSERT INTO audit_entries (id, workspace_id, actor, actor_name, operation, subject, created_at)
         SELECT :id, :ws, a.id, CASE a.email WHEN '' THEN 'operator' ELSE a.email END, :operation, :subject, :now
         FROM accounts AS a WHERE a.id = :account AND (:always OR changes() > 0)",
        id = &id,
        operation = operation,
        subject = subject,
        now = services.now(),
        account = account_id,
        always = !if_changed
    )
}

/// The entry of a change that a person made from outside of the workspace.
pub(crate) fn entry_of_person(
    services: &Services,
    workspace_id: &WorkspaceId,
    account_id: &AccountId,
    operation: &str,
    subject: &str,
) -> Statement {
    entry_in_session(services, account_id, operation, Some(subject), false).in_workspace(workspace_id)
}
