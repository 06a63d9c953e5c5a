//! Hangs up at the carrier after a call has ended on our side: a carrier's line can outlive our socket.
use super::Failure;
use crate::base::ids::CallId;
use crate::base::limits::JOB_ATTEMPTS_MAX;
use crate::live::telephony::hang_up;
use crate::live::telephony::leg::Leg;
use crate::services::Services;
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
        _ => services.ports().database.write(job.finished([])).await?,
    };
    hung_up.map_err(|fault| {
        Failure::GaveUp(format!(
            "the line of {call_id} was not hung up after {JOB_ATTEMPTS_MAX} attempts: it ends when the person hangs up, or \
             after the most that the carrier lets it take: {fault:?}"
        ))
    })
}
