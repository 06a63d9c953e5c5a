//! `GET /webhooks/{id}/deliveries`: deliveries to a webhook, newest first, in pages.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::ids::WebhookId;
use crate::base::limits::{PAGE_MAX, PAGE_ROWS_MAX};
use crate::base::page::{Page, Pagination};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::paging;
use crate::ports::statement::Value;
use crate::sql;
use crate::storage::deliveries::{Delivery, DeliveryStatus};
use crate::storage::fault::Fault;

/// `GET /webhooks/{id}/deliveries`
pub const OPERATION: Operation = Operation::get("list_webhook_deliveries", "/webhooks/{id}/deliveries", run!(run))
    .docs(
        "List deliveries",
        "Lists past and pending deliveries to a webhook, newest first, in pages. Deliveries are kept for 30 days, also \
        after their webhook is deleted.",
    )
    .query::<Filter>()
    .returns::<DeliveryList>();

/// Which deliveries.
#[derive(Deserialize, JsonSchema)]
struct Filter {
    /// Filter by status.
    status: Option<DeliveryStatus>,
    /// Page number, from 1.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    page: Option<i64>,
    /// Rows per page; default 200.
    #[schemars(range(min = 1, max = PAGE_ROWS_MAX))]
    limit: Option<i64>,
}

/// A page of deliveries.
#[derive(Serialize, JsonSchema)]
struct DeliveryList {
    /// The deliveries.
    deliveries: Vec<Delivery>,
    /// The page and the totals.
    pagination: Pagination,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let filter: Filter = input.query()?;
    let page = Page::new(filter.page, filter.limit);
    let webhook_id: WebhookId = input.id();
    let known = sql!(
        "SELECT 1 AS known WHERE EXISTS (SELECT 1 FROM webhooks WHERE workspace_id = :ws AND id = :id)
         OR EXISTS (SELECT 1 FROM deliveries WHERE workspace_id = :ws AND webhook_id = :id)",
        id = &webhook_id
    );
    let filters = [
        ("webhook_id", Some(Value::from(&webhook_id))),
        ("status", filter.status.map(|status| status.as_str().into())),
    ];
    let [count, rows] = paging::select("deliveries", Delivery::COLUMNS, filters, page);
    let [known, count, rows] = context.read_each([known, count, rows]).await?;
    if known.is_empty() {
        return Err(Error::not_found("webhook").into());
    }
    let (deliveries, pagination) = paging::read(page, &count, &rows, Delivery::read)?;
    Ok(Output::ok(&DeliveryList { deliveries, pagination })?.with_page_after(pagination))
}
