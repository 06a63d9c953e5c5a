//! The jobs of a short-lived process that the platform starts: bounded work, and hints for the rest.
use std::collections::{BTreeSet, VecDeque};

use super::worker::{job_failed, sweep_failed, unreadable};
use crate::base::ids::{Id, JobId};
use crate::base::limits::{HELD_RUN_MS_MAX, SHARDS_PER_TIMER_MAX, SWEEP_ROUNDS_PER_INVOCATION_MAX};
use crate::ports::{JobQueue, Wake};
use crate::services::Services;
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;

/// Concurrent jobs. A Worker has six connections for storage and tools together, and a tool's timeout must not run
/// while its request waits for a connection.
const SLOTS: usize = 4;
/// Claims per invocation: with a few batches per job, this stays within the 50 queries of the free plan.
const CLAIMS_MAX: usize = 4;
/// An invocation that has lasted this long claims nothing more: a quarter of an hour is all that the platform gives it, and
/// a job may take most of that.
const CLAIMING_MS_MAX: i64 = 120_000;
const _: () = assert!(CLAIMING_MS_MAX + HELD_RUN_MS_MAX < 14 * 60_000);
/// How many jobs one invocation runs, and so how many one hint may represent.
pub const JOBS_PER_INVOCATION: usize = SLOTS * CLAIMS_MAX;

/// The work of one invocation. The host calls [`Invocation::next`] until it returns `None`.
pub struct Invocation {
    owner: String,
    /// Each with the database that it is about.
    parts: VecDeque<(Services, Part)>,
    /// With several databases, when the first part began: one with much to do keeps the others from their jobs, which another
    /// invocation runs.
    began_ms: Option<i64>,
}

/// What a message of a host's queue says.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct HintOf<'a> {
    /// [`JobQueue::as_str`].
    pub queue: &'a str,
    /// The database's name, if there are several; messages of an earlier version have none.
    pub shard: Option<&'a str>,
}

#[derive(Clone, Copy)]
enum Part {
    Sweep,
    /// The sweep of the directory.
    Directory,
    Jobs {
        queue: JobQueue,
        claims_max: usize,
    },
}

/// The result of one part of an invocation.
#[derive(Debug, Default)]
pub struct Report {
    /// Errors for the log.
    pub incidents: Vec<String>,
    /// Storage did not respond: the hints that started the invocation should be delivered again.
    pub retry_hints: bool,
}

