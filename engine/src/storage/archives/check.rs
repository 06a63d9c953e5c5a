//! Compares archived transcripts with their blobs, for the operator.
use crate::base::ids::{CallId, WorkspaceId};
use crate::services::Services;
use crate::sql;
use crate::storage::archives::key;
use crate::storage::fault::Fault;

/// Transcripts that are compared at a time.
const PART_ROWS: u32 = 200;

/// What a comparison has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedArchives {
    /// Transcripts that were compared.
    pub transcripts: u64,
    /// A sentence for each transcript whose blob is missing or has another size.
    pub problems: Vec<String>,
    /// Where to continue; `None` at the end.
    pub next: Option<i64>,
}

impl Services {
    /// Compares the next archived transcripts with the storage of blobs, `after` this place; 0 at first.
    pub(crate) async fn check_archives(&self, after: i64) -> Result<CheckedArchives, Fault> {
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
        let mut checked = CheckedArchives::default();
        for row in rows.iter() {
            let (workspace_id, call_id): (WorkspaceId, CallId) = (row.id("workspace_id")?, row.id("id")?);
            let bytes = u64::try_from(row.integer("bytes")?).unwrap_or(0);
            let key = key(&workspace_id, &call_id)?;
            let problem = match self.ports().blobs.size(&key).await {
                Ok(Some(found)) if found == bytes => None,
                Ok(Some(found)) => Some(format!("has {found} bytes instead of {bytes}")),
                Ok(None) => Some("is missing".to_owned()),
                Err(error) => Some(format!("cannot be read: {}", error.0)),
            };
            if let Some(problem) = problem {
                checked.problems.push(format!("the transcript of {call_id}: {} {problem}", key.as_str()));
            }
            checked.transcripts += 1;
            checked.next = Some(row.integer("seq")?);
        }
        Ok(checked)
    }
}
