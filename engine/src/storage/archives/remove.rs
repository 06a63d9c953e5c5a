//! Removes the archived transcripts of deleted calls.
use serde_json::json;

use crate::base::ids::{CallId, Id as _, WorkspaceId};
use crate::base::limits::{
    ARCHIVE_REMOVAL_PAUSE_MS, ARCHIVE_REMOVALS_MAX, RECORDING_RETRY_MS, SWEEP_ROWS_MAX,
};
use crate::ports::statement::{Rows, Statement};
use crate::ports::{BlobError, BlobKey};
use crate::services::Services;
use crate::sql;
use crate::storage::archives::key;
use crate::storage::fault::Fault;
use crate::storage::moves::lock::STAYS;
use crate::storage::service_facts;

/// The fact that holds when to go on removing.
const NEXT: &str = "next_archive_removal";

/// Notes the blobs of calls that are being deleted, before their rows go. `{gone}` is the table of the calls, `:due` when nobody
/// can be writing the blobs any more.
pub(crate) fn mark_for_removal() -> &'static str {
    "INSERT INTO archives_to_remove (call_id, workspace_id, due_at)
     SELECT gone.id, :ws, :due FROM {gone} AS gone JOIN call_transcripts AS t ON t.seq = gone.seq
     WHERE t.workspace_id = :ws AND t.archive_bytes IS NOT NULL ON CONFLICT DO NOTHING"
}

/// What the sweep removes now, for [`Services::remove_archives`]: nothing before it is time to go on.
pub(crate) fn due(now_ms: i64) -> Statement {
    let pauses = service_facts::pauses(NEXT, RECORDING_RETRY_MS);
    sql!(
        format!(
            "SELECT call_id, workspace_id FROM archives_to_remove WHERE due_at <= :now AND {STAYS}
             AND NOT {pauses} ORDER BY due_at LIMIT CAST(:most AS INTEGER)"
        ),
        now = now_ms,
        most = SWEEP_ROWS_MAX
    )
}

/// What became of the blobs that were due.
#[derive(Default)]
struct Removal {
    removed: Vec<CallId>,
    /// Blobs that cannot be removed now.
    failed: Vec<CallId>,
    /// How long those wait that were not come to, if there are any. They stay due, so those that failed come after them.
    pause_ms: Option<i64>,
    error: Option<BlobError>,
}

impl Services {
    /// Removes these blobs, then their rows. A blob that cannot be removed is tried again later and is in the way of no other;
    /// returns why.
    pub(crate) async fn remove_archives(&self, due: &Rows) -> Result<Option<BlobError>, Fault> {
        if due.is_empty() {
            return Ok(None);
        }
        let (mut blobs, mut removal) = (Vec::new(), Removal::default());
        for row in due.iter() {
            let (workspace_id, call_id): (WorkspaceId, CallId) =
                (row.id("workspace_id")?, row.id("call_id")?);
            match key(&workspace_id, &call_id) {
                Ok(key) => blobs.push((call_id, key)),
                // It names no blob.
                Err(_) => removal.removed.push(call_id),
            }
        }
        self.remove_in_parts(&blobs, &mut removal).await?;
        let Removal { removed, failed, pause_ms, error } = removal;
        let now_ms = self.ports().clock.now_ms();
        // In one batch: it removes, which a full disk still takes.
        let mut done = vec![
            sql!(
                format!(
                    "DELETE FROM archives_to_remove WHERE call_id IN (SELECT value FROM json_each(:ids)) AND {STAYS}"
                ),
                ids = json!(removed).to_string()
            ),
            sql!(
                format!(
                    "UPDATE archives_to_remove SET due_at = :later WHERE call_id IN (SELECT value FROM json_each(:ids)) AND {STAYS}"
                ),
                later = now_ms + RECORDING_RETRY_MS,
                ids = json!(failed).to_string()
            ),
        ];
        done.extend(pause_ms.map(|pause_ms| service_facts::set(NEXT, &(now_ms + pause_ms).to_string())));
        self.ports().database.write(done).await?;
        Ok(error)
    }

    /// All in one request. Where that fails, each half in one, and so on down to a single blob: a few that cannot be removed
    /// take few requests.
    async fn remove_in_parts(
        &self,
        blobs: &[(CallId, BlobKey)],
        removal: &mut Removal,
    ) -> Result<(), BlobError> {
        let storage = &self.ports().blobs;
        let mut parts = vec![blobs];
        let mut requests = 0;
        while let Some(part) = parts.pop() {
            if requests == ARCHIVE_REMOVALS_MAX {
                removal.pause_ms = Some(ARCHIVE_REMOVAL_PAUSE_MS);
                return Ok(());
            }
            requests += 1;
            let keys = part.iter().map(|(_, key)| key.clone()).collect();
            let Err(error) = storage.delete_all(keys).await else {
                removal.removed.extend(part.iter().map(|(id, _)| id.clone()));
                continue;
            };
            removal.error = Some(error);
            match part {
                [] => {}
                [(id, _)] => {
                    removal.failed.push(id.clone());
                    // Storage that does not even say that there is no such blob answers nothing at the moment: the other requests would
                    // be in vain, and no blob is to blame. Only once: if it answers, the fault is in single blobs.
                    if removal.failed.len() == 1 && storage.size(&nobodys()?).await.is_err() {
                        removal.pause_ms = Some(RECORDING_RETRY_MS);
                        return Ok(());
                    }
                }
                // One half after the other, so that with each round some are done.
                _ => {
                    let (first, second) = part.split_at(part.len() / 2);
                    parts.extend([second, first]);
                }
            }
        }
        Ok(())
    }
}

/// The key of a blob that nobody has.
fn nobodys() -> Result<BlobKey, BlobError> {
    key(&WorkspaceId::from_stored("ws_nobody"), &CallId::from_stored("call_none"))
}
