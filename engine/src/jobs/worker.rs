//! The jobs of a long-running process: when to claim, how many, and when to check again.
use crate::base::fair_pool::FairPool;
use crate::base::limits::{CALL_JOBS_AT_ONCE, DELIVERY_JOBS_AT_ONCE, RUNS_AT_ONCE};
use crate::jobs::give_way::{GiveWay, RunningJobs};
use crate::jobs::sweep::Sweeper;
use crate::ports::JobQueue;
use crate::services::Services;
use crate::storage::jobs::claim::{Claim, Claimed};
use crate::storage::jobs::{Job, JobKind};

/// Every claim is a commit: with few free slots, the worker waits this long for more of them.
const CLAIM_PAUSE_MS: u64 = 20;
/// The longest pause while jobs wait for a place of their workspace. A hint ends it, so a newcomer does not wait.
const HELD_BACK_PAUSE_MS_MAX: u64 = 250;
/// The longest pause, because hints can be lost.
const POLL_MS: u64 = 5_000;
/// The pause after a storage failure.
const FAILURE_PAUSE_MS: u64 = 1_000;

/// How many jobs of a queue a workspace may run at once; a ninth of all places is for others.
const fn places(queue: JobQueue) -> u64 {
    match queue {
        JobQueue::Calls => CALL_JOBS_AT_ONCE,
        JobQueue::Deliveries => DELIVERY_JOBS_AT_ONCE,
        JobQueue::Runs => RUNS_AT_ONCE,
    }
}

/// Claims the jobs of one queue for a long-running process. The host calls [`QueueWorker::step`] repeatedly, spawns the
/// jobs and waits, and calls [`QueueWorker::stop`] at the end.
pub struct QueueWorker {
    services: Services,
    queue: JobQueue,
    kinds: Vec<JobKind>,
    owner: String,
    slots: usize,
    running: RunningJobs,
    held_back_pause_ms: u64,
    /// One of the workers sweeps for all of them.
    sweeper: Option<Sweeper>,
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
        let slots = FairPool::<()>::for_one_holder(places(queue)).free();
        let now_ms = services.ports().clock.now_ms();
        Self {
            owner: format!("{owner}-{}", queue.as_str()),
            kinds: JobKind::of_queue(queue),
            slots: usize::try_from(slots).unwrap_or(usize::MAX),
            running: RunningJobs::default(),
            held_back_pause_ms: CLAIM_PAUSE_MS,
            sweeper: (queue == JobQueue::Deliveries).then(|| Sweeper::new(now_ms)),
            services,
            queue,
        }
    }

    /// The queue of this worker.
    pub fn queue(&self) -> JobQueue {
        self.queue
    }

    /// Claims jobs for the free slots. `running` is the number of its unfinished jobs.
    pub async fn step(&mut self, running: usize) -> Step {
        // The sweep is no job, and takes no slot.
        let sweeping = self.sweeper.as_ref().is_some_and(Sweeper::is_sweeping);
        let free = (self.slots + usize::from(sweeping)).saturating_sub(running);
        let claim = Claim { kinds: &self.kinds, places: places(self.queue), most: free };
        let mut step = match self.services.claim_in_queue(&self.owner, claim).await {
            Ok(claimed) => self.start(claimed, running, free).await,
            Err(fault) => Step {
                jobs: Vec::new(),
                wait_ms: FAILURE_PAUSE_MS,
                until_running: None,
                incidents: vec![unreadable(&fault)],
            },
        };
        if let Some(sweeper) = &mut self.sweeper {
            let now_ms = self.services.ports().clock.now_ms();
            if sweeper.starts(now_ms) {
                let work = Work::Sweep(sweeper.clone());
                step.jobs.push(ClaimedJob { services: self.services.clone(), work });
            }
            step.wait_ms = step.wait_ms.min(sweeper.wait_ms());
        }
        step
    }

    async fn start(&mut self, claimed: Claimed, running: usize, free: usize) -> Step {
        let Claimed { jobs, give_way, held_back } = claimed;
        let mut incidents = Vec::new();
        let now_running = running + jobs.len();
        let (wait_ms, until_running) = if !give_way.is_empty() {
            self.running.ask(&give_way);
            (CLAIM_PAUSE_MS, now_running.checked_sub(1))
        } else if held_back && jobs.len() < free {
            // Some workspaces have all their places: the next claim finds something when a few of their jobs have ended.
            self.held_back_pause_ms = match jobs.is_empty() {
                true => (self.held_back_pause_ms * 2).min(HELD_BACK_PAUSE_MS_MAX),
                false => CLAIM_PAUSE_MS,
            };
            (self.held_back_pause_ms, (now_running > 0).then_some(now_running * 7 / 8))
        } else if jobs.len() == free {
            // All slots are taken: more jobs may be due once half of the slots are free.
            (CLAIM_PAUSE_MS, Some(self.slots / 2))
        } else {
            (self.until_next_ms(&mut incidents).await.max(CLAIM_PAUSE_MS), None)
        };
        let claimed = |job: Job| {
            let give_way = self.running.add(&job);
            ClaimedJob { services: self.services.clone(), work: Work::Job { job, give_way } }
        };
        Step { jobs: jobs.into_iter().map(claimed).collect(), wait_ms, until_running, incidents }
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

/// A job leased by this process, or the sweep.
pub struct ClaimedJob {
    services: Services,
    work: Work,
}

enum Work {
    Job { job: Job, give_way: GiveWay },
    Sweep(Sweeper),
}

impl ClaimedJob {
    /// Runs the job to its end. Returns errors for the log; a failed job is retried later.
    pub async fn run(&self) -> Option<String> {
        match &self.work {
            Work::Job { job, give_way } => {
                self.services.run_claimed(job, give_way).await.map(|incident| job_failed(&incident))
            }
            Work::Sweep(sweeper) => {
                let failed: Vec<String> =
                    sweeper.sweep(&self.services).await.iter().map(sweep_failed).collect();
                (!failed.is_empty()).then(|| failed.join("; "))
            }
        }
    }

    /// The workspace that it works for; the sweep works for all.
    pub fn workspace(&self) -> Option<String> {
        match &self.work {
            Work::Job { job, .. } => Some(job.workspace_id.to_string()),
            Work::Sweep(_) => None,
        }
    }

    /// Releases the job for a retry after [`ClaimedJob::run`] panicked. Returns errors for the log.
    pub async fn broke(self, detail: &str) -> String {
        let detail = format!("it broke: {detail}");
        match &self.work {
            Work::Job { job, .. } => job_failed(&self.services.release_for_retry(job, &detail).await),
            Work::Sweep(_) => format!("the sweep failed: {detail}"),
        }
    }
}
