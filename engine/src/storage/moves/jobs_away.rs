//! The jobs of a locked workspace are put away, and come back when it runs.
use crate::base::ids::JobId;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::jobs::{DUE_AT_ONCE, JobKind};

/// Whether the webhook or the run of a job is the workspace's own: nobody else has to know what somebody has made up. A job of
/// what was deleted has nothing to do.
const IS_OWN: &str = "(kind <> 'webhook_delivery' OR EXISTS (
       SELECT 1 FROM webhooks WHERE webhooks.id = subject_id AND +webhooks.workspace_id = :ws))
     AND (kind <> 'simulation_run' OR EXISTS (
       SELECT 1 FROM runs WHERE runs.id = subject_id AND +runs.workspace_id = :ws))";

/// Puts away the runs that have no call yet: none begins any more. One that was claimed is queued again, at once: it has done
/// nothing, and when its lease ends, it would be claimed anew before anybody asks here.
pub(super) fn put_unstarted_runs() -> [Statement; 3] {
    let run = JobKind::SimulationRun.as_str();
    [
        sql!(
            "INSERT INTO jobs_away (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
             SELECT j.workspace_id, j.id, j.kind, j.subject_id, :due_at, 0, j.created_at
             FROM jobs AS j JOIN runs AS r ON r.id = j.subject_id
             WHERE j.kind = :run AND j.workspace_id = :ws AND r.call_id IS NULL
             ON CONFLICT DO NOTHING",
            due_at = DUE_AT_ONCE,
            run = run
        ),
        sql!(
            "UPDATE runs SET status = 'queued', started_at = NULL WHERE workspace_id = :ws AND status = 'running' AND call_id IS NULL
             AND id IN (SELECT subject_id FROM jobs_away WHERE workspace_id = :ws)"
        ),
        sql!(
            "DELETE FROM jobs WHERE kind = :run AND workspace_id = :ws AND id IN (SELECT id FROM jobs_away WHERE workspace_id = :ws)",
            run = run
        ),
    ]
}

/// Puts all jobs of workspace `:ws` away.
pub(super) fn put_all() -> [Statement; 2] {
    // With their kinds, as the index has it.
    let kinds: Vec<String> = JobKind::ALL.iter().map(|kind| format!("'{}'", kind.as_str())).collect();
    let own = format!("kind IN ({}) AND workspace_id = :ws", kinds.join(", "));
    [
        sql!(format!(
            "INSERT INTO jobs_away (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
             SELECT workspace_id, id, kind, subject_id, due_at, attempts, created_at FROM jobs WHERE {own}"
        )),
        sql!(format!("DELETE FROM jobs WHERE {own}")),
    ]
}

/// One job of each kind, for [`wake`].
pub(super) fn first() -> Statement {
    sql!(format!(
        "SELECT kind, MIN(id) AS id FROM jobs_away WHERE workspace_id = :ws AND {IS_OWN} GROUP BY kind"
    ))
}

/// Makes the jobs of workspace `:ws` due again, and forgets that they were away.
pub(super) fn back() -> [Statement; 2] {
    [
        sql!(format!(
            "INSERT INTO jobs (id, workspace_id, kind, subject_id, due_at, lease, attempts, created_at)
             SELECT id, workspace_id, kind, subject_id, due_at, NULL, attempts, created_at FROM jobs_away
             WHERE workspace_id = :ws AND {IS_OWN}"
        )),
        sql!("DELETE FROM jobs_away WHERE workspace_id = :ws"),
    ]
}

/// Wakes the queue of each kind, with its [`first`] job.
pub(super) fn wake(services: &Services, batch: &mut Batch, first: &Rows) -> Result<(), Fault> {
    for row in first.iter() {
        let (kind, id): (JobKind, JobId) = (row.word("kind")?, row.id("id")?);
        batch.wake(kind, &id, services.now().ms());
    }
    Ok(())
}
