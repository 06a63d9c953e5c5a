//! The blobs of an export: the segments of its recordings, then its archived transcripts.
use bytes::Bytes;
use serde_json::{Value as Json, json};

use super::cursor::{Cursor, from_json, to_json};
use super::named_blobs::Recording;
use super::part::{BlobHead, Found, Kind, Part, Segment};
use crate::base::hash::sha256_hex;
use crate::base::ids::{CallId, RecordingId, WorkspaceId};
use crate::base::limits::{
    MOVE_BLOB_BYTES_MAX, MOVE_BLOBS_BYTES, MOVE_LOOKED_AT_MAX, MOVE_LOOKS_MAX, MOVE_PART_BLOBS_MAX,
    MOVE_ROWS_BYTES,
};
use crate::ports::statement::{Rows, Value};
use crate::ports::{BlobKey, ByteRange};
use crate::services::Services;
use crate::sql;
use crate::storage::archives;
use crate::storage::fault::Fault;
use crate::storage::workspace_rows::{Table, Window};

/// Rows whose blobs are looked for at once.
const LOOK: Window =
    Window { rows: MOVE_PART_BLOBS_MAX as i64, looked_at: MOVE_LOOKED_AT_MAX, bytes: MOVE_ROWS_BYTES };

/// Blobs that were read.
#[derive(Default)]
struct Collected {
    heads: Vec<BlobHead>,
    bytes: Vec<u8>,
}

impl Collected {
    fn is_full(&self) -> bool {
        self.heads.len() >= MOVE_PART_BLOBS_MAX || self.bytes.len() as u64 >= MOVE_BLOBS_BYTES
    }

    /// Adds a blob; without content, that it is missing.
    fn add(&mut self, call: &CallId, segment: Option<Segment>, content: Option<&[u8]>) {
        let found = content.map(|content| Found { bytes: content.len() as u64, sha256: sha256_hex(content) });
        self.heads.push(BlobHead { call: call.clone(), segment, found });
        self.bytes.extend_from_slice(content.unwrap_or_default());
    }

    fn into_part(self, next: Option<&Cursor>) -> Part {
        Part::new(Kind::Blobs(self.heads), next.map(Cursor::to_text), self.bytes.into())
    }
}

/// The table of a kind of blobs.
pub(super) fn table(name: &str) -> Result<&'static Table, Fault> {
    Table::named(name).ok_or_else(|| Fault::Bug(format!("{name} is no table of workspaces")))
}

/// Segments of the recordings after this one, of the first one those after so many; `None` if there is no such place.
pub(super) async fn of_recordings(
    services: &Services,
    workspace_id: &WorkspaceId,
    after: &[Json],
    segments: u64,
) -> Result<Option<Part>, Fault> {
    let table = table("recordings")?;
    let Some(mut after) = from_json(after, table.key.len()) else { return Ok(None) };
    let mut read = segments;
    let mut blobs = Collected::default();
    let place = |after: &[Value], segments| Cursor::Recordings { after: to_json(after), segments };
    for _ in 0..MOVE_LOOKS_MAX {
        if blobs.is_full() {
            break;
        }
        let keys = LOOK.keys(&*services.ports().database, table, workspace_id, &after).await?;
        for row in ready_recordings(services, workspace_id, &keys.keys).await?.iter() {
            let (id, call): (RecordingId, CallId) = (row.id("id")?, row.id("call_id")?);
            let recording = Recording::read(workspace_id, &row)?;
            // What cannot be read is missing.
            while read < recording.as_ref().map_or(1, Recording::count) {
                if blobs.is_full() {
                    return Ok(Some(blobs.into_part(Some(&place(&after, read)))));
                }
                let stored = recording.as_ref().and_then(|one| Some((one, one.segment_bytes(read)?)));
                let content = match stored {
                    Some((one, bytes)) => content(services, &one.file.key.segment(read), bytes).await?,
                    None => None,
                };
                let segment = Segment { recording: id.clone(), n: read };
                blobs.add(&call, Some(segment), content.as_deref());
                read += 1;
            }
            after = vec![Value::Text(id.to_string())];
            read = 0;
        }
        match keys.next {
            Some(next) => after = next,
            None => {
                let next = Cursor::Transcripts { after: Vec::new() };
                return Ok(Some(blobs.into_part(Some(&next))));
            }
        }
    }
    Ok(Some(blobs.into_part(Some(&place(&after, read)))))
}

