//! `POST /webhooks/{id}/deliveries/{delivery_id}/redeliver`: sends an event again.
use super::{Nothing, Webhook};
use crate::base::error::{Code, Error};
use crate::base::ids::DeliveryId;
use crate::base::time::Timestamp;
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::resource;
use crate::sql;
use crate::storage::batch::Batch;
use crate::storage::deliveries::{Delivery, DeliveryStatus};
use crate::storage::fault::Fault;

/// `POST /webhooks/{id}/deliveries/{delivery_id}/redeliver`
pub const OPERATION: Operation = Operation::post("redeliver_webhook_delivery", "/webhooks/{id}/deliveries/{delivery_id}/redeliver", run!(run))
    .reaching_out()
    .docs(
        "Deliver again",
        "Sends the event of a delivery again now, with the same event id and body, and restarts the retry schedule. The \
        delivery becomes pending, whatever its state was.",
    )
    .optional_body::<Nothing>()
    .returns::<Delivery>()
    .errors(&[Code::WebhookDisabled]);

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let webhook_id = input.id();
    let columns = Delivery::COLUMNS;
    let select = sql!(
        format!(
            "SELECT {columns} FROM deliveries WHERE workspace_id = :ws AND webhook_id = :webhook_id AND id = :id"
        ),
        webhook_id = &webhook_id,
        id = &input.second_id::<DeliveryId>()
    );
    let event = sql!(
        "SELECT 1 AS known FROM events WHERE workspace_id = :ws AND id = (SELECT event_id FROM deliveries
         WHERE workspace_id = :ws AND webhook_id = :webhook_id AND id = :id)",
        webhook_id = &webhook_id,
        id = &input.second_id::<DeliveryId>()
    );
    let [webhook, delivery, event] =
        context.read_each([resource::select_one::<Webhook>(&webhook_id), select, event]).await?;
    let webhook: Webhook = resource::found(&webhook)?;
    let delivery = Delivery::read(delivery.first().ok_or_else(|| Error::not_found("delivery"))?)?;
    webhook.check_enabled()?;
    if event.is_empty() {
        let message = "The event of this delivery was deleted with the call or run that it tells about, so it cannot be sent again.";
        return Err(Error::new(Code::NotFound, message).into());
    }
    let now = Timestamp::from_ms(context.now_ms);
    let delivery = Delivery { status: DeliveryStatus::Pending, next_attempt_at: Some(now), ..delivery };
    let again = sql!(
        "UPDATE deliveries SET status = 'pending', failures = 0, due_at = :now WHERE workspace_id = :ws AND id = :id",
        id = &delivery.id,
        now = now
    );
    let still_there = sql!(
        "INSERT INTO batch_guard (ok) SELECT 0 WHERE NOT EXISTS (SELECT 1 FROM events WHERE workspace_id = :ws AND id = :event_id)",
        event_id = &delivery.event_id
    );
    let mut batch = Batch::from([resource::unchanged(&webhook), still_there, again]);
    batch.append(webhook.deliver_now(context));
    context.commit(batch, Output::created(&delivery)?).await
}
