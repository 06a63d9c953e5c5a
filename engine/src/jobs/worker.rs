//! The jobs of a long-running process: when to claim, how many, and when to check again.
use crate::jobs::Job;
use crate::ports::JobQueue;
use crate::services::Services;
use crate::storage::jobs::JobKind;

/// Concurrent simulation runs; they spend most of their time waiting for models and tools.
const CONVERSATION_SLOTS: usize = 64;
/// Webhooks delivered concurrently. Deliveries only wait, and an unresponsive receiver takes long.
const DELIVERY_SLOTS: usize = 128;
/// Every claim is a commit: with few free slots, the worker waits this long for more of them.
const CLAIM_PAUSE_MS: u64 = 20;
/// The longest pause, because hints can be lost.
const POLL_MS: u64 = 5_000;
/// The pause after a storage failure.
const FAILURE_PAUSE_MS: u64 = 1_000;
/// How often expired rows and blobs are removed.
const SWEEP_MS: i64 = 5 * 60 * 1000;

fn slots(queue: JobQueue) -> usize {
    match queue {
        JobQueue::Conversations => CONVERSATION_SLOTS,
        JobQueue::Deliveries => DELIVERY_SLOTS,
    }
}

/// Claims the jobs of one queue for a long-running process. The host calls [`QueueWorker::step`] repeatedly, spawns the
/// jobs and waits, and calls [`QueueWorker::stop`] at the end.
pub struct QueueWorker {
    services: Services,
    queue: JobQueue,
    kinds: Vec<JobKind>,
    owner: String,
    swept_ms: i64,
}

/// The host's actions after a step.
pub struct Step {
    /// Spawn [`ClaimedJob::run`] for each.
    pub jobs: Vec<ClaimedJob>,
    /// Then wait this long for the next step, or until a hint for the queue arrives,
    pub wait_ms: u64,
    /// or, if set, until at most this many jobs are running.
    pub until_running: Option<usize>,
    /// Errors for the log.
    pub incidents: Vec<String>,
}

impl QueueWorker {
    pub(crate) fn new(services: Services, queue: JobQueue, owner: &str) -> Self {
        let swept_ms = services.ports().clock.now_ms();
        let owner = format!("{owner}-{}", queue.as_str());
        Self { services, queue, kinds: JobKind::of_queue(queue), owner, swept_ms }
    }

    /// The queue of this worker.
    pub fn queue(&self) -> JobQueue {
        self.queue
    }

    /// Claims jobs for the free slots. `running` is the number of its unfinished jobs.
    pub async fn step(&mut self, running: usize) -> Step {
        let slots = slots(self.queue);
        let free = slots.saturating_sub(running);
        let mut incidents = Vec::new();
        let (jobs, wait_ms) = match self.services.claim_jobs(&self.owner, &self.kinds, free).await {
            Ok(jobs) if jobs.len() == free => (jobs, CLAIM_PAUSE_MS),
            // A job may be due but not claimed, because its workspace has reached its limit.
            Ok(jobs) => (jobs, self.until_next_ms(&mut incidents).await.max(CLAIM_PAUSE_MS)),
            Err(fault) => {
                incidents.push(unreadable(&fault));
                (Vec::new(), FAILURE_PAUSE_MS)
            }
        };
        // All slots are taken: more jobs may be due once half of the slots are free.
        let full = incidents.is_empty() && jobs.len() == free;
        self.sweep(&mut incidents).await;
        let claimed = |job| ClaimedJob { services: self.services.clone(), job };
        Step {
            jobs: jobs.into_iter().map(claimed).collect(),
            wait_ms,
            until_running: full.then_some(slots / 2),
            incidents,
        }
    }

    /// Releases the leases once no job is running. Returns errors for the log. Without this call, the leases expire by
    /// themselves.
    pub async fn stop(self) -> Option<String> {
        let released = self.services.release_leases(&self.owner).await;
        released
            .err()
            .map(|fault| format!("leases could not be released; they expire by themselves: {fault:?}"))
    }

    /// How long until the next known job is due.
    async fn until_next_ms(&self, incidents: &mut Vec<String>) -> u64 {
        match self.services.next_due_ms(&self.kinds).await {
            Ok(Some(due_ms)) => {
                let wait_ms = due_ms - self.services.ports().clock.now_ms();
                u64::try_from(wait_ms).unwrap_or(0).min(POLL_MS)
            }
            Ok(None) => POLL_MS,
            Err(fault) => {
                incidents.push(unreadable(&fault));
                FAILURE_PAUSE_MS
            }
        }
    }

    /// One of the workers sweeps for all of them.
    async fn sweep(&mut self, incidents: &mut Vec<String>) {
        let now_ms = self.services.ports().clock.now_ms();
        // The clock may be set back.
        self.swept_ms = self.swept_ms.min(now_ms);
        if self.queue == JobQueue::Conversations && now_ms - self.swept_ms > SWEEP_MS {
            self.swept_ms = now_ms;
            incidents.extend(self.services.sweep().await.err().map(|fault| sweep_failed(&fault)));
        }
    }
}

pub(super) fn unreadable(fault: &crate::storage::fault::Fault) -> String {
    format!("the job queue cannot be read: {fault:?}")
}

pub(super) fn sweep_failed(fault: &crate::storage::fault::Fault) -> String {
    format!("the sweep failed: {fault:?}")
}

pub(super) fn job_failed(incident: &str) -> String {
    format!("a job failed and is retried: {incident}")
}

/// A job leased by this process.
pub struct ClaimedJob {
    services: Services,
    job: Job,
}

impl ClaimedJob {
    /// Runs the job to its end. Returns errors for the log; a failed job is retried later.
    pub async fn run(&self) -> Option<String> {
        self.services.run_job(&self.job).await.map(|incident| job_failed(&incident))
    }

    /// Releases the job for a retry after [`ClaimedJob::run`] panicked. Returns errors for the log.
    pub async fn broke(self, detail: &str) -> String {
        job_failed(&self.services.release_for_retry(&self.job, &format!("it broke: {detail}")).await)
    }
}
