//! The lease of a live conversation on its job.
use crate::base::ids::{CallId, JobId, WorkspaceId, prefix};
use crate::base::limits::LIVE_LEASE_MS;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::jobs::{DUE_AT_ONCE, Job, JobKind, lease_guard};

/// The lease of a live conversation on its job.
#[derive(Debug, Clone)]
pub struct JobLease {
    job_id: JobId,
    workspace_id: WorkspaceId,
    call_id: CallId,
    lease: String,
}

impl JobLease {
    /// The lease of a new job, which [`JobLease::insert_job`] inserts.
    pub fn new(services: &Services, workspace_id: &WorkspaceId, call_id: &CallId) -> Self {
        Self::for_job(services, workspace_id, call_id, &services.new_id())
    }

    /// A lease on the existing job of a call, which [`JobLease::acquire`] takes.
    pub fn for_job(
        services: &Services,
        workspace_id: &WorkspaceId,
        call_id: &CallId,
        job_id: &JobId,
    ) -> Self {
        Self {
            job_id: job_id.clone(),
            workspace_id: workspace_id.clone(),
            call_id: call_id.clone(),
            // Not owned by the process, which releases all of its leases together: the conversation releases it itself.
            lease: format!("live:{}", services.id(prefix::LEASE)),
        }
    }

    /// The lease that a process holds on the job of a run whose conversation is held.
    pub fn of_run(job: &Job, call_id: &CallId) -> Self {
        Self {
            job_id: job.id.clone(),
            workspace_id: job.workspace_id.clone(),
            call_id: call_id.clone(),
            lease: job.lease.clone(),
        }
    }

    /// Inserts the job, leased.
    pub fn insert_job(&self, now_ms: i64) -> Statement {
        sql!(
            "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, lease, attempts, created_at)
             VALUES (:ws, :job, :kind, :call, :due_at, :lease, 0, :now)",
            job = &self.job_id,
            kind = JobKind::LiveCall.as_str(),
            call = &self.call_id,
            due_at = now_ms + LIVE_LEASE_MS,
            lease = &self.lease,
            now = now_ms,
        )
        .in_workspace(&self.workspace_id)
    }

    /// Leases an existing job; fails the batch when another process holds the lease.
    pub fn acquire(&self, now_ms: i64) -> [Statement; 2] {
        let acquire = sql!(
            "UPDATE jobs SET lease = :lease, due_at = :due_at WHERE id = :job AND lease IS NULL",
            job = &self.job_id,
            lease = &self.lease,
            due_at = now_ms + LIVE_LEASE_MS,
        );
        [acquire, self.guard()]
    }

    /// Extends the lease; fails the batch when another process holds it.
    pub fn extend(&self, now_ms: i64) -> [Statement; 2] {
        let extend = sql!(
            "UPDATE jobs SET due_at = :due_at WHERE id = :job AND lease = :lease",
            job = &self.job_id,
            lease = &self.lease,
            due_at = now_ms + LIVE_LEASE_MS,
        );
        [self.guard(), extend]
    }

    /// Releases the job of an ended call, which is analyzed next; fails the batch likewise.
    pub fn release(&self) -> [Statement; 2] {
        self.release_until(DUE_AT_ONCE)
    }

    /// Releases the job of a call that was never connected: the carrier's report ends the call, or the job does at
    /// `due_at`. Fails the batch likewise.
    pub fn release_until(&self, due_at: i64) -> [Statement; 2] {
        let release = sql!(
            "UPDATE jobs SET lease = NULL, due_at = :due_at WHERE id = :job AND lease = :lease",
            job = &self.job_id,
            lease = &self.lease,
            due_at = due_at,
        );
        [self.guard(), release]
    }

    /// The id of the job, to wake it after its release.
    pub fn job_id(&self) -> &JobId {
        &self.job_id
    }

    fn guard(&self) -> Statement {
        lease_guard(&self.workspace_id, &self.job_id, &self.lease)
    }
}
