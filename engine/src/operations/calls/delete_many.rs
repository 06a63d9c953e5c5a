//! `DELETE /calls`: removes the calls that match a filter and have ended, and everything that tells about them.
use schemars::JsonSchema;
use serde::Deserialize;

use super::list::{self, Filters};
use crate::base::error::Code;
use crate::base::limits::{CALLS_DELETED_AT_ONCE, RETENTION_CALLS_MAX};
use crate::operations::context::Context;
use crate::operations::deleting::{self, Deleted, Trial};
use crate::operations::operation::{Input, Operation, Output, Success};
use crate::storage::calls::filter::CallFilter;
use crate::storage::calls::list::ended_first;
use crate::storage::calls::write::erase::{Which, erase};
use crate::storage::fault::Fault;
use crate::storage::parts::Parts;

/// `DELETE /calls`
pub const OPERATION: Operation = Operation::delete("delete_calls", "/calls", run!(run))
    .with_success(Success::Ok)
    .docs(
        "Delete calls by a filter",
        "Permanently deletes the ended calls that match the filters (at least one), at most 500 in a request. Each goes as \
        with delete_call. Calls in progress stay. With `dry_run` it only counts. The files of \
        recordings are removed within minutes.",
    )
    .query::<Query>()
    .returns::<Deleted>()
    .errors(&[Code::InvalidParameter]);

/// Which calls.
#[derive(Deserialize, JsonSchema)]
struct Query {
    #[serde(flatten)]
    filters: Filters,
    #[serde(flatten)]
    trial: Trial,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let Query { filters, trial } = input.query()?;
    let filter = list::filter(filters)?;
    if filter == CallFilter::default() {
        return Err(deleting::no_filter("date_to").into());
    }
    let [found] = context.read_each([ended_first(&filter, CALLS_DELETED_AT_ONCE + 1)]).await?;
    let most = usize::try_from(CALLS_DELETED_AT_ONCE).unwrap_or(usize::MAX);
    let (mut ended, mut in_progress) = (0, 0);
    let mut parts = Parts::of(RETENTION_CALLS_MAX);
    for row in found.iter() {
        match row.str("status")? {
            "ended" if ended >= most => ended += 1,
            "ended" => {
                ended += 1;
                parts.add(row)?;
            }
            _ => in_progress += 1,
        }
    }
    let more = ended > most;
    if trial.is_set() {
        return Output::ok(&Deleted::of(&trial, ended.min(most), in_progress, more));
    }
    // Each batch is short, so that others write between them.
    let mut deleted = 0;
    for part in parts.lists() {
        let rows = context.write(erase(Which::Listed(&part), context.now_ms)).await?;
        deleted += rows.last().map_or(0, |rows| rows.values.len());
    }
    Output::ok(&Deleted::of(&trial, deleted, in_progress, more))
}
