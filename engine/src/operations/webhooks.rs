//! Webhooks: where events are sent.
pub mod list_deliveries;
pub mod redeliver;
pub mod rotate_secret;
pub mod test;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::{Code, Error};
use crate::base::ids::prefix;
use crate::base::limits::{self, WEBHOOKS_MAX};
use crate::base::time;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::tools::check_target;
use crate::operations::{crud, schema};
use crate::ports::statement::{Row, Rows, Statement};
use crate::sql;
use crate::storage::events::{self, Subscription};
use crate::storage::fault::Fault;
use crate::storage::idempotency::OneTimeSecret;
use crate::storage::jobs::JobKind;

/// `GET /webhooks`
pub const LIST: Operation = Operation {
    id: "list_webhooks",
    method: http::Method::GET,
    path: "/webhooks",
    group: "Webhooks",
    title: "List webhooks",
    description: "Lists all webhooks of the workspace, newest first.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: None,
    body: None,
    response: Some(schema::of::<Vec<Webhook>>),
    errors: &[],
    run: |context, input| Box::pin(list(context, input)),
};

/// `POST /webhooks`
pub const CREATE: Operation = Operation {
    id: "create_webhook",
    method: http::Method::POST,
    path: "/webhooks",
    group: "Webhooks",
    title: "Create a webhook",
    description: "Registers a receiver of events. The answer holds the signing secret, which is shown once: deliveries \
        are signed with it (Standard Webhooks). A workspace has at most 250 webhooks.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::whole(schema::of::<Draft>),
    response: Some(schema::of::<CreatedWebhook>),
    errors: &[Code::PrivateTarget, Code::LimitReached],
    run: |context, input| Box::pin(create(context, input)),
};

/// `PATCH /webhooks/{id}`
pub const UPDATE: Operation = Operation {
    id: "update_webhook",
    method: http::Method::PATCH,
    path: "/webhooks/{id}",
    group: "Webhooks",
    title: "Change a webhook",
    description: "Changes the fields given; the others keep their values. The signing secret stays. While `enabled` is \
        false no event is kept for the webhook, and what is pending waits until it is enabled again.",
    effects: Effects::Update,
    success: Success::Ok,
    revision: false,
    query: None,
    body: BodySchema::partial(schema::of::<Draft>),
    response: Some(schema::of::<Webhook>),
    errors: &[Code::PrivateTarget],
    run: |context, input| Box::pin(update(context, input)),
};

/// `DELETE /webhooks/{id}`
pub const DELETE: Operation = Operation {
    id: "delete_webhook",
    method: http::Method::DELETE,
    path: "/webhooks/{id}",
    group: "Webhooks",
    title: "Delete a webhook",
    description: "Deletes a webhook for good. What is pending is canceled; its deliveries stay readable.",
    effects: Effects::Delete,
    success: Success::Empty,
    revision: false,
    query: None,
    body: None,
    response: None,
    errors: &[],
    run: |context, input| Box::pin(delete(context, input)),
};

/// What a client may set.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Draft {
    /// Public HTTPS URL that receives the events.
    #[schemars(length(min = 1, max = crate::base::targets::URL_BYTES_MAX))]
    url: String,
    /// Kinds of events to deliver, at least one; `*` for all.
    #[schemars(length(min = 1, max = limits::WEBHOOK_EVENTS_MAX))]
    events: Vec<Subscription>,
    /// Whether deliveries are sent.
    #[serde(default = "enabled")]
    enabled: bool,
}

fn enabled() -> bool {
    true
}

/// A webhook.
#[derive(Debug, Clone, PartialEq, Serialize, JsonSchema)]
pub struct Webhook {
    /// `hook_…`
    id: String,
    /// What a client may set.
    #[serde(flatten)]
    draft: Draft,
    /// When it was made.
    created_at: String,
    /// When it last changed.
    updated_at: String,
    /// Guards concurrent changes; not shown.
    #[serde(skip)]
    revision: i64,
}

/// No field: the body may be left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

/// A webhook as its creation answers it.
#[derive(Serialize, JsonSchema)]
pub struct CreatedWebhook {
    /// The webhook.
    #[serde(flatten)]
    webhook: Webhook,
    /// `whsec_…`, shown this once.
    signing_secret: String,
}

const COLUMNS: &str = "id, url, events, enabled, revision, created_at, updated_at";

impl Webhook {
    fn read(row: Row<'_>) -> Result<Self, Fault> {
        Ok(Self {
            id: row.text("id")?,
            draft: Draft {
                url: row.text("url")?,
                events: row.json("events")?,
                enabled: row.flag("enabled")?,
            },
            created_at: time::format(row.integer("created_at")?),
            updated_at: time::format(row.integer("updated_at")?),
            revision: row.integer("revision")?,
        })
    }
}