/// Of the recordings with these keys those that can be read, in their order.
async fn ready_recordings(
    services: &Services,
    workspace_id: &WorkspaceId,
    keys: &[Vec<Value>],
) -> Result<Rows, Fault> {
    let select = sql!(
        format!(
            "SELECT {} FROM recordings AS r WHERE r.workspace_id = :ws AND r.state = 'ready'
             AND r.id IN (SELECT value FROM json_each(:ids)) ORDER BY r.id",
            Recording::columns()
        ),
        ids = first_of(keys)
    );
    let [rows] = services.read([select.in_workspace(workspace_id)]).await?;
    Ok(rows)
}

/// Keys of one column, as a list.
pub(super) fn first_of(keys: &[Vec<Value>]) -> String {
    let keys: Vec<Json> = keys.iter().flat_map(|key| to_json(key)).collect();
    json!(keys).to_string()
}

/// The transcripts after this one; `None` if there is no such place.
pub(super) async fn of_transcripts(
    services: &Services,
    workspace_id: &WorkspaceId,
    after: &[Json],
) -> Result<Option<Part>, Fault> {
    let table = table("call_transcripts")?;
    let Some(mut after) = from_json(after, table.key.len()) else { return Ok(None) };
    let mut blobs = Collected::default();
    for _ in 0..MOVE_LOOKS_MAX {
        if blobs.is_full() {
            break;
        }
        let keys = LOOK.keys(&*services.ports().database, table, workspace_id, &after).await?;
        for row in archived(services, workspace_id, &keys.keys).await?.iter() {
            if blobs.is_full() {
                let next = Cursor::Transcripts { after: to_json(&after) };
                return Ok(Some(blobs.into_part(Some(&next))));
            }
            let call: CallId = row.id("id")?;
            let key = archives::key(workspace_id, &call)?;
            let bytes = u64::try_from(row.integer("archive_bytes")?).unwrap_or(0);
            let sha256 = row.str("archive_sha256")?;
            // What is damaged no read would serve either.
            let content = content(services, &key, bytes).await?;
            let content = content.filter(|content| sha256_hex(content) == sha256);
            blobs.add(&call, None, content.as_deref());
            after = vec![Value::from(row.integer("seq")?)];
        }
        match keys.next {
            Some(next) => after = next,
            None => return Ok(Some(blobs.into_part(None))),
        }
    }
    let next = Cursor::Transcripts { after: to_json(&after) };
    Ok(Some(blobs.into_part(Some(&next))))
}

/// Of the transcripts with these keys those that are archived, in their order.
async fn archived(
    services: &Services,
    workspace_id: &WorkspaceId,
    keys: &[Vec<Value>],
) -> Result<Rows, Fault> {
    let select = sql!(
        format!(
            "SELECT t.seq AS seq, c.id AS id, {} FROM call_transcripts AS t CROSS JOIN calls AS c ON c.seq = t.seq
             WHERE t.workspace_id = :ws AND c.workspace_id = :ws AND t.archive_bytes > 0
             AND t.seq IN (SELECT value FROM json_each(:seqs)) ORDER BY t.seq",
            archives::COLUMNS
        ),
        seqs = first_of(keys)
    );
    let [rows] = services.read([select.in_workspace(workspace_id)]).await?;
    Ok(rows)
}

/// So many bytes of a blob; `None` if storage has lost it, or some of it.
async fn content(services: &Services, key: &BlobKey, bytes: u64) -> Result<Option<Bytes>, Fault> {
    if bytes > MOVE_BLOB_BYTES_MAX {
        return Ok(None);
    }
    let content = services.ports().blobs.get(key, ByteRange { first: 0, bytes }).await?;
    Ok(content.filter(|content| content.len() as u64 == bytes))
}
