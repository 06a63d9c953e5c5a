//! The recording of a voice run: computed when the conversation is over, and written in segments. An attempt that was
//! interrupted is repeated, to the same bytes. A conversation that was held for real is recorded already.
use super::Started;
use super::drive::{Drive, Driven};
use crate::jobs::Failure;
use crate::services::Services;
use crate::speech::audio::Rate;
use crate::storage::jobs::Job;
use crate::storage::recordings::{self, Recording};

/// Stores the recording and returns its duration; `None` for a run without one.
pub(super) async fn store(
    services: &Services,
    job: &Job,
    started: &Started,
    drive: &mut Drive<'_>,
    driven: &Driven,
) -> Result<Option<i64>, Failure> {
    if started.is_held() {
        return super::held::recorded_ms(services, started).await;
    }
    let Some(voice) = drive.voice().filter(|_| started.assistant.record).cloned() else { return Ok(None) };
    let duration_ms = match &driven.result {
        Ok(result) => result.duration_ms,
        Err(failure) => failure.duration_ms,
    };
    abandon(services, job, started).await?;
    let mut recording = Recording::new(services, &job.workspace_id, &started.call.id, Rate::Khz8);
    let mut frames = 0;
    for segment in voice.soundtrack(duration_ms, recordings::segment_ms(services)) {
        drive.before_write().await?;
        frames += segment.frames.len();
        recording = recording.write(services, &segment).await?;
    }
    Ok((frames > 0).then(|| Rate::Khz8.ms_of(frames)))
}

/// Gives up what an earlier attempt has written.
pub(super) async fn abandon(services: &Services, job: &Job, started: &Started) -> Result<(), Failure> {
    if started.is_voice() {
        let now_ms = services.ports().clock.now_ms();
        services.write([recordings::abandon(&job.workspace_id, &started.call.id, now_ms)]).await?;
    }
    Ok(())
}
