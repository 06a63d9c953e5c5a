//! Hangs up at the carrier after a conversation has ended on our side: a carrier's line outlives our socket.
use super::Failure;
use crate::base::limits::JOB_ATTEMPTS_MAX;
use crate::live::telephony::hang_up;
use crate::live::telephony::leg::Leg;
use crate::services::Services;
use crate::storage::jobs::Job;

pub(super) async fn run(services: &Services, job: &Job) -> Result<(), Failure> {
    let database = &services.ports().database;
    let rows = database.read(vec![Leg::select(&job.workspace_id, &job.subject_id)]).await?;
    // It may have ended by itself meanwhile, which is how it mostly goes.
    if let Some(leg) = Leg::first(rows.first())?.filter(|leg| leg.said.end.is_none())
        && let Err(fault) = hang_up::tell(services, &leg).await
        && job.attempts <= JOB_ATTEMPTS_MAX
    {
        return Err(Failure::Again(format!("{fault:?}")));
    }
    database.write(job.finished([])).await?;
    Ok(())
}
