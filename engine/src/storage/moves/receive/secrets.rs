//! Signing secrets that arrive, sealed with the key of the file. Nobody here can open them before the hand-over.
use serde_json::json;

use crate::base::ids::{Id as _, WorkspaceId};
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::declined::Declined;
use crate::storage::moves::part::{CarriedSecrets, Owner, SEALED_MAX};

/// The text of a sealed secret.
const SEALED_CHARS: usize = 88;

/// The statements that store them with their owners, which have arrived before.
pub(super) async fn statements(
    services: &Services,
    workspace_id: &WorkspaceId,
    carried: &[CarriedSecrets],
) -> Result<Vec<Statement>, Fault> {
    let is_sealed = |one: &CarriedSecrets| {
        (1..=SEALED_MAX).contains(&one.sealed.len())
            && one.sealed.iter().all(|text| text.len() == SEALED_CHARS)
    };
    if !carried.iter().all(is_sealed) {
        return Err(Declined::part("something in it is no sealed secret").into());
    }
    check_owners(services, workspace_id, carried).await?;
    Ok(carried.iter().map(|one| insert(one).in_workspace(workspace_id)).collect())
}

/// Refuses secrets of what the workspace does not have, or has in another version.
async fn check_owners(
    services: &Services,
    workspace_id: &WorkspaceId,
    carried: &[CarriedSecrets],
) -> Result<(), Fault> {
    let known = |table: &str| {
        let named: Vec<(&str, i64)> = carried
            .iter()
            .filter(|one| place(&one.owner).0 == table)
            .map(|one| (place(&one.owner).1, one.version))
            .collect();
        sql!(
            format!(
                "SELECT COUNT(*) AS known FROM json_each(:named) AS n WHERE EXISTS (
                   SELECT 1 FROM {table} AS o WHERE o.workspace_id = :ws AND o.id = json_extract(n.value, '$[0]')
                   AND o.secret_version = json_extract(n.value, '$[1]'))"
            ),
            named = json!(named).to_string()
        )
        .in_workspace(workspace_id)
    };
    let mut found = 0;
    for rows in services.read([known("tools"), known("webhooks")]).await? {
        found += rows.first().map_or(Ok(0), |row| row.integer("known"))?;
    }
    match usize::try_from(found) == Ok(carried.len()) {
        true => Ok(()),
        false => Err(Declined::part("it has secrets of what the workspace does not have").into()),
    }
}

/// Stored as `file`, and not as `sealed`: they sign nothing yet.
fn insert(one: &CarriedSecrets) -> Statement {
    let (table, id) = place(&one.owner);
    sql!(
        format!("UPDATE {table} SET carried_secrets = :carried WHERE workspace_id = :ws AND id = :id"),
        carried = json!({"version": one.version, "file": one.sealed}).to_string(),
        id = id
    )
}

/// The table of an owner, and its id.
fn place(owner: &Owner) -> (&'static str, &str) {
    match owner {
        Owner::Tool(id) => ("tools", id.as_str()),
        Owner::Webhook(id) => ("webhooks", id.as_str()),
    }
}
