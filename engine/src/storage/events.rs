//! Events: notifications about changes in a workspace, delivered to its webhooks.
//!
//! Code that changes something reads the [`Subscribers`] in an earlier batch that it needs anyway, and adds the event to
//! the batch of the change ([`crate::storage::batch::Batch::emit`]): the event is written exactly when the change is.
//! The [log] has every event; its body is written only for a subscriber.
use serde::Serialize;
use serde_json::{Map, Value, json};

use crate::base::ids::{CallId, DeliveryId, EventId, JobId, WebhookId, WorkspaceId};
use crate::base::limits::EVENT_BYTES_MAX;
use crate::base::time;
use crate::ports::statement::{Rows, Statement};
use crate::services::Services;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::deliveries::Delivery;
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;

mod kind;
pub mod log;

pub use kind::{About, EventKind, Subscription};

/// The enabled webhooks of a workspace and the kinds of events they subscribe to.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Subscribers(Vec<Subscriber>);

#[derive(Debug, Clone, PartialEq, Eq)]
struct Subscriber {
    webhook_id: WebhookId,
    /// Texts, so that a kind that this version does not know is not an error.
    events: Vec<String>,
}

/// The texts of statements that forget events of workspace `:ws`, `events` being an SQL list of their ids in parentheses. A
/// delivery that was never attempted has told nobody anything; the others are history, without what was said.
pub(crate) fn forget(events: &str) -> [String; 3] {
    [
        format!(
            "DELETE FROM deliveries WHERE +workspace_id = :ws AND status = 'pending' AND attempts = 0 AND event_id IN {events}"
        ),
        format!(
            "UPDATE deliveries SET status = CASE status WHEN 'pending' THEN 'canceled' ELSE status END, due_at = NULL,
               last_response = NULL WHERE +workspace_id = :ws AND event_id IN {events}"
        ),
        format!("DELETE FROM events WHERE workspace_id = :ws AND id IN {events}"),
    ]
}

/// Reads the workspace's [`Subscribers`]; for a job.
pub fn subscribers(workspace_id: &WorkspaceId) -> Statement {
    callers_subscribers().in_workspace(workspace_id)
}

/// The same for an operation.
pub fn callers_subscribers() -> Statement {
    sql!("SELECT id, events FROM webhooks WHERE workspace_id = :ws AND enabled = 1 ORDER BY id")
}

impl Subscribers {
    /// What [`subscribers`] found.
    pub fn read(rows: &Rows) -> Result<Self, Fault> {
        let each = rows
            .iter()
            .map(|row| Ok::<_, Fault>(Subscriber { webhook_id: row.id("id")?, events: row.json("events")? }));
        Ok(Self(each.collect::<Result<_, _>>()?))
    }

    fn wanting(&self, kind: EventKind) -> impl Iterator<Item = &WebhookId> {
        let wants =
            move |one: &&Subscriber| one.events.iter().any(|text| text == "*" || text == kind.as_str());
        self.0.iter().filter(wants).map(|one| &one.webhook_id)
    }
}

/// The event, its deliveries and their jobs, for [`Batch::emit`].
pub(crate) fn emit(
    services: &Services,
    workspace_id: &WorkspaceId,
    subscribers: &Subscribers,
    about: About<'_>,
    data: impl FnOnce() -> Result<Value, Fault>,
    now_ms: i64,
) -> Result<Batch, Fault> {
    let mut webhooks = subscribers.wanting(about.kind).peekable();
    if webhooks.peek().is_none() {
        return Ok(Batch::from(log::insert(&services.new_id(), workspace_id, about, now_ms)));
    }
    let event = Event::new(services, workspace_id, webhooks, about, &data()?, now_ms);
    Ok(event.batch(workspace_id, about))
}

/// Sends an event to one webhook, whatever it subscribes to: the delivery, and the batch to write.
pub fn emit_to(
    services: &Services,
    workspace_id: &WorkspaceId,
    webhook_id: &WebhookId,
    about: About<'_>,
    data: &Value,
    now_ms: i64,
) -> Result<(Delivery, Batch), Fault> {
    let event = Event::new(services, workspace_id, std::iter::once(webhook_id), about, data, now_ms);
    let Some(new) = event.deliveries.first().cloned() else {
        return Err(Fault::Bug("an event to one webhook has one delivery".to_owned()));
    };
    let delivery = Delivery::new(new.delivery_id, new.webhook_id, event.id.clone(), about.kind, now_ms);
    Ok((delivery, event.batch(workspace_id, about)))
}

/// An event that is not written yet.
struct Event {
    id: EventId,
    kind: EventKind,
    body: String,
    /// The call that the event tells about: it goes with the call.
    call_id: Option<CallId>,
    deliveries: Vec<NewDelivery>,
    now_ms: i64,
}

/// Its delivery to one webhook.
#[derive(Clone, Serialize)]
struct NewDelivery {
    delivery_id: DeliveryId,
    webhook_id: WebhookId,
    job_id: JobId,
}

