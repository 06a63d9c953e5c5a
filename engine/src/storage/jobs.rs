//! Rows of jobs: work that outlives a request. The batch that causes a job inserts its row, and the batch that finishes
//! the job deletes it.
pub(crate) mod claim;
pub(crate) mod fair_claim;

use crate::base::ids::{CallId, Id, JobId, RunId, WebhookId, WorkspaceId};
use crate::ports::statement::Statement;
use crate::ports::{DatabaseError, JobQueue};
use crate::services::Services;
use crate::sql;

crate::words! {
    /// What a job does.
    plain JobKind {
        /// Runs a simulation; the subject is the run.
        SimulationRun = "simulation_run",
        /// Sends a webhook its due deliveries; the subject is the webhook.
        WebhookDelivery = "webhook_delivery",
        /// Ends a live conversation whose process is gone, or a telephone call that was never connected, and analyzes
        /// an ended call; the subject is the call.
        LiveCall = "live_call",
        /// Hangs up at the carrier; the subject is the call.
        HangUp = "hang_up",
    }
}

impl JobKind {
    /// The queue that jobs of this kind wait in.
    pub fn queue(self) -> JobQueue {
        match self {
            Self::SimulationRun => JobQueue::Runs,
            Self::LiveCall | Self::HangUp => JobQueue::Calls,
            Self::WebhookDelivery => JobQueue::Deliveries,
        }
    }

    /// The kinds of jobs that wait in `queue`.
    pub fn of_queue(queue: JobQueue) -> Vec<Self> {
        Self::ALL.iter().copied().filter(|kind| kind.queue() == queue).collect()
    }
}

/// A claimed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    pub(crate) id: JobId,
    pub(crate) workspace_id: WorkspaceId,
    pub(crate) task: Task,
    pub(crate) lease: String,
    pub(crate) leased_until_ms: i64,
    pub(crate) attempts: i64,
}

/// What a job does, with its subject.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum Task {
    SimulationRun(RunId),
    WebhookDelivery(WebhookId),
    LiveCall(CallId),
    HangUp(CallId),
}

impl Task {
    fn new(kind: JobKind, subject_id: String) -> Self {
        match kind {
            JobKind::SimulationRun => Self::SimulationRun(Id::from_stored(subject_id)),
            JobKind::WebhookDelivery => Self::WebhookDelivery(Id::from_stored(subject_id)),
            JobKind::LiveCall => Self::LiveCall(Id::from_stored(subject_id)),
            JobKind::HangUp => Self::HangUp(Id::from_stored(subject_id)),
        }
    }

    pub(crate) const fn kind(&self) -> JobKind {
        match self {
            Self::SimulationRun(_) => JobKind::SimulationRun,
            Self::WebhookDelivery(_) => JobKind::WebhookDelivery,
            Self::LiveCall(_) => JobKind::LiveCall,
            Self::HangUp(_) => JobKind::HangUp,
        }
    }

    fn subject_id(&self) -> &str {
        match self {
            Self::SimulationRun(id) => id,
            Self::WebhookDelivery(id) => id,
            Self::LiveCall(id) | Self::HangUp(id) => id,
        }
    }
}

/// The `due_at` of a job that may be claimed at once. It is not the current time, so a clock that goes back delays no
/// job.
pub(crate) const DUE_AT_ONCE: i64 = 0;

/// Queues one job.
pub(crate) fn insert(
    workspace_id: &WorkspaceId,
    id: &JobId,
    kind: JobKind,
    subject_id: &impl Id,
    due_at: i64,
    now_ms: i64,
) -> Statement {
    sql!(
        "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
         VALUES (:workspace_id, :id, :kind, :subject_id, :due_at, 0, :now)",
        workspace_id = workspace_id,
        id = id,
        kind = kind.as_str(),
        subject_id = subject_id,
        due_at = due_at,
        now = now_ms
    )
}

/// Queues one job for each entry `{job_id, run_id, …}` of a JSON list; the run is the subject.
pub fn insert_for_runs(list: &str, now_ms: i64) -> Statement {
    sql!(
        "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
         SELECT :ws, json_extract(value, '$.job_id'), :kind, json_extract(value, '$.run_id'), :due_at, 0, :now FROM json_each(:list)",
        list = list,
        kind = JobKind::SimulationRun.as_str(),
        due_at = DUE_AT_ONCE,
        now = now_ms
    )
}

/// Fails the batch unless the job is leased as `lease`. Names the workspace, whose turn the batch takes.
pub(crate) fn lease_guard(workspace_id: &WorkspaceId, id: &JobId, lease: &str) -> Statement {
    sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS
         (SELECT 1 FROM jobs WHERE workspace_id = :ws AND id = :id AND lease = :lease)",
        id = id,
        lease = lease
    )
    .in_workspace(workspace_id)
}

impl Job {
    /// Fails the batch when another process holds the lease.
    pub(crate) fn guard(&self) -> Statement {
        lease_guard(&self.workspace_id, &self.id, &self.lease)
    }

    /// Releases the job, to go on from `due_at`. The attempt does not count. Follows [`Job::guard`].
    pub(crate) fn put_back(&self, due_at: i64) -> Statement {
        sql!(
            "UPDATE jobs SET lease = NULL, due_at = :due_at, attempts = attempts - 1 WHERE id = :id AND lease = :lease",
            id = &self.id,
            lease = &self.lease,
            due_at = due_at
        )
    }

    /// Finishes the job without further writes. Fails when another process holds the lease.
    pub(crate) async fn finish(&self, services: &Services) -> Result<(), DatabaseError> {
        services.ports().database.write(self.finished([])).await?;
        Ok(())
    }

    /// Puts the statements that finish the job around its last `writes`: nothing is written when another process holds
    /// the lease.
    pub(crate) fn finished(&self, writes: impl IntoIterator<Item = Statement>) -> Vec<Statement> {
        let mut statements = vec![self.guard()];
        statements.extend(writes);
        statements.push(sql!("DELETE FROM jobs WHERE id = :id", id = &self.id));
        statements
    }
}
