//! Types of the blob port: keys, ranges, and streaming.
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;

use crate::base::ids::{CallId, Id, RecordingId, WorkspaceId};
use crate::base::limits::BLOB_PIECE_BYTES;
use crate::ports::{Blobs, BoxStream};

/// Longest part of a key; our ids are shorter.
const KEY_PART_BYTES_MAX: usize = 64;

/// A blob's name: a path of lower-case letters, digits, `_` and single dots. It is valid and means the same in a file
/// system and in a bucket, and cannot escape the directory. Only the engine creates keys.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobKey(String);

impl BlobKey {
    /// `recordings/<workspace>/<call>.<recording>.wav`; `None` when a part is not one of our ids.
    pub fn recording(
        workspace_id: &WorkspaceId,
        call_id: &CallId,
        recording_id: &RecordingId,
    ) -> Option<Self> {
        let ids = [workspace_id.as_str(), call_id.as_str(), recording_id.as_str()];
        ids.into_iter()
            .all(is_part)
            .then(|| Self(format!("recordings/{workspace_id}/{call_id}.{recording_id}.wav")))
    }

    /// The key as a path, as hosts use it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_part(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=KEY_PART_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain)
}

/// A range of a blob's bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// The first byte, counted from 0.
    pub first: u64,
    /// The number of bytes.
    pub bytes: u64,
}

/// Why a blob could not be written, read or removed. The text is for logs only.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobError(pub String);

/// A response extension that replaces the body: the host sends these bytes from its [`Blobs`] without holding all of them
/// in memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// The blob.
    pub key: BlobKey,
    /// The bytes to send.
    pub range: ByteRange,
}

/// Streams a slice in pieces of [`BLOB_PIECE_BYTES`], for hosts without a better way. `None` when the blob does not exist;
/// the first piece is read before returning, so this is known before the response's head is sent.
pub async fn open(
    blobs: Arc<dyn Blobs>,
    mut slice: Slice,
) -> Result<Option<BoxStream<'static, Result<Bytes, BlobError>>>, BlobError> {
    let Some(first) = piece(&*blobs, &mut slice).await? else { return Ok(None) };
    let rest = stream::try_unfold((blobs, slice), |(blobs, mut slice)| async move {
        if slice.range.bytes == 0 {
            return Ok(None);
        }
        match piece(&*blobs, &mut slice).await? {
            Some(bytes) => Ok(Some((bytes, (blobs, slice)))),
            None => Err(BlobError(format!("{} was removed while it was read", slice.key.as_str()))),
        }
    });
    Ok(Some(Box::pin(stream::iter([Ok(first)]).chain(rest))))
}

/// Reads the next piece and removes it from the slice.
async fn piece(blobs: &dyn Blobs, slice: &mut Slice) -> Result<Option<Bytes>, BlobError> {
    let wanted = ByteRange { first: slice.range.first, bytes: slice.range.bytes.min(BLOB_PIECE_BYTES) };
    let Some(bytes) = blobs.get(&slice.key, wanted).await? else { return Ok(None) };
    if bytes.len() as u64 != wanted.bytes {
        return Err(BlobError(format!("{} is shorter than its row states", slice.key.as_str())));
    }
    slice.range.first += wanted.bytes;
    slice.range.bytes -= wanted.bytes;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key([workspace, call, recording]: [&str; 3]) -> Option<BlobKey> {
        let (workspace, call) = (WorkspaceId::from_stored(workspace), CallId::from_stored(call));
        BlobKey::recording(&workspace, &call, &RecordingId::from_stored(recording))
    }

    #[test]
    fn a_key_consists_of_ids_only() {
        let key_of_ids = key(["ws_1", "call_2", "rec_3"]).unwrap();
        assert_eq!(key_of_ids.as_str(), "recordings/ws_1/call_2.rec_3.wav");
        for bad in ["", "..", ".", "a/b", "a\\b", "A", "é", "a.b", "a b", "a\0", "c:", &"x".repeat(65)] {
            for ids in [[bad, "c", "r"], ["w", bad, "r"], ["w", "c", bad]] {
                assert_eq!(key(ids), None, "{ids:?}");
            }
        }
    }
}
