//! The delivery worker: sends a webhook its due deliveries. Each webhook has one job for all of its deliveries, so an
//! unresponsive or failing receiver delays only its own deliveries.
//!
//! A round reads the due deliveries, sends them concurrently, and writes all outcomes in one batch. The same batch ends
//! the job or postpones it until the next attempt is due. If an event is emitted meanwhile, either that batch sees it,
//! or the event finds the postponed job and makes it due. No delivery is forgotten.
mod attempt;
mod schedule;

use futures_util::future::join_all;
use serde_json::json;

use super::{Failure, Share};
use crate::base::ids::{DeliveryId, EventId, WebhookId, WorkspaceId};
use crate::base::limits::{
    CANCELED_AT_ONCE, DELIVERIES_AT_ONCE, DELIVERIES_AT_ONCE_BYTES_MAX, DELIVERIES_WAITING_MAX, JOB_LEASE_MS,
};
use crate::base::time::Timestamp;
use crate::ports::Wake;
use crate::ports::statement::{Row, Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::fault::Fault;
use crate::storage::jobs::Job;
use crate::storage::signing::SecretVersions;
use attempt::Outcome;

/// The webhook in its current state.
struct Receiver {
    id: WebhookId,
    workspace_id: WorkspaceId,
    url: String,
    secrets: SecretVersions,
}

/// A delivery that is due.
struct PendingDelivery {
    id: DeliveryId,
    event_id: EventId,
    /// Failed attempts since the schedule began.
    failures: i64,
    /// When it became due. If the column has another value later, the schedule was restarted.
    due_at: Timestamp,
    /// When the event happened, if the webhook has not got it yet.
    waits_since: Option<Timestamp>,
    body: String,
}

/// The result of a round.
enum Round {
    /// More is due.
    More,
    /// The job has ended, or is postponed.
    Over,
}

/// Runs rounds until nothing is due, or other jobs should have a turn.
pub async fn run(
    services: &Services,
    job: &Job,
    webhook_id: &WebhookId,
    share: Share,
) -> Result<(), Failure> {
    let at_once = share.requests.clamp(1, DELIVERIES_AT_ONCE);
    for round in 1.. {
        let (receiver, due) = load(services, job, webhook_id, at_once).await?;
        let Some(receiver) = receiver.filter(|_| !due.is_empty()) else {
            return end(services, job, webhook_id).await;
        };
        let outcomes = join_all(due.iter().map(|one| attempt::send(services, &receiver, one))).await;
        // A slow receiver lets other jobs run before its next round.
        let slow = outcomes.iter().any(|outcome| outcome.timed_out);
        let last = slow || round >= share.rounds;
        if let Round::Over = record(services, job, &receiver, &outcomes, last).await? {
            break;
        }
    }
    Ok(())
}

/// The webhook if it exists and is enabled, and its due deliveries, oldest first.
async fn load(
    services: &Services,
    job: &Job,
    webhook_id: &WebhookId,
    at_once: usize,
) -> Result<(Option<Receiver>, Vec<PendingDelivery>), Failure> {
    let receiver = sql!(
        format!(
            "SELECT id, url, {} FROM webhooks WHERE workspace_id = :workspace_id AND id = :webhook_id AND enabled = 1",
            SecretVersions::columns("webhooks")
        ),
        workspace_id = &job.workspace_id,
        webhook_id = webhook_id
    );
    // What names the webhook may be of a workspace that somebody has made up. `+`: the index by webhook has them in order.
    let due = sql!(
        "SELECT due.id AS id, event_id, failures, due.due_at AS due_at, body,
           CASE WHEN delivered_at IS NULL THEN events.created_at END AS waits_since FROM (
           SELECT id, event_id, failures, due_at, delivered_at, SUM(body_bytes) OVER (ORDER BY due_at, id) - body_bytes AS bytes_before
           FROM (SELECT * FROM deliveries WHERE webhook_id = :webhook_id AND +workspace_id = :workspace_id AND due_at <= :now
             ORDER BY due_at, id LIMIT CAST(:at_once AS INTEGER))
         ) AS due JOIN events ON events.id = due.event_id AND +events.workspace_id = :workspace_id
         WHERE bytes_before < :bytes_max ORDER BY due.due_at, due.id",
        workspace_id = &job.workspace_id,
        webhook_id = webhook_id,
        now = services.now(),
        at_once = i64::try_from(at_once).unwrap_or(1),
        bytes_max = DELIVERIES_AT_ONCE_BYTES_MAX
    );
    let [receiver, due] = services.read([receiver, due]).await?;
    let receiver = match receiver.first() {
        Some(row) => {
            let (id, url, secrets) = (row.id("id")?, row.text("url")?, SecretVersions::read(row)?);
            Some(Receiver { id, workspace_id: job.workspace_id.clone(), url, secrets })
        }
        None => None,
    };
    let due = due.iter().map(PendingDelivery::read).collect::<Result<_, _>>()?;
    Ok((receiver, due))
}

impl PendingDelivery {
    fn read(row: Row<'_>) -> Result<Self, Failure> {
        Ok(Self {
            id: row.id("id")?,
            event_id: row.id("event_id")?,
            failures: row.integer("failures")?,
            due_at: row.timestamp("due_at")?,
            waits_since: row.optional_timestamp("waits_since")?,
            body: row.text("body")?,
        })
    }
}

/// Writes the outcomes of a round. Nothing is written when another process holds the lease: it has sent the same events
/// with the same ids.
async fn record(
    services: &Services,
    job: &Job,
    receiver: &Receiver,
    outcomes: &[Outcome],
    last: bool,
) -> Result<Round, Failure> {
    let now_ms = services.ports().clock.now_ms();
    let mut batch = Batch::from([job.guard(), update(outcomes, now_ms)]);
    if outcomes.iter().any(|outcome| outcome.gone) {
        batch.push(disable(job, receiver, now_ms, 0));
    } else if outcomes.iter().all(|outcome| outcome.status != "delivered") {
        batch.push(disable(job, receiver, now_ms, DELIVERIES_WAITING_MAX));
    }
    batch.extend(postpone(job, &receiver.id, now_ms, !last));
    batch.push(select_postponed(job));
    batch.push(sql!(
        "UPDATE jobs SET due_at = :leased_until WHERE id = :id AND lease = :lease RETURNING id",
        id = &job.id,
        lease = &job.lease,
        leased_until = now_ms + JOB_LEASE_MS
    ));
    let rows = batch.write(services).await?;
    let [.., postponed, kept] = rows.as_slice() else {
        return Err(Fault::Bug("a batch lacks answers".to_owned()).into());
    };
    if let Some(metrics) = &services.ports().metrics {
        outcomes.iter().filter_map(|outcome| outcome.lag_ms).for_each(|lag_ms| metrics.delivered(lag_ms));
    }
    wake(services, job, postponed)?;
    Ok(if kept.is_empty() { Round::Over } else { Round::More })
}

/// Disables the webhook when more than its part of `waiting` deliveries waits; not if its URL has changed since it was
/// read. What waits stays, and is sent once the webhook is enabled again.
fn disable(job: &Job, receiver: &Receiver, now_ms: i64, waiting: i64) -> Statement {
    let too_many = |own: &str| {
        format!(
            "EXISTS (SELECT 1 FROM deliveries WHERE webhook_id = :id AND due_at IS NOT NULL{own} LIMIT 1
               OFFSET CAST(:waiting AS INTEGER) / (SELECT COUNT(*) FROM webhooks WHERE workspace_id = :workspace_id))"
        )
    };
    sql!(
        format!(
            "UPDATE webhooks SET enabled = 0, revision = revision + 1, updated_at = :now
             WHERE workspace_id = :workspace_id AND id = :id AND enabled = 1 AND url = :url AND (:waiting = 0 OR ({} AND {}))",
            // The index alone tells that few wait. Only the rows tell whose they are.
            too_many(""),
            too_many(" AND +workspace_id = :workspace_id")
        ),
        workspace_id = &job.workspace_id,
        id = &receiver.id,
        url = &receiver.url,
        waiting = waiting,
        now = now_ms
    )
}

