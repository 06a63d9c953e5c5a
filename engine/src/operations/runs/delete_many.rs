//! `DELETE /simulations/runs`: removes the runs that match a filter and are not running.
use schemars::JsonSchema;
use serde::Deserialize;

use super::delete;
use super::list::Filter;
use crate::base::limits::RUNS_DELETED_AT_ONCE;
use crate::operations::context::Context;
use crate::operations::deleting::{self, Deleted, Trial};
use crate::operations::operation::{Input, Operation, Output, Success};
use crate::operations::paging;
use crate::ports::statement::{Rows, Statement};
use crate::storage::fault::Fault;
use crate::storage::parts::{Parts, RUN_SIZE};

/// `DELETE /simulations/runs`
pub const OPERATION: Operation =
    Operation::delete("delete_simulation_runs", "/simulations/runs", run!(run))
        .with_success(Success::Ok)
        .docs(
            "Delete runs by a filter",
            "Permanently deletes the runs that match the filters (at least one), at most 1,000 in a request. Queued runs are canceled, running ones stay. With `dry_run` it only counts. Calls are \
            kept: delete_calls deletes them.",
        )
        .query::<Query>()
        .returns::<Deleted>();

/// Which runs.
#[derive(Deserialize, JsonSchema)]
struct Query {
    #[serde(flatten)]
    filter: Filter,
    #[serde(flatten)]
    trial: Trial,
}

/// Runs that are deleted in one batch, at most.
const PART: i64 = 50;

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Query { filter, trial } = input.query()?;
    let columns = filter.columns();
    if columns.iter().all(|(_, value)| value.is_none()) {
        return Err(deleting::no_filter("batch_id").into());
    }
    let (condition, values) = paging::condition(columns);
    let running = Statement::named(
        &format!(
            "WITH those AS (SELECT 1 FROM runs WHERE {condition} AND status = 'running') SELECT COUNT(*) AS running FROM those"
        ),
        values.clone(),
    );
    let found = Statement::named(
        &format!(
            "SELECT {RUN_SIZE} FROM runs WHERE {condition} AND status <> 'running'
             ORDER BY id LIMIT {}",
            RUNS_DELETED_AT_ONCE + 1
        ),
        values,
    );
    let [running, found] = context.read_each([running, found]).await?;
    let running = running.first().map_or(Ok(0), |row| row.integer("running"))?;
    let most = usize::try_from(RUNS_DELETED_AT_ONCE).unwrap_or(usize::MAX);
    let (count, more) = (found.values.len().min(most), found.values.len() > most);
    if trial.is_set() || count == 0 {
        return Output::ok(&Deleted::of(&trial, count, running, more));
    }
    let mut parts = Parts::of(PART);
    found.iter().take(most).try_for_each(|row| parts.add(row))?;
    // Each batch is short, so that others write between them.
    let (mut deleted, still) = (0, filter.still());
    for part in parts.lists() {
        let rows = context.write(delete::erase(&part, &still)).await?;
        deleted += rows.last().map_or(0, |rows: &Rows| rows.values.len());
    }
    Output::ok(&Deleted::of(&trial, deleted, running, more))
}
