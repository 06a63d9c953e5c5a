//! Work that outlives a request: a row, inserted by the batch that causes it, claimed with a lease, deleted by the
//! batch that finishes it. Killing the process at any time loses no job; a job may run twice, so its external effects
//! carry stable ids. [`QueueWorker`] claims jobs for a long-running process, [`Invocation`] for a short-lived one.
mod archiving;
mod give_way;
mod hang_up;
mod invocation;
mod live_call;
mod retention;
mod run_journal;
mod search_upgrade;
mod simulation_run;
mod sweep;
mod webhook_delivery;
mod worker;

use futures_util::future::join_all;

use crate::base::error::Code;
use crate::base::limits::{DELIVERIES_AT_ONCE, DELIVERY_ROUNDS_MAX, JOB_ATTEMPTS_MAX};
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::jobs::{Job, JobKind, Task};

use give_way::GiveWay;

pub use invocation::{HintOf, Invocation, JOBS_PER_INVOCATION, Report};
pub use sweep::Round as SweepRound;
pub use worker::{ClaimedJob, QueueWorker, Step};

/// The limits of one job, so that others get their turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    /// Concurrent requests.
    requests: usize,
    /// How many rounds a job with many small tasks runs at a time.
    rounds: usize,
}

/// The result of a claim and its jobs.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// The number of jobs that were claimed and run.
    pub ran: usize,
    /// When the next known job can be claimed; `None` without one.
    pub next_due_ms: Option<i64>,
    /// Internal errors for the log; these jobs are retried.
    pub incidents: Vec<String>,
}

/// Why a job did not finish.
enum Failure {
    /// Another process holds the lease: its result counts.
    LostLease,
    /// The job is retried later.
    Again(String),
    /// The job is over, and what it was for was not done.
    GaveUp(String),
    /// The job has released its lease, because another workspace needs its place, or because it waits for memory. It
    /// continues later.
    GaveWay,
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Stale => Self::LostLease,
            // The job has left the queue with its workspace, or waits until that has closed.
            Fault::Refused(error) if error.code == Code::WorkspaceMoving => Self::LostLease,
            other => Self::Again(format!("{other:?}")),
        }
    }
}

impl From<crate::ports::DatabaseError> for Failure {
    fn from(error: crate::ports::DatabaseError) -> Self {
        Fault::from(error).into()
    }
}

impl Services {
    /// Claims up to `max` jobs of these kinds and runs them concurrently; `max` also limits their concurrent requests.
    pub async fn run_due_jobs(&self, owner: &str, kinds: &[JobKind], max: usize) -> Result<Turn, Fault> {
        let jobs = self.claim_jobs(owner, kinds, max).await?;
        let share = Share { requests: max / jobs.len().max(1), rounds: 1 };
        let stays = GiveWay::default();
        let outcomes = join_all(jobs.iter().map(|job| self.run_within(job, share, &stays))).await;
        let incidents = outcomes.into_iter().flatten().collect();
        Ok(Turn { ran: jobs.len(), next_due_ms: self.next_due_ms(kinds).await?, incidents })
    }

    /// Runs one claimed job; returns errors for the log. A job that fails internally is released and retried later.
    pub async fn run_job(&self, job: &Job) -> Option<String> {
        self.run_claimed(job, &GiveWay::default()).await
    }

    /// The same, for a job that may be asked to make room.
    async fn run_claimed(&self, job: &Job, give_way: &GiveWay) -> Option<String> {
        let share = Share { requests: DELIVERIES_AT_ONCE, rounds: DELIVERY_ROUNDS_MAX };
        self.run_within(job, share, give_way).await
    }

    async fn run_within(&self, job: &Job, share: Share, give_way: &GiveWay) -> Option<String> {
        let outcome = match &job.task {
            Task::SimulationRun(run_id) if job.attempts > JOB_ATTEMPTS_MAX => {
                simulation_run::end_exhausted(self, job, run_id).await
            }
            Task::SimulationRun(run_id) => simulation_run::run(self, job, run_id, give_way).await,
            Task::WebhookDelivery(webhook_id) => webhook_delivery::run(self, job, webhook_id, share).await,
            Task::LiveCall(call_id) => live_call::run(self, job, call_id).await,
            Task::HangUp(call_id) => hang_up::run(self, job, call_id).await,
        };
        match outcome {
            Ok(()) | Err(Failure::LostLease | Failure::GaveWay) => None,
            Err(Failure::GaveUp(detail)) => Some(detail),
            Err(Failure::Again(detail)) => Some(self.release_for_retry(job, &detail).await),
        }
    }
}
