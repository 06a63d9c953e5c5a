//! Blobs that arrive. Each belongs to a row that has arrived before, and its key is made of that row's ids and the workspace's:
//! a file can put a blob nowhere else.
use std::collections::BTreeMap;

use crate::base::ids::WorkspaceId;
use crate::base::limits::{MOVE_BLOB_BYTES_MAX, MOVE_PART_BLOBS_MAX};
use crate::ports::BlobKey;
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::moves::declined::Declined;
use crate::storage::moves::named_blobs::{Recordings, Transcript, transcripts};
use crate::storage::moves::part::{BlobHead, Kind, Part};

/// Stores the blobs of a part. May be repeated: the same bytes come again.
pub(super) async fn put(services: &Services, workspace_id: &WorkspaceId, part: &Part) -> Result<(), Fault> {
    let Kind::Blobs(heads) = &part.head.kind else { return Ok(()) };
    if heads.len() > MOVE_PART_BLOBS_MAX {
        return Err(Declined::part(format!("it has more than {MOVE_PART_BLOBS_MAX} blobs")).into());
    }
    let blobs = part.blobs().map_err(Declined::from)?;
    let named = Named::read(services, workspace_id, heads).await?;
    for (head, bytes) in blobs {
        let size = bytes.len() as u64;
        let key = named.key(head, size).filter(|_| size <= MOVE_BLOB_BYTES_MAX);
        let key = key.ok_or_else(|| Declined::part("it has a blob that no row names"))?;
        services.ports().blobs.put(&key, bytes).await?;
    }
    Ok(())
}

/// What the rows say that these blobs may be of.
struct Named {
    recordings: Recordings,
    transcripts: BTreeMap<String, Transcript>,
}

impl Named {
    async fn read(
        services: &Services,
        workspace_id: &WorkspaceId,
        heads: &[BlobHead],
    ) -> Result<Self, Fault> {
        let (mut of_recordings, mut of_calls) = (Vec::new(), Vec::new());
        for head in heads {
            match &head.segment {
                Some(segment) => of_recordings.push(&*segment.recording),
                None => of_calls.push(&*head.call),
            }
        }
        Ok(Self {
            recordings: Recordings::named(services, workspace_id, &of_recordings).await?,
            transcripts: transcripts(services, workspace_id, &of_calls).await?,
        })
    }

    /// The key of a blob with so many bytes; `None`: no row names it.
    fn key(&self, head: &BlobHead, bytes: u64) -> Option<BlobKey> {
        match &head.segment {
            Some(segment) => {
                let recording = self.recordings.get(&segment.recording)?;
                let is_its =
                    recording.call_id == head.call && recording.segment_bytes(segment.n) == Some(bytes);
                is_its.then(|| recording.file.key.segment(segment.n))
            }
            None => {
                let transcript = self.transcripts.get(&*head.call)?;
                let is_same = head.found.as_ref().is_some_and(|found| found.sha256 == transcript.sha256);
                (is_same && transcript.bytes == bytes).then(|| transcript.key.clone())
            }
        }
    }
}