impl Event {
    fn new<'a>(
        services: &Services,
        workspace_id: &WorkspaceId,
        webhooks: impl Iterator<Item = &'a WebhookId>,
        about: About<'_>,
        data: &Value,
        now_ms: i64,
    ) -> Self {
        let (id, kind) = (services.new_id(), about.kind);
        let deliveries = webhooks.map(|webhook_id| NewDelivery {
            delivery_id: services.new_id(),
            webhook_id: webhook_id.clone(),
            job_id: services.new_id(),
        });
        let deliveries = deliveries.collect();
        let body = body(&id, kind, workspace_id, data, now_ms);
        Self { id, kind, body, call_id: about.call_id.cloned(), deliveries, now_ms }
    }

    fn batch(self, workspace_id: &WorkspaceId, about: About<'_>) -> Batch {
        let bound = self.statements().into_iter().map(|statement| statement.in_workspace(workspace_id));
        let mut batch = Batch::from(Vec::from_iter(bound));
        batch.push(log::insert(&self.id, workspace_id, about, self.now_ms));
        for delivery in &self.deliveries {
            batch.wake(JobKind::WebhookDelivery, &delivery.job_id, self.now_ms);
        }
        batch
    }

    /// Inserts the event, its deliveries, and their jobs. A webhook that was deleted or disabled after the subscribers
    /// were read gets none.
    fn statements(&self) -> Vec<Statement> {
        let list = json!(self.deliveries).to_string();
        let kind = self.kind.as_str();
        let event = sql!(
            "INSERT INTO events (id, workspace_id, type, body, call_id, created_at) SELECT :id, :ws, :kind, :body, :call_id, :now
             WHERE EXISTS (SELECT 1 FROM webhooks WHERE workspace_id = :ws AND enabled = 1
             AND id IN (SELECT json_extract(value, '$.webhook_id') FROM json_each(:webhooks)))",
            id = &self.id,
            kind = kind,
            body = &self.body,
            call_id = self.call_id.as_deref().unwrap_or_default(),
            now = self.now_ms,
            webhooks = &list
        );
        let deliveries = sql!(
            "INSERT INTO deliveries (id, workspace_id, webhook_id, event_id, type, body_bytes, status, attempts, failures, due_at, created_at)
             SELECT json_extract(value, '$.delivery_id'), :ws, webhooks.id, :event_id, :kind, :body_bytes, 'pending', 0, 0, :now, :now
             FROM json_each(:list) CROSS JOIN webhooks ON webhooks.id = json_extract(value, '$.webhook_id')
             WHERE webhooks.workspace_id = :ws AND webhooks.enabled = 1",
            list = &list,
            event_id = &self.id,
            kind = kind,
            body_bytes = i64::try_from(self.body.len()).unwrap_or(i64::MAX),
            now = self.now_ms
        );
        vec![event, deliveries, wake_delivery_workers(&list, self.now_ms)]
    }
}

/// The call in the body of an event of an earlier version, which stored no `call_id` with it. SQL.
pub(crate) const CALL_IN_BODY: &str =
    "COALESCE(json_extract(body, '$.data.call.id'), json_extract(body, '$.data.run.call_id'), '')";

/// Makes a job due for each webhook of a list `{webhook_id, job_id}`. A leased job is not changed: it looks for new
/// deliveries in the batch that would end it.
pub(crate) fn wake_delivery_workers(list: &str, now_ms: i64) -> Statement {
    sql!(
        "INSERT INTO jobs (id, workspace_id, kind, subject_id, due_at, attempts, created_at)
         SELECT json_extract(value, '$.job_id'), :ws, :kind, webhooks.id, :due_at, 0, :now
         FROM json_each(:list) CROSS JOIN webhooks ON webhooks.id = json_extract(value, '$.webhook_id')
         WHERE webhooks.workspace_id = :ws AND webhooks.enabled = 1
         ON CONFLICT (subject_id) WHERE kind = 'webhook_delivery' DO UPDATE SET due_at = excluded.due_at WHERE jobs.lease IS NULL",
        list = list,
        kind = JobKind::WebhookDelivery.as_str(),
        due_at = crate::storage::jobs::DUE_AT_ONCE,
        now = now_ms
    )
}

/// The body of the request.
fn body(
    event_id: &EventId,
    kind: EventKind,
    workspace_id: &WorkspaceId,
    data: &Value,
    now_ms: i64,
) -> String {
    let with = |data: &Value| {
        json!({
            "id": event_id,
            "type": kind.as_str(),
            "created_at": time::format(now_ms),
            "workspace_id": workspace_id,
            "data": data,
        })
        .to_string()
    };
    let whole = with(data);
    match whole.len() <= EVENT_BYTES_MAX {
        true => whole,
        false => with(&ids_only(data)),
    }
}

/// `{"run": {"id": …}}` of `{"run": {…}}`: the receiver reads the rest over REST.
fn ids_only(data: &Value) -> Value {
    let things = data.as_object().into_iter().flatten();
    let ids: Map<String, Value> =
        things.map(|(name, thing)| (name.clone(), json!({"id": thing["id"]}))).collect();
    Value::Object(ids)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::base::ids::Id;

    #[test]
    fn an_oversized_body_is_sent_with_ids_only() {
        let large = json!({"run": {"id": "run_1", "transcript": "x".repeat(EVENT_BYTES_MAX)}});
        let text = body(
            &EventId::from_stored("evt_1"),
            EventKind::SimulationRunCompleted,
            &WorkspaceId::from_stored("ws_1"),
            &large,
            0,
        );
        let sent: Value = serde_json::from_str(&text).unwrap();
        assert_eq!(sent["data"], json!({"run": {"id": "run_1"}}));
    }

    #[test]
    fn the_body_is_as_documented() {
        let text = body(
            &EventId::from_stored("evt_1"),
            EventKind::WebhookTest,
            &WorkspaceId::from_stored("ws_1"),
            &json!({"webhook": {"id": "hook_1"}}),
            0,
        );
        let expected = r#"{"id":"evt_1","type":"webhook.test","created_at":"1970-01-01T00:00:00.000Z","workspace_id":"ws_1","data":{"webhook":{"id":"hook_1"}}}"#;
        assert_eq!(text, expected);
    }
}
