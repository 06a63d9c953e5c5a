//! `GET /webhooks/{id}/deliveries`: what was sent to a webhook, newest first, in pages.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::error::Error;
use crate::base::limits::{PAGE_MAX, PAGE_ROWS_MAX};
use crate::base::page::{Page, Pagination};
use crate::operations::context::Context;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::operations::schema;
use crate::ports::statement::{Rows, Statement, Value};
use crate::sql;
use crate::storage::deliveries::{COLUMNS, Delivery, DeliveryStatus};
use crate::storage::fault::Fault;

/// `GET /webhooks/{id}/deliveries`
pub const OPERATION: Operation = Operation {
    id: "list_webhook_deliveries",
    method: http::Method::GET,
    path: "/webhooks/{id}/deliveries",
    group: "Webhooks",
    title: "List deliveries",
    description: "Lists what was sent to a webhook or is to be, newest first, in pages. Deliveries are kept for 30 days, \
        also those of a webhook that was deleted since.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: Some(schema::of::<Filter>),
    body: None,
    response: Some(schema::of::<DeliveryList>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

/// Which deliveries.
#[derive(Deserialize, JsonSchema)]
pub struct Filter {
    /// Only deliveries in this state.
    status: Option<DeliveryStatus>,
    /// From 1.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    page: Option<i64>,
    /// Rows a page; default 200.
    #[schemars(range(min = 1, max = PAGE_ROWS_MAX))]
    limit: Option<i64>,
}

/// A page of deliveries.
#[derive(Serialize, JsonSchema)]
pub struct DeliveryList {
    /// The deliveries.
    deliveries: Vec<Delivery>,
    /// Where the page is.
    pagination: Pagination,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let filter: Filter = input.query()?;
    let page = Page::new(filter.page, filter.limit);
    let mut condition = "workspace_id = :ws AND webhook_id = ?1".to_owned();
    let mut params: Vec<Value> = vec![input.id().into()];
    if let Some(status) = filter.status {
        params.push(status.as_str().into());
        condition.push_str(" AND status = ?2");
    }
    let known = sql!(
        "SELECT 1 AS known WHERE EXISTS (SELECT 1 FROM webhooks WHERE workspace_id = :ws AND id = ?1)
         OR EXISTS (SELECT 1 FROM deliveries WHERE workspace_id = :ws AND webhook_id = ?1)",
        input.id()
    );
    let count = Statement {
        sql: format!("SELECT COUNT(*) AS total FROM deliveries WHERE {condition}").into(),
        params: params.clone(),
    };
    let next = params.len() + 1;
    params.extend([Value::from(page.limit), Value::from(page.offset())]);
    let rows = Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM deliveries WHERE {condition} ORDER BY id DESC LIMIT CAST(?{next} AS INTEGER) OFFSET CAST(?{} AS INTEGER)",
            next + 1
        )
        .into(),
        params,
    };
    let answers = context.read(vec![known, count, rows]).await?;
    if answers.first().is_none_or(Rows::is_empty) {
        return Err(Error::not_found("webhook").into());
    }
    let total = match answers.get(1).and_then(Rows::first) {
        Some(row) => row.integer("total")?,
        None => 0,
    };
    let deliveries =
        answers.iter().skip(2).flat_map(Rows::iter).map(Delivery::read).collect::<Result<_, _>>()?;
    Output::ok(&DeliveryList { deliveries, pagination: Pagination::new(page, total) })
}
