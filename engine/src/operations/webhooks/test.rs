//! `POST /webhooks/{id}/test`: sends a test event to one webhook.
use serde_json::json;

use super::{Nothing, Webhook, check_enabled, select_one};
use crate::base::error::Code;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::storage::batch::Batch;
use crate::storage::deliveries::Delivery;
use crate::storage::events::{self, EventKind};
use crate::storage::fault::Fault;

/// `POST /webhooks/{id}/test`
pub const OPERATION: Operation = Operation {
    id: "test_webhook",
    method: http::Method::POST,
    path: "/webhooks/{id}/test",
    group: "Webhooks",
    title: "Test a webhook",
    description: "Sends a `webhook.test` event to this webhook alone, whatever its `events` are, and answers with the \
        delivery, which is tried again like any other. list_webhook_deliveries shows what has become of it.",
    effects: Effects::Create,
    success: Success::Created,
    revision: false,
    query: None,
    body: BodySchema::optional(schema::of::<Nothing>),
    response: Some(schema::of::<Delivery>),
    errors: &[Code::WebhookDisabled],
    run: |context, input| Box::pin(run(context, input)),
};

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let webhook = crud::one(context, select_one(input.id()), "webhook", Webhook::read).await?;
    check_enabled(&webhook)?;
    let data = json!({"webhook": webhook});
    let (services, workspace_id) = (&context.services, context.workspace_id()?);
    let kind = EventKind::WebhookTest;
    let (delivery, event) =
        events::emit_to(services, workspace_id, &webhook.id, kind, &data, context.now_ms)?;
    let mut batch = Batch::from([crud::unchanged("webhooks", &webhook.id, webhook.revision)]);
    batch.append(event);
    context.commit_batch(batch, Output::created(&delivery)?).await
}
