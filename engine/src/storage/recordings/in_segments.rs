//! Recordings that are written while their call runs: a row, then segments, each of them a blob that the row counts once it
//! is stored. Whoever ends the call makes the recording `ready`, with the segments it has by then.
use bytes::Bytes;

use crate::base::hash::sha256_hex;
use crate::base::ids::{CallId, RecordingId, WorkspaceId};
use crate::base::limits::{
    RECORDING_SEGMENT_METERED_MS, RECORDING_SEGMENT_MS, RECORDING_UNCOUNTED_MAX, RECORDING_WAITING_MAX,
    RECORDING_WRITE_MS_MAX,
};
use crate::ports::BlobError;
use crate::ports::blobs::StoredFile;
use crate::ports::statement::{Row, Statement};
use crate::services::Services;
use crate::speech::audio::Rate;
use crate::speech::recorder::{FRAME_BYTES, Segment};
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::recordings::{key, waveform};

/// The head of a WAV file.
const HEAD_BYTES: u64 = 44;

/// Segments that may be stored beyond those that a row counts: those that may be uncounted while a call goes on, and those that its
/// end has stored.
pub const SEGMENTS_UNCOUNTED_MAX: u64 = (RECORDING_UNCOUNTED_MAX + RECORDING_WAITING_MAX + 1) as u64;

/// The duration of the segments that this service writes.
pub fn segment_ms(services: &Services) -> i64 {
    match services.ports().blobs.is_metered() {
        true => RECORDING_SEGMENT_METERED_MS,
        false => RECORDING_SEGMENT_MS,
    }
}

/// A recording that is being written.
#[derive(Debug, Clone)]
pub struct Recording {
    workspace_id: WorkspaceId,
    call_id: CallId,
    id: RecordingId,
    rate: Rate,
    segments: u64,
    frames: u64,
}

impl Recording {
    /// Nothing is written before the first segment.
    pub fn new(services: &Services, workspace_id: &WorkspaceId, call_id: &CallId, rate: Rate) -> Self {
        Self {
            workspace_id: workspace_id.clone(),
            call_id: call_id.clone(),
            id: services.new_id(),
            rate,
            segments: 0,
            frames: 0,
        }
    }

    /// Writes the next segment and counts it; returns the recording with it. [`Fault::Stale`]: the recording has ended, or the
    /// call has another one.
    pub async fn write(self, services: &Services, segment: &Segment) -> Result<Self, Fault> {
        let (recording, count) = self.store(services, segment).await?;
        let [counted] = services.write([count]).await?;
        match counted.first() {
            Some(_) => Ok(recording),
            None => Err(Fault::Stale),
        }
    }

    /// Stores the next segment; returns the recording with it, and the statement that counts it. May be repeated after a
    /// failure. [`Fault::Stale`]: the call has ended, or has another recording.
    pub(crate) async fn store(
        mut self,
        services: &Services,
        segment: &Segment,
    ) -> Result<(Self, Statement), Fault> {
        if self.segments == 0 {
            let now_ms = services.ports().clock.now_ms();
            let [row] = services.write([self.insert(now_ms, segment_ms(services))]).await?;
            // Without a row nothing would find the blob again.
            if row.is_empty() {
                return Err(Fault::Stale);
            }
        }
        let key = key(&self.workspace_id, &self.call_id, &self.id)?.segment(self.segments);
        services.ports().blobs.put(&key, segment.bytes().into()).await?;
        let mut peaks = waveform::Builder::new(self.rate.hz());
        segment.frames.iter().for_each(|frame| peaks.push(*frame));
        self.segments += 1;
        self.frames += segment.frames.len() as u64;
        // A write whose answer was lost finds its own result.
        let count = sql!(
            "UPDATE recordings SET segments = :segments, size_bytes = :size_bytes, duration_ms = :duration_ms,
             missing_ms = :missing_ms, peaks = CASE WHEN segments < :segments
               THEN COALESCE(peaks || ',', '') || :peaks ELSE peaks END
             WHERE workspace_id = :workspace_id AND id = :id AND state = 'writing'
               AND (segments < :segments OR segments = :segments AND size_bytes = :size_bytes) RETURNING id",
            workspace_id = &self.workspace_id,
            id = &self.id,
            segments = self.segments as i64,
            size_bytes = (HEAD_BYTES + self.frames * FRAME_BYTES) as i64,
            duration_ms = (self.frames * 1_000 / u64::from(self.rate.hz())) as i64,
            missing_ms = segment.missing_ms,
            peaks = peaks.finish().to_text()
        );
        Ok((self, count))
    }

    /// The bytes never change once they can be read, so the id identifies them.
    fn insert(&self, now_ms: i64, segment_ms: i64) -> Statement {
        sql!(
            "INSERT INTO recordings (id, workspace_id, call_id, state, due_at, size_bytes, sha256, duration_ms, created_at,
               segments, segment_ms, rate_hz)
             SELECT :id, workspace_id, id, 'writing', :due_at, :size_bytes, :sha256, 0, :now, 0, :segment_ms, :rate_hz FROM calls
             WHERE workspace_id = :workspace_id AND id = :call_id AND status <> 'ended'
             AND NOT EXISTS (SELECT 1 FROM recordings WHERE call_id = :call_id AND state <> 'abandoned' AND id <> :id)
             ON CONFLICT (id) DO UPDATE SET due_at = excluded.due_at RETURNING id",
            id = &self.id,
            workspace_id = &self.workspace_id,
            call_id = &self.call_id,
            due_at = now_ms + RECORDING_WRITE_MS_MAX,
            size_bytes = HEAD_BYTES as i64,
            sha256 = sha256_hex(self.id.to_string().as_bytes()),
            now = now_ms,
            segment_ms = segment_ms,
            rate_hz = i64::from(self.rate.hz())
        )
    }
}

