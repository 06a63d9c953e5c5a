//! Blobs beside the port: how they are named, which part of one is meant, and how it is streamed.
use std::sync::Arc;

use bytes::Bytes;
use futures_util::StreamExt;
use futures_util::stream;

use crate::base::limits::BLOB_PIECE_BYTES;
use crate::ports::{Blobs, BoxStream};

/// The longest part of a key; ids of ours are shorter.
const KEY_PART_BYTES_MAX: usize = 64;

/// A blob's name: a path of lower-case letters, digits, `_` and single dots, which means the same to a file
/// system and to a bucket, and leads nowhere else. Only the engine makes one.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct BlobKey(String);

impl BlobKey {
    /// `recordings/<workspace>/<call>.<recording>.wav`; `None` when one of them is no id of ours.
    pub fn recording(workspace_id: &str, call_id: &str, recording_id: &str) -> Option<Self> {
        let ids = [workspace_id, call_id, recording_id];
        ids.into_iter()
            .all(is_part)
            .then(|| Self(format!("recordings/{workspace_id}/{call_id}.{recording_id}.wav")))
    }

    /// As the hosts use it.
    pub fn as_str(&self) -> &str {
        &self.0
    }
}

fn is_part(text: &str) -> bool {
    let plain = |byte: u8| byte.is_ascii_lowercase() || byte.is_ascii_digit() || byte == b'_';
    (1..=KEY_PART_BYTES_MAX).contains(&text.len()) && text.bytes().all(plain)
}

/// Some bytes of a blob.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ByteRange {
    /// The first one, counted from 0.
    pub first: u64,
    /// How many.
    pub bytes: u64,
}

/// Why a blob could not be written, read or removed. Its text is private.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct BlobError(pub String);

/// What the body of an answer is, in place of the body: it rides on the response, and the host sends these bytes
/// out of its [`Blobs`] without ever holding all of them.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slice {
    /// Which blob.
    pub key: BlobKey,
    /// Which bytes of it.
    pub range: ByteRange,
}

/// Streams a slice in pieces of [`BLOB_PIECE_BYTES`], for hosts that have nothing better. `None`: there is no
/// such blob. It is known before the first piece is sent, and so before the head of an answer is.
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

/// The next piece, taken off the slice.
async fn piece(blobs: &dyn Blobs, slice: &mut Slice) -> Result<Option<Bytes>, BlobError> {
    let wanted = ByteRange { first: slice.range.first, bytes: slice.range.bytes.min(BLOB_PIECE_BYTES) };
    let Some(bytes) = blobs.get(&slice.key, wanted).await? else { return Ok(None) };
    if bytes.len() as u64 != wanted.bytes {
        return Err(BlobError(format!("{} is shorter than its row says", slice.key.as_str())));
    }
    slice.range.first += wanted.bytes;
    slice.range.bytes -= wanted.bytes;
    Ok(Some(bytes))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_key_is_made_of_ids_and_of_nothing_else() {
        let key = BlobKey::recording("ws_1", "call_2", "rec_3").unwrap();
        assert_eq!(key.as_str(), "recordings/ws_1/call_2.rec_3.wav");
        for bad in ["", "..", ".", "a/b", "a\\b", "A", "é", "a.b", "a b", "a\0", "c:", &"x".repeat(65)] {
            for ids in [[bad, "c", "r"], ["w", bad, "r"], ["w", "c", bad]] {
                assert_eq!(BlobKey::recording(ids[0], ids[1], ids[2]), None, "{ids:?}");
            }
        }
    }
}
