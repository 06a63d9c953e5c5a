//! Runs the jobs of a queue: the engine's [`QueueWorker`] decides what to start and how long to wait. Each queue has
//! its own threads, so that CPU-bound simulations do not delay requests; workspaces take turns on them.
use std::panic::AssertUnwindSafe;
use std::sync::Arc;
use std::time::Duration;

use futures_util::FutureExt;
use sidetone_engine::jobs::{ClaimedJob, QueueWorker, Step};
use sidetone_engine::ports::{JobQueue, Queue, Wake};
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

use crate::fair::Lanes;
use crate::server::panic_message;
use crate::system::cores;

/// Passes hints to the runners of this process.
#[derive(Default)]
pub struct Wakes {
    calls: Notify,
    deliveries: Notify,
    runs: Notify,
}

impl Wakes {
    fn of(&self, queue: JobQueue) -> &Notify {
        match queue {
            JobQueue::Calls => &self.calls,
            JobQueue::Deliveries => &self.deliveries,
            JobQueue::Runs => &self.runs,
        }
    }
}

impl Queue for Wakes {
    fn wake(&self, wake: &Wake) {
        self.of(wake.queue).notify_one();
    }
}

/// A running worker.
pub struct Runner {
    thread: std::thread::JoinHandle<std::io::Result<()>>,
}

impl Runner {
    /// Starts a worker on its own runtime. It runs jobs until `stop` becomes true, then releases its leases.
    pub fn start(worker: QueueWorker, wakes: Arc<Wakes>, stop: watch::Receiver<bool>) -> Self {
        let thread = std::thread::spawn(move || {
            let computing = (cores() / 2).max(1);
            let runtime = tokio::runtime::Builder::new_multi_thread()
                .worker_threads(computing)
                .thread_name(worker.queue().as_str())
                .enable_all()
                .build()?;
            runtime.block_on(run(worker, wakes, stop, computing));
            runtime.shutdown_background();
            Ok(())
        });
        Self { thread }
    }

    /// Whether the worker has ended.
    pub fn is_finished(&self) -> bool {
        self.thread.is_finished()
    }
}

async fn run(mut worker: QueueWorker, wakes: Arc<Wakes>, mut stop: watch::Receiver<bool>, computing: usize) {
    let lanes = Lanes::start(computing);
    let mut running: JoinSet<()> = JoinSet::new();
    while !*stop.borrow() {
        while running.try_join_next().is_some() {}
        let Step { jobs, wait_ms, until_running, incidents } = worker.step(running.len()).await;
        incidents.iter().for_each(|incident| tracing::error!("{incident}"));
        for job in jobs {
            let workspace = job.workspace().unwrap_or_default();
            let lanes = lanes.clone();
            running.spawn(async move { lanes.run(&workspace, guarded(job)).await.unwrap_or_default() });
        }
        tokio::select! {
            () = wakes.of(worker.queue()).notified() => {}
            () = tokio::time::sleep(Duration::from_millis(wait_ms)) => {}
            () = until(&mut running, until_running.unwrap_or_default()), if until_running.is_some() => {}
            _ = stop.changed() => {}
        }
    }
    // Running jobs continue; the caller enforces the grace period.
    while running.join_next().await.is_some() {}
    if let Some(incident) = worker.stop().await {
        tracing::error!("{incident}");
    }
}

/// Resolves when at most `max` jobs are running.
async fn until(running: &mut JoinSet<()>, max: usize) {
    while running.len() > max {
        running.join_next().await;
    }
}

/// Runs a job. After a panic it is released for a retry, as after any other failure.
async fn guarded(job: ClaimedJob) {
    let incident = match AssertUnwindSafe(job.run()).catch_unwind().await {
        Ok(incident) => incident,
        Err(panic) => Some(job.broke(&format!("a panic: {}", panic_message(&*panic))).await),
    };
    if let Some(incident) = incident {
        tracing::error!("{incident}");
    }
}
