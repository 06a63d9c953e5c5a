//! Hints that jobs are due, over Cloudflare Queues. A message names a job queue and jobs in it. It may be lost, doubled
//! or late: the cron finds what is due. Each job queue has a Cloudflare queue of its own, so a receiver that hangs holds
//! up an invocation for deliveries and no conversation.
use std::collections::BTreeMap;
use std::sync::Mutex;

use serde::{Deserialize, Serialize};
use sidetone_engine::base::ids::JobId;
use sidetone_engine::jobs::{Invocation, JOBS_PER_INVOCATION};
use sidetone_engine::ports::{JobQueue, Queue, Wake};
use worker::{BatchMessageBuilder, Env, MessageBatch, MessageBuilder, console_error};

use crate::isolate::{self, Service};

/// Cloudflare's limit for one send.
const MESSAGES_PER_SEND_MAX: usize = 100;
/// Cloudflare's limit for a delay: a job that is due later is found by the sweep.
const DELAY_S_MAX: u32 = 12 * 60 * 60;

/// What a message says.
#[derive(Serialize, Deserialize)]
pub struct Hint {
    /// [`JobQueue::as_str`]. Messages of earlier versions have it as `lane`.
    #[serde(alias = "lane")]
    queue: String,
    job_ids: Vec<JobId>,
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
        let mut together: BTreeMap<(JobQueue, u32), Vec<JobId>> = BTreeMap::new();
        for Wake { queue, job_id, at_ms } in collected {
            together.entry((queue, delay_s(at_ms - now_ms))).or_default().push(job_id);
        }
        for queue in JobQueue::ALL.iter().copied() {
            let mut messages = Vec::new();
            for ((_, delay_s), job_ids) in together.iter().filter(|((theirs, _), _)| *theirs == queue) {
                for job_ids in job_ids.chunks(JOBS_PER_INVOCATION) {
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

/// Runs what is due in the queues that the messages name. `false`: the messages should come again.
pub async fn consume(batch: &MessageBatch<Hint>, env: &Env) -> bool {
    match isolate::for_jobs(env) {
        Ok(service) => {
            let hints: Vec<Option<String>> =
                batch.iter().map(|message| Some(message.ok()?.into_body().queue)).collect();
            let jobs = service.engine.jobs_of_hints(&service.owner, hints.iter().map(Option::as_deref));
            run(&service, jobs).await
        }
        Err(not_ready) => {
            console_error!("{not_ready}");
            false
        }
    }
}

/// Runs what is due though no hint came, and the sweep.
pub async fn scheduled(env: &Env) {
    match isolate::for_jobs(env) {
        Ok(service) => {
            let jobs = service.engine.scheduled_jobs(&service.owner);
            run(&service, jobs).await;
        }
        Err(not_ready) => console_error!("{not_ready}"),
    }
}

/// Runs an invocation; whether its hints are done with.
async fn run(service: &Service, mut jobs: Invocation) -> bool {
    let mut done = true;
    while let Some(report) = jobs.next().await {
        for incident in &report.incidents {
            console_error!("{incident}");
        }
        done &= !report.retry_hints;
        service.send_wakes().await;
    }
    done
}
