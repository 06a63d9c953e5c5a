//! Hints to the job runner over Cloudflare Queues, and the runner that they wake. A message holds
//! job ids and is a hint only: it may be lost, doubled or late; the cron sweep finds what is due.
use std::collections::BTreeMap;
use std::sync::Mutex;

use sidetone_engine::ports::Queue;
use worker::{BatchMessageBuilder, Env, MessageBuilder, console_error};

use crate::isolate::{self, Service};

/// Jobs side by side: a Worker has six connections at once, storage and tools together, and a tool's
/// deadline must not run while its request waits for one.
const JOBS_AT_ONCE: usize = 4;
/// Claims in one invocation: with a few batches a job, within the 50 queries of the free plan.
const CLAIMS_MAX: usize = 4;
/// Jobs one message stands for: what one invocation does.
const JOBS_PER_MESSAGE: usize = JOBS_AT_ONCE * CLAIMS_MAX;
/// Cloudflare's limit for one send.
const MESSAGES_PER_SEND_MAX: usize = 100;
/// Cloudflare's limit for a delay: a job that is due later is found by the sweep.
const DELAY_S_MAX: u32 = 12 * 60 * 60;

/// Collects hints until the invocation sends them: `wake` may not wait, and sending does.
pub struct Wakes {
    queue: worker::Queue,
    collected: Mutex<Vec<(String, i64)>>,
}

impl Queue for Wakes {
    fn wake(&self, job_id: &str, at_ms: i64) {
        self.lock().push((job_id.to_owned(), at_ms));
    }
}

impl Wakes {
    /// Hints go to `queue`.
    pub fn new(queue: worker::Queue) -> Self {
        Self { queue, collected: Mutex::default() }
    }

    /// Whether there is something to send.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Sends what was collected. A failure is logged and no more: the sweep makes up for it.
    pub async fn send(&self, now_ms: i64) {
        let collected = std::mem::take(&mut *self.lock());
        let mut by_delay: BTreeMap<u32, Vec<String>> = BTreeMap::new();
        for (job_id, at_ms) in collected {
            by_delay.entry(delay_s(at_ms - now_ms)).or_default().push(job_id);
        }
        let mut messages = Vec::new();
        for (delay_s, job_ids) in &by_delay {
            for ids in job_ids.chunks(JOBS_PER_MESSAGE) {
                messages.push(MessageBuilder::new(ids.to_vec()).delay_seconds(*delay_s).build());
            }
        }
        while !messages.is_empty() {
            let rest = messages.split_off(messages.len().min(MESSAGES_PER_SEND_MAX));
            let batch = BatchMessageBuilder::new().messages(messages).build();
            if let Err(error) = self.queue.send_batch(batch).await {
                console_error!("the queue took no hint, so jobs wait for the sweep: {error}");
            }
            messages = rest;
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(String, i64)>> {
        self.collected.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn delay_s(ms: i64) -> u32 {
    let seconds = u64::try_from(ms).unwrap_or(0).div_ceil(1000);
    u32::try_from(seconds).unwrap_or(DELAY_S_MAX).min(DELAY_S_MAX)
}

/// Runs what is due. `false`: storage did not answer; the hint should come again.
pub async fn consume(env: &Env) -> bool {
    match isolate::for_jobs(env) {
        Ok(service) => run(&service).await,
        Err(detail) => {
            console_error!("{detail}");
            false
        }
    }
}

/// Runs what is due though no hint came, and has the engine forget what is kept for a time only.
pub async fn sweep(env: &Env) {
    let service = match isolate::for_jobs(env) {
        Ok(service) => service,
        Err(detail) => return console_error!("{detail}"),
    };
    run(&service).await;
    if let Err(fault) = service.engine.sweep().await {
        console_error!("the sweep failed: {fault:?}");
    }
}

async fn run(service: &Service) -> bool {
    let Service { engine, wakes, owner, .. } = service;
    let mut answered = true;
    for claim in 1..=CLAIMS_MAX {
        let turn = match engine.run_due_jobs(owner, JOBS_AT_ONCE).await {
            Ok(turn) => turn,
            Err(fault) => {
                console_error!("the job queue cannot be read: {fault:?}");
                answered = false;
                break;
            }
        };
        for incident in &turn.incidents {
            console_error!("a job failed and is tried again: {incident}");
        }
        if turn.ran == 0 {
            break;
        }
        // What failed is tried again when its pause is over; what is left goes to another invocation.
        if (claim == CLAIMS_MAX || !turn.incidents.is_empty())
            && let Some(due_ms) = turn.next_due_ms
        {
            wakes.wake("next", due_ms);
        }
    }
    wakes.send(engine.ports().clock.now_ms()).await;
    answered
}
