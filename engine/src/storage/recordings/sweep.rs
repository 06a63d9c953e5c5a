//! Removes unreachable blobs: of deleted recordings, and of abandoned attempts.
use serde_json::json;

use crate::base::ids::RecordingId;
use crate::base::limits::{
    RECORDING_RETRY_MS, RECORDING_SEGMENTS_SWEPT_MAX, RECORDINGS_SWEPT_MAX, SWEEP_ROWS_MAX,
};
use crate::ports::BlobError;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::moves::lock::STAYS;
use crate::storage::recordings::remove;

/// Marks attempts that must have ended as abandoned, then selects the due removals. The last statement's rows are for
/// [`Services::remove_recordings`].
pub(crate) fn due(now_ms: i64) -> [Statement; 2] {
    [
        sql!(
            format!(
                "UPDATE recordings SET state = 'abandoned', peaks = NULL WHERE id IN (
                   SELECT id FROM recordings WHERE state = 'writing' AND due_at <= :now AND {STAYS}
                   ORDER BY due_at LIMIT CAST(:most AS INTEGER))"
            ),
            now = now_ms,
            most = SWEEP_ROWS_MAX
        ),
        sql!(
            format!(
                "SELECT id, workspace_id, call_id, segments FROM recordings WHERE state <> 'writing' AND due_at <= :now AND {STAYS} ORDER BY due_at LIMIT {RECORDINGS_SWEPT_MAX}"
            ),
            now = now_ms
        ),
    ]
}

impl Services {
    /// Removes the blobs of these rows, then the rows; the row of a deleted recording stays. A blob that cannot be removed
    /// is tried again later and is in the way of no other; returns why. If there are many segments, some rows stay due.
    pub(crate) async fn remove_recordings(&self, due: &Rows) -> Result<Option<BlobError>, Fault> {
        let (mut removed, mut postponed, mut failed) = (Vec::new(), Vec::new(), None);
        let mut segments = 0;
        for row in due.iter() {
            if segments >= RECORDING_SEGMENTS_SWEPT_MAX {
                break;
            }
            segments += row.integer("segments")?;
            let id: RecordingId = row.id("id")?;
            match remove(self, &row.id("workspace_id")?, &row.id("call_id")?, &row).await? {
                Ok(()) => removed.push(id),
                Err(error) => {
                    postponed.push(id);
                    failed = Some(error);
                }
            }
        }
        if !due.is_empty() {
            let list = json!(removed).to_string();
            // In one batch: it removes, which a full disk still takes.
            let done = [
                sql!(
                    format!(
                        "DELETE FROM recordings WHERE id IN (SELECT value FROM json_each(:list)) AND state = 'abandoned' AND {STAYS}"
                    ),
                    list = &list
                ),
                sql!(
                    format!(
                        "UPDATE recordings SET due_at = NULL WHERE id IN (SELECT value FROM json_each(:list)) AND state = 'deleted' AND {STAYS}"
                    ),
                    list = &list
                ),
                sql!(
                    format!(
                        "UPDATE recordings SET due_at = :later WHERE id IN (SELECT value FROM json_each(:list)) AND due_at IS NOT NULL AND {STAYS}"
                    ),
                    later = self.ports().clock.now_ms() + RECORDING_RETRY_MS,
                    list = json!(postponed).to_string()
                ),
            ];
            self.write(done).await?;
        }
        Ok(failed)
    }
}
