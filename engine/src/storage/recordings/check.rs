//! Compares recordings with their blobs, for the operator.
use crate::base::ids::{CallId, RecordingId, WorkspaceId};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::recordings::{columns, file};

/// Recordings that are compared at a time.
const PART_ROWS: u32 = 200;

/// What a comparison has found.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct CheckedRecordings {
    /// Recordings that were compared.
    pub recordings: u64,
    /// A sentence for each recording whose blobs are missing or have another size.
    pub problems: Vec<String>,
    /// Where to continue; `None` at the end.
    pub next: Option<String>,
}

impl Services {
    /// Compares the next recordings that can be read with what the storage of blobs has, `after` this id; `""` at first.
    pub(crate) async fn check_recordings(&self, after: &str) -> Result<CheckedRecordings, Fault> {
        let [rows] = self
            .read([sql!(
                format!(
                    "SELECT {}, r.workspace_id AS workspace_id, r.call_id AS call_id, r.segments AS segments
                     FROM recordings AS r WHERE r.state = 'ready' AND r.id > :after ORDER BY r.id LIMIT {PART_ROWS}",
                    columns::FILE
                ),
                after = after
            )])
            .await?;
        let mut checked = CheckedRecordings::default();
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
                let problem = match self.ports().blobs.size(&key).await {
                    Ok(Some(bytes)) if bytes >= wanted => None,
                    Ok(Some(bytes)) => Some(format!("has {bytes} bytes instead of {wanted}")),
                    Ok(None) => Some("is missing".to_owned()),
                    Err(error) => Some(format!("cannot be read: {}", error.0)),
                };
                if let Some(problem) = problem {
                    checked.problems.push(format!("the recording of {call_id}: {} {problem}", key.as_str()));
                    break;
                }
                (left, n) = (left - wanted, n + 1);
            }
            checked.recordings += 1;
            checked.next = Some(id.to_string());
        }
        Ok(checked)
    }
}
