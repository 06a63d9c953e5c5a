//! The jobs of a short-lived process that the platform starts: bounded work, and hints for the rest.
use std::collections::VecDeque;

use super::worker::{job_failed, sweep_failed, unreadable};
use crate::base::ids::{Id, JobId};
use crate::base::limits::{HELD_RUN_MS_MAX, SWEEP_ROUNDS_PER_INVOCATION_MAX};
use crate::ports::{JobQueue, Wake};
use crate::services::Services;
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
    services: Services,
    owner: String,
    parts: VecDeque<Part>,
}

enum Part {
    Sweep,
    Jobs { queue: JobQueue, claims_max: usize },
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
        services: Services,
        owner: &str,
        hints: impl IntoIterator<Item = Option<&'a str>>,
    ) -> Self {
        let named: Option<Vec<Vec<JobQueue>>> =
            hints.into_iter().map(|name| name.and_then(JobQueue::named_by)).collect();
        let is_named = |queue: &JobQueue| {
            named.as_ref().is_none_or(|named| named.iter().flatten().any(|one| one == queue))
        };
        let queues: Vec<JobQueue> = JobQueue::ALL.iter().copied().filter(is_named).collect();
        let claims_max = CLAIMS_MAX / queues.len().max(1);
        let parts = queues.into_iter().map(|queue| Part::Jobs { queue, claims_max }).collect();
        Self { services, owner: owner.to_owned(), parts }
    }

    /// For due jobs without a hint, and the sweep.
    pub(crate) fn scheduled(services: Services, owner: &str) -> Self {
        let claims_max = CLAIMS_MAX / JobQueue::ALL.len();
        let jobs = |queue| Part::Jobs { queue, claims_max };
        // Runs last: they take longest.
        let parts = std::iter::once(Part::Sweep).chain(JobQueue::ALL.iter().copied().map(jobs));
        Self { services, owner: owner.to_owned(), parts: parts.collect() }
    }

    /// Runs the next part. A host that collects hints sends them after each part, because a part can take long.
    pub async fn next(&mut self) -> Option<Report> {
        Some(match self.parts.pop_front()? {
            Part::Sweep => {
                let failure = self.services.sweep_rounds(SWEEP_ROUNDS_PER_INVOCATION_MAX, 0).await.1;
                let incidents = failure.iter().map(sweep_failed).collect();
                Report { incidents, retry_hints: false }
            }
            Part::Jobs { queue, claims_max } => self.run(queue, claims_max).await,
        })
    }

    async fn run(&self, queue: JobQueue, claims_max: usize) -> Report {
        let kinds = JobKind::of_queue(queue);
        let mut report = Report::default();
        let clock = &self.services.ports().clock;
        let began_ms = clock.now_ms();
        for claim in 1..=claims_max {
            let turn = match self.services.run_due_jobs(&self.owner, &kinds, SLOTS).await {
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
                self.services.ports().queue.wake(&wake);
            }
            report.incidents.extend(turn.incidents.iter().map(|incident| job_failed(incident)));
            if is_late {
                break;
            }
        }
        report
    }
}
