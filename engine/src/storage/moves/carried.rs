//! The signing secrets that a workspace takes along, sealed with the key of its file.
use super::cursor::Cursor;
use super::head::file_key;
use super::part::{CarriedSecrets, Owner, Part};
use crate::base::ids::{ToolId, WebhookId};
use crate::base::limits::MOVE_PART_SECRETS_MAX;
use crate::base::sealed::seal_alike;
use crate::ports::DatabaseError;
use crate::ports::statement::Row;
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::Move;
use crate::storage::moves::progress::Progress;
use crate::storage::signing::{SecretVersions, label};

/// The secrets of the tools and webhooks after this id.
pub(super) async fn part(services: &Services, found: &Move, after: &str) -> Result<Part, Fault> {
    let owners = sql!(
        format!(
            "SELECT 'tool' AS kind, tools.id AS id, {} FROM tools WHERE workspace_id = :ws AND id > :after
             UNION ALL
             SELECT 'webhook' AS kind, webhooks.id AS id, {} FROM webhooks WHERE workspace_id = :ws AND id > :after
             ORDER BY id LIMIT {MOVE_PART_SECRETS_MAX}",
            SecretVersions::columns("tools"),
            SecretVersions::columns("webhooks")
        ),
        after = after
    );
    let [owners] = services.read([owners.in_workspace(&found.workspace_id)]).await?;
    let frozen_at = Progress::of(found)?.frozen_at;
    let key = file_key(services, found)?;
    let mut secrets = Vec::with_capacity(owners.values.len());
    for row in owners.iter() {
        let owner = owner(row)?;
        let versions = SecretVersions::read(row)?;
        let mut in_use = vec![versions.version];
        // The one before signs, too, until receivers know the new one.
        if versions.version > 1 && versions.old_until_ms.is_some_and(|until_ms| until_ms > frozen_at) {
            in_use.push(versions.version - 1);
        }
        let sealed = |version: i64| {
            let of = owner.as_secret_owner();
            let secret = versions.origin.bytes(&services.config().secret, of, version);
            // The same whenever it is asked for: a file that goes on after a failure has the sums of its parts.
            seal_alike(&key, &label(of, version), &secret)
        };
        let sealed = in_use.into_iter().map(sealed).collect();
        secrets.push(CarriedSecrets { version: versions.version, sealed, owner });
    }
    let most = usize::try_from(MOVE_PART_SECRETS_MAX).unwrap_or(usize::MAX);
    let next = match owners.iter().last() {
        Some(last) if secrets.len() == most => Cursor::Secrets { after: last.text("id")? },
        _ => Cursor::Recordings { after: Vec::new(), segments: 0 },
    };
    Ok(Part::of_secrets(&secrets, Some(next.to_text())))
}

fn owner(row: Row<'_>) -> Result<Owner, DatabaseError> {
    Ok(match row.str("kind")? {
        "tool" => Owner::Tool(row.id::<ToolId>("id")?),
        _ => Owner::Webhook(row.id::<WebhookId>("id")?),
    })
}
