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

    /// `transcripts/<workspace>/<call>.json`; `None` when a part is not one of our ids.
    pub fn transcript(workspace_id: &WorkspaceId, call_id: &CallId) -> Option<Self> {
        let ids = [workspace_id.as_str(), call_id.as_str()];
        ids.into_iter().all(is_part).then(|| Self(format!("transcripts/{workspace_id}/{call_id}.json")))
    }

    /// The key of a segment of this recording: its `.wav` becomes `.<n>.pcm`.
    #[must_use]
    pub fn segment(&self, n: u64) -> Self {
        Self(format!("{}.{n}.pcm", self.0.strip_suffix(".wav").unwrap_or(&self.0)))
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
    /// The file.
    pub file: StoredFile,
    /// The bytes to send.
    pub range: ByteRange,
}

/// A file that is stored as a head, and segments of the same size; only the last may be smaller.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StoredFile {
    /// The first bytes, which are in no blob.
    pub head: Bytes,
    /// The key that names the file, and that [`BlobKey::segment`] derives the segments' keys from.
    pub key: BlobKey,
    /// The size of a segment.
    pub segment_bytes: u64,
}

/// Consecutive bytes of a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Piece {
    /// These.
    Bytes(Bytes),
    /// A range of a blob.
    Blob(BlobKey, ByteRange),
}

impl Slice {
    /// Removes the next piece, of at most so many bytes; `None` at the end.
    pub fn next_piece(&mut self, bytes_max: u64) -> Option<Piece> {
        let first = self.range.first;
        let wanted = self.range.bytes.min(bytes_max);
        if wanted == 0 {
            return None;
        }
        let StoredFile { head, key, segment_bytes } = &self.file;
        let (piece, bytes) = match first.checked_sub(head.len() as u64) {
            None => {
                let from = usize::try_from(first).unwrap_or(head.len());
                let until = from + usize::try_from(wanted).unwrap_or(head.len()).min(head.len() - from);
                (Piece::Bytes(head.slice(from..until)), (until - from) as u64)
            }
            Some(place) => {
                let (n, first) = (place / segment_bytes, place % segment_bytes);
                let bytes = wanted.min(segment_bytes - first);
                (Piece::Blob(key.segment(n), ByteRange { first, bytes }), bytes)
            }
        };
        self.range.first += bytes;
        self.range.bytes -= bytes;
        Some(piece)
    }
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
            None => Err(BlobError(format!("{} was removed while it was read", slice.file.key.as_str()))),
        }
    });
    Ok(Some(Box::pin(stream::iter([Ok(first)]).chain(rest))))
}

/// Reads the next piece and removes it from the slice.
async fn piece(blobs: &dyn Blobs, slice: &mut Slice) -> Result<Option<Bytes>, BlobError> {
    match slice.next_piece(BLOB_PIECE_BYTES) {
        None => Ok(Some(Bytes::new())),
        Some(Piece::Bytes(head)) if slice.range.bytes == 0 => Ok(Some(head)),
        // Together: the head is in no blob, and does not show whether there is one.
        Some(Piece::Bytes(head)) => {
            let rest = Box::pin(piece(blobs, slice)).await?;
            Ok(rest.map(|rest| [head, rest].concat().into()))
        }
        Some(Piece::Blob(key, range)) => {
            let Some(bytes) = blobs.get(&key, range).await? else { return Ok(None) };
            if bytes.len() as u64 != range.bytes {
                return Err(BlobError(format!("{} is shorter than its row states", key.as_str())));
            }
            Ok(Some(bytes))
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn key([workspace, call, recording]: [&str; 3]) -> Option<BlobKey> {
        let (workspace, call) = (WorkspaceId::from_stored(workspace), CallId::from_stored(call));
        BlobKey::recording(&workspace, &call, &RecordingId::from_stored(recording))
    }

    #[test]
    fn segments_are_read_as_one_file() {
        let key = key(["ws_1", "call_2", "rec_3"]).unwrap();
        assert_eq!(key.segment(12).as_str(), "recordings/ws_1/call_2.rec_3.12.pcm");
        let head = Bytes::from_static(b"HEAD");
        let of = |n: u64, place: u64| 10 * (n + 1) + place;
        let audio = (0..11).map(|n| of(n / 5, n % 5));
        let whole: Vec<u64> = head.iter().map(|byte| u64::from(*byte)).chain(audio).collect();
        for (first, until) in (0..15).flat_map(|first| (first + 1..=15).map(move |until| (first, until))) {
            let file = StoredFile { head: head.clone(), key: key.clone(), segment_bytes: 5 };
            let mut slice = Slice { file, range: ByteRange { first, bytes: until - first } };
            let mut read = Vec::new();
            while let Some(piece) = slice.next_piece(3) {
                match piece {
                    Piece::Bytes(bytes) => read.extend(bytes.iter().map(|byte| u64::from(*byte))),
                    Piece::Blob(named, range) => {
                        let n = (0..3).find(|n| key.segment(*n) == named).unwrap();
                        read.extend((range.first..range.first + range.bytes).map(|place| of(n, place)));
                    }
                }
            }
            assert_eq!(read, whole[first as usize..until as usize], "{first} {until}");
        }
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
