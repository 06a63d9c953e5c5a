//! Claims jobs, and extends and releases their leases.
use serde_json::json;

use crate::base::ids::{WorkspaceId, prefix};
use crate::base::limits::{
    JOB_LEASE_MS, JOB_RETRY_DOUBLINGS_MAX, JOB_RETRY_MS, PHONE_QUEUE_MS, PHONE_TRANSFER_MS_MAX,
};
use crate::ports::JobQueue;
use crate::ports::statement::{Row, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::fault::Fault;
use crate::storage::jobs::fair_claim::{self, Decision, Demand, Grant};
use crate::storage::jobs::{DUE_AT_ONCE, Job, JobKind, Task};
use crate::storage::runs;

impl Services {
    /// Claims up to `most` due jobs of these kinds. `owner` names the process, so that it can release its leases. Jobs of
    /// kinds that this version does not know stay for a version that does.
    pub async fn claim_jobs(&self, owner: &str, kinds: &[JobKind], most: usize) -> Result<Vec<Job>, Fault> {
        let mut jobs = Vec::new();
        for queue in JobQueue::ALL {
            let kinds: Vec<JobKind> = kinds.iter().copied().filter(|kind| kind.queue() == *queue).collect();
            if jobs.len() < most && !kinds.is_empty() {
                let claim = Claim { kinds: &kinds, places: PLACES_OF_ALL_PROCESSES, most: most - jobs.len() };
                jobs.extend(self.claim_in_queue(owner, claim).await?.jobs);
            }
        }
        sort(&mut jobs);
        Ok(jobs)
    }

    /// Claims due jobs of one queue. [`fair_claim::decide`] says how many of which workspace and kind; SQL only counts, and takes the
    /// oldest.
    pub(crate) async fn claim_in_queue(&self, owner: &str, claim: Claim<'_>) -> Result<Claimed, Fault> {
        let now_ms = self.ports().clock.now_ms();
        let [demands] = self.read([demands(claim, self.config().ceilings.runs_at_once, now_ms)]).await?;
        let demands: Vec<_> = demands.iter().map(read_demand).collect::<Result<_, Fault>>()?;
        let Decision { grants, give_way, held_back } =
            fair_claim::decide(claim.places, whole(claim.most), &demands);
        let mut claimed = Claimed { jobs: Vec::new(), give_way, held_back };
        if grants.is_empty() {
            return Ok(claimed);
        }
        let lease = format!("{owner}:{}", self.id(prefix::LEASE));
        let [jobs, _] =
            self.write([take(&grants, &lease, now_ms), runs::mark_running(&lease, now_ms)]).await?;
        let jobs = jobs.iter().map(|row| Job::read(row, &lease, now_ms));
        claimed.jobs = jobs.collect::<Result<_, _>>()?;
        sort(&mut claimed.jobs);
        Ok(claimed)
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
    /// if it ran early, it would end a call that still waits for the carrier. The job that hangs up a line which was handed
    /// over is due even later: others talk on it.
    pub async fn release_all_leases(&self) -> Result<(), Fault> {
        let now_ms = self.ports().clock.now_ms();
        let longest_pause_ms = JOB_RETRY_MS << JOB_RETRY_DOUBLINGS_MAX;
        let release = sql!(
            "UPDATE jobs SET lease = NULL, due_at = :due_at
             WHERE lease IS NOT NULL OR due_at > CASE kind WHEN :live_call THEN :latest_live_call
               WHEN :hang_up THEN :latest_hang_up ELSE :latest_pause END",
            due_at = DUE_AT_ONCE,
            latest_pause = now_ms + longest_pause_ms,
            live_call = JobKind::LiveCall.as_str(),
            latest_live_call = now_ms + PHONE_QUEUE_MS + longest_pause_ms,
            hang_up = JobKind::HangUp.as_str(),
            latest_hang_up = now_ms + PHONE_TRANSFER_MS_MAX + longest_pause_ms
        );
        self.write([release]).await?;
        Ok(())
    }
}

/// In the order in which they were made.
fn sort(jobs: &mut [Job]) {
    jobs.sort_by(|one, other| one.id.cmp(&other.id));
}

/// Places of the processes of a platform that starts as many as it likes: Cloudflare runs at most 250 consumers of a queue
/// at once, and each has four jobs.
const PLACES_OF_ALL_PROCESSES: u64 = 1_000;

/// What to claim.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Claim<'a> {
    /// Kinds of one queue, which share its places.
    pub kinds: &'a [JobKind],
    /// How many jobs a single workspace may run at once.
    pub places: u64,
    /// The largest number of jobs to claim now.
    pub most: usize,
}

/// A kind of jobs of a workspace.
pub(crate) type Holder = (JobKind, WorkspaceId);

/// What came of a claim.
pub(crate) struct Claimed {
    pub jobs: Vec<Job>,
    /// Who should release a job for somebody who has none, one entry a job.
    pub give_way: Vec<Holder>,
    /// Whether more is due than may run.
    pub held_back: bool,
}

/// Counts what is due and what is leased. The recursive step goes from workspace to workspace along the index, so the
/// cost grows with the number of workspaces that have jobs, not with the number of jobs. A live conversation has leased
/// the job of its call, but nobody runs it.
fn demands(claim: Claim<'_>, runs_at_once_max: i64, now_ms: i64) -> Statement {
    sql!(
        "WITH RECURSIVE waiting (kind, workspace) AS (
           SELECT value, (SELECT MIN(workspace_id) FROM jobs WHERE jobs.kind = value) FROM json_each(:kinds)
           WHERE EXISTS (SELECT 1 FROM json_each(:kinds) AS any_kind JOIN jobs ON jobs.kind = any_kind.value AND jobs.due_at <= :now)
           UNION ALL
           SELECT kind, (SELECT MIN(workspace_id) FROM jobs WHERE jobs.kind = waiting.kind AND workspace_id > workspace)
           FROM waiting WHERE workspace IS NOT NULL
         )
         SELECT kind, workspace AS workspace_id,
           (SELECT MIN(due_at) FROM jobs WHERE jobs.kind = waiting.kind AND workspace_id = workspace) AS oldest_due_at,
           (SELECT COUNT(*) FROM (SELECT 1 FROM jobs WHERE jobs.kind = waiting.kind AND workspace_id = workspace
              AND due_at <= :now LIMIT CAST(:most AS INTEGER))) AS due,
           (SELECT COUNT(*) FROM jobs WHERE jobs.kind = waiting.kind AND workspace_id = workspace
              AND lease IS NOT NULL AND due_at > :now AND lease NOT LIKE 'live:%') AS held,
           CASE kind WHEN :run THEN (SELECT MIN(runs_at_once, :runs_at_once_max) FROM workspaces WHERE id = workspace) END AS held_max
         FROM waiting WHERE workspace IS NOT NULL",
        kinds = names(claim.kinds),
        run = JobKind::SimulationRun.as_str(),
        runs_at_once_max = runs_at_once_max,
        // Even when nothing can be claimed, it matters who waits.
        most = i64::try_from(claim.most.max(1)).unwrap_or(i64::from(u16::MAX)),
        now = now_ms
    )
}

