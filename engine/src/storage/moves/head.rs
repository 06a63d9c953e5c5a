//! What the next host has to know of a frozen workspace before its first row arrives.
use serde_json::json;

use crate::base::hash::sha256_hex;
use crate::base::ids::WorkspaceId;
use crate::base::limits::{MODEL_CHARS_MAX, MOVE_HEAD_BYTES_MAX, MOVE_NEEDS_MAX};
use crate::base::sealed::unseal;
use crate::base::text::is_line;
use crate::base::time;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::code::{FileKey, key_digest};
use crate::storage::moves::part::{Head, Needs};
use crate::storage::moves::progress::Progress;
use crate::storage::moves::{Move, Refusal};
use crate::storage::workspace_rows::AWAY;

/// The head of the file. It is the same whenever it is asked for, also after the workspace was handed over: a file may have to
/// be made again.
pub async fn head(services: &Services, found: &Move) -> Result<Head, Fault> {
    let own = |statement: Statement| statement.in_workspace(&found.workspace_id);
    let used = |column: &str, table: &str| {
        own(sql!(format!(
            "SELECT DISTINCT {column} AS text FROM {table} WHERE workspace_id = :ws AND {column} <> '' ORDER BY 1 LIMIT {MOVE_NEEDS_MAX}"
        )))
    };
    let [numbers, key_hashes] = select_named().map(own);
    let [name, numbers, key_hashes, carriers, models, voices, transcribers] = services
        .read([
            own(select_name()),
            numbers,
            key_hashes,
            used("provider", "numbers"),
            used("model", "assistants"),
            used("voice", "assistants"),
            used("transcriber", "assistants"),
        ])
        .await?;
    Ok(Head {
        export_id: found.id.clone(),
        workspace_id: found.workspace_id.clone(),
        name: texts(&name)?.pop().unwrap_or_default(),
        schema: found.schema.clone(),
        frozen_at: time::format(Progress::of(found)?.frozen_at),
        base_url: services.config().base_url.clone(),
        key_sha256: key_digest(&file_key(services, found)?),
        numbers: texts(&numbers)?,
        key_hashes: texts(&key_hashes)?,
        needs: Needs {
            carriers: needs(&carriers)?,
            models: needs(&models)?,
            voices: needs(&voices)?,
            transcribers: needs(&transcribers)?,
        },
    })
}

/// The telephone numbers, and the hashes of keys that are not revoked. No head has room for as many keys.
fn select_named() -> [Statement; 2] {
    let most = MOVE_HEAD_BYTES_MAX / 64;
    [
        sql!("SELECT number AS text FROM numbers WHERE workspace_id = :ws ORDER BY number"),
        sql!(format!(
            "SELECT hash AS text FROM api_keys WHERE workspace_id = :ws AND (revoked_at IS NULL OR revoked_at = {AWAY})
             ORDER BY hash LIMIT {most}"
        )),
    ]
}

/// The SHA-256 of what a head names that is in rows, too: numbers, and hashes of keys.
pub(super) fn named(numbers: &[String], key_hashes: &[String]) -> String {
    sha256_hex(json!([numbers, key_hashes]).to_string().as_bytes())
}

/// The same of the rows.
pub(super) async fn named_by_rows(services: &Services, workspace_id: &WorkspaceId) -> Result<String, Fault> {
    let select = select_named().map(|statement| statement.in_workspace(workspace_id));
    let [numbers, key_hashes] = services.read(select).await?;
    Ok(named(&texts(&numbers)?, &texts(&key_hashes)?))
}

/// The name of a workspace.
pub async fn name(services: &Services, workspace_id: &WorkspaceId) -> Result<String, Fault> {
    let [name] = services.read([select_name().in_workspace(workspace_id)]).await?;
    Ok(texts(&name)?.pop().unwrap_or_default())
}

fn select_name() -> Statement {
    sql!("SELECT name AS text FROM workspaces WHERE id = :ws")
}

/// The key with which the secrets in the file of an export are sealed.
pub(super) fn file_key(services: &Services, found: &Move) -> Result<FileKey, Fault> {
    let key = unseal(services.config().secret.as_bytes(), &found.id, &found.file_key);
    key.ok_or_else(|| Refusal::KeyLost.error().into())
}

fn texts(rows: &Rows) -> Result<Vec<String>, Fault> {
    Ok(rows.iter().map(|row| row.text("text")).collect::<Result<_, _>>()?)
}

/// Without what cannot be shown: it is in nobody's way, and no host knows it.
fn needs(rows: &Rows) -> Result<Vec<String>, Fault> {
    let mut needs = texts(rows)?;
    needs.retain(|text| is_line(text, MODEL_CHARS_MAX));
    Ok(needs)
}
