//! Percentiles of how long callers waited for answers. They are not sums, so they cannot be rolled up: they are computed
//! from the latest calls that match, and what that costs does not grow with the log.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::base::limits::WAITS_CALLS_MAX;
use crate::ports::DatabaseError;
use crate::ports::statement::{Row, Rows, Statement};
use crate::storage::calls::EndedCall;
use crate::storage::calls::filter::{Binds, CallFilter};
use crate::storage::calls::list;

/// How long callers waited for each answer: from the end of their speech until they heard the assistant. Each percentile
/// is the wait of one turn; null without a turn that was answered.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "AnswerWaits")]
pub struct Waits {
    /// The number of answered turns in the latest 1,000 calls that match. Over time, the calls of each interval are the
    /// latest of it, so many that those of all intervals are at most 1,000.
    pub turns: i64,
    /// Half of these turns were answered within this time.
    pub p50_ms: Option<i64>,
    /// 95 % of them were.
    pub p95_ms: Option<i64>,
    /// 99 % of them were.
    pub p99_ms: Option<i64>,
}

/// The columns of the percentiles, from the number of `turns` and their waits as an array, `sorted`. It is sorted once;
/// ranking each wait would take three times as long.
pub(super) const PERCENTILES: [&str; 3] = [
    "json_extract(sorted, '$[' || MAX((turns * 50 + 99) / 100 - 1, 0) || ']') AS p50",
    "json_extract(sorted, '$[' || MAX((turns * 95 + 99) / 100 - 1, 0) || ']') AS p95",
    "json_extract(sorted, '$[' || MAX((turns * 99 + 99) / 100 - 1, 0) || ']') AS p99",
];

/// One row, for [`Waits::read`].
pub fn select(filter: &CallFilter) -> Statement {
    let mut binds = Binds::default();
    let latest = list::latest(filter, WAITS_CALLS_MAX, &mut binds);
    let [p50, p95, p99] = PERCENTILES;
    binds.statement(format!(
        "WITH {latest},
         waits AS (SELECT wait.value AS ms FROM page CROSS JOIN calls AS c ON c.seq = page.seq
           CROSS JOIN json_each(c.waits) AS wait WHERE c.waits IS NOT NULL),
         counted AS MATERIALIZED (SELECT COUNT(*) AS turns, json_group_array(ms ORDER BY ms) AS sorted FROM waits)
         SELECT turns, {p50}, {p95}, {p99} FROM counted"
    ))
}

impl Waits {
    /// From the row of [`select`].
    pub fn read(rows: &Rows) -> Result<Self, DatabaseError> {
        rows.iter().next().map_or_else(|| Ok(Self::default()), Self::of_row)
    }

    /// From a row with the [`PERCENTILES`].
    pub(super) fn of_row(row: Row<'_>) -> Result<Self, DatabaseError> {
        Ok(Self {
            turns: row.integer("turns")?,
            p50_ms: row.optional_integer("p50")?,
            p95_ms: row.optional_integer("p95")?,
            p99_ms: row.optional_integer("p99")?,
        })
    }
}

/// The waits of a call as they are stored.
pub(super) fn stored(ended: &EndedCall) -> Option<String> {
    let waits: Vec<i64> = ended.turns.iter().filter_map(|turn| turn.wait_ms()).collect();
    (!waits.is_empty()).then(|| json!(waits).to_string())
}
