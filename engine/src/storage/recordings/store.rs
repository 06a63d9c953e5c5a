//! Stores the recording of a call: row, blob, row.
use bytes::Bytes;
use serde_json::json;

use crate::base::error::Error;
use crate::base::hash::sha256_hex;
use crate::base::ids::{CallId, RecordingId, WorkspaceId};
use crate::base::limits::RECORDING_WRITE_MS_MAX;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::calls::{self, Call};
use crate::storage::events::{self, EventKind, Subscribers};
use crate::storage::fault::Fault;
use crate::storage::recordings::{State, key, wav};

/// The result of [`store`].
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kept {
    /// Stored, and the event `recording.ready` is queued.
    Now,
    /// An earlier attempt has stored the recording: nothing is written.
    Before,
    /// The recording was deleted: nothing is written, and a deleted recording does not return.
    Deleted,
}

/// Stores a WAV file as the recording of a call. It may run twice, concurrently or after a crash: one attempt counts, and
/// the blobs of the others are removed. [`Fault::Stale`]: another attempt has replaced this one.
pub async fn store(
    services: &Services,
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    file: Bytes,
) -> Result<Kept, Fault> {
    let measured =
        wav::measure(&file).map_err(|why| Fault::Bug(format!("no recording for {call_id}: {why}")))?;
    let attempt = Attempt { services, workspace_id, call_id, id: services.new_id() };
    if let Some(found) = attempt.begin(&file, &measured).await? {
        return Ok(found);
    }
    let blobs = &services.ports().blobs;
    let key = key(workspace_id, call_id, &attempt.id)?;
    blobs.put(&key, file).await?;
    match attempt.finish(measured.duration_ms).await {
        Ok(()) => Ok(Kept::Now),
        Err(Fault::Stale) => {
            // If this fails, the sweep removes the blob.
            let _ = blobs.delete(&key).await;
            Err(Fault::Stale)
        }
        Err(fault) => Err(fault),
    }
}

struct Attempt<'a> {
    services: &'a Services,
    workspace_id: &'a WorkspaceId,
    call_id: &'a CallId,
    id: RecordingId,
}

impl Attempt<'_> {
    /// Inserts the row as `writing` and replaces an unfinished attempt, unless there is nothing to do. The earlier attempt
    /// may still be writing, so its blob is removed only when it must have ended.
    async fn begin(&self, file: &[u8], measured: &wav::Measured) -> Result<Option<Kept>, Fault> {
        let now_ms = self.services.ports().clock.now_ms();
        let until_ms = now_ms + RECORDING_WRITE_MS_MAX;
        let statements = [
            sql!(
                "UPDATE recordings SET state = 'abandoned', due_at = :due_at, peaks = NULL
                 WHERE workspace_id = :workspace_id AND call_id = :call_id AND state = 'writing'",
                workspace_id = self.workspace_id,
                call_id = self.call_id,
                due_at = until_ms
            ),
            sql!(
                "INSERT INTO recordings (id, workspace_id, call_id, state, due_at, size_bytes, sha256, duration_ms, peaks, created_at)
                 SELECT :id, workspace_id, id, 'writing', :due_at, :size_bytes, :sha256, :duration_ms, :peaks, :now FROM calls
                 WHERE workspace_id = :workspace_id AND id = :call_id
                 AND NOT EXISTS (SELECT 1 FROM recordings WHERE call_id = :call_id AND state <> 'abandoned')",
                workspace_id = self.workspace_id,
                call_id = self.call_id,
                id = &self.id,
                due_at = until_ms,
                size_bytes = file.len() as i64,
                sha256 = sha256_hex(file),
                duration_ms = measured.duration_ms,
                peaks = measured.peaks.to_text(),
                now = now_ms
            ),
            sql!(
                "SELECT state FROM recordings WHERE workspace_id = :workspace_id AND call_id = :call_id AND state <> 'abandoned'",
                workspace_id = self.workspace_id,
                call_id = self.call_id
            ),
        ];
        let [_, _, recording] = self.services.write(statements).await?;
        match recording.first() {
            None => Err(Error::not_found("call").into()),
            Some(row) => Ok(match row.word("state")? {
                State::Writing => None,
                State::Ready => Some(Kept::Before),
                State::Deleted => Some(Kept::Deleted),
            }),
        }
    }

    /// Marks the row as `ready` and emits the event.
    async fn finish(&self, duration_ms: i64) -> Result<(), Fault> {
        let call = calls::select_for(self.workspace_id, self.call_id);
        let [call, subscribers] = self.services.read([call, events::subscribers(self.workspace_id)]).await?;
        let subscribers = Subscribers::read(&subscribers)?;
        let mut batch = Batch::from(self.ready(duration_ms));
        if let Some(row) = call.first() {
            let (kind, now_ms) = (EventKind::RecordingReady, self.services.ports().clock.now_ms());
            batch.emit(self.services, self.workspace_id, &subscribers, kind, now_ms, || {
                let base_url = &self.services.config().base_url;
                let call = Call::read(row, base_url)?.recorded(base_url, duration_ms);
                Ok(json!({ "call": call }))
            })?;
        }
        batch.write(self.services).await?;
        Ok(())
    }

    fn ready(&self, duration_ms: i64) -> [Statement; 3] {
        [
            sql!(
                "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
                 (SELECT 1 FROM recordings WHERE id = :id AND state = 'writing')",
                id = &self.id
            ),
            sql!("UPDATE recordings SET state = 'ready', due_at = NULL WHERE id = :id", id = &self.id),
            sql!(
                "UPDATE calls SET recording_ms = :duration_ms WHERE workspace_id = :workspace_id AND id = :call_id",
                workspace_id = self.workspace_id,
                call_id = self.call_id,
                duration_ms = duration_ms
            ),
        ]
    }
}
