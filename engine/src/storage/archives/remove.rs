//! Removes the archived transcripts of deleted calls.
use serde_json::json;

use crate::base::ids::{CallId, WorkspaceId};
use crate::base::limits::{RECORDING_RETRY_MS, SWEEP_ROWS_MAX};
use crate::ports::BlobError;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::archives::key;
use crate::storage::fault::Fault;
use crate::storage::moves::lock::STAYS;

/// Notes the blobs of calls that are being deleted, before their rows go. `{gone}` is the table of the calls, `:due` when nobody
/// can be writing the blobs any more.
pub(crate) fn mark_for_removal() -> &'static str {
    "INSERT INTO archives_to_remove (call_id, workspace_id, due_at)
     SELECT gone.id, :ws, :due FROM {gone} AS gone JOIN call_transcripts AS t ON t.seq = gone.seq
     WHERE t.workspace_id = :ws AND t.archive_bytes IS NOT NULL ON CONFLICT DO NOTHING"
}

/// What the sweep removes now, for [`Services::remove_archives`].
pub(crate) fn due(now_ms: i64) -> Statement {
    sql!(
        format!(
            "SELECT call_id, workspace_id FROM archives_to_remove WHERE due_at <= :now AND {STAYS}
             ORDER BY due_at LIMIT CAST(:most AS INTEGER)"
        ),
        now = now_ms,
        most = SWEEP_ROWS_MAX
    )
}

impl Services {
    /// Removes these blobs, then their rows. If one cannot be removed, all are tried again later; returns why.
    pub(crate) async fn remove_archives(&self, due: &Rows) -> Result<Option<BlobError>, Fault> {
        if due.is_empty() {
            return Ok(None);
        }
        let (mut ids, mut keys) = (Vec::new(), Vec::new());
        for row in due.iter() {
            let (workspace_id, call_id): (WorkspaceId, CallId) =
                (row.id("workspace_id")?, row.id("call_id")?);
            keys.extend(key(&workspace_id, &call_id));
            ids.push(call_id);
        }
        let removed = self.ports().blobs.delete_all(keys).await;
        let ids = json!(ids).to_string();
        let done = match removed {
            Ok(()) => sql!(
                format!(
                    "DELETE FROM archives_to_remove WHERE call_id IN (SELECT value FROM json_each(:ids)) AND {STAYS}"
                ),
                ids = ids
            ),
            Err(_) => sql!(
                format!(
                    "UPDATE archives_to_remove SET due_at = :later WHERE call_id IN (SELECT value FROM json_each(:ids)) AND {STAYS}"
                ),
                later = self.ports().clock.now_ms() + RECORDING_RETRY_MS,
                ids = ids
            ),
        };
        self.write([done]).await?;
        Ok(removed.err())
    }
}
