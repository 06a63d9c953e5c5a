//! `GET /simulations/runs`: runs, newest first, in pages.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::limits::{PAGE_MAX, PAGE_ROWS_MAX};
use crate::base::page::{Page, Pagination};
use crate::operations::context::Context;
use crate::operations::operation::{Effects, Input, Operation, Output, Success};
use crate::operations::schema;
use crate::ports::statement::{Statement, Value};
use crate::storage::fault::Fault;
use crate::storage::runs::{COLUMNS, Run, RunStatus};

/// `GET /simulations/runs`
pub const OPERATION: Operation = Operation {
    id: "list_simulation_runs",
    method: http::Method::GET,
    path: "/simulations/runs",
    group: "Simulations",
    title: "List runs",
    description: "Lists runs, newest first, in pages. Filters by an unknown id give an empty list.",
    effects: Effects::Read,
    success: Success::Ok,
    revision: false,
    query: Some(schema::of::<Filter>),
    body: None,
    response: Some(schema::of::<RunList>),
    errors: &[],
    run: |context, input| Box::pin(run(context, input)),
};

/// Which runs.
#[derive(Deserialize, JsonSchema)]
pub struct Filter {
    /// Only runs of this assistant.
    assistant_id: Option<String>,
    /// Only runs of this simulation.
    simulation_id: Option<String>,
    /// Only runs of this batch.
    batch_id: Option<String>,
    /// Only runs in this state.
    status: Option<RunStatus>,
    /// From 1.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    page: Option<i64>,
    /// Rows a page; default 200.
    #[schemars(range(min = 1, max = PAGE_ROWS_MAX))]
    limit: Option<i64>,
}

/// A page of runs.
#[derive(Serialize, JsonSchema)]
pub struct RunList {
    /// The runs.
    runs: Vec<Run>,
    /// Where the page is.
    pagination: Pagination,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let filter: Filter = input.query()?;
    let page = Page::new(filter.page, filter.limit);
    let mut condition = "workspace_id = :ws".to_owned();
    let mut params: Vec<Value> = Vec::new();
    for (column, value) in [
        ("assistant_id", filter.assistant_id),
        ("simulation_id", filter.simulation_id),
        ("batch_id", filter.batch_id),
        ("status", filter.status.map(|status| status.as_str().to_owned())),
    ] {
        if let Some(value) = value {
            params.push(value.into());
            condition.push_str(&format!(" AND {column} = ?{}", params.len()));
        }
    }
    let count = Statement {
        sql: format!("SELECT COUNT(*) AS total FROM runs WHERE {condition}").into(),
        params: params.clone(),
    };
    let next = params.len() + 1;
    params.extend([Value::from(page.limit), Value::from(page.offset())]);
    let rows = Statement {
        sql: format!(
            "SELECT {COLUMNS} FROM runs WHERE {condition} ORDER BY id DESC LIMIT CAST(?{next} AS INTEGER) OFFSET CAST(?{} AS INTEGER)",
            next + 1
        )
        .into(),
        params,
    };
    let answers = context.read(vec![count, rows]).await?;
    let total = match answers.first().and_then(|rows| rows.first()) {
        Some(row) => row.integer("total")?,
        None => 0,
    };
    let runs =
        answers.iter().skip(1).flat_map(|rows| rows.iter()).map(Run::read).collect::<Result<_, _>>()?;
    Output::ok(&RunList { runs, pagination: Pagination::new(page, total) })
}
