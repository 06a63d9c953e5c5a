//! Transcripts of old calls in the storage of blobs (`SIDETONE_ARCHIVE_DAYS`): one blob for each call.
//!
//! A call's row, its words and its sums stay, so lists, searches and statistics do not change. `Services::unarchive` puts
//! transcripts back into rows that were read, so reads do not change either.
//!
//! Nothing is lost, and no blob is left behind: a transcript leaves the database in the batch that records the size and
//! digest of its blob, and a call is marked (`mark`) before its blob is written, so whoever deletes the call knows of it.
mod check;
mod remove;
mod unarchive;

use serde::Serialize;
use serde_json::json;

use crate::base::ids::{CallId, WorkspaceId};
use crate::base::limits::{ARCHIVE_BYTES_MAX, ARCHIVE_BYTES_MIN, ARCHIVE_CALLS_MAX, ARCHIVE_PAUSE_MS};
use crate::ports::statement::Statement;
use crate::ports::{BlobError, BlobKey};
use crate::sql;
use crate::storage::moves::lock::stays;
use crate::storage::service_facts;

pub(crate) use remove::{due, mark_for_removal};
pub(crate) use unarchive::{COLUMNS, content, lost_in_words};

/// The blob of a call's transcript.
pub(crate) fn key(workspace_id: &WorkspaceId, call_id: &CallId) -> Result<BlobKey, BlobError> {
    BlobKey::transcript(workspace_id, call_id)
        .ok_or_else(|| BlobError(format!("{workspace_id}/{call_id} does not name a blob")))
}

/// The fact that holds when to look again.
pub(crate) const NEXT: &str = "next_archiving";
/// The fact that holds the workspace whose turn was the last one.
pub(crate) const LAST: &str = "last_archiving";

/// No row before it is time to look again. Then a row for each workspace with calls that ended before `until_ms` and were not
/// looked at, beginning behind the last one, or one without an `id` if there is none, or while the upgrade of the search still
/// reads transcripts where they are.
pub(crate) fn workspaces(until_ms: i64, now_ms: i64, most: usize) -> Statement {
    let had_its_turn = service_facts::had_its_turn(LAST);
    let pauses = service_facts::pauses(NEXT, ARCHIVE_PAUSE_MS);
    sql!(
        format!(
            "WITH time AS (SELECT 1 WHERE NOT {pauses})
             SELECT due.id AS id FROM time LEFT JOIN (
               SELECT w.id AS id, {had_its_turn} AS had_its_turn
               FROM workspaces AS w WHERE EXISTS (SELECT 1 FROM time)
               AND NOT EXISTS (SELECT 1 FROM search_upgrade) AND {}
               AND EXISTS (SELECT 1 FROM calls WHERE calls.workspace_id = w.id
                 AND calls.ended_at >= CASE WHEN w.archived_until > :until THEN 0 ELSE w.archived_until END
                 AND calls.ended_at < :until)
               ORDER BY had_its_turn, w.id LIMIT {most}) AS due ON 1
             ORDER BY due.had_its_turn, due.id",
            stays("w.id")
        ),
        until = until_ms,
        now = now_ms
    )
}

/// The next calls of workspace `:ws` to archive, the oldest first.
pub(crate) fn next(until_ms: i64) -> Statement {
    sql!(
        format!(
            "SELECT sized.seq AS seq, sized.id AS id, sized.ended_at AS ended_at, t.content AS transcript, t.turns AS turns FROM (
               SELECT seq, id, ended_at, SUM(transcript_bytes) OVER (ORDER BY ended_at, seq) - transcript_bytes AS bytes_before FROM (
                 SELECT c.seq AS seq, c.id AS id, c.ended_at AS ended_at, c.transcript_bytes AS transcript_bytes
                 FROM calls AS c INDEXED BY calls_by_ended_at CROSS JOIN call_transcripts AS t ON t.seq = c.seq
                 WHERE c.workspace_id = :ws AND c.ended_at >= (
                   SELECT CASE WHEN archived_until > :until THEN 0 ELSE archived_until END FROM workspaces WHERE id = :ws)
                 AND c.ended_at < :until AND c.transcript_bytes >= {ARCHIVE_BYTES_MIN} AND COALESCE(t.archive_bytes, 0) = 0
                 ORDER BY c.ended_at, c.seq LIMIT {ARCHIVE_CALLS_MAX})
             ) AS sized CROSS JOIN call_transcripts AS t ON t.seq = sized.seq
             WHERE bytes_before < {ARCHIVE_BYTES_MAX} ORDER BY sized.ended_at, sized.seq"
        ),
        until = until_ms
    )
}

/// Marks calls of workspace `:ws` whose blobs are about to be written; returns those that are still there.
pub(crate) fn mark(seqs: &[i64]) -> Statement {
    sql!(
        "UPDATE call_transcripts SET archive_bytes = 0 WHERE workspace_id = :ws AND seq IN (SELECT value FROM json_each(:seqs))
         AND COALESCE(archive_bytes, 0) = 0 RETURNING seq",
        seqs = json!(seqs).to_string()
    )
}

/// A blob that was written.
#[derive(Debug, Clone, Serialize)]
pub(crate) struct Written {
    pub(crate) seq: i64,
    pub(crate) bytes: usize,
    pub(crate) sha256: String,
}

/// Removes the transcripts of workspace `:ws` whose blobs were written from the database, and continues at `until_ms`.
pub(crate) fn archived(written: &[Written], until_ms: i64) -> [Statement; 2] {
    [
        sql!(
            "UPDATE call_transcripts SET content = '[]', turns = '[]', archive_bytes = json_extract(e.value, '$.bytes'),
               archive_sha256 = json_extract(e.value, '$.sha256')
             FROM json_each(:written) AS e WHERE call_transcripts.workspace_id = :ws
             AND call_transcripts.seq = json_extract(e.value, '$.seq') AND call_transcripts.archive_bytes = 0",
            written = json!(written).to_string()
        ),
        sql!(
            "UPDATE workspaces SET archived_until = :until WHERE id = :ws",
            until = until_ms
        ),
    ]
}
