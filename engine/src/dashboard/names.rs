//! What the subjects of a list are called, which names only their ids: read by those ids, so that the work is that of the
//! list and not of the workspace.
use std::collections::BTreeSet;

use serde_json::{Map, Value};

use super::show;
use super::visit::Visit;
use crate::base::ids::prefix;
use crate::base::ordered::Ordered as _;
use crate::operations::context::Context;
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::accounts::Session;
use crate::storage::fault::Fault;

/// Kinds of things that have a name: a webhook its address, a person theirs.
const KINDS: &[(&str, &str)] = &[
    (prefix::ASSISTANT, "SELECT id, name FROM assistants WHERE workspace_id = :ws AND"),
    (prefix::TOOL, "SELECT id, name FROM tools WHERE workspace_id = :ws AND"),
    (prefix::DOCUMENT, "SELECT id, name FROM documents WHERE workspace_id = :ws AND"),
    (prefix::KEY, "SELECT id, name FROM api_keys WHERE workspace_id = :ws AND"),
    (prefix::PERSONA, "SELECT id, name FROM personas WHERE workspace_id = :ws AND"),
    (prefix::SCENARIO, "SELECT id, name FROM scenarios WHERE workspace_id = :ws AND"),
    (prefix::SIMULATION, "SELECT id, name FROM simulations WHERE workspace_id = :ws AND"),
    (prefix::WEBHOOK, "SELECT id, url AS name FROM webhooks WHERE workspace_id = :ws AND"),
    (prefix::INVITATION, "SELECT id, email AS name FROM invitations WHERE workspace_id = :ws AND"),
    (
        prefix::ACCOUNT,
        "SELECT id, email AS name FROM accounts JOIN memberships ON account_id = id WHERE workspace_id = :ws AND",
    ),
];

/// The names of what the entries of a list are about, by id: one batch, with a statement for each kind among them. What was
/// deleted has none.
pub(super) async fn of_subjects(
    visit: &Visit<'_>,
    session: &Session,
    entries: &Value,
) -> Result<Value, Fault> {
    let entries = entries.as_array().into_iter().flatten();
    let ids: BTreeSet<&str> = entries.filter_map(|entry| entry["subject"].as_str()).into_set();
    let of_kind = |kind: &str| -> Vec<&str> {
        let is_one = |id: &&str| id.strip_prefix(kind).is_some_and(|rest| rest.starts_with('_'));
        ids.iter().copied().filter(is_one).collect()
    };
    let named: Vec<Statement> = KINDS
        .iter()
        .map(|(kind, select)| (select, of_kind(kind)))
        .filter(|(_, ids)| !ids.is_empty())
        .map(|(select, ids)| {
            let ids = Value::from(ids).to_string();
            sql!(format!("{select} id IN (SELECT value FROM json_each(:ids))"), ids = ids)
        })
        .collect();
    let mut names = Map::new();
    if !named.is_empty() {
        let mut context = Context::new(visit.services().clone(), visit.now_ms, show::principal(session));
        for rows in context.read(named).await? {
            for row in rows.iter() {
                names.insert(row.text("id")?, row.text("name")?.into());
            }
        }
    }
    Ok(Value::Object(names))
}
