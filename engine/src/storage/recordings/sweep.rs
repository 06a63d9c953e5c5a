//! Removes unreachable blobs: of deleted recordings, and of abandoned attempts.
use serde_json::json;

use crate::base::ids::RecordingId;
use crate::base::limits::RECORDINGS_SWEPT_MAX;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::recordings::key;

/// Marks attempts that must have ended as abandoned, then selects the due removals. The last statement's rows are for
/// [`Services::remove_recordings`].
pub(crate) fn due(now_ms: i64) -> [Statement; 2] {
    [
        sql!(
            "UPDATE recordings SET state = 'abandoned', peaks = NULL WHERE state = 'writing' AND due_at <= :now",
            now = now_ms
        ),
        sql!(
            format!(
                "SELECT id, workspace_id, call_id FROM recordings WHERE due_at <= :now ORDER BY due_at LIMIT {RECORDINGS_SWEPT_MAX}"
            ),
            now = now_ms
        ),
    ]
}

impl Services {
    /// Removes the blobs of these rows, then the rows; the row of a deleted recording stays. A blob that cannot be removed
    /// is left to the next sweep and blocks no other.
    pub(crate) async fn remove_recordings(&self, due: &Rows) -> Result<(), Fault> {
        let (mut removed, mut failed) = (Vec::new(), None);
        for row in due.iter() {
            let id: RecordingId = row.id("id")?;
            let key = key(&row.id("workspace_id")?, &row.id("call_id")?, &id)?;
            match self.ports().blobs.delete(&key).await {
                Ok(()) => removed.push(id),
                Err(error) => failed = Some(error),
            }
        }
        if !removed.is_empty() {
            let list = json!(removed).to_string();
            let gone = [
                sql!(
                    "DELETE FROM recordings WHERE id IN (SELECT value FROM json_each(:list)) AND state = 'abandoned'",
                    list = &list
                ),
                sql!(
                    "UPDATE recordings SET due_at = NULL WHERE id IN (SELECT value FROM json_each(:list)) AND state = 'deleted'",
                    list = &list
                ),
            ];
            self.write(gone).await?;
        }
        failed.map_or(Ok(()), |error| Err(error.into()))
    }
}
