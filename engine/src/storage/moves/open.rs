//! The workspace begins to run here. The source has handed it over: whoever has the code says so, and can open the secrets that
//! arrived. They are sealed anew with the server secret, some in each request, and the last batch lifts the lock.
use serde::{Deserialize, Serialize};
use serde_json::json;

use crate::base::ids::{Id as _, ToolId, WebhookId, WorkspaceId};
use crate::base::limits::MOVE_PART_SECRETS_MAX;
use crate::base::sealed::{seal, unseal};
use crate::ports::statement::{Row, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::search;
use crate::storage::fault::{Fault, retry_stale};
use crate::storage::moves::admin::Admin;
use crate::storage::moves::code::{Code, FileKey};
use crate::storage::moves::declined::Declined;
use crate::storage::moves::import::{self, Status};
use crate::storage::moves::part::Owner;
use crate::storage::moves::{Move, State, jobs_away, lock};
use crate::storage::signing::label;
use crate::storage::workspace_rows::AWAY;

/// An import that is being opened, or was.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Opened {
    /// How far it is.
    pub status: Status,
    /// Tools and webhooks whose secrets could not be opened, in this request: they have new ones.
    pub without_secrets: Vec<String>,
}

/// Goes on with opening the import. To be asked until the workspace runs.
pub async fn open(services: &Services, workspace_id: &WorkspaceId, code: &Code) -> Result<Opened, Fault> {
    open_for(services, workspace_id, code, None).await
}

/// The same; with the last step, somebody is invited as an admin.
pub async fn open_for(
    services: &Services,
    workspace_id: &WorkspaceId,
    code: &Code,
    admin: Option<&Admin>,
) -> Result<Opened, Fault> {
    let without_secrets = retry_stale(|| step(services, workspace_id, code, admin)).await?;
    let import = import::find(services, workspace_id).await?;
    if import.state == State::Running {
        tell_keys(services, workspace_id).await?;
        lock::disarm_running(services, workspace_id).await?;
    }
    Ok(Opened { status: Status::of(&import)?, without_secrets })
}

async fn step(
    services: &Services,
    workspace_id: &WorkspaceId,
    code: &Code,
    admin: Option<&Admin>,
) -> Result<Vec<String>, Fault> {
    let import = import::find(services, workspace_id).await?;
    match import.state {
        State::Arrived => {
            import::check_schema(&import)?;
            take_over(services, &import, code).await?;
            Ok(Vec::new())
        }
        // It runs nowhere else: it has to begin here whatever was upgraded meanwhile.
        State::Opening => go_on(services, &import, admin).await,
        State::Running => Ok(Vec::new()),
        _ => Err(Declined::NotArrived.into()),
    }
}

/// From here on, the workspace can only be opened.
async fn take_over(services: &Services, import: &Move, code: &Code) -> Result<(), Fault> {
    let key = code.opens(&import.id, &import.file_key).ok_or(Declined::WrongCode)?;
    let secret = services.config().secret.as_bytes();
    let keep = sql!(
        "UPDATE moves SET file_key = :file_key WHERE workspace_id = :ws AND id = :id",
        file_key = seal(secret, &import.id, nonce(services), &key),
        id = &import.id
    );
    let keep = vec![keep.in_workspace(&import.workspace_id)];
    Ok(import::go_on(services, import, keep, State::Opening, &Step { of: 0 }).await?)
}

/// How many requests have sealed secrets anew. It tells one from the next.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Step {
    of: u64,
}

/// Seals the next secrets anew; if there are none, the workspace runs. Returns the owners whose secrets did not open.
async fn go_on(services: &Services, import: &Move, admin: Option<&Admin>) -> Result<Vec<String>, Fault> {
    let in_file = |table: &str| {
        sql!(format!(
            "SELECT id, carried_secrets FROM {table} WHERE workspace_id = :ws
             AND json_extract(carried_secrets, '$.file') IS NOT NULL LIMIT {MOVE_PART_SECRETS_MAX}"
        ))
        .in_workspace(&import.workspace_id)
    };
    let [tools, webhooks] = services.read([in_file("tools"), in_file("webhooks")]).await?;
    if tools.is_empty() && webhooks.is_empty() {
        run(services, import, admin).await?;
        return Ok(Vec::new());
    }
    let secret = services.config().secret.as_bytes();
    let key = unseal(secret, &import.id, &import.file_key);
    let (mut statements, mut lost) = (Vec::new(), Vec::new());
    for (table, rows) in [("tools", &tools), ("webhooks", &webhooks)] {
        for row in rows.iter() {
            let id = row.text("id")?;
            let sealed = sealed_anew(services, key.as_ref(), &owner(table, &id), row)?;
            if sealed.is_none() {
                lost.push(id.clone());
            }
            let keep = sql!(
                format!(
                    "UPDATE {table} SET carried_secrets = :carried WHERE workspace_id = :ws AND id = :id"
                ),
                carried = sealed,
                id = id
            );
            statements.push(keep.in_workspace(&import.workspace_id));
        }
    }
    let Step { of } = import::progress(import)?;
    import::go_on(services, import, statements, State::Opening, &Step { of: of + 1 }).await?;
    Ok(lost)
}

