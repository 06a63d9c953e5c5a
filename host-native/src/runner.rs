//! Pumps the job queue: claims what is due as places get free, sleeps until the next is due, wakes
//! when told. On threads of its own: a conversation that computes for long, or many of them, must
//! not keep requests waiting.
use std::sync::Arc;
use std::time::Duration;

use sidetone_engine::engine::Engine;
use sidetone_engine::ports::{JobQueue, Queue, Wake};
use sidetone_engine::storage::jobs::{Job, JobKind};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Simulation runs under way at once; most of the time of a conversation is waiting for tools.
const RUNS_AT_ONCE: usize = 64;
/// Webhooks that are sent something at once. All of that is waiting, and one that hangs waits long.
const WEBHOOKS_AT_ONCE: usize = 128;
/// While few places are free a claim, which is a commit, waits for more; but no longer than this.
const CLAIM_PAUSE_MS: u64 = 20;
/// Looks at the queue at least this often: a wake may be lost.
const POLL_MS: u64 = 5_000;
/// How often what is kept for a time only is forgotten.
const SWEEP_MS: u64 = 5 * 60 * 1000;
/// The pause after storage failed.
const FAILURE_PAUSE_MS: u64 = 1_000;

/// Jobs of a queue that are under way at once.
fn at_once(queue: JobQueue) -> usize {
    match queue {
        JobQueue::Conversations => RUNS_AT_ONCE,
        JobQueue::Deliveries => WEBHOOKS_AT_ONCE,
    }
}

/// Hints go to the pumps of this process.
#[derive(Default)]
pub struct Wakes {
    conversations: Notify,
    deliveries: Notify,
}

impl Wakes {
    fn of(&self, queue: JobQueue) -> &Notify {
        match queue {
            JobQueue::Conversations => &self.conversations,
            JobQueue::Deliveries => &self.deliveries,
        }
    }
}

impl Queue for Wakes {
    fn wake(&self, wake: &Wake) {
        self.of(wake.queue).notify_one();
    }
}

/// A worker and what it needs.
struct QueueWorker {
    engine: Engine,
    queue: JobQueue,
    kinds: Vec<JobKind>,
    wakes: Arc<Wakes>,
    owner: String,
}

/// A running worker.
pub struct Runner {
    thread: std::thread::JoinHandle<std::io::Result<()>>,
}

impl Runner {
    /// Starts the worker of a queue on a runtime of its own; it runs jobs until `stop` turns true, then gives
    /// its leases back. `owner` names the process.
    pub fn start(
        engine: Engine,
        queue: JobQueue,
        wakes: Arc<Wakes>,
        owner: &str,
        stop: watch::Receiver<bool>,
    ) -> Self {
        let worker = QueueWorker {
            engine,
            queue,
            kinds: JobKind::of_queue(queue),
            wakes,
            owner: format!("{owner}-{}", queue.as_str()),
        };
        let thread = std::thread::spawn(move || {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads((cores / 2).max(1))
                .thread_name(queue.as_str())
                .enable_all()
                .build()?;
            runtime.block_on(worker.run(stop));
            runtime.shutdown_background();
            Ok(())
        });
        Self { thread }
    }

    /// Whether it has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

impl QueueWorker {
    async fn run(self, mut stop: watch::Receiver<bool>) {
        let mut running: JoinSet<()> = JoinSet::new();
        let mut swept = Instant::now();
        while !*stop.borrow() {
            while running.try_join_next().is_some() {}
            let free = at_once(self.queue) - running.len();
            let claimed = self.claim(free, &mut running).await;
            // All places taken: there may be more to do as soon as some are free.
            let full = claimed == Ok(free);
            let pause = match claimed {
                Ok(_) if full => Duration::from_millis(CLAIM_PAUSE_MS),
                // What is due though nothing was claimed waits for its workspace's turn.
                Ok(_) => self.until_next().await.max(Duration::from_millis(CLAIM_PAUSE_MS)),
                Err(()) => Duration::from_millis(FAILURE_PAUSE_MS),
            };
            if self.queue == JobQueue::Conversations && swept.elapsed() > Duration::from_millis(SWEEP_MS) {
                swept = Instant::now();
                if let Err(fault) = self.engine.sweep().await {
                    tracing::error!(?fault, "the sweep failed");
                }
            }
            tokio::select! {
                () = self.wakes.of(self.queue).notified() => {}
                () = tokio::time::sleep(pause) => {}
                () = self.places(&mut running), if full => {}
                _ = stop.changed() => {}
            }
        }
        // What is under way gets the rest of the grace period; the caller cuts it off.
        while running.join_next().await.is_some() {}
        if let Err(fault) = self.engine.release_leases(&self.owner).await {
            tracing::error!(?fault, "leases could not be given back; they run out by themselves");
        }
    }

    /// Claims jobs for the free places and starts them; returns how many.
    async fn claim(&self, free: usize, running: &mut JoinSet<()>) -> Result<usize, ()> {
        let jobs = self.engine.claim_jobs(&self.owner, &self.kinds, free).await.map_err(|fault| {
            tracing::error!(?fault, "the job queue cannot be read");
        })?;
        let claimed = jobs.len();
        for job in jobs {
            running.spawn(guarded(self.engine.clone(), job));
        }
        Ok(claimed)
    }

    /// Resolves when enough places are free to be worth a claim.
    async fn places(&self, running: &mut JoinSet<()>) {
        while running.len() > at_once(self.queue) / 2 {
            running.join_next().await;
        }
    }

    /// How long until a job is due, as far as is known.
    async fn until_next(&self) -> Duration {
        let poll = Duration::from_millis(POLL_MS);
        match self.engine.next_due_ms(&self.kinds).await {
            Ok(Some(due_ms)) => {
                let wait_ms = due_ms - self.engine.ports().clock.now_ms();
                Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).min(poll)
            }
            Ok(None) => poll,
            Err(fault) => {
                tracing::error!(?fault, "the job queue cannot be read");
                Duration::from_millis(FAILURE_PAUSE_MS)
            }
        }
    }
}

/// Runs a job; one that panics is put back like any other failure and takes nothing with it.
async fn guarded(engine: Engine, job: Job) {
    let ours = (engine.clone(), job.clone());
    let outcome = tokio::spawn(async move { ours.0.run_job(&ours.1).await }).await;
    let incident = match outcome {
        Ok(incident) => incident,
        Err(error) => Some(engine.put_back(&job, &format!("it broke: {error}")).await),
    };
    if let Some(incident) = incident {
        tracing::error!(incident, "a job failed and is tried again");
    }
}
