//! Claims jobs, and extends and releases their leases.
use serde_json::json;

use crate::base::ids::prefix;
use crate::base::limits::{JOB_LEASE_MS, JOB_RETRY_DOUBLINGS_MAX, JOB_RETRY_MS, PHONE_QUEUE_MS};
use crate::ports::statement::{Row, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::jobs::{DUE_AT_ONCE, Job, JobKind, Task};
use crate::storage::runs;

impl Services {
    /// Claims up to `most` due jobs of these kinds, in turns by kind and workspace. A workspace runs no more simulations
    /// at once than its limit. `owner` names the process, so that it can release its leases. Jobs of kinds that this
    /// version does not know stay for a version that does.
    pub async fn claim_jobs(&self, owner: &str, kinds: &[JobKind], most: usize) -> Result<Vec<Job>, Fault> {
        let now_ms = self.ports().clock.now_ms();
        if most == 0 || self.next_due_ms(kinds).await?.is_none_or(|due_ms| due_ms > now_ms) {
            return Ok(Vec::new());
        }
        let lease = format!("{owner}:{}", self.id(prefix::LEASE));
        // The recursive step goes from workspace to workspace along the index, so the cost of a claim grows with the
        // number of waiting workspaces, not with the number of their jobs.
        let claim = sql!(
            "UPDATE jobs SET lease = :lease, due_at = :leased_until, attempts = attempts + 1 WHERE id IN (
               WITH RECURSIVE waiting (kind, workspace) AS (
                 SELECT value, (SELECT MIN(workspace_id) FROM jobs WHERE jobs.kind = value) FROM json_each(:kinds)
                 UNION ALL
                 SELECT kind, (SELECT MIN(workspace_id) FROM jobs WHERE jobs.kind = waiting.kind AND workspace_id > workspace)
                 FROM waiting WHERE workspace IS NOT NULL
               ), due AS (
                 SELECT id, due_at, jobs.kind AS kind, workspace_id, ROW_NUMBER() OVER (PARTITION BY jobs.kind, workspace_id ORDER BY due_at, id) AS place
                 FROM waiting JOIN jobs ON jobs.id IN (
                   SELECT own.id FROM jobs AS own WHERE own.kind = waiting.kind AND own.workspace_id = workspace
                   AND own.due_at <= :now ORDER BY own.due_at, own.id LIMIT CAST(:most AS INTEGER))
               )
               SELECT id FROM due WHERE kind <> 'simulation_run' OR place <=
                 (SELECT MIN(runs_at_once, :runs_at_once_max) FROM workspaces WHERE workspaces.id = due.workspace_id)
                 - (SELECT COUNT(*) FROM jobs AS busy WHERE busy.kind = due.kind AND busy.workspace_id = due.workspace_id
                    AND busy.due_at > :now AND busy.lease IS NOT NULL)
               ORDER BY place, due_at, id LIMIT CAST(:most AS INTEGER))
             RETURNING id, workspace_id, kind, subject_id, attempts",
            lease = &lease,
            leased_until = now_ms + JOB_LEASE_MS,
            now = now_ms,
            most = i64::try_from(most).unwrap_or(i64::from(u16::MAX)),
            runs_at_once_max = self.config().ceilings.runs_at_once,
            kinds = names(kinds)
        );
        let [claimed, _] = self.write([claim, runs::mark_running(&lease, now_ms)]).await?;
        let jobs = claimed.iter().map(|row| Job::read(row, &lease, now_ms));
        let mut jobs: Vec<Job> = jobs.collect::<Result<_, _>>()?;
        jobs.sort_by(|one, other| one.id.cmp(&other.id));
        Ok(jobs)
    }

    /// When the next job of these kinds is due; `None` without such a job.
    pub async fn next_due_ms(&self, kinds: &[JobKind]) -> Result<Option<i64>, Fault> {
        // One subquery a kind, so that each is one index lookup.
        let next = sql!(
            "SELECT MIN(next) AS due_at FROM
             (SELECT (SELECT MIN(due_at) FROM jobs WHERE kind = value) AS next FROM json_each(:kinds))",
            kinds = names(kinds)
        );
        let [next] = self.read([next]).await?;
        match next.first() {
            Some(row) => Ok(row.optional_integer("due_at")?),
            None => Ok(None),
        }
    }

    /// Releases a claimed job so that it is tried again after a pause; returns the line to log.
    pub async fn release_for_retry(&self, job: &Job, detail: &str) -> String {
        let pause_ms = JOB_RETRY_MS << job.attempts.clamp(0, JOB_RETRY_DOUBLINGS_MAX);
        let again = sql!(
            "UPDATE jobs SET lease = NULL, due_at = :due_at WHERE id = :id AND lease = :lease",
            id = &job.id,
            lease = &job.lease,
            due_at = self.ports().clock.now_ms() + pause_ms
        );
        // If this fails too, the lease expires.
        let released = self.write([again]).await.is_ok();
        format!("{} {}: {detail} (put back: {released})", job.task.kind().as_str(), job.task.subject_id())
    }

    /// Releases the unfinished jobs of `owner` and does not count the attempt. For a graceful shutdown.
    pub async fn release_leases(&self, owner: &str) -> Result<(), Fault> {
        let release = sql!(
            "UPDATE jobs SET lease = NULL, due_at = :due_at, attempts = attempts - 1
             WHERE lease >= :owner || ':' AND lease < :owner || ';'",
            owner = owner,
            due_at = DUE_AT_ONCE
        );
        self.write([release]).await?;
        Ok(())
    }

    /// Releases all leases, and makes jobs due that a wrong clock has postponed. For the start of a host that is the only
    /// one. The job of a call may be due later than any retry, because it ends calls that the carrier never connected:
    /// if it ran early, it would end a call that still waits for the carrier.
    pub async fn release_all_leases(&self) -> Result<(), Fault> {
        let now_ms = self.ports().clock.now_ms();
        let longest_pause_ms = JOB_RETRY_MS << JOB_RETRY_DOUBLINGS_MAX;
        let release = sql!(
            "UPDATE jobs SET lease = NULL, due_at = :due_at
             WHERE lease IS NOT NULL OR due_at > CASE kind WHEN :live_call THEN :latest_live_call ELSE :latest_pause END",
            due_at = DUE_AT_ONCE,
            latest_pause = now_ms + longest_pause_ms,
            live_call = JobKind::LiveCall.as_str(),
            latest_live_call = now_ms + PHONE_QUEUE_MS + longest_pause_ms
        );
        self.write([release]).await?;
        Ok(())
    }
}