fn owner(table: &str, id: &str) -> Owner {
    match table {
        "tools" => Owner::Tool(ToolId::from_stored(id)),
        _ => Owner::Webhook(WebhookId::from_stored(id)),
    }
}

/// Secrets as they arrived.
#[derive(Deserialize)]
struct InFile {
    version: i64,
    file: Vec<String>,
}

/// The secrets of a row as they are stored with their owner; `None`: one of them is not sealed with the key of the file, or that
/// one with another server secret. The owner has a new one then, as after the server secret was replaced: the workspace runs
/// nowhere else, so that is no reason not to run it.
fn sealed_anew(
    services: &Services,
    key: Option<&FileKey>,
    owner: &Owner,
    row: Row<'_>,
) -> Result<Option<String>, Fault> {
    let InFile { version, file } = row.json("carried_secrets")?;
    let Some(key) = key else { return Ok(None) };
    let mut sealed = Vec::new();
    for (of, text) in (0..).zip(&file) {
        let label = label(owner.as_secret_owner(), version - of);
        let Some(secret) = unseal(key, &label, text) else { return Ok(None) };
        sealed.push(seal(services.config().secret.as_bytes(), &label, nonce(services), &secret));
    }
    Ok(Some(json!({"version": version, "sealed": sealed}).to_string()))
}

fn nonce(services: &Services) -> [u8; 16] {
    let mut nonce = [0; 16];
    services.ports().random.fill(&mut nonce);
    nonce
}

/// Lets the workspace run: its keys open it, and its jobs are due again.
pub(super) async fn run(services: &Services, import: &Move, admin: Option<&Admin>) -> Result<(), Fault> {
    let own = |statement: Statement| statement.in_workspace(&import.workspace_id);
    let [first] = services.read([own(jobs_away::first())]).await?;
    let is_so = sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (
           SELECT 1 FROM moves WHERE workspace_id = :ws AND id = :id AND state = :state AND progress = :progress)
         OR EXISTS (SELECT 1 FROM tools WHERE workspace_id = :ws AND json_extract(carried_secrets, '$.file') IS NOT NULL)
         OR EXISTS (SELECT 1 FROM webhooks WHERE workspace_id = :ws AND json_extract(carried_secrets, '$.file') IS NOT NULL)",
        id = &import.id,
        state = import.state.as_str(),
        progress = &import.progress
    );
    // It lifts the lock, so it precedes the others.
    let unlock = sql!(
        "UPDATE moves SET lock = 0, state = :state, file_key = '', moved_to = NULL, progress = '{}', changed_at = :now
         WHERE workspace_id = :ws AND id = :id",
        state = State::Running.as_str(),
        now = services.now(),
        id = &import.id
    );
    let keys = sql!(
        "UPDATE api_keys SET revoked_at = NULL WHERE workspace_id = :ws AND revoked_at = :away",
        away = AWAY
    );
    // A file can have two jobs of one webhook; the first is enough.
    let [mut jobs, no_longer_away] = jobs_away::back();
    jobs.sql = format!("{} ON CONFLICT DO NOTHING", jobs.sql).into();
    // Blobs that were to be removed there have not come along: nothing is due here, however many rows a file has, and however
    // long ago it says that was.
    let no_attempts = sql!(
        "DELETE FROM recordings WHERE state = 'abandoned'
         AND id IN (SELECT id FROM recordings WHERE due_at IS NOT NULL AND workspace_id = :ws)"
    );
    let no_longer_due = sql!(
        "UPDATE recordings SET due_at = NULL WHERE state = 'deleted'
         AND id IN (SELECT id FROM recordings WHERE due_at IS NOT NULL AND workspace_id = :ws)"
    );
    // The words of calls that were deleted here before it arrived may still be in the text index.
    let mut batch = Batch::from([is_so, unlock, keys, jobs, no_longer_away, search::erase_words()].map(own));
    if !import.is_between_databases() {
        batch.extend([no_attempts, no_longer_due].map(own));
    }
    if let Some(admin) = admin {
        batch.extend(admin.invite(services).map(own));
    }
    jobs_away::wake(services, &mut batch, &first)?;
    batch.write(services).await?;
    Ok(())
}

/// Tells the directory of several databases of the keys: their first requests search nothing.
async fn tell_keys(services: &Services, workspace_id: &WorkspaceId) -> Result<(), Fault> {
    if services.sharding().is_none() {
        return Ok(());
    }
    let keys = sql!("SELECT hash FROM api_keys WHERE workspace_id = :ws AND revoked_at IS NULL ORDER BY id");
    let [keys] = services.read([keys.in_workspace(workspace_id)]).await?;
    for row in keys.iter() {
        services.tell_key(row.str("hash")?, workspace_id).await;
    }
    Ok(())
}