/// Ends the job when there was nothing to send.
async fn end(services: &Services, job: &Job, webhook_id: &WebhookId) -> Result<(), Failure> {
    let now_ms = services.ports().clock.now_ms();
    let [postpone, delete] = postpone(job, webhook_id, now_ms, false);
    let cancel = cancel_without_event(job, webhook_id, now_ms);
    let [.., postponed] =
        services.write([job.guard(), cancel, postpone, delete, select_postponed(job)]).await?;
    wake(services, job, &postponed)
}

/// Cancels the first due deliveries whose events are not there: [`load`] would find nothing of them to send, again and again.
fn cancel_without_event(job: &Job, webhook_id: &WebhookId, now_ms: i64) -> Statement {
    sql!(
        "UPDATE deliveries SET status = 'canceled', due_at = NULL WHERE id IN (
           SELECT soonest.id FROM (
             SELECT id, event_id FROM deliveries WHERE webhook_id = :webhook_id AND +workspace_id = :workspace_id AND due_at <= :now
             ORDER BY due_at, id LIMIT CAST(:most AS INTEGER)
           ) AS soonest WHERE NOT EXISTS (
             SELECT 1 FROM events WHERE events.id = soonest.event_id AND +events.workspace_id = :workspace_id))",
        workspace_id = &job.workspace_id,
        webhook_id = webhook_id,
        now = now_ms,
        most = CANCELED_AT_ONCE
    )
}

