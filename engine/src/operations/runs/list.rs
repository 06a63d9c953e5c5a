//! `GET /simulations/runs`: runs, newest first, in pages.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::ids::{AssistantId, BatchId, SimulationId};
use crate::base::limits::{PAGE_MAX, PAGE_ROWS_MAX};
use crate::base::page::{Page, Pagination};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::operations::paging;
use crate::ports::statement::Value;
use crate::storage::fault::Fault;
use crate::storage::runs::{Run, RunStatus};

/// `GET /simulations/runs`
pub const OPERATION: Operation = Operation::get("list_simulation_runs", "/simulations/runs", run!(run))
    .docs("List runs", "Lists runs, newest first, in pages. Filtering by an unknown id gives an empty list.")
    .query::<Filter>()
    .returns::<RunList>();

/// Which runs.
#[derive(Deserialize, JsonSchema)]
struct Filter {
    /// Filter by assistant.
    assistant_id: Option<AssistantId>,
    /// Filter by simulation.
    simulation_id: Option<SimulationId>,
    /// Filter by batch.
    batch_id: Option<BatchId>,
    /// Filter by status.
    status: Option<RunStatus>,
    /// Page number, from 1.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    page: Option<i64>,
    /// Rows per page; default 200.
    #[schemars(range(min = 1, max = PAGE_ROWS_MAX))]
    limit: Option<i64>,
}

/// A page of runs.
#[derive(Serialize, JsonSchema)]
struct RunList {
    /// The runs.
    runs: Vec<Run>,
    /// The page and the totals.
    pagination: Pagination,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let filter: Filter = input.query()?;
    let page = Page::new(filter.page, filter.limit);
    let filters = [
        ("assistant_id", filter.assistant_id.as_ref().map(Value::from)),
        ("simulation_id", filter.simulation_id.as_ref().map(Value::from)),
        ("batch_id", filter.batch_id.as_ref().map(Value::from)),
        ("status", filter.status.map(|status| status.as_str().into())),
    ];
    let [count, rows] = context.read_each(paging::select("runs", Run::COLUMNS, filters, page)).await?;
    let (runs, pagination) = paging::read(page, &count, &rows, Run::read)?;
    Ok(Output::ok(&RunList { runs, pagination })?.with_page_after(pagination))
}