impl Invocation {
    /// For the queues named by the hints; for all queues if a hint is unknown to this version.
    pub(crate) fn of_hints<'a>(
        services: &Services,
        owner: &str,
        hints: impl IntoIterator<Item = Option<HintOf<'a>>>,
    ) -> Self {
        let every = services.on_every_shard();
        let mut named: Vec<BTreeSet<JobQueue>> = vec![BTreeSet::new(); every.len()];
        for hint in hints {
            let shard = hint.and_then(|hint| services.sharding()?.named(hint.shard?)).unwrap_or(0);
            let queues = hint.and_then(|hint| JobQueue::named_by(hint.queue));
            named[shard].extend(queues.unwrap_or_else(|| JobQueue::ALL.to_vec()));
        }
        let count: usize = named.iter().map(BTreeSet::len).sum();
        let claims_max = (CLAIMS_MAX / count.max(1)).max(1);
        let parts = every.into_iter().zip(named).flat_map(|(services, queues)| {
            let queues = JobQueue::ALL.iter().copied().filter(move |queue| queues.contains(queue));
            queues.map(move |queue| (services.clone(), Part::Jobs { queue, claims_max }))
        });
        Self { owner: owner.to_owned(), parts: parts.collect(), began_ms: None }
    }

    /// For due jobs without a hint, and the sweep. Of many databases only some have their turn, except for what is due of calls:
    /// that is looked for in each, because somebody waits on the telephone.
    pub(crate) fn scheduled(services: &Services, owner: &str) -> Self {
        let minute = services.now().ms() / 60_000;
        let rotated = |mut databases: Vec<Services>, turn: i64, step: usize| {
            let turns = i64::try_from(databases.len().div_ceil(step)).unwrap_or(1).max(1);
            let first = usize::try_from(turn.rem_euclid(turns)).unwrap_or(0) * step;
            let first = first.min(databases.len());
            databases.rotate_left(first);
            (databases, turn.div_euclid(turns))
        };
        let (mut some, turn) = rotated(services.on_every_shard(), minute, SHARDS_PER_TIMER_MAX);
        some.truncate(SHARDS_PER_TIMER_MAX);
        // Each is the first one at times: it has most of the time.
        let (some, _) = rotated(some, turn, 1);
        let (every, _) = rotated(services.on_every_shard(), minute, 1);
        let claims_max = CLAIMS_MAX / JobQueue::ALL.len();
        let jobs = |queue: &JobQueue| Part::Jobs { queue: *queue, claims_max };
        let (calls, others): (Vec<&JobQueue>, Vec<&JobQueue>) =
            JobQueue::ALL.iter().partition(|queue| matches!(queue, JobQueue::Calls));
        // Calls do not wait for the sweeps of several databases. Runs last: they take longest.
        let parts = calls.into_iter().map(jobs).chain([Part::Sweep]).chain(others.into_iter().map(jobs));
        let parts = parts.flat_map(|part| {
            let databases = match part {
                Part::Jobs { queue: JobQueue::Calls, .. } => &every,
                _ => &some,
            };
            databases.iter().map(move |services| (services.clone(), part))
        });
        let directory = services.sharding().map(|_| (services.clone(), Part::Directory));
        Self { owner: owner.to_owned(), parts: parts.chain(directory).collect(), began_ms: None }
    }

    /// Runs the next part. A host that collects hints sends them after each part, because a part can take long.
    pub async fn next(&mut self) -> Option<Report> {
        let (services, part) = self.parts.pop_front()?;
        if services.sharding().is_some() && self.began_ms.is_none() {
            self.began_ms = Some(services.ports().clock.now_ms());
        }
        let swept = |failed: &[Fault]| Report {
            incidents: failed.iter().map(sweep_failed).collect(),
            retry_hints: false,
        };
        Some(match part {
            Part::Sweep => swept(&services.sweep_rounds(SWEEP_ROUNDS_PER_INVOCATION_MAX, 0).await.1),
            Part::Directory => {
                let failed = services.sweep_directory(SWEEP_ROUNDS_PER_INVOCATION_MAX).await.err();
                swept(failed.as_slice())
            }
            Part::Jobs { queue, claims_max } => self.run(&services, queue, claims_max).await,
        })
    }

    async fn run(&self, services: &Services, queue: JobQueue, claims_max: usize) -> Report {
        let kinds = JobKind::of_queue(queue);
        let mut report = Report::default();
        let clock = &services.ports().clock;
        let began_ms = self.began_ms.unwrap_or_else(|| clock.now_ms());
        if clock.now_ms() - began_ms > CLAIMING_MS_MAX {
            // Another invocation begins with this part.
            let wake = Wake { queue, job_id: JobId::from_stored("next"), at_ms: clock.now_ms() };
            services.ports().queue.wake(&wake);
            return report;
        }
        for claim in 1..=claims_max {
            let turn = match services.run_due_jobs(&self.owner, &kinds, SLOTS).await {
                Ok(turn) => turn,
                Err(fault) => {
                    report.incidents.push(unreadable(&fault));
                    report.retry_hints = true;
                    break;
                }
            };
            if turn.ran == 0 {
                break;
            }
            // A failed job is retried after its pause; another invocation runs the remaining jobs.
            let is_late = clock.now_ms() - began_ms > CLAIMING_MS_MAX;
            if (is_late || claim == claims_max || !turn.incidents.is_empty())
                && let Some(at_ms) = turn.next_due_ms
            {
                // No job: receivers read only the queue.
                let wake = Wake { queue, job_id: JobId::from_stored("next"), at_ms };
                services.ports().queue.wake(&wake);
            }
            report.incidents.extend(turn.incidents.iter().map(|incident| job_failed(incident)));
            if is_late {
                break;
            }
        }
        report
    }
}