/// Gives up what an earlier attempt has written of a call that has not ended.
pub fn abandon(workspace_id: &WorkspaceId, call_id: &CallId, now_ms: i64) -> Statement {
    sql!(
        "UPDATE recordings SET state = 'abandoned', due_at = :due_at, peaks = NULL
         WHERE workspace_id = :workspace_id AND call_id = :call_id AND state = 'writing'",
        workspace_id = workspace_id,
        call_id = call_id,
        due_at = now_ms + RECORDING_WRITE_MS_MAX
    )
}

/// The recording of a call that has not ended: its `duration_ms` so far. No row without one.
pub(crate) fn in_progress(workspace_id: &WorkspaceId, call_id: &CallId) -> Statement {
    sql!(
        "SELECT duration_ms FROM recordings WHERE workspace_id = :workspace_id AND call_id = :call_id
         AND state = 'writing' AND segments > 0",
        workspace_id = workspace_id,
        call_id = call_id
    )
}

/// The statements that end the recording of a call that ends, of which `recorded_ms` were read. They fail the batch if
/// another segment was written since.
pub fn end(
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    recorded_ms: Option<i64>,
    now_ms: i64,
) -> [Statement; 3] {
    [
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE EXISTS
             (SELECT 1 FROM recordings WHERE workspace_id = :workspace_id AND call_id = :call_id AND state = 'writing'
              AND segments > 0 AND duration_ms IS NOT :recorded_ms)",
            workspace_id = workspace_id,
            call_id = call_id,
            recorded_ms = recorded_ms
        ),
        sql!(
            "UPDATE recordings SET state = CASE WHEN segments > 0 THEN 'ready' ELSE 'abandoned' END,
             due_at = CASE WHEN segments > 0 THEN NULL ELSE :now END
             WHERE workspace_id = :workspace_id AND call_id = :call_id AND state = 'writing'",
            workspace_id = workspace_id,
            call_id = call_id,
            now = now_ms
        ),
        sql!(
            "UPDATE calls SET recording_ms = :recorded_ms WHERE workspace_id = :workspace_id AND id = :call_id
             AND CAST(:recorded_ms AS INTEGER) IS NOT NULL",
            workspace_id = workspace_id,
            call_id = call_id,
            recorded_ms = recorded_ms
        ),
    ]
}

/// How the recording of a row of [`super::columns::FILE`] is stored.
pub(crate) fn file(workspace_id: &WorkspaceId, call_id: &CallId, row: &Row<'_>) -> Result<StoredFile, Fault> {
    let key = key(workspace_id, call_id, &row.id("id")?)?;
    let rate_hz = u32::try_from(row.integer("rate_hz")?).unwrap_or(0);
    let audio_bytes = u64::try_from(row.integer("size_bytes")?).unwrap_or(0).saturating_sub(HEAD_BYTES);
    let segment_ms = row.integer("segment_ms")?.unsigned_abs();
    let segment_bytes = u64::from(rate_hz) * FRAME_BYTES * segment_ms / 1_000;
    Ok(StoredFile { head: head(rate_hz, audio_bytes), key, segment_bytes: segment_bytes.max(1) })
}

/// The head of a WAV file of 16-bit PCM with two channels.
fn head(rate_hz: u32, audio_bytes: u64) -> Bytes {
    let bytes = |number: u64| u32::try_from(number).unwrap_or(u32::MAX).to_le_bytes();
    let frame_bytes = FRAME_BYTES as u32;
    let head = [
        *b"RIFF",
        bytes(HEAD_BYTES - 8 + audio_bytes),
        *b"WAVE",
        *b"fmt ",
        16_u32.to_le_bytes(),
        // PCM, two channels.
        (1_u32 | 2 << 16).to_le_bytes(),
        rate_hz.to_le_bytes(),
        (rate_hz * frame_bytes).to_le_bytes(),
        // Bytes of a frame, bits of a sample.
        (frame_bytes | 16_u32 << 16).to_le_bytes(),
        *b"data",
        bytes(audio_bytes),
    ];
    head.concat().into()
}

/// Removes the blobs of a row with the columns of [`super::columns::BLOBS`], including segments that were stored and never
/// counted.
pub(crate) async fn remove(
    services: &Services,
    workspace_id: &WorkspaceId,
    call_id: &CallId,
    row: &Row<'_>,
) -> Result<Result<(), BlobError>, Fault> {
    let key = key(workspace_id, call_id, &row.id("id")?)?;
    let segments = row.integer("segments")?.unsigned_abs() + SEGMENTS_UNCOUNTED_MAX;
    Ok(services.ports().blobs.delete_all((0..segments).map(|n| key.segment(n)).collect()).await)
}
