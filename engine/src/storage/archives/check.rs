//! Compares archived transcripts with their blobs, for the operator.
use crate::base::ids::{CallId, WorkspaceId};
use crate::services::Services;
use crate::sql;
use crate::storage::archives::key;
use crate::storage::checked::{Checked, PART_ROWS};
use crate::storage::fault::Fault;

impl Services {
    /// Compares the next archived transcripts with the storage of blobs, `after` this place; 0 at first.
    pub(crate) async fn check_archives(&self, after: i64) -> Result<Checked<i64>, Fault> {
        let [rows] = self
            .read([sql!(
                format!(
                    "SELECT t.seq AS seq, c.id AS id, t.workspace_id AS workspace_id, t.archive_bytes AS bytes
                     FROM call_transcripts AS t CROSS JOIN calls AS c ON c.seq = t.seq
                     WHERE t.archive_bytes > 0 AND t.seq > :after ORDER BY t.seq LIMIT {PART_ROWS}"
                ),
                after = after
            )])
            .await?;
        let mut checked = Checked::default();
        for row in rows.iter() {
            let (workspace_id, call_id): (WorkspaceId, CallId) = (row.id("workspace_id")?, row.id("id")?);
            let bytes = u64::try_from(row.integer("bytes")?).unwrap_or(0);
            let key = key(&workspace_id, &call_id)?;
            if let Some(problem) = self.problem_of_blob(&key, bytes, false).await {
                checked.problems.push(format!("the transcript of {call_id}: {problem}"));
            }
            checked.compared += 1;
            checked.next = Some(row.integer("seq")?);
        }
        Ok(checked)
    }
}
