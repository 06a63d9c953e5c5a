//! Hints that jobs are due, over Cloudflare Queues. A message names a job queue and jobs in it. It may be lost,
//! duplicated or late: the cron trigger finds all due jobs. Each job queue has its own Cloudflare queue, so an
//! unresponsive receiver delays deliveries but no run, and a run delays no hang-up.
use std::collections::BTreeMap;
use std::pin::pin;
use std::sync::Mutex;
use std::time::Duration;

use futures_util::future::{Either, select};
use serde::{Deserialize, Serialize};
use sidetone_engine::base::ids::JobId;
use sidetone_engine::jobs::{HintOf, Invocation, JOBS_PER_INVOCATION, Report};
use sidetone_engine::ports::{JobQueue, Queue, Wake};
use worker::{
    BatchMessageBuilder, Context, Delay, Env, MessageBatch, MessageBuilder, ScheduleContext, console_error,
};

use crate::isolate::{self, Service};

/// Cloudflare's limit for one send.
const MESSAGES_PER_SEND_MAX: usize = 100;
/// Cloudflare's limit for a delay; the cron trigger finds jobs that are due later.
const DELAY_S_MAX: u32 = 12 * 60 * 60;
/// What jobs collect is sent this often while others still run.
const COLLECTED_EVERY: Duration = Duration::from_secs(10);

/// The content of a message.
#[derive(Serialize, Deserialize)]
pub struct Hint {
    /// [`JobQueue::as_str`]. Messages of earlier versions name the field `lane`.
    #[serde(alias = "lane")]
    queue: String,
    job_ids: Vec<JobId>,
    /// The binding of the database with the jobs, where there are several.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    shard: Option<String>,
}

/// Collects hints until the invocation sends them: `wake` is synchronous, sending is not.
pub struct Wakes {
    calls: worker::Queue,
    deliveries: worker::Queue,
    runs: worker::Queue,
    collected: Mutex<Vec<(Option<String>, Wake)>>,
}

impl Queue for Wakes {
    fn wake(&self, wake: &Wake) {
        self.lock().push((None, wake.clone()));
    }

    fn wake_on(&self, shard: &str, wake: &Wake) {
        self.lock().push((Some(shard.to_owned()), wake.clone()));
    }
}

impl Wakes {
    /// With the Cloudflare queue of each job queue.
    pub fn new(calls: worker::Queue, deliveries: worker::Queue, runs: worker::Queue) -> Self {
        Self { calls, deliveries, runs, collected: Mutex::default() }
    }

    /// Whether there are no hints to send.
    pub fn is_empty(&self) -> bool {
        self.lock().is_empty()
    }

    /// Sends the collected hints. A failure is only logged: the cron trigger finds the jobs.
    pub async fn send(&self, now_ms: i64) {
        let collected = std::mem::take(&mut *self.lock());
        let mut together: BTreeMap<(JobQueue, Option<String>, u32), Vec<JobId>> = BTreeMap::new();
        for (shard, Wake { queue, job_id, at_ms }) in collected {
            together.entry((queue, shard, delay_s(at_ms - now_ms))).or_default().push(job_id);
        }
        for queue in JobQueue::ALL.iter().copied() {
            let mut messages = Vec::new();
            for ((_, shard, delay_s), job_ids) in together.iter().filter(|((group, ..), _)| *group == queue) {
                for job_ids in job_ids.chunks(JOBS_PER_INVOCATION) {
                    let hint = Hint {
                        queue: queue.as_str().to_owned(),
                        job_ids: job_ids.to_vec(),
                        shard: shard.clone(),
                    };
                    messages.push(MessageBuilder::new(hint).delay_seconds(*delay_s).build());
                }
            }
            while !messages.is_empty() {
                let rest = messages.split_off(messages.len().min(MESSAGES_PER_SEND_MAX));
                let batch = BatchMessageBuilder::new().messages(messages).build();
                if let Err(error) = self.of(queue).send_batch(batch).await {
                    console_error!("the queue accepted no hints, so jobs wait for the cron trigger: {error}");
                }
                messages = rest;
            }
        }
    }

    fn of(&self, queue: JobQueue) -> &worker::Queue {
        match queue {
            JobQueue::Calls => &self.calls,
            JobQueue::Deliveries => &self.deliveries,
            JobQueue::Runs => &self.runs,
        }
    }

    fn lock(&self) -> std::sync::MutexGuard<'_, Vec<(Option<String>, Wake)>> {
        self.collected.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

fn delay_s(ms: i64) -> u32 {
    let seconds = u64::try_from(ms).unwrap_or(0).div_ceil(1000);
    u32::try_from(seconds).unwrap_or(DELAY_S_MAX).min(DELAY_S_MAX)
}

/// Runs due jobs of the queues that the messages name. Returns false if the messages should be delivered again.
pub async fn consume(batch: &MessageBatch<Hint>, env: &Env, context: &Context) -> bool {
    match isolate::for_jobs(env) {
        Ok(service) => {
            let hints: Vec<Option<Hint>> =
                batch.iter().map(|message| Some(message.ok()?.into_body())).collect();
            let hints = hints.iter().map(|hint| {
                hint.as_ref().map(|hint| HintOf { queue: &hint.queue, shard: hint.shard.as_deref() })
            });
            let jobs = service.engine.jobs_of_hints(&service.owner, hints);
            let later = |service: Service| context.wait_until(async move { service.send_collected().await });
            run(&service, jobs, later).await
        }
        Err(not_ready) => {
            console_error!("{not_ready}");
            false
        }
    }
}

/// Runs due jobs without a hint, and the sweep.
pub async fn scheduled(env: &Env, context: &ScheduleContext) {
    match isolate::for_jobs(env) {
        Ok(service) => {
            let jobs = service.engine.scheduled_jobs(&service.owner);
            let later = |service: Service| context.wait_until(async move { service.send_collected().await });
            run(&service, jobs, later).await;
        }
        Err(not_ready) => console_error!("{not_ready}"),
    }
}

/// Runs an invocation; what its jobs collect is sent later. Returns false if its hints should be delivered again.
async fn run(service: &Service, mut jobs: Invocation, later: impl Fn(Service)) -> bool {
    let mut done = true;
    while let Some(report) = next(service, &mut jobs, &later).await {
        for incident in &report.incidents {
            console_error!("{incident}");
        }
        done &= !report.retry_hints;
        service.send_wakes().await;
    }
    if service.has_collected() {
        later(service.clone());
    }
    done
}

/// The next report. What is collected is not kept until the longest job ends.
async fn next(service: &Service, jobs: &mut Invocation, later: &impl Fn(Service)) -> Option<Report> {
    let mut next = pin!(jobs.next());
    loop {
        match select(next.as_mut(), Delay::from(COLLECTED_EVERY)).await {
            Either::Left((report, _)) => return report,
            Either::Right(_) if service.has_collected() => later(service.clone()),
            Either::Right(_) => {}
        }
    }
}
