//! Pumps the job queue: runs what is due, sleeps until the next is, wakes when told.
use std::sync::Arc;
use std::time::Duration;

use sidetone_engine::engine::Engine;
use sidetone_engine::limits::JOBS_PER_CLAIM;
use sidetone_engine::ports::Queue;
use tokio::sync::{Notify, watch};
use tokio::task::JoinSet;

/// Claims under way at once: a conversation that waits for a slow tool holds up only its own claim.
const PUMPS: usize = 4;
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

/// Runs jobs until `stop` turns true, then gives its leases back.
pub async fn run(engine: Engine, wakes: Arc<Wakes>, owner: String, stop: watch::Receiver<bool>) {
    let mut pumps = JoinSet::new();
    for _ in 0..PUMPS {
        pumps.spawn(pump(engine.clone(), wakes.clone(), owner.clone(), stop.clone()));
    }
    let sweeper = tokio::spawn(sweep(engine.clone()));
    pumps.join_all().await;
    sweeper.abort();
    if let Err(fault) = engine.release_leases(&owner).await {
        tracing::error!(?fault, "leases could not be given back; they run out by themselves");
    }
}

async fn pump(engine: Engine, wakes: Arc<Wakes>, owner: String, mut stop: watch::Receiver<bool>) {
    while !*stop.borrow() {
        let pause = match engine.run_due_jobs(&owner, JOBS_PER_CLAIM, || wakes.0.notify_one()).await {
            Ok(turn) => {
                for incident in &turn.incidents {
                    tracing::error!(incident, "a job failed and is tried again");
                }
                if turn.ran > 0 {
                    tokio::task::yield_now().await;
                    continue;
                }
                let wait_ms = turn.next_due_ms.map_or(i64::MAX, |due| due - engine.ports().clock.now_ms());
                Duration::from_millis(u64::try_from(wait_ms).unwrap_or(0).min(POLL_MS))
            }
            Err(fault) => {
                tracing::error!(?fault, "the job queue cannot be read");
                Duration::from_millis(FAILURE_PAUSE_MS)
            }
        };
        tokio::select! {
            () = wakes.0.notified() => {}
            () = tokio::time::sleep(pause) => {}
            _ = stop.changed() => {}
        }
    }
}

async fn sweep(engine: Engine) {
    loop {
        tokio::time::sleep(Duration::from_millis(SWEEP_MS)).await;
        if let Err(fault) = engine.sweep().await {
            tracing::error!(?fault, "the sweep failed");
        }
    }
}
