//! Statements of operations that look up and delete the recording of a call.
use crate::base::error::{Code, Error};
use crate::base::ids::CallId;
use crate::ports::statement::{Row, Rows, Statement};
use crate::sql;
use crate::storage::fault::Fault;

/// Lists of columns for [`select`].
pub mod columns {
    /// For a download.
    pub const FILE: &str = "r.id AS id, r.size_bytes AS size_bytes, r.sha256 AS sha256,
           r.segment_ms AS segment_ms, r.rate_hz AS rate_hz";
    /// For a waveform.
    pub const WAVEFORM: &str = "r.duration_ms AS duration_ms, r.missing_ms AS missing_ms, r.peaks AS peaks";
    /// For removing its blobs.
    pub const BLOBS: &str = "r.id AS id, r.segments AS segments";
}

/// The recording of a call of the caller's workspace: no row when there is no such call.
pub fn select(call_id: &CallId, columns: &str) -> Statement {
    sql!(
        format!(
            "SELECT r.state AS state, {columns} FROM calls AS c
             LEFT JOIN recordings AS r ON r.call_id = c.id AND r.state <> 'abandoned'
             WHERE c.workspace_id = :ws AND c.id = :call_id"
        ),
        call_id = call_id
    )
}

/// The statements that delete a recording with the state `ready`. The sweep removes the blob if the operation fails to.
pub fn delete(call_id: &CallId, now_ms: i64) -> Vec<Statement> {
    vec![
        sql!(
            "UPDATE calls SET recording_ms = NULL WHERE workspace_id = :ws AND id = :call_id
             AND EXISTS (SELECT 1 FROM recordings WHERE call_id = :call_id AND state = 'ready')",
            call_id = call_id
        ),
        sql!(
            "UPDATE recordings SET state = 'deleted', due_at = :now, peaks = NULL
             WHERE workspace_id = :ws AND call_id = :call_id AND state = 'ready'",
            call_id = call_id,
            now = now_ms
        ),
    ]
}

/// The statements that delete the workspace's oldest recordings stored before a time; the last one returns their ids.
pub fn delete_before(until_ms: i64, most: i64, now_ms: i64) -> Vec<Statement> {
    const OLDEST: &str =
        "FROM recordings WHERE workspace_id = :ws AND state = 'ready' AND created_at < :until
        ORDER BY created_at, id LIMIT CAST(:most AS INTEGER)";
    vec![
        sql!(
            format!(
                "UPDATE calls SET recording_ms = NULL WHERE workspace_id = :ws AND id IN (SELECT call_id {OLDEST})"
            ),
            until = until_ms,
            most = most
        ),
        sql!(
            format!(
                "UPDATE recordings SET state = 'deleted', due_at = :now, peaks = NULL
                 WHERE workspace_id = :ws AND id IN (SELECT id {OLDEST}) RETURNING id"
            ),
            until = until_ms,
            most = most,
            now = now_ms
        ),
    ]
}

crate::words! {
    /// The state of a recording.
    plain State {
        /// The blob is being written.
        Writing = "writing",
        /// The recording can be read.
        Ready = "ready",
        /// The recording was deleted.
        Deleted = "deleted",
    }
}

/// Why a recording is not served.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NotServed {
    /// The workspace has no such call.
    NoCall,
    /// The call has no recording, or it was deleted.
    None,
    /// The recording is still being written.
    NotReady,
}

/// The row of [`select`], the first statement of a batch, if its recording can be served.
pub fn ready(batch: &[Rows]) -> Result<Row<'_>, Fault> {
    let refused = |why: NotServed| Fault::from(Error::from(why));
    let row = batch.first().and_then(Rows::first).ok_or_else(|| refused(NotServed::NoCall))?;
    match row.optional_word("state")? {
        Some(State::Ready) => Ok(row),
        Some(State::Writing) => Err(refused(NotServed::NotReady)),
        None | Some(State::Deleted) => Err(refused(NotServed::None)),
    }
}

impl From<NotServed> for Error {
    fn from(why: NotServed) -> Self {
        match why {
            NotServed::NoCall => Self::not_found("call"),
            NotServed::None => Self::new(
                Code::NotFound,
                "This call has no recording. It was not recorded, or the recording was deleted for good.",
            ),
            NotServed::NotReady => Self::new(
                Code::RecordingNotReady,
                "The recording is still being written. Try again, or wait for the event recording.ready.",
            ),
        }
    }
}
