//! Work that outlives a request: a row, put there by the batch that caused it, claimed with a lease, removed by the
//! batch that finishes it. Killing the process at any instant loses none; a job may run twice, so what it does to the
//! outside carries ids that stay the same. [`QueueWorker`] claims jobs for a process that stays, [`Invocation`] for
//! one that the platform starts for a moment.
mod hang_up;
mod invocation;
mod live_call;
mod run_journal;
mod simulation_run;
mod sweep;
mod webhook_delivery;
mod worker;

use futures_util::future::join_all;

use crate::base::limits::{DELIVERIES_AT_ONCE, DELIVERY_ROUNDS_MAX, JOB_ATTEMPTS_MAX};
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::jobs::{Job, JobKind};

pub use invocation::{Invocation, JOBS_PER_INVOCATION, Report};
pub use worker::{ClaimedJob, QueueWorker, Step};

/// How much of a host one job may take before others have a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    /// Requests side by side.
    requests: usize,
    /// How often a job that is many small ones takes some of them.
    rounds: usize,
}

/// What one claim and its jobs came to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Turn {
    /// Jobs that were claimed and run.
    pub ran: usize,
    /// When the next job can be claimed, as far as is known; `None` when there is none.
    pub next_due_ms: Option<i64>,
    /// What went wrong on our side, for the log; the jobs are tried again.
    pub incidents: Vec<String>,
}

/// How a job ended that did not finish.
enum Failure {
    /// Another process holds the lease by now: its result counts.
    LostLease,
    /// Try again later.
    Again(String),
}

impl From<Fault> for Failure {
    fn from(fault: Fault) -> Self {
        match fault {
            Fault::Stale => Self::LostLease,
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
    /// Claims up to `most` jobs of these kinds and runs them together; `most` is also how many requests they have under
    /// way at once.
    pub async fn run_due_jobs(&self, owner: &str, kinds: &[JobKind], most: usize) -> Result<Turn, Fault> {
        let jobs = self.claim_jobs(owner, kinds, most).await?;
        let share = Share { requests: most / jobs.len().max(1), rounds: 1 };
        let outcomes = join_all(jobs.iter().map(|job| self.run_within(job, share))).await;
        let incidents = outcomes.into_iter().flatten().collect();
        Ok(Turn { ran: jobs.len(), next_due_ms: self.next_due_ms(kinds).await?, incidents })
    }

    /// Runs one claimed job to its end; returns what to log. A job that fails on our side is put
    /// back and tried again later.
    pub async fn run_job(&self, job: &Job) -> Option<String> {
        self.run_within(job, Share { requests: DELIVERIES_AT_ONCE, rounds: DELIVERY_ROUNDS_MAX }).await
    }

    async fn run_within(&self, job: &Job, share: Share) -> Option<String> {
        let outcome = match job.kind {
            JobKind::SimulationRun if job.attempts > JOB_ATTEMPTS_MAX => {
                simulation_run::give_up(self, job).await
            }
            JobKind::SimulationRun => simulation_run::run(self, job).await,
            JobKind::WebhookDelivery => webhook_delivery::run(self, job, share).await,
            JobKind::LiveCall => live_call::run(self, job).await,
            JobKind::HangUp => hang_up::run(self, job).await,
        };
        match outcome {
            Ok(()) | Err(Failure::LostLease) => None,
            Err(Failure::Again(detail)) => Some(self.put_back(job, &detail).await),
        }
    }
}
