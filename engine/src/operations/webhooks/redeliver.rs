//! `POST /webhooks/{id}/deliveries/{delivery_id}/redeliver`: sends an event again.
use serde_json::json;

use super::{Nothing, Webhook, check_enabled, select_one};
use crate::base::error::{Code, Error};
use crate::base::ids::prefix;
use crate::base::time;
use crate::operations::context::Context;
use crate::operations::operation::{BodySchema, Effects, Input, Operation, Output, Success};
use crate::operations::{crud, schema};
use crate::ports::statement::Rows;
use crate::sql;
use crate::storage::deliveries::{COLUMNS, Delivery, DeliveryStatus};
use crate::storage::events;
use crate::storage::fault::Fault;
use crate::storage::jobs::JobKind;

/// `POST /webhooks/{id}/deliveries/{delivery_id}/redeliver`
pub const OPERATION: Operation = Operation {
    id: "redeliver_webhook_delivery",
    method: http::Method::POST,
    path: "/webhooks/{id}/deliveries/{delivery_id}/redeliver",
    group: "Webhooks",
    title: "Deliver again",
    description: "Sends the event of a delivery again, now, with the same event id and the same body, and starts the \
        retry schedule anew; whatever its state was, the delivery is pending then.",
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
    let delivery_id = input.path.get(1).map_or("", String::as_str);
    let select = sql!(
        format!("SELECT {COLUMNS} FROM deliveries WHERE workspace_id = :ws AND webhook_id = ?1 AND id = ?2"),
        input.id(),
        delivery_id
    );
    let rows = context.read(vec![select_one(input.id()), select]).await?;
    let Some(webhook) = rows.first().and_then(Rows::first) else {
        return Err(Error::not_found("webhook").into());
    };
    let webhook = Webhook::read(webhook)?;
    let Some(delivery) = rows.get(1).and_then(Rows::first) else {
        return Err(Error::not_found("delivery").into());
    };
    check_enabled(&webhook)?;
    let now_ms = context.now_ms;
    let delivery = Delivery {
        status: DeliveryStatus::Pending,
        next_attempt_at: Some(time::format(now_ms)),
        ..Delivery::read(delivery)?
    };
    let again = sql!(
        "UPDATE deliveries SET status = 'pending', failures = 0, due_at = ?2 WHERE workspace_id = :ws AND id = ?1",
        &delivery.id,
        now_ms
    );
    let job_id = context.id(prefix::JOB);
    context.wake_after_write(JobKind::WebhookDelivery, &job_id, now_ms);
    let list = json!([{"webhook_id": webhook.id, "job_id": job_id}]).to_string();
    let guard = crud::unchanged("webhooks", &webhook.id, webhook.revision);
    let statements = vec![guard, again, events::wake_delivery_workers(&list, now_ms)];
    context.commit(statements, Output::created(&delivery)?).await
}
