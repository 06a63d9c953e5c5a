//! `POST /webhooks/{id}/test`: sends a test event to one webhook.
use serde_json::json;

use super::{Nothing, Webhook};
use crate::base::error::Code;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::resource;
use crate::storage::batch::Batch;
use crate::storage::deliveries::Delivery;
use crate::storage::events::{self, EventKind};
use crate::storage::fault::Fault;

/// `POST /webhooks/{id}/test`
pub const OPERATION: Operation = Operation::post("test_webhook", "/webhooks/{id}/test", run!(run))
    .reaching_out()
    .docs(
        "Test a webhook",
        "Sends a `webhook.test` event to this webhook only, whatever its `events` are, and returns the delivery, which is \
        retried like any other. Use list_webhook_deliveries to see its result.",
    )
    .optional_body::<Nothing>()
    .returns::<Delivery>()
    .errors(&[Code::WebhookDisabled]);

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let webhook: Webhook = resource::one(context, &input.id()).await?;
    webhook.check_enabled()?;
    let data = json!({"webhook": webhook});
    let (services, workspace_id) = (&context.services, context.workspace_id()?);
    let about = EventKind::WebhookTest.of_webhook(&webhook.id);
    let (delivery, event) =
        events::emit_to(services, workspace_id, &webhook.id, about, &data, context.now_ms)?;
    let mut batch = Batch::from([resource::unchanged(&webhook)]);
    batch.append(event);
    context.commit(batch, Output::created(&delivery)?).await
}
