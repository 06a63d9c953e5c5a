//! Work that outlives a request: a row, put there by the batch that caused it, claimed with a
//! lease, removed by the batch that finishes it. Killing the process at any instant loses none; a
//! job may run twice, so what it does to the outside carries ids that stay the same.
mod hang_up;
mod journal;
mod lease;
pub(crate) mod live_call;
mod simulation_run;
pub(crate) mod spent;
mod sweep;
pub(crate) mod tool_callback;
mod webhook_delivery;

use futures_util::future::join_all;

use crate::engine::Engine;
use crate::error::Fault;
use crate::limits::{DELIVERIES_AT_ONCE, DELIVERY_ROUNDS_MAX, JOB_ATTEMPTS_MAX};
use crate::sql;
use crate::statement::Statement;

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Runs a simulation; the subject is the run.
    SimulationRun,
    /// Sends a webhook what is due to it; the subject is the webhook.
    WebhookDelivery,
    /// Settles a live conversation whose process is gone, or a telephone call that nobody connected, and looks into
    /// one that is over; the subject is the call.
    LiveCall,
    /// Hangs up at the carrier; the subject is the call.
    HangUp,
}

impl JobKind {
    /// All kinds.
    pub const ALL: &[Self] = &[Self::SimulationRun, Self::WebhookDelivery, Self::LiveCall, Self::HangUp];

    pub(crate) fn as_str(self) -> &'static str {
        match self {
            Self::SimulationRun => "simulation_run",
            Self::WebhookDelivery => "webhook_delivery",
            Self::LiveCall => "live_call",
            Self::HangUp => "hang_up",
        }
    }

    /// Where it runs.
    pub fn lane(self) -> Lane {
        match self {
            Self::SimulationRun | Self::LiveCall | Self::HangUp => Lane::Conversations,
            Self::WebhookDelivery => Lane::Deliveries,
        }
    }
}

/// Jobs that wait for the same kind of thing. Each lane has places of its own on every host, so that receivers that hang
/// keep no conversation waiting, and conversations that compute keep no event waiting.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Lane {
    /// Simulation runs, and what calls leave to be done.
    Conversations,
    /// Deliveries to webhooks.
    Deliveries,
}

impl Lane {
    /// All lanes.
    pub const ALL: [Self; 2] = [Self::Conversations, Self::Deliveries];

    /// Its name, for logs, leases and messages.
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Conversations => "conversations",
            Self::Deliveries => "deliveries",
        }
    }

    /// Reads a name.
    pub fn parse(name: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|lane| lane.as_str() == name)
    }

    /// The jobs that run in it.
    pub fn kinds(self) -> Vec<JobKind> {
        JobKind::ALL.iter().copied().filter(|kind| kind.lane() == self).collect()
    }
}

/// How much of a host one job may take before others have a turn.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Share {
    /// Requests side by side.
    requests: usize,
    /// How often a job that is many small ones takes some of them.
    rounds: usize,
}

/// A claimed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    id: String,
    workspace_id: String,
    kind: JobKind,
    subject_id: String,
    lease: String,
    leased_until_ms: i64,
    attempts: i64,
}

/// What a turn of the runner did.
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
    /// The lease is somebody else's by now: their result counts.
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

/// When a job may be claimed at once. Not the time of day: a clock that goes back delays nothing.
pub(crate) const DUE_AT_ONCE: i64 = 0;

/// Queues one job.
pub(crate) fn insert(
    workspace_id: &str,
    id: &str,
    kind: JobKind,
    subject_id: &str,
    due_at: i64,
    now_ms: i64,
) -> Statement {
    sql!(
        "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
         VALUES (?1, ?2, ?3, ?4, ?5, 0, ?6)",
        workspace_id,
        id,
        kind.as_str(),
        subject_id,
        due_at,
        now_ms
    )
}

/// Queues one job for each entry `{job_id, run_id, …}` of a JSON list; the run is the subject.
pub fn insert_for_runs(list: &str, now_ms: i64) -> Statement {
    sql!(
        "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
         SELECT :ws, json_extract(value, '$.job_id'), ?2, json_extract(value, '$.run_id'), ?3, 0, ?4 FROM json_each(?1)",
        list,
        JobKind::SimulationRun.as_str(),
        DUE_AT_ONCE,
        now_ms
    )
}

impl Engine {
    /// Claims up to `most` jobs of these kinds and runs them together; `most` is also how many requests
    /// they have under way at once. Of use where a host has nothing better to do meanwhile; one that
    /// has claims and runs jobs one by one.
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

impl Job {
    /// Undoes the batch when the lease is somebody else's.
    fn guard(&self) -> Statement {
        sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND lease = ?2)",
            &self.id,
            &self.lease
        )
    }

    /// The statements that finish it, around what it did: nothing is written when the lease is
    /// somebody else's.
    pub(crate) fn finished(&self, writes: impl IntoIterator<Item = Statement>) -> Vec<Statement> {
        let mut statements = vec![self.guard()];
        statements.extend(writes);
        statements.push(sql!("DELETE FROM jobs WHERE id = ?1", &self.id));
        statements
    }
}
