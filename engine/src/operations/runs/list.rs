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
    .query::<Query>()
    .returns::<RunList>();

/// Which runs.
#[derive(Deserialize, JsonSchema)]
pub(super) struct Filter {
    /// Filter by assistant.
    assistant_id: Option<AssistantId>,
    /// Filter by simulation.
    simulation_id: Option<SimulationId>,
    /// Filter by batch.
    batch_id: Option<BatchId>,
    /// Filter by status.
    status: Option<RunStatus>,
    /// Filter by result. `null` are runs without one: not completed, or nothing decided (with `status=completed` only these).
    passed: Option<Passed>,
}

/// Which runs, and the page.
#[derive(Deserialize, JsonSchema)]
struct Query {
    #[serde(flatten)]
    filter: Filter,
    /// Page number, from 1.
    #[schemars(range(min = 1, max = PAGE_MAX))]
    page: Option<i64>,
    /// Rows per page; default 200.
    #[schemars(range(min = 1, max = PAGE_ROWS_MAX))]
    limit: Option<i64>,
}

impl Filter {
    /// The columns that have these values.
    pub fn columns(&self) -> [(&'static str, Option<Value>); 5] {
        // Most workspaces have more runs with a result than runs of a batch, a simulation or an assistant.
        let is_narrow =
            self.assistant_id.is_some() || self.simulation_id.is_some() || self.batch_id.is_some();
        [
            ("assistant_id", self.assistant_id.as_ref().map(Value::from)),
            ("simulation_id", self.simulation_id.as_ref().map(Value::from)),
            ("batch_id", self.batch_id.as_ref().map(Value::from)),
            ("status", self.status.map(|status| status.as_str().into())),
            (if is_narrow { "+passed" } else { "passed" }, self.passed.map(Value::from)),
        ]
    }

    /// ` AND …`: what of the filter may have changed since the runs were found.
    pub fn still(&self) -> String {
        let status = self.status.map(|status| format!(" AND runs.status = '{}'", status.as_str()));
        let passed = self.passed.map(|passed| match passed {
            Passed::True => " AND runs.passed = 1",
            Passed::False => " AND runs.passed = 0",
            Passed::Null => " AND runs.passed IS NULL",
        });
        status.unwrap_or_default() + passed.unwrap_or_default()
    }
}

crate::words! {
    /// The result of a run.
    json Passed {
        /// Every evaluation passed.
        True = "true",
        /// An evaluation failed.
        False = "false",
        /// Neither.
        Null = "null",
    }
}

impl From<Passed> for Value {
    fn from(passed: Passed) -> Self {
        match passed {
            Passed::True => true.into(),
            Passed::False => false.into(),
            Passed::Null => Self::Null,
        }
    }
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
    let Query { filter, page, limit } = input.query()?;
    let page = Page::new(page, limit);
    let select = paging::select("runs", Run::COLUMNS, filter.columns(), page);
    let [count, rows] = context.read_each(select).await?;
    let (runs, pagination) = paging::read(page, &count, &rows, Run::read)?;
    Ok(Output::ok(&RunList { runs, pagination })?.with_page_after(pagination))
}