/// Statements that extend a lease, and when the extended lease expires.
pub(crate) struct Extension {
    pub statements: Vec<Statement>,
    pub until_ms: i64,
}

fn names(kinds: &[JobKind]) -> String {
    json!(kinds.iter().map(|kind| kind.as_str()).collect::<Vec<_>>()).to_string()
}

impl Job {
    /// Extends the lease by `busy_ms` and the usual time. Fails the batch when another process holds the lease.
    pub(crate) fn extend(&self, now_ms: i64, busy_ms: i64) -> Extension {
        let until_ms = now_ms + busy_ms + JOB_LEASE_MS;
        let keep = sql!(
            "UPDATE jobs SET due_at = :due_at WHERE id = :id AND lease = :lease",
            id = &self.id,
            lease = &self.lease,
            due_at = until_ms
        );
        Extension { statements: vec![self.guard(), keep], until_ms }
    }

    fn read(row: Row<'_>, lease: &str, now_ms: i64) -> Result<Self, Fault> {
        Ok(Self {
            id: row.id("id")?,
            workspace_id: row.id("workspace_id")?,
            task: Task::new(row.word("kind")?, row.text("subject_id")?),
            lease: lease.to_owned(),
            leased_until_ms: now_ms + JOB_LEASE_MS,
            attempts: row.integer("attempts")?,
        })
    }
}
