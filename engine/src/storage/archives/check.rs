//! Compares archived transcripts with their blobs, for the operator.
use crate::base::hash::sha256_hex;
use crate::base::ids::{CallId, WorkspaceId};
use crate::ports::ByteRange;
use crate::services::Services;
use crate::sql;
use crate::storage::archives::key;
use crate::storage::checked::{Checked, PART_ROWS};
use crate::storage::fault::Fault;
use crate::storage::moves::lock::stays;

impl Services {
    /// Compares the next archived transcripts with the storage of blobs, `after` this place; 0 at first.
    pub(crate) async fn check_archives(&self, after: i64) -> Result<Checked<i64>, Fault> {
        let [rows] = self
            .read([sql!(
                format!(
                    "SELECT t.seq AS seq, c.id AS id, t.workspace_id AS workspace_id, t.archive_bytes AS bytes,
                       t.archive_sha256 AS sha256
                     FROM call_transcripts AS t CROSS JOIN calls AS c ON c.seq = t.seq
                     WHERE t.archive_bytes > 0 AND t.seq > :after AND {} ORDER BY t.seq LIMIT {PART_ROWS}",
                    stays("t.workspace_id")
                ),
                after = after
            )])
            .await?;
        let mut checked = Checked::default();
        for row in rows.iter() {
            let (workspace_id, call_id): (WorkspaceId, CallId) = (row.id("workspace_id")?, row.id("id")?);
            let bytes = u64::try_from(row.integer("bytes")?).unwrap_or(0);
            let key = key(&workspace_id, &call_id)?;
            let mut problem = self.problem_of_blob(&key, bytes, false).await;
            if problem.is_none() {
                // As a read compares it.
                let sha256 = row.text("sha256")?;
                let read = self.ports().blobs.get(&key, ByteRange { first: 0, bytes }).await;
                let is_same = matches!(&read, Ok(Some(content)) if sha256_hex(content) == sha256);
                problem = (!is_same).then(|| format!("{} is not what was archived", key.as_str()));
            }
            if let Some(problem) = problem {
                checked.problems.push(format!("the transcript of {call_id}: {problem}"));
            }
            checked.compared += 1;
            checked.next = Some(row.integer("seq")?);
        }
        Ok(checked)
    }
}