fn read_demand(row: Row<'_>) -> Result<Demand<Holder>, Fault> {
    Ok(Demand {
        holder: (row.word("kind")?, row.id("workspace_id")?),
        due: count(row.integer("due")?),
        oldest_due_ms: row.integer("oldest_due_at")?,
        held: count(row.integer("held")?),
        held_max: row.optional_integer("held_max")?.map(count),
    })
}

/// Takes what is granted, the oldest first. Two processes may decide at the same time: no workspace ends up with more than
/// the decision allows it in total.
fn take(grants: &[Grant<Holder>], lease: &str, now_ms: i64) -> Statement {
    let list: Vec<_> = grants
        .iter()
        .map(|Grant { holder: (kind, workspace_id), more, held }| {
            json!({"kind": kind.as_str(), "workspace": workspace_id, "more": more, "up_to": held.saturating_add(*more)})
        })
        .collect();
    sql!(
        "UPDATE jobs SET lease = :lease, due_at = :leased_until, attempts = attempts + 1 WHERE id IN (
           WITH granted AS (
             SELECT json_extract(value, '$.kind') AS kind, json_extract(value, '$.workspace') AS workspace,
               json_extract(value, '$.more') AS more, json_extract(value, '$.up_to') AS up_to
             FROM json_each(:grants)
           ), due AS (
             SELECT jobs.id AS id, more, up_to, granted.kind AS kind, workspace,
               ROW_NUMBER() OVER (PARTITION BY granted.kind, workspace ORDER BY jobs.due_at, jobs.id) AS place
             FROM granted JOIN jobs ON jobs.id IN (
               SELECT own.id FROM jobs AS own WHERE own.kind = granted.kind AND own.workspace_id = workspace
               AND own.due_at <= :now ORDER BY own.due_at, own.id LIMIT CAST(:most AS INTEGER))
           )
           SELECT id FROM due WHERE place <= more AND place <= up_to -
             (SELECT COUNT(*) FROM jobs AS busy WHERE busy.kind = due.kind AND busy.workspace_id = due.workspace
              AND busy.lease IS NOT NULL AND busy.due_at > :now AND busy.lease NOT LIKE 'live:%'))
         RETURNING id, workspace_id, kind, subject_id, attempts",
        lease = lease,
        leased_until = now_ms + JOB_LEASE_MS,
        now = now_ms,
        most = i64::try_from(grants.iter().map(|grant| grant.more).max().unwrap_or(0)).unwrap_or(1),
        grants = json!(list).to_string()
    )
}

fn count(number: i64) -> u64 {
    u64::try_from(number).unwrap_or(0)
}

fn whole(number: usize) -> u64 {
    u64::try_from(number).unwrap_or(u64::MAX)
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
