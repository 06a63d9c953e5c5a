//! Hangs up at the carrier after a conversation has ended on our side: a carrier's line outlives our socket.
use super::{Failure, Job};
use crate::engine::Engine;
use crate::limits::JOB_ATTEMPTS_MAX;
use crate::operations::calls::hang_up;
use crate::telephony::leg::Leg;

pub(super) async fn run(engine: &Engine, job: &Job) -> Result<(), Failure> {
    let database = &engine.ports().database;
    let rows = database.read(vec![Leg::select(&job.workspace_id, &job.subject_id)]).await?;
    // It may have ended by itself meanwhile, which is how it mostly goes.
    if let Some(leg) = Leg::first(rows.first())?.filter(|leg| leg.said.end.is_none())
        && let Err(fault) = hang_up::tell(engine, &leg).await
        && job.attempts <= JOB_ATTEMPTS_MAX
    {
        return Err(Failure::Again(format!("{fault:?}")));
    }
    database.write(job.finished([])).await?;
    Ok(())
}
