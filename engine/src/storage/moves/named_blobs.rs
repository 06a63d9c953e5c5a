//! The blobs that rows of a workspace name, and how large they are.
use std::collections::BTreeMap;

use serde_json::json;

use crate::base::ids::{CallId, Id as _, RecordingId, WorkspaceId};
use crate::ports::BlobKey;
use crate::ports::blobs::StoredFile;
use crate::ports::statement::{Row, Value};
use crate::services::Services;
use crate::sql;
use crate::storage::archives;
use crate::storage::fault::Fault;
use crate::storage::moves::blobs::first_of;
use crate::storage::recordings::{columns, file};

/// A recording that can be read.
pub(super) struct Recording {
    pub call_id: CallId,
    pub file: StoredFile,
    /// Of the whole file, with its head.
    size_bytes: u64,
    /// As many segments as are removed with it.
    segments: u64,
}

impl Recording {
    /// The columns of `recordings AS r` for [`Recording::read`].
    pub(super) fn columns() -> String {
        format!("{}, r.segments AS segments, r.call_id AS call_id", columns::FILE)
    }

    /// Of a row that is ready. `None`: one WAV file of a very early version, which nobody can read any more.
    pub(super) fn read(workspace_id: &WorkspaceId, row: &Row<'_>) -> Result<Option<Self>, Fault> {
        for column in ["segments", "segment_ms", "rate_hz"] {
            if row.is_null(column)? {
                return Ok(None);
            }
        }
        let call_id: CallId = row.id("call_id")?;
        Ok(Some(Self {
            file: file(workspace_id, &call_id, row)?,
            size_bytes: u64::try_from(row.integer("size_bytes")?).unwrap_or(0),
            segments: row.integer("segments")?.unsigned_abs(),
            call_id,
        }))
    }

    /// How many segments it has.
    pub(super) fn count(&self) -> u64 {
        self.audio_bytes().div_ceil(self.file.segment_bytes).min(self.segments)
    }

    /// How many bytes of segment `n` belong to the recording; `None`: it has no such segment.
    pub(super) fn segment_bytes(&self, n: u64) -> Option<u64> {
        let size = self.file.segment_bytes;
        (n < self.count()).then(|| (self.audio_bytes() - n * size).min(size))
    }

    fn audio_bytes(&self) -> u64 {
        self.size_bytes.saturating_sub(self.file.head.len() as u64)
    }
}

/// Recordings by their ids.
pub(super) struct Recordings(BTreeMap<String, Recording>);

impl Recordings {
    /// Those of a workspace with these ids. What is left of a very early version cannot be read, and is not among them.
    pub(super) async fn named(
        services: &Services,
        workspace_id: &WorkspaceId,
        ids: &[&str],
    ) -> Result<Self, Fault> {
        if ids.is_empty() {
            return Ok(Self(BTreeMap::new()));
        }
        let find = sql!(
            format!(
                "SELECT {} FROM recordings AS r
                 WHERE r.id IN (SELECT value FROM json_each(:ids)) AND +r.workspace_id = :ws AND r.state = 'ready'",
                Recording::columns()
            ),
            ids = json!(ids).to_string()
        );
        let [rows] = services.read([find.in_workspace(workspace_id)]).await?;
        let mut found = BTreeMap::new();
        for row in rows.iter() {
            let id: RecordingId = row.id("id")?;
            found.extend(Recording::read(workspace_id, &row)?.map(|recording| (id.to_string(), recording)));
        }
        Ok(Self(found))
    }

    /// The one with this id.
    pub(super) fn get(&self, id: &RecordingId) -> Option<&Recording> {
        self.0.get(id.as_str())
    }
}

/// An archived transcript.
pub(super) struct Transcript {
    pub key: BlobKey,
    pub bytes: u64,
    pub sha256: String,
}

impl Transcript {
    fn read(workspace_id: &WorkspaceId, call_id: &CallId, row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            key: archives::key(workspace_id, call_id)?,
            bytes: u64::try_from(row.integer("bytes")?).unwrap_or(0),
            sha256: row.optional_text("sha256")?.unwrap_or_default(),
        })
    }
}

/// The archived transcripts of a workspace among these calls, by the calls' ids.
pub(super) async fn transcripts(
    services: &Services,
    workspace_id: &WorkspaceId,
    calls: &[&str],
) -> Result<BTreeMap<String, Transcript>, Fault> {
    if calls.is_empty() {
        return Ok(BTreeMap::new());
    }
    let find = sql!(
        "SELECT c.id AS id, t.archive_bytes AS bytes, t.archive_sha256 AS sha256
         FROM calls AS c CROSS JOIN call_transcripts AS t ON t.seq = c.seq
         WHERE c.id IN (SELECT value FROM json_each(:calls)) AND +c.workspace_id = :ws AND t.archive_bytes > 0",
        calls = json!(calls).to_string()
    );
    let [rows] = services.read([find.in_workspace(workspace_id)]).await?;
    let read = |row: Row<'_>| {
        let id: CallId = row.id("id")?;
        Ok((id.to_string(), Transcript::read(workspace_id, &id, row)?))
    };
    rows.iter().map(read).collect()
}

/// The same of transcripts with these keys.
pub(super) async fn transcripts_at(
    services: &Services,
    workspace_id: &WorkspaceId,
    keys: &[Vec<Value>],
) -> Result<Vec<Transcript>, Fault> {
    if keys.is_empty() {
        return Ok(Vec::new());
    }
    let find = sql!(
        "SELECT c.id AS id, t.archive_bytes AS bytes, t.archive_sha256 AS sha256
         FROM call_transcripts AS t CROSS JOIN calls AS c ON c.seq = t.seq
         WHERE t.seq IN (SELECT value FROM json_each(:seqs)) AND +t.workspace_id = :ws AND t.archive_bytes > 0",
        seqs = first_of(keys)
    );
    let [rows] = services.read([find.in_workspace(workspace_id)]).await?;
    let read = |row: Row<'_>| Transcript::read(workspace_id, &row.id("id")?, row);
    rows.iter().map(read).collect()
}
