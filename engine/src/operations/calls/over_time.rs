//! `GET /calls/statistics`: the calls of the latest days, interval by interval.
use schemars::JsonSchema;
use serde::Deserialize;

use crate::base::limits::{STATISTICS_DAYS_DEFAULT, STATISTICS_DAYS_MAX};
use crate::operations::context::Context;
use crate::operations::operation::{Input, Operation, Output};
use crate::storage::calls::over_time::{self, CallsOverTime, Period};
use crate::storage::fault::Fault;

/// `GET /calls/statistics`
pub const OPERATION: Operation = Operation::get("get_call_statistics", "/calls/statistics", run!(run))
    .docs("Get call statistics", "Counts the calls of the latest days, interval by interval: by source and outcome, with their \
        length, their cost and how long callers waited. Intervals are days in UTC, or three hours for up to two days.")
    .query::<Query>()
    .returns::<CallsOverTime>();

/// The period.
#[derive(Deserialize, JsonSchema)]
pub struct Query {
    /// How many days; the last one ends with the present interval. Default 30.
    #[schemars(range(min = 1, max = STATISTICS_DAYS_MAX))]
    days: Option<i64>,
}

async fn run(context: &mut Context, input: &Input) -> Result<Output, Fault> {
    let query: Query = input.query()?;
    let period = Period::of(query.days.unwrap_or(STATISTICS_DAYS_DEFAULT), context.now_ms);
    let [sums, waits] = context.read_each(over_time::select(period)).await?;
    Output::ok(&CallsOverTime::read(period, &sums, &waits)?)
}
