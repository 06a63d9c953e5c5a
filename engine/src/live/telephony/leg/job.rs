//! The jobs of a telephone call: one ends and analyzes it, one hangs up.
use super::Leg;
use crate::base::ids::JobId;
use crate::base::time::Timestamp;
use crate::ports::statement::Statement;
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::jobs::{self, JobKind};

const AT_ONCE: Timestamp = Timestamp::from_ms(jobs::DUE_AT_ONCE);

/// When a new due time of a call's job replaces the one it has.
#[derive(Clone, Copy)]
pub(crate) enum DueIf {
    /// Always.
    Always,
    /// While the call waits in the carrier's queue: once it rings or has ended, another due time applies.
    StillQueued,
    /// If the new time is earlier.
    Earlier,
}

impl DueIf {
    const fn condition(self) -> &'static str {
        match self {
            Self::Always => "",
            Self::StillQueued => {
                " AND EXISTS (SELECT 1 FROM calls AS c WHERE c.workspace_id = :ws AND c.id = jobs.subject_id
                  AND c.status = 'queued')"
            }
            Self::Earlier => " AND due_at > :due_at",
        }
    }
}

impl Leg {
    /// Inserts the job, unclaimed. It ends a call that is not connected by `due_at`.
    pub fn job(&self, due_at: Timestamp) -> Statement {
        jobs::insert(
            &self.workspace_id,
            &self.job_id,
            JobKind::LiveCall,
            &self.call_id,
            due_at.ms(),
            self.created_at.ms(),
        )
    }

    /// Sets the due time of the job. A conversation that has leased the job keeps its own.
    pub(crate) fn set_job_due(&self, due_at: Timestamp, only: DueIf) -> Statement {
        sql!(
            format!(
                "UPDATE jobs SET due_at = :due_at WHERE workspace_id = :ws AND id = :job AND lease IS NULL{}",
                only.condition()
            ),
            due_at = due_at,
            job = &self.job_id,
        )
        .in_workspace(&self.workspace_id)
    }

    /// Makes the job due at once.
    pub fn wake_job(&self, now: Timestamp, batch: &mut Batch) {
        batch.push(self.set_job_due(AT_ONCE, DueIf::Always));
        batch.wake(JobKind::LiveCall, &self.job_id, now.ms());
    }

    /// Adds a job that hangs up at the carrier, unless the carrier has reported the end. If others talk on the line, they have
    /// their time.
    pub fn hang_up_later(&self, services: &Services, now: Timestamp, batch: &mut Batch) {
        match self.line {
            Some(line) => self.hang_up_by(services, now, line.until, batch),
            None if self.may_be_transferred() => {}
            None => self.hang_up_by(services, now, AT_ONCE, batch),
        }
    }

    /// Adds a job that hangs up from `due_at` on, whoever talks on the line, unless the carrier has reported the end.
    pub fn hang_up_by(&self, services: &Services, now: Timestamp, due_at: Timestamp, batch: &mut Batch) {
        if self.facts.end.is_some() || self.carrier_call_id.is_none() {
            return;
        }
        let job_id: JobId = services.new_id();
        let kind = JobKind::HangUp;
        batch.push(jobs::insert(&self.workspace_id, &job_id, kind, &self.call_id, due_at.ms(), now.ms()));
        batch.wake(kind, &job_id, due_at.max(now).ms());
    }
}