impl Draft {
    /// Each kind once, in the order given.
    fn tidy(mut self) -> Self {
        let mut seen = Vec::new();
        self.events.retain(|kind| {
            let new = !seen.contains(kind);
            seen.push(*kind);
            new
        });
        self
    }

    fn events_json(&self) -> String {
        serde_json::json!(self.events).to_string()
    }
}

fn select_one(id: &str) -> Statement {
    sql!(format!("SELECT {COLUMNS} FROM webhooks WHERE workspace_id = :ws AND id = ?1"), id)
}

async fn list(context: &mut Context, _: &Input) -> Result<Output, Fault> {
    let all = sql!(format!("SELECT {COLUMNS} FROM webhooks WHERE workspace_id = :ws ORDER BY id DESC"));
    crud::list(context, all, Webhook::read).await
}

async fn create(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let draft = input.body::<Draft>()?.tidy();
    check_target(&draft.url, context.services.config(), Vec::new())?;
    let count = sql!("SELECT COUNT(*) AS webhooks FROM webhooks WHERE workspace_id = :ws");
    let rows = context.read(vec![count]).await?;
    let webhooks = rows.first().and_then(Rows::first).map(|row| row.integer("webhooks")).transpose()?;
    if webhooks.is_some_and(|webhooks| webhooks >= WEBHOOKS_MAX) {
        let message =
            format!("This workspace has {WEBHOOKS_MAX} webhooks, the most there can be. Delete one first.");
        return Err(Error::new(Code::LimitReached, message).into());
    }
    let now_ms = context.now_ms;
    let webhook = Webhook {
        id: context.id(prefix::WEBHOOK),
        draft,
        created_at: time::format(now_ms),
        updated_at: time::format(now_ms),
        revision: 1,
    };
    let insert = sql!(
        "INSERT INTO webhooks (workspace_id, id, url, events, enabled, secret_version, revision, created_at, updated_at)
         VALUES (:ws, ?1, ?2, ?3, ?4, 1, 1, ?5, ?5)",
        &webhook.id,
        &webhook.draft.url,
        webhook.draft.events_json(),
        webhook.draft.enabled,
        now_ms,
    );
    // Several at the same moment may all have seen room.
    let room = sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE (SELECT COUNT(*) FROM webhooks WHERE workspace_id = :ws) >= ?1",
        WEBHOOKS_MAX
    );
    let reveal = OneTimeSecret::Webhook { id: webhook.id.clone(), version: 1 };
    context.commit(vec![room, insert], Output::created(&webhook)?.revealing(reveal)).await
}

async fn update(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let current = crud::one(context, select_one(input.id()), "webhook", Webhook::read).await?;
    let next = crud::merged(&current.draft, &input.body)?.map(Draft::tidy);
    let Some(draft) = next.filter(|draft| *draft != current.draft) else {
        return Output::ok(&current);
    };
    check_target(&draft.url, context.services.config(), Vec::new())?;
    let now_ms = context.now_ms;
    let mut statements = vec![crud::unchanged("webhooks", &current.id, current.revision)];
    statements.push(sql!(
        "UPDATE webhooks SET url = ?2, events = ?3, enabled = ?4, revision = revision + 1, updated_at = ?5
         WHERE workspace_id = :ws AND id = ?1",
        &current.id,
        &draft.url,
        draft.events_json(),
        draft.enabled,
        now_ms,
    ));
    if draft.enabled && !current.draft.enabled {
        // What has waited goes on.
        let job_id = context.id(prefix::JOB);
        context.wake_after_write(JobKind::WebhookDelivery, &job_id, now_ms);
        let list = serde_json::json!([{"webhook_id": current.id, "job_id": job_id}]).to_string();
        statements.push(events::wake_delivery_workers(&list, now_ms));
    }
    let next = Webhook { draft, updated_at: time::format(now_ms), ..current };
    context.commit(statements, Output::ok(&next)?).await
}

async fn delete(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let id = input.id();
    let statements = vec![
        sql!(
            "UPDATE deliveries SET status = 'canceled', due_at = NULL
             WHERE workspace_id = :ws AND webhook_id = ?1 AND status = 'pending'",
            id
        ),
        // One that is leased finds nothing more to do.
        sql!(
            "DELETE FROM jobs WHERE workspace_id = :ws AND subject_id = ?1 AND kind = ?2 AND lease IS NULL",
            id,
            JobKind::WebhookDelivery.as_str()
        ),
        sql!("DELETE FROM webhooks WHERE workspace_id = :ws AND id = ?1 RETURNING id", id),
    ];
    crud::delete(context, statements, "webhook").await
}

fn check_enabled(webhook: &Webhook) -> Result<(), Error> {
    if webhook.draft.enabled {
        return Ok(());
    }
    let message = "The webhook is disabled, so nothing is sent to it. Enable it first (PATCH enabled: true).";
    Err(Error::new(Code::WebhookDisabled, message))
}
