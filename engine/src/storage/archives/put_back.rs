//! Puts archived transcripts back into rows that were read.
use bytes::Bytes;
use futures_util::future::join_all;
use serde::{Deserialize, Serialize};
use serde_json::value::RawValue;

use crate::base::hash::sha256_hex;
use crate::base::ids::{CallId, WorkspaceId};
use crate::base::limits::{ARCHIVES_READ_AT_ONCE, ARCHIVES_READ_MAX};
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
        let mut wanted = Vec::new();
        for (place, row) in rows.iter().enumerate() {
            wanted.extend(Archived::of(row)?.map(|archived| (place, archived)));
        }
        let columns =
            ["transcript", "turns"].map(|name| rows.columns.iter().position(|column| column == name));
        // The rest is NULL, like what does not fit on a page.
        for (place, _) in wanted.split_off(wanted.len().min(ARCHIVES_READ_MAX)) {
            for column in columns.iter().flatten() {
                if let Some(value) = rows.values.get_mut(place).and_then(|row| row.get_mut(*column)) {
                    *value = Value::Null;
                }
            }
        }
        for some in wanted.chunks(ARCHIVES_READ_AT_ONCE) {
            let read =
                join_all(some.iter().map(|(_, archived)| self.content_of(workspace_id, archived))).await;
            for ((place, _), content) in some.iter().zip(read) {
                let Content { transcript, turns } = content?;
                let Some(row) = rows.values.get_mut(*place) else { continue };
                for (column, text) in columns.iter().zip([transcript, turns]) {
                    let value = column.and_then(|column| row.get_mut(column));
                    if let Some(value) = value.filter(|value| **value != Value::Null) {
                        *value = text.get().to_owned().into();
                    }
                }
            }
        }
        Ok(())
    }

    async fn content_of(&self, workspace_id: &WorkspaceId, archived: &Archived) -> Result<Content, Fault> {
        let key = key(workspace_id, &archived.call_id)?;
        let damaged = |what: &str| Fault::from(BlobError(format!("{} {what}", key.as_str())));
        let range = ByteRange { first: 0, bytes: archived.bytes };
        let bytes = self.ports().blobs.get(&key, range).await?.ok_or_else(|| damaged("is missing"))?;
        if sha256_hex(&bytes) != archived.sha256 {
            return Err(damaged("is not what was archived"));
        }
        serde_json::from_slice(&bytes).map_err(|_| damaged("is not JSON"))
    }
}
