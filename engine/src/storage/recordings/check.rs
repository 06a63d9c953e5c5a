//! Compares recordings with their blobs, for the operator.
use crate::base::ids::{CallId, RecordingId, WorkspaceId};
use crate::services::Services;
use crate::sql;
use crate::storage::checked::{Checked, PART_ROWS};
use crate::storage::fault::Fault;
use crate::storage::moves::lock::stays;
use crate::storage::recordings::{columns, file};

impl Services {
    /// Compares the next recordings that can be read with what the storage of blobs has, `after` this id; `""` at first.
    pub(crate) async fn check_recordings(&self, after: &str) -> Result<Checked<String>, Fault> {
        let [rows] = self
            .read([sql!(
                format!(
                    "SELECT {}, r.workspace_id AS workspace_id, r.call_id AS call_id, r.segments AS segments
                     FROM recordings AS r WHERE r.state = 'ready' AND r.id > :after AND {} ORDER BY r.id LIMIT {PART_ROWS}",
                    columns::FILE,
                    stays("r.workspace_id")
                ),
                after = after
            )])
            .await?;
        let mut checked = Checked::default();
        for row in rows.iter() {
            let (workspace_id, call_id): (WorkspaceId, CallId) =
                (row.id("workspace_id")?, row.id("call_id")?);
            let id: RecordingId = row.id("id")?;
            let stored = file(&workspace_id, &call_id, &row)?;
            let size_bytes = u64::try_from(row.integer("size_bytes")?).unwrap_or(0);
            let mut left = size_bytes.saturating_sub(stored.head.len() as u64);
            let mut n = 0;
            while left > 0 {
                let wanted = left.min(stored.segment_bytes);
                let key = stored.key.segment(n);
                if let Some(problem) = self.problem_of_blob(&key, wanted, true).await {
                    checked.problems.push(format!("the recording of {call_id}: {problem}"));
                    break;
                }
                (left, n) = (left - wanted, n + 1);
            }
            checked.compared += 1;
            checked.next = Some(id.to_string());
        }
        Ok(checked)
    }
}
