//! Pumps the job queue: runs what is due, sleeps until the next is, wakes when told.
use std::sync::Arc;
use std::time::Duration;

use sidetone_engine::engine::Engine;
use sidetone_engine::ports::Queue;
use tokio::sync::{Notify, watch};

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
pub async fn run(engine: Engine, wakes: Arc<Wakes>, owner: String, mut stop: watch::Receiver<bool>) {
    let mut swept = tokio::time::Instant::now();
    while !*stop.borrow() {
        let pause = match engine.run_due_jobs(&owner).await {
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
        if swept.elapsed() > Duration::from_millis(SWEEP_MS) {
            swept = tokio::time::Instant::now();
            if let Err(fault) = engine.sweep().await {
                tracing::error!(?fault, "the sweep failed");
            }
        }
        tokio::select! {
            () = wakes.0.notified() => {}
            () = tokio::time::sleep(pause) => {}
            _ = stop.changed() => {}
        }
    }
    if let Err(fault) = engine.release_leases(&owner).await {
        tracing::error!(?fault, "leases could not be given back; they run out by themselves");
    }
}