/// Postpones the job until its next attempt is due, or deletes it without one. A job with `more` rounds to run is not
/// changed while a delivery is due.
fn postpone(job: &Job, webhook_id: &WebhookId, now_ms: i64, more: bool) -> [Statement; 2] {
    // As in `load`.
    const WAITING: &str = "FROM deliveries WHERE webhook_id = :webhook_id AND +workspace_id = :workspace_id AND due_at IS NOT NULL";
    const IS_ENABLED: &str = "EXISTS (SELECT 1 FROM webhooks WHERE id = :webhook_id AND +workspace_id = :workspace_id AND enabled = 1)";
    [
        // Jobs that are already due come first: their `due_at` is earlier than now.
        sql!(
            format!(
                "UPDATE jobs SET lease = NULL, attempts = 0, due_at = MAX(soonest.due_at, :now)
                 FROM (SELECT MIN(due_at) AS due_at {WAITING}) AS soonest
                 WHERE jobs.id = :id AND jobs.lease = :lease AND soonest.due_at IS NOT NULL
                 AND (soonest.due_at > :now OR :more = 0) AND {IS_ENABLED}"
            ),
            id = &job.id,
            lease = &job.lease,
            workspace_id = &job.workspace_id,
            webhook_id = webhook_id,
            now = now_ms,
            more = more
        ),
        sql!(
            format!(
                "DELETE FROM jobs WHERE id = :id AND lease = :lease AND NOT EXISTS (SELECT 1 {WAITING} AND {IS_ENABLED})"
            ),
            id = &job.id,
            lease = &job.lease,
            workspace_id = &job.workspace_id,
            webhook_id = webhook_id
        ),
    ]
}

/// When the job is due, if [`postpone`] has postponed it.
fn select_postponed(job: &Job) -> Statement {
    sql!("SELECT due_at FROM jobs WHERE id = :id AND lease IS NULL", id = &job.id)
}

/// Wakes the job when it is due, if [`select_postponed`] found it.
fn wake(services: &Services, job: &Job, postponed: &Rows) -> Result<(), Failure> {
    if let Some(row) = postponed.first() {
        let at_ms = row.integer("due_at")?;
        let queue = job.task.kind().queue();
        services.ports().queue.wake(&Wake { queue, job_id: job.id.clone(), at_ms });
    }
    Ok(())
}

/// One statement for all outcomes. A delivery that was canceled during the attempt stays canceled; one whose schedule was
/// restarted during the attempt stays pending unless it was delivered. If its call was deleted during the attempt, the
/// response is not kept: it may repeat the event.
fn update(outcomes: &[Outcome], now_ms: i64) -> Statement {
    let list: Vec<_> = outcomes
        .iter()
        .map(|outcome| {
            json!({
                "id": outcome.delivery_id, "status": outcome.status, "failures": outcome.failures, "due_at": outcome.due_at.map(Timestamp::ms), "was_due_at": outcome.was_due_at.ms(),
                "last_status": outcome.last_status, "last_error": outcome.last_error, "last_response": outcome.last_response,
            })
        })
        .collect();
    sql!(
        "UPDATE deliveries SET
           attempts = attempts + 1,
           failures = CASE WHEN due_at IS json_extract(value, '$.was_due_at') THEN json_extract(value, '$.failures') ELSE failures END,
           last_status = json_extract(value, '$.last_status'),
           last_error = json_extract(value, '$.last_error'),
           last_response = CASE WHEN EXISTS (SELECT 1 FROM events WHERE events.id = deliveries.event_id)
             THEN json_extract(value, '$.last_response') END,
           delivered_at = CASE json_extract(value, '$.status') WHEN 'delivered' THEN :now ELSE delivered_at END,
           due_at = CASE WHEN json_extract(value, '$.status') = 'delivered' THEN NULL
             WHEN due_at IS json_extract(value, '$.was_due_at') THEN json_extract(value, '$.due_at') ELSE due_at END,
           status = CASE WHEN due_at IS json_extract(value, '$.was_due_at') OR json_extract(value, '$.status') = 'delivered'
             THEN json_extract(value, '$.status') ELSE status END
         FROM json_each(:outcomes) WHERE deliveries.id = json_extract(value, '$.id')",
        outcomes = json!(list).to_string(),
        now = now_ms
    )
}
