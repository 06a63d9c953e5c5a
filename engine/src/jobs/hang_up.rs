//! Hangs up at the carrier after a call has ended on our side: a carrier's line can outlive our socket. A line that was handed
//! over is hung up after its time, and no longer counts then, whatever the carrier says.
use super::Failure;
use crate::base::ids::CallId;
use crate::base::limits::{JOB_ATTEMPTS_MAX, LEASED_ATTEMPTS_MAX};
use crate::live::telephony::leg::Leg;
use crate::live::telephony::{hang_up, late_price};
use crate::services::Services;
use crate::storage::batch::Batch;
use crate::storage::calls;
use crate::storage::fault::{Fault, retry_stale_within};
use crate::storage::jobs::Job;

pub(super) async fn run(services: &Services, job: &Job, call_id: &CallId) -> Result<(), Failure> {
    let [rows] = services.read([Leg::select(&job.workspace_id, call_id)]).await?;
    // Usually the carrier has ended the line meanwhile.
    let hung_up = match Leg::first(Some(&rows))?.filter(|leg| leg.facts.end.is_none()) {
        Some(leg) => hang_up::hang_up(services, &leg).await,
        None => Ok(()),
    };
    match hung_up {
        Err(fault) if job.attempts <= JOB_ATTEMPTS_MAX => return Err(Failure::Again(format!("{fault:?}"))),
        // The carrier may report something meanwhile.
        _ => retry_stale_within(LEASED_ATTEMPTS_MAX, || finish(services, job, call_id)).await?,
    };
    hung_up.map_err(|fault| {
        Failure::GaveUp(format!(
            "the line of {call_id} was not hung up after {JOB_ATTEMPTS_MAX} attempts: it ends when the person hangs up, or \
             after the most that the carrier lets it take: {fault:?}"
        ))
    })
}

async fn finish(services: &Services, job: &Job, call_id: &CallId) -> Result<(), Fault> {
    let reads = [Leg::select(&job.workspace_id, call_id), calls::select_for(&job.workspace_id, call_id)];
    let [leg, call] = services.read(reads).await?;
    let mut batch = Batch::default();
    let now = services.now();
    let leg = Leg::first(Some(&leg))?;
    // Where the other end has ended, the carrier reports the end of ours in a moment.
    if let Some(leg) = leg.filter(|leg| leg.is_over && leg.line.is_some_and(|line| line.until <= now)) {
        late_price::store_unreported(&leg, call.first(), now, &mut batch)?;
    }
    batch.finish(job);
    batch.write(services).await?;
    Ok(())
}
