//! The lease that a live conversation holds on its own job.
use crate::base::ids::prefix;
use crate::base::limits::LIVE_LEASE_MS;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::jobs::{DUE_AT_ONCE, JobKind};

/// The lease that a live conversation holds on its own job.
#[derive(Debug, Clone)]
pub struct JobLease {
    job_id: String,
    workspace_id: String,
    call_id: String,
    lease: String,
}

impl JobLease {
    /// A job to be, for a call.
    pub fn new(services: &Services, workspace_id: &str, call_id: &str) -> Self {
        Self::over(services, workspace_id, call_id, &services.id(prefix::JOB))
    }

    /// A job that is there, for a call: to be taken.
    pub fn over(services: &Services, workspace_id: &str, call_id: &str, job_id: &str) -> Self {
        Self {
            job_id: job_id.to_owned(),
            workspace_id: workspace_id.to_owned(),
            call_id: call_id.to_owned(),
            // Names no owner that gives its leases back: the conversation itself does.
            lease: format!("live:{}", services.id(prefix::LEASE)),
        }
    }

    /// Puts the job there, leased.
    pub fn open(&self, now_ms: i64) -> Statement {
        sql!(
            "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, lease, attempts, created_at)
             VALUES (:workspace_id, :id, :kind, :call_id, :due_at, :lease, 0, :now)",
            workspace_id = &self.workspace_id,
            id = &self.job_id,
            kind = JobKind::LiveCall.as_str(),
            call_id = &self.call_id,
            due_at = now_ms + LIVE_LEASE_MS,
            lease = &self.lease,
            now = now_ms
        )
    }

    /// Leases a job that is there; undoes the batch when somebody has it.
    pub fn take(&self, now_ms: i64) -> [Statement; 2] {
        let take = sql!(
            "UPDATE jobs SET lease = :lease, due_at = :due_at WHERE id = :job_id AND lease IS NULL",
            job_id = &self.job_id,
            lease = &self.lease,
            due_at = now_ms + LIVE_LEASE_MS
        );
        [take, self.guard()]
    }

    /// Extends the lease; undoes the batch when somebody else has it.
    pub fn keep(&self, now_ms: i64) -> [Statement; 2] {
        let keep = sql!(
            "UPDATE jobs SET due_at = :due_at WHERE id = :job_id AND lease = :lease",
            job_id = &self.job_id,
            lease = &self.lease,
            due_at = now_ms + LIVE_LEASE_MS
        );
        [self.guard(), keep]
    }

    /// Leaves an ended call to whoever looks into it; undoes the batch likewise.
    pub fn hand_over(&self) -> [Statement; 2] {
        self.give_back(DUE_AT_ONCE)
    }

    /// Gives the job of a call back that was never connected: what becomes of it is settled when the carrier tells, or
    /// at `due_at`. Undoes the batch likewise.
    pub fn give_back(&self, due_at: i64) -> [Statement; 2] {
        let give_back = sql!(
            "UPDATE jobs SET lease = NULL, due_at = :due_at WHERE id = :job_id AND lease = :lease",
            job_id = &self.job_id,
            lease = &self.lease,
            due_at = due_at
        );
        [self.guard(), give_back]
    }

    /// The job, to be woken once it is handed over.
    pub fn job_id(&self) -> &str {
        &self.job_id
    }

    fn guard(&self) -> Statement {
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = :job_id AND lease = :lease)",
            job_id = &self.job_id,
            lease = &self.lease
        )
    }
}
