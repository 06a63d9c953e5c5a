//! Pumps the job queue: claims what is due as places get free, sleeps until the next is due, wakes
//! when told. On threads of its own: a conversation that computes for long, or many of them, must
//! not keep requests waiting.
use std::sync::Arc;
use std::time::Duration;

use sidetone_engine::engine::Engine;
use sidetone_engine::jobs::Job;
use sidetone_engine::ports::Queue;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;
use tokio::time::Instant;

/// Jobs under way at once; most of the time of a conversation is waiting for tools.
const JOBS_AT_ONCE: usize = 64;
/// With fewer places free than this, a claim waits a moment for more: one claim is one commit.
const PLACES_WORTH_A_CLAIM: usize = 32;
/// But no longer than this.
const CLAIM_PAUSE_MS: u64 = 20;
/// Looks at the queue at least this often: a wake may be lost.
const POLL_MS: u64 = 5_000;
/// How often what is kept for a time only is forgotten.
const SWEEP_MS: u64 = 60 * 60 * 1000;
/// The pause after storage failed.
const FAILURE_PAUSE_MS: u64 = 1_000;

/// Hints go to the runner of this process.
#[derive(Default)]
pub struct Wakes(Notify);

impl Queue for Wakes {
    fn wake(&self, _: &str, _: i64) {
        self.0.notify_one();
    }
}

/// A running pump.
pub struct Runner {
    thread: std::thread::JoinHandle<std::io::Result<()>>,
}

impl Runner {
    /// Starts the pump on a runtime of its own; it runs jobs until `stop` turns true, then gives
    /// its leases back.
    pub fn start(engine: Engine, wakes: Arc<Wakes>, owner: String, stop: watch::Receiver<bool>) -> Self {
        let thread = std::thread::spawn(move || {
            let cores = std::thread::available_parallelism().map_or(1, usize::from);
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads((cores / 2).max(1))
                .thread_name("jobs")
                .enable_all()
                .build()?;
            runtime.block_on(run(engine, wakes, owner, stop));
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

async fn run(engine: Engine, wakes: Arc<Wakes>, owner: String, mut stop: watch::Receiver<bool>) {
    let mut running: JoinSet<()> = JoinSet::new();
    let mut swept = Instant::now();
    while !*stop.borrow() {
        while running.try_join_next().is_some() {}
        let free = JOBS_AT_ONCE - running.len();
        let claimed = claim(&engine, &owner, free, &mut running).await;
        // All places taken: there may be more to do as soon as some are free.
        let full = claimed == Ok(free);
        let pause = match claimed {
            Ok(_) if full => Duration::from_millis(CLAIM_PAUSE_MS),
            Ok(_) => until_next(&engine).await,
            Err(()) => Duration::from_millis(FAILURE_PAUSE_MS),
        };
        if swept.elapsed() > Duration::from_millis(SWEEP_MS) {
            swept = Instant::now();
            if let Err(fault) = engine.sweep().await {
                tracing::error!(?fault, "the sweep failed");
            }
        }
        tokio::select! {
            () = wakes.0.notified() => {}
            () = tokio::time::sleep(pause) => {}
            () = places(&mut running), if full => {}
            _ = stop.changed() => {}
        }
    }
    // What is under way gets the rest of the grace period; the caller cuts it off.
    while running.join_next().await.is_some() {}
    if let Err(fault) = engine.release_leases(&owner).await {
        tracing::error!(?fault, "leases could not be given back; they run out by themselves");
    }
}

/// Claims jobs for the free places and starts them; returns how many.
async fn claim(engine: &Engine, owner: &str, free: usize, running: &mut JoinSet<()>) -> Result<usize, ()> {
    let jobs = engine.claim_jobs(owner, free).await.map_err(|fault| {
        tracing::error!(?fault, "the job queue cannot be read");
    })?;
    let claimed = jobs.len();
    for job in jobs {
        running.spawn(guarded(engine.clone(), job));
    }
    Ok(claimed)
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

/// Resolves when enough places are free to be worth a claim.
async fn places(running: &mut JoinSet<()>) {
    while running.len() > JOBS_AT_ONCE - PLACES_WORTH_A_CLAIM {
        running.join_next().await;
    }
}

/// How long until a job is due, as far as is known.
async fn until_next(engine: &Engine) -> Duration {
    let poll = Duration::from_millis(POLL_MS);
    match engine.next_due_ms().await {
        Ok(Some(due_ms)) => {
            let wait_ms = due_ms - engine.ports().clock.now_ms();
            Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0)).min(poll)
        }
        Ok(None) => poll,
        Err(fault) => {
            tracing::error!(?fault, "the job queue cannot be read");
            Duration::from_millis(FAILURE_PAUSE_MS)
        }
    }
}
