//! Hints to the job runner over Cloudflare Queues, and the runner that they wake. A message names a queue and the
//! jobs in it, and is a hint only: it may be lost, doubled or late; the cron sweep finds what is due. Each queue has a
//! queue of its own: a receiver that hangs holds up an invocation for deliveries and no conversation.
use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use sidetone_engine::ports::{JobQueue, Queue, Wake};
use sidetone_engine::storage::jobs::JobKind;
use worker::{BatchMessageBuilder, Env, MessageBatch, MessageBuilder, console_error};

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

/// What a message says.
#[derive(Serialize, Deserialize)]
pub struct Hint {
    /// [`JobQueue::as_str`].
    queue: String,
    job_ids: Vec<String>,
}

/// Collects hints until the invocation sends them: `wake` may not wait, and sending does.
pub struct Wakes {
    conversations: worker::Queue,
    deliveries: worker::Queue,
    collected: Mutex<Vec<Wake>>,
}

impl Queue for Wakes {
    fn wake(&self, wake: &Wake) {
        self.lock().push(wake.clone());
    }
}

impl Wakes {
    /// Each hint goes to the Cloudflare queue of its job queue.
    pub fn new(conversations: worker::Queue, deliveries: worker::Queue) -> Self {
        Self { conversations, deliveries, collected: Mutex::default() }
    }

    /// Whether there is something to send.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Sends what was collected. A failure is logged and no more: the sweep makes up for it.
    pub async fn send(&self, now_ms: i64) {
        let collected = std::mem::take(&mut *self.lock());
        let mut together: BTreeMap<(JobQueue, u32), Vec<String>> = BTreeMap::new();
        for Wake { queue, job_id, at_ms } in collected {
            together.entry((queue, delay_s(at_ms - now_ms))).or_default().push(job_id);
        }
        for queue in JobQueue::ALL.iter().copied() {
            let mut messages = Vec::new();
            for ((_, delay_s), job_ids) in together.iter().filter(|((theirs, _), _)| *theirs == queue) {
                for job_ids in job_ids.chunks(JOBS_PER_MESSAGE) {
                    let hint = Hint { queue: queue.as_str().to_owned(), job_ids: job_ids.to_vec() };
                    messages.push(MessageBuilder::new(hint).delay_seconds(*delay_s).build());
                }
            }
            while !messages.is_empty() {
                let rest = messages.split_off(messages.len().min(MESSAGES_PER_SEND_MAX));
                let batch = BatchMessageBuilder::new().messages(messages).build();
                if let Err(error) = self.of(queue).send_batch(batch).await {
                    console_error!("the queue took no hint, so jobs wait for the sweep: {error}");
                }
                messages = rest;
            }
        }
    }

    fn of(&self, queue: JobQueue) -> &worker::Queue {
        match queue {
            JobQueue::Conversations => &self.conversations,
            JobQueue::Deliveries => &self.deliveries,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<Wake>> {
        self.collected.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn delay_s(ms: i64) -> u32 {
    let seconds = u64::try_from(ms).unwrap_or(0).div_ceil(1000);
    u32::try_from(seconds).unwrap_or(DELAY_S_MAX).min(DELAY_S_MAX)
}

/// Runs what is due in the queues that the messages name. `false`: storage did not answer; they should come again.
pub async fn consume(batch: &MessageBatch<Hint>, env: &Env) -> bool {
    match isolate::for_jobs(env) {
        Ok(service) => {
            let mut answered = true;
            let queues = queues(batch);
            for queue in &queues {
                answered &= run(&service, *queue, CLAIMS_MAX / queues.len().max(1)).await;
            }
            answered
        }
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
    if let Err(fault) = service.engine.sweep().await {
        console_error!("the sweep failed: {fault:?}");
    }
    // Deliveries first: they are over within their deadline, and a conversation may last.
    for queue in [JobQueue::Deliveries, JobQueue::Conversations] {
        run(&service, queue, CLAIMS_MAX / JobQueue::ALL.len()).await;
    }
}

/// The queues that a batch names; all of them when it says something that this version does not know.
fn queues(batch: &MessageBatch<Hint>) -> Vec<JobQueue> {
    let named =
        batch.iter().map(|message| JobQueue::parse(&message.ok()?.body().queue)).collect::<Option<Vec<_>>>();
    let named = named.unwrap_or_else(|| JobQueue::ALL.to_vec());
    JobQueue::ALL.iter().copied().filter(|queue| named.contains(queue)).collect()
}

async fn run(service: &Service, queue: JobQueue, claims_max: usize) -> bool {
    let Service { engine, wakes, owner, .. } = service;
    let kinds = JobKind::of_queue(queue);
    let mut answered = true;
    for claim in 1..=claims_max {
        let turn = match engine.run_due_jobs(owner, &kinds, JOBS_AT_ONCE).await {
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
        if (claim == claims_max || !turn.incidents.is_empty())
            && let Some(due_ms) = turn.next_due_ms
        {
            wakes.wake(&Wake { queue, job_id: "next".to_owned(), at_ms: due_ms });
        }
    }
    service.send_wakes().await;
    answered
}
