//! Work that outlives a request: a row, put there by the batch that caused it, claimed with a
//! lease, removed by the batch that finishes it. Killing the process at any instant loses none; a
//! job may run twice, so what it does to the outside carries ids that stay the same.
mod simulation_run;
mod tool_callback;

use futures_util::future::join_all;

use crate::engine::Engine;
use crate::error::Fault;
use crate::ids::prefix;
use crate::limits::{JOB_ATTEMPTS_MAX, JOB_LEASE_MS, JOB_RETRY_MS};
use crate::sql;
use crate::statement::{Row, Statement};

/// What a job does.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum JobKind {
    /// Runs a simulation; the subject is the run.
    SimulationRun,
}

impl JobKind {
    const ALL: [Self; 1] = [Self::SimulationRun];

    fn as_str(self) -> &'static str {
        match self {
            Self::SimulationRun => "simulation_run",
        }
    }
}

/// A claimed job.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Job {
    id: String,
    workspace_id: String,
    kind: JobKind,
    subject_id: String,
    lease: String,
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

/// Queues one job for each entry of a JSON list whose first element is the subject and whose fifth
/// is the job's id.
pub fn insert_many(kind: JobKind, list: String, due_at: i64) -> Statement {
    sql!(
        "INSERT INTO jobs (workspace_id, id, kind, subject_id, due_at, attempts, created_at)
         SELECT :ws, json_extract(value, '$[4]'), ?2, json_extract(value, '$[0]'), ?3, 0, ?3 FROM json_each(?1)",
        list,
        kind.as_str(),
        due_at
    )
}

impl Engine {
    /// Claims jobs that are due and runs them to their end. A host calls it again at once while
    /// `ran` is not 0, else at `next_due_ms` or when its queue is woken. `owner` names the process,
    /// so that it can give its leases back. At most `at_most` jobs are claimed and run side by side
    /// ([`JOBS_PER_CLAIM`](crate::limits::JOBS_PER_CLAIM) where nothing speaks for fewer). `more` is called when this claim is full and another
    /// may find work too.
    pub async fn run_due_jobs(&self, owner: &str, at_most: i64, more: impl Fn()) -> Result<Turn, Fault> {
        let now_ms = self.ports().clock.now_ms();
        match self.next_due_ms().await? {
            Some(due_ms) if due_ms <= now_ms => {}
            next_due_ms => {
                return Ok(Turn { next_due_ms, ..Turn::default() });
            }
        }
        let jobs = self.claim(owner, at_most, now_ms).await?;
        if jobs.len() as i64 == at_most {
            more();
        }
        let outcomes = join_all(jobs.iter().map(|job| self.run_job(job))).await;
        let incidents = outcomes.into_iter().flatten().collect();
        Ok(Turn { ran: jobs.len(), next_due_ms: self.next_due_ms().await?, incidents })
    }

    /// Gives back what `owner` has claimed and not finished: at a graceful stop.
    pub async fn release_leases(&self, owner: &str) -> Result<(), Fault> {
        let release = sql!(
            "UPDATE jobs SET lease = NULL, due_at = ?2 WHERE lease >= ?1 || ':' AND lease < ?1 || ';'",
            owner,
            self.ports().clock.now_ms()
        );
        self.ports().database.write(vec![release]).await?;
        Ok(())
    }

    /// Gives back all leases: at the start of a host that knows itself to be the only one.
    pub async fn release_all_leases(&self) -> Result<(), Fault> {
        let release = sql!(
            "UPDATE jobs SET lease = NULL, due_at = ?1 WHERE lease IS NOT NULL",
            self.ports().clock.now_ms()
        );
        self.ports().database.write(vec![release]).await?;
        Ok(())
    }

    /// Forgets what is kept for a time only. Cheap; a host calls it now and then.
    pub async fn sweep(&self) -> Result<(), Fault> {
        let forget = sql!(
            "DELETE FROM idempotency_keys WHERE created_at <= ?1",
            self.ports().clock.now_ms() - crate::limits::IDEMPOTENCY_WINDOW_MS
        );
        self.ports().database.write(vec![forget]).await?;
        Ok(())
    }

    async fn next_due_ms(&self) -> Result<Option<i64>, Fault> {
        let rows = self.ports().database.read(vec![sql!("SELECT MIN(due_at) AS due_at FROM jobs")]).await?;
        match rows.first().and_then(|rows| rows.first()) {
            Some(row) => Ok(row.optional_integer("due_at")?),
            None => Ok(None),
        }
    }

    async fn claim(&self, owner: &str, at_most: i64, now_ms: i64) -> Result<Vec<Job>, Fault> {
        let lease = format!("{owner}:{}", self.id(prefix::LEASE));
        let claim = sql!(
            "UPDATE jobs SET lease = ?1, due_at = ?2, attempts = attempts + 1
             WHERE id IN (SELECT id FROM jobs WHERE due_at <= ?3 ORDER BY due_at, id LIMIT CAST(?4 AS INTEGER))
             RETURNING id, workspace_id, kind, subject_id, attempts",
            &lease,
            now_ms + JOB_LEASE_MS,
            now_ms,
            at_most
        );
        let rows =
            self.ports().database.write(vec![claim, simulation_run::mark_running(&lease, now_ms)]).await?;
        let mut jobs: Vec<Job> = rows
            .iter()
            .take(1)
            .flat_map(|rows| rows.iter())
            .map(|row| Job::read(row, &lease))
            .collect::<Result<_, _>>()?;
        jobs.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(jobs)
    }

    /// Runs one job; returns what to log.
    async fn run_job(&self, job: &Job) -> Option<String> {
        let outcome = match job.kind {
            _ if job.attempts > JOB_ATTEMPTS_MAX => simulation_run::give_up(self, job).await,
            JobKind::SimulationRun => simulation_run::run(self, job).await,
        };
        match outcome {
            Ok(()) | Err(Failure::LostLease) => None,
            Err(Failure::Again(detail)) => {
                let pause_ms = JOB_RETRY_MS << job.attempts.clamp(0, 10);
                let again = sql!(
                    "UPDATE jobs SET lease = NULL, due_at = ?3 WHERE id = ?1 AND lease = ?2",
                    &job.id,
                    &job.lease,
                    self.ports().clock.now_ms() + pause_ms
                );
                // Should this fail too, the lease runs out by itself.
                let released = self.ports().database.write(vec![again]).await;
                Some(format!(
                    "{} {}: {detail} (released: {})",
                    job.kind.as_str(),
                    job.subject_id,
                    released.is_ok()
                ))
            }
        }
    }
}

impl Job {
    fn read(row: Row<'_>, lease: &str) -> Result<Self, Fault> {
        let kind = row.text("kind")?;
        Ok(Self {
            id: row.text("id")?,
            workspace_id: row.text("workspace_id")?,
            kind: JobKind::ALL
                .into_iter()
                .find(|known| known.as_str() == kind)
                .ok_or_else(|| Fault::Bug(format!("a job of kind {kind}")))?,
            subject_id: row.text("subject_id")?,
            lease: lease.to_owned(),
            attempts: row.integer("attempts")?,
        })
    }

    /// The statements that finish it, around what it did: nothing is written when the lease is
    /// somebody else's.
    fn finished(&self, writes: impl IntoIterator<Item = Statement>) -> Vec<Statement> {
        let mut statements = vec![sql!(
            "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM jobs WHERE id = ?1 AND lease = ?2)",
            &self.id,
            &self.lease
        )];
        statements.extend(writes);
        statements.push(sql!("DELETE FROM jobs WHERE id = ?1", &self.id));
        statements
    }
}
