//! Puts archived transcripts back into rows that were read.
use bytes::Bytes;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::hash::sha256_hex;
use crate::base::ids::{CallId, WorkspaceId};
use crate::base::limits::{ARCHIVES_LOST_NAMED_MAX, ARCHIVES_READ_AT_ONCE, ARCHIVES_READ_MAX};
use crate::ports::statement::{Row, Rows, Value};
use crate::ports::{BlobError, ByteRange, DatabaseError};
use crate::services::Services;
use crate::storage::archives::key;
use crate::storage::fault::Fault;

/// What [`Services::unarchive`] needs of `call_transcripts AS t`.
pub(crate) const COLUMNS: &str = "t.archive_bytes AS archive_bytes, t.archive_sha256 AS archive_sha256";

/// The content of a blob: both as they were stored.
#[derive(Serialize, Deserialize)]
struct Content {
    transcript: Box<RawValue>,
    turns: Box<RawValue>,
}

/// The blob of a transcript and of the times of its turns.
pub(crate) fn content(transcript: String, turns: String) -> Result<Bytes, DatabaseError> {
    let wrong = |error| DatabaseError::Shape(format!("stored JSON: {error}"));
    let content = Content {
        transcript: RawValue::from_string(transcript).map_err(wrong)?,
        turns: RawValue::from_string(turns).map_err(wrong)?,
    };
    serde_json::to_vec(&content).map(Bytes::from).map_err(wrong)
}

/// An archived transcript.
struct Archived {
    call_id: CallId,
    bytes: u64,
    sha256: String,
}

impl Archived {
    /// `None`: the transcript is in its row.
    fn of(row: Row<'_>) -> Result<Option<Self>, DatabaseError> {
        match row.optional_integer("archive_bytes")? {
            None | Some(0) => Ok(None),
            Some(bytes) => Ok(Some(Self {
                call_id: row.id("id")?,
                bytes: u64::try_from(bytes).unwrap_or(0),
                sha256: row.text("archive_sha256")?,
            })),
        }
    }
}

impl Services {
    /// Puts transcripts that are archived back into rows of a workspace that have [`COLUMNS`] and the call's `id`. A column
    /// that is NULL or was not selected stays as it is.
    pub(crate) async fn unarchive(&self, workspace_id: &WorkspaceId, rows: &mut Rows) -> Result<(), Fault> {
        let lost = self.unarchive_list(workspace_id, rows).await?;
        lost_in_words(&lost).map_or(Ok(()), |lost| Err(BlobError(lost).into()))
    }

    /// The same for rows of several calls: a transcript whose blob is missing, or is not what was archived, is NULL and keeps
    /// none of the others. Returns what is lost, for [`lost_in_words`]. Storage that does not answer is a fault all the same:
    /// nobody knows whether anything is lost.
    pub(crate) async fn unarchive_list(
        &self,
        workspace_id: &WorkspaceId,
        rows: &mut Rows,
    ) -> Result<Vec<String>, Fault> {
        let mut wanted = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            wanted.extend(Archived::of(row)?.map(|archived| (place, archived)));
        }
        let columns =
            ["transcript", "turns"].map(|name| rows.columns.iter().position(|column| column == name));
        // The rest is NULL, like what does not fit on a page.
        for (place, _) in wanted.split_off(wanted.len().min(ARCHIVES_READ_MAX)) {
            leave_out(rows, place, columns);
        }
        let mut lost = Vec::new();
        for some in wanted.chunks(ARCHIVES_READ_AT_ONCE) {
            let read =
                join_all(some.iter().map(|(_, archived)| self.content_of(workspace_id, archived))).await;
            for ((place, _), content) in some.iter().zip(read) {
                let Content { transcript, turns } = match content? {
                    Ok(content) => content,
                    Err(what) => {
                        leave_out(rows, *place, columns);
                        lost.push(what);
                        continue;
                    }
                };
                let Some(row) = rows.values.get_mut(*place) else { continue };
                for (column, text) in columns.iter().zip([transcript, turns]) {
                    let value = column.and_then(|column| row.get_mut(column));
                    if let Some(value) = value.filter(|value| **value != Value::Null) {
                        *value = text.get().to_owned().into();
                    }
                }
            }
        }
        Ok(lost)
    }

    /// What was archived, or why it is lost.
    async fn content_of(
        &self,
        workspace_id: &WorkspaceId,
        archived: &Archived,
    ) -> Result<Result<Content, String>, Fault> {
        let key = key(workspace_id, &archived.call_id)?;
        let lost = |what: &str| format!("{} {what}", key.as_str());
        let range = ByteRange { first: 0, bytes: archived.bytes };
        let Some(bytes) = self.ports().blobs.get(&key, range).await? else {
            return Ok(Err(lost("is missing")));
        };
        if sha256_hex(&bytes) != archived.sha256 {
            return Ok(Err(lost("is not what was archived")));
        }
        Ok(serde_json::from_slice(&bytes).map_err(|_| lost("is not JSON")))
    }
}

/// These columns of a row become NULL.
fn leave_out(rows: &mut Rows, place: usize, columns: [Option<usize>; 2]) {
    for column in columns.into_iter().flatten() {
        if let Some(value) = rows.values.get_mut(place).and_then(|row| row.get_mut(column)) {
            *value = Value::Null;
        }
    }
}

/// What is lost, for the log: the first of them, and how many more there are.
pub(crate) fn lost_in_words(lost: &[String]) -> Option<String> {
    let named: Vec<&str> = lost.iter().take(ARCHIVES_LOST_NAMED_MAX).map(String::as_str).collect();
    match lost.len().saturating_sub(ARCHIVES_LOST_NAMED_MAX) {
        0 => (!lost.is_empty()).then(|| named.join(", ")),
        more => Some(format!("{}, and {more} more", named.join(", "))),
    }
}
