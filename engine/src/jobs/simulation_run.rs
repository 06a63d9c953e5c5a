//! (in progress)
use super::{Failure, Job};
use crate::engine::Engine;
use crate::sql;
use crate::statement::Statement;

pub fn mark_running(lease: &str, now_ms: i64) -> Statement {
    sql!(
        "UPDATE runs SET status = 'running', started_at = COALESCE(started_at, ?2) WHERE status = 'queued' AND id IN
         (SELECT subject_id FROM jobs WHERE lease = ?1 AND kind = 'simulation_run')",
        lease,
        now_ms
    )
}
pub async fn run(_engine: &Engine, _job: &Job) -> Result<(), Failure> {
    Ok(())
}
pub async fn give_up(_engine: &Engine, _job: &Job) -> Result<(), Failure> {
    Ok(())
}
