//! Webhooks: the endpoints that events are sent to.
pub(crate) mod list_deliveries;
pub(crate) mod redeliver;
pub(crate) mod test;

use schemars::JsonSchema;
use serde::Deserialize;

use crate::base::error::{Code, Error};
use crate::base::ids::{JobId, WebhookId};
use crate::base::limits;
use crate::base::targets::URL_BYTES_MAX;
use crate::base::time::Timestamp;
use crate::base::values::Metadata;
use crate::config::Config;
use crate::operations::checks::check_target;
use crate::operations::context::Context;
use crate::operations::operation::Operation;
use crate::operations::resource::{self, Created, Resource, resource};
use crate::operations::rotation;
use crate::ports::statement::Statement;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::events::{self, Subscription};
use crate::storage::idempotency::OneTimeSecret;
use crate::storage::jobs::JobKind;
use crate::storage::signing::Origin;

resource! {
    /// A webhook.
    pub struct Webhook {
        /// `hook_…`
        id: WebhookId,
        draft: {
            /// Public HTTPS URL that receives the events. At most 2,048 bytes.
            #[schemars(length(min = 1, max = URL_BYTES_MAX), extend("x-max-bytes" = URL_BYTES_MAX))]
            url: String,
            /// Types of events to deliver, at least one; `*` for all.
            #[schemars(length(min = 1, max = limits::WEBHOOK_EVENTS_MAX))]
            events: Vec<Subscription>,
            /// Whether events are recorded for this webhook and sent to it.
            #[serde(default = "enabled")]
            enabled: bool,
            /// Texts of your own, by name. At most 50, with names of up to 64 characters and values of up to 512 bytes, 4 KiB in all. An
            /// update replaces all of them.
            #[serde(default)]
            metadata: Metadata,
        },
        #[serde(skip)]
        revision,
    }
    noun: "webhook", table: "webhooks", path: "/webhooks", initially: { secret_version = "1" }
}

/// `GET /webhooks`
pub const LIST: Operation = resource::list::<Webhook>("list_webhooks")
    .docs("List webhooks", "Lists the webhooks of the workspace, newest first.");

/// `POST /webhooks`
pub const CREATE: Operation = resource::create::<Webhook>("create_webhook")
    .docs(
        "Create a webhook",
        "Registers a receiver of events. The response contains the signing secret, which is shown only once: deliveries \
        are signed with it (Standard Webhooks). A workspace can have at most 250 webhooks.",
    )
    .returns::<Created<Webhook>>()
    .errors(&[Code::PrivateTarget, Code::InsecureTarget, Code::LimitReached]);

/// `PATCH /webhooks/{id}`
pub const UPDATE: Operation = resource::update::<Webhook>("update_webhook")
    .docs(
        "Update a webhook",
        "Changes the given fields; the others keep their values. The signing secret stays the same. While `enabled` is \
        false, no events are recorded for the webhook, and pending deliveries wait until it is enabled again.",
    )
    .errors(&[Code::PrivateTarget, Code::InsecureTarget]);

/// `DELETE /webhooks/{id}`
pub const DELETE: Operation = resource::delete::<Webhook>("delete_webhook").docs(
    "Delete a webhook",
    "Deletes a webhook permanently. Pending deliveries are canceled; all its deliveries stay readable.",
);

/// `POST /webhooks/{id}/rotate-secret`
pub const ROTATE_SECRET: Operation =
    rotation::rotate::<Webhook>("rotate_webhook_secret", "/webhooks/{id}/rotate-secret").docs(
        "Rotate a webhook's secret",
        "Creates a new signing secret, which the response shows only once. For `overlap_ms` deliveries carry two \
        signatures, of the new and of the previous secret, including retries of older events. Only the latest two \
        secrets ever sign.",
    );

/// Whether a webhook has pending deliveries. SQL that names `:id`.
const HAS_PENDING: &str =
    "EXISTS (SELECT 1 FROM deliveries WHERE workspace_id = :ws AND webhook_id = :id AND status = 'pending')";

impl Resource for Webhook {
    const LIMIT: i64 = limits::WEBHOOKS_MAX;
    const HELD_BY: &'static str = HAS_PENDING;

    /// Keeps each type of event once, in the given order.
    fn normalize(draft: &mut Draft, _: &Config) {
        let mut seen = Vec::new();
        draft.events.retain(|kind| {
            let is_new = !seen.contains(kind);
            seen.push(*kind);
            is_new
        });
    }

    fn check(draft: &Draft, config: &Config) -> Result<(), Error> {
        check_target(&draft.url, config, Vec::new())
    }

    fn secret(id: &WebhookId, version: i64) -> Option<OneTimeSecret> {
        Some(OneTimeSecret::Webhook { id: id.clone(), version, origin: Origin::default() })
    }

    /// Once enabled, it gets its pending deliveries.
    fn updated_with(&self, next: &Self, context: &Context) -> Batch {
        if next.draft.enabled && !self.draft.enabled { self.deliver_now(context) } else { Batch::default() }
    }

    fn deleted_with(id: &WebhookId, _: Timestamp) -> Vec<Statement> {
        vec![
            sql!(
                "UPDATE deliveries SET status = 'canceled', due_at = NULL WHERE id IN
                 (SELECT id FROM deliveries WHERE workspace_id = :ws AND webhook_id = :id AND status = 'pending'
                  ORDER BY id LIMIT CAST(:most AS INTEGER))",
                id = id,
                most = limits::CANCELED_AT_ONCE
            ),
            // While more are canceled, none are added.
            sql!(
                format!("UPDATE webhooks SET enabled = 0 WHERE workspace_id = :ws AND id = :id AND {HAS_PENDING}"),
                id = id
            ),
            // A leased job will find nothing to deliver.
            sql!(
                "DELETE FROM jobs WHERE workspace_id = :ws AND subject_id = :id AND kind = :kind AND lease IS NULL",
                id = id,
                kind = JobKind::WebhookDelivery.as_str()
            ),
        ]
    }
}

impl Webhook {
    fn check_enabled(&self) -> Result<(), Error> {
        if self.draft.enabled {
            return Ok(());
        }
        let message =
            "The webhook is disabled, so nothing is sent to it. Enable it first (PATCH enabled: true).";
        Err(Error::new(Code::WebhookDisabled, message))
    }

    /// Starts the job that sends the pending deliveries.
    fn deliver_now(&self, context: &Context) -> Batch {
        let job_id: JobId = context.services.new_id();
        let list = serde_json::json!([{"webhook_id": self.id, "job_id": job_id}]).to_string();
        let mut batch = Batch::from([events::wake_delivery_workers(&list, context.now_ms)]);
        batch.wake(JobKind::WebhookDelivery, &job_id, context.now_ms);
        batch
    }
}

/// An empty body, which may be left out.
#[derive(Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct Nothing {}

fn enabled() -> bool {
    true
}
