//! The jobs of a locked workspace come back when it runs.
use crate::base::ids::JobId;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;

/// Whether the webhook or the run of a job is the workspace's own: nobody else has to know what somebody has made up. A job of
/// what was deleted has nothing to do.
const IS_OWN: &str = "(kind <> 'webhook_delivery' OR EXISTS (
       SELECT 1 FROM webhooks WHERE webhooks.id = subject_id AND +webhooks.workspace_id = :ws))
     AND (kind <> 'simulation_run' OR EXISTS (
       SELECT 1 FROM runs WHERE runs.id = subject_id AND +runs.workspace_id = :ws))";

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
