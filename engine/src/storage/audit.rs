//! Entries of the audit log, written in the batch of the change that they tell about.
use crate::base::ids::{AccountId, AuditEntryId, WorkspaceId, prefix};
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;

/// Where things have their names, by the prefix of their ids: a webhook is called by its address, a person by theirs.
const NAMES: &[(&str, &str)] = &[
    (prefix::ASSISTANT, "SELECT name FROM assistants WHERE workspace_id = :ws AND"),
    (prefix::TOOL, "SELECT name FROM tools WHERE workspace_id = :ws AND"),
    (prefix::DOCUMENT, "SELECT name FROM documents WHERE workspace_id = :ws AND"),
    (prefix::KEY, "SELECT name FROM api_keys WHERE workspace_id = :ws AND"),
    (prefix::PERSONA, "SELECT name FROM personas WHERE workspace_id = :ws AND"),
    (prefix::SCENARIO, "SELECT name FROM scenarios WHERE workspace_id = :ws AND"),
    (prefix::SIMULATION, "SELECT name FROM simulations WHERE workspace_id = :ws AND"),
    (prefix::WEBHOOK, "SELECT url FROM webhooks WHERE workspace_id = :ws AND"),
    (prefix::INVITATION, "SELECT email FROM invitations WHERE workspace_id = :ws AND"),
    (
        prefix::ACCOUNT,
        "SELECT email FROM accounts JOIN memberships ON account_id = id WHERE workspace_id = :ws AND",
    ),
];

/// The `actor` of changes at the command line.
const OPERATOR: &str = "operator";

/// A change, for the log.
pub(crate) struct Change<'a> {
    /// The entry of it.
    pub id: &'a AuditEntryId,
    /// What was done.
    pub operation: &'a str,
    /// What it was done to. An entry has the name that this has when the entry is written.
    pub subject: Option<&'a str>,
}

impl Change<'_> {
    /// The name of the subject, in SQL.
    fn name(&self) -> String {
        let Some((kind, _)) = self.subject.and_then(|id| id.split_once('_')) else {
            return "NULL".to_owned();
        };
        let found = NAMES.iter().find(|(known, _)| *known == kind);
        found.map_or_else(|| "NULL".to_owned(), |(_, select)| format!("({select} id = :subject)"))
    }

    /// The entry of a change with the API key of this hash, in the workspace `:ws`.
    pub fn entry_of_key(&self, services: &Services, hash: &str) -> Statement {
        const KEY: &str = "SELECT id, name FROM api_keys WHERE hash = :actor AND workspace_id = :ws";
        self.entry(services, KEY, hash)
    }

    /// The same of a person.
    pub fn entry_in_session(&self, services: &Services, account_id: &AccountId) -> Statement {
        const PERSON: &str = "SELECT id, CASE email WHEN '' THEN 'operator' ELSE email END AS name FROM accounts WHERE id = :actor";
        self.entry(services, PERSON, account_id)
    }

    /// The same of the operator at the command line, who has no id.
    pub fn entry_of_operator(&self, services: &Services) -> Statement {
        self.entry(services, "SELECT :actor AS id, 'command line' AS name", OPERATOR)
    }

    /// `who` selects id and name of the `:actor`.
    fn entry(&self, services: &Services, who: &str, actor: &str) -> Statement {
        let name = self.name();
        sql!(
            format!(
                "INSERT INTO audit_entries (id, workspace_id, actor, actor_name, operation, subject, subject_name, created_at)
                 SELECT :id, :ws, who.id, who.name, :operation, :subject, {name}, :now FROM ({who}) AS who"
            ),
            id = self.id,
            operation = self.operation,
            subject = self.subject,
            now = services.now(),
            actor = actor
        )
    }

    /// Takes the entry back, and returns it, if the last change before changed nothing.
    pub fn unless_changed(&self) -> Statement {
        sql!(
            "DELETE FROM audit_entries WHERE workspace_id = :ws AND id = :id AND changes() = 0 RETURNING id",
            id = self.id
        )
    }
}

/// The entry of a change that a person made from outside of the workspace.
pub(crate) fn entry_of_person(
    services: &Services,
    workspace_id: &WorkspaceId,
    account_id: &AccountId,
    operation: &str,
    subject: &str,
) -> Statement {
    let change = Change { id: &services.new_id(), operation, subject: Some(subject) };
    change.entry_in_session(services, account_id).in_workspace(workspace_id)
}
