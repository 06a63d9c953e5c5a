//! Statistics of the calls of a period, interval by interval. Counts, lengths and costs are sums that are stored for each
//! interval; how long callers waited is computed from a sample. What both read does not grow with the log.
use schemars::JsonSchema;
use serde::Serialize;
use serde_json::json;

use crate::base::limits::WAITS_CALLS_MAX;
use crate::base::time;
use crate::ports::DatabaseError;
use crate::ports::statement::{Rows, Statement};
use crate::sql;
use crate::storage::calls::Source;
use crate::storage::calls::rollup::{DAY_MS, FINEST_MS};
use crate::storage::calls::stats::ByOutcome;
use crate::storage::calls::waits::{PERCENTILES, Waits};

/// Calls over time.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallsOverTime {
    /// The start of the first interval.
    from: String,
    /// The end of the last interval, in which the present lies.
    to: String,
    /// The length of an interval: a day in UTC, or three hours.
    interval_ms: i64,
    /// The intervals, oldest first, also those without calls.
    intervals: Vec<Interval>,
    /// How long callers waited for answers in the calls of all intervals.
    waits: Waits,
}

/// The calls that started in an interval.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CallInterval")]
pub struct Interval {
    /// The start of the interval.
    starts_at: String,
    /// The number of calls.
    total: i64,
    /// Their total duration.
    total_duration_ms: i64,
    /// Their total cost.
    total_cost_microusd: i64,
    /// Calls by source.
    by_source: BySource,
    /// Calls by outcome; calls that have not ended are not counted.
    by_outcome: ByOutcome,
    /// How long callers waited for answers.
    waits: Waits,
}

/// Calls by source.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CallsBySource")]
#[allow(missing_docs, reason = "the sources themselves")]
pub struct BySource {
    pub inbound: i64,
    pub outbound: i64,
    pub browser: i64,
    pub simulation: i64,
}

impl BySource {
    fn of(&mut self, source: Source) -> &mut i64 {
        match source {
            Source::Inbound => &mut self.inbound,
            Source::Outbound => &mut self.outbound,
            Source::Browser => &mut self.browser,
            Source::Simulation => &mut self.simulation,
        }
    }
}

/// The latest days, cut into intervals whose sums are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    from_ms: i64,
    interval_ms: i64,
    count: i64,
}

impl Period {
    /// The longest period that is cut into intervals of three hours.
    const FINE_DAYS_MAX: i64 = 2;

    /// The `days` before `now_ms`, ending with the interval in which it lies.
    #[must_use]
    pub const fn of(days: i64, now_ms: i64) -> Self {
        let interval_ms = if days > Self::FINE_DAYS_MAX { DAY_MS } else { FINEST_MS };
        let count = days * DAY_MS / interval_ms;
        Self { from_ms: (now_ms.div_euclid(interval_ms) + 1 - count) * interval_ms, interval_ms, count }
    }

    const fn to_ms(self) -> i64 {
        self.from_ms + self.count * self.interval_ms
    }

    fn starts(self) -> impl Iterator<Item = i64> {
        (0..self.count).map(move |at| self.from_ms + at * self.interval_ms)
    }

    /// Which interval starts at this time.
    fn position(self, starts_at: i64) -> Option<usize> {
        usize::try_from((starts_at - self.from_ms).div_euclid(self.interval_ms)).ok()
    }
}

/// The sums, and the waits, for [`CallsOverTime::read`].
pub fn select(period: Period) -> [Statement; 2] {
    let sums = sql!(
        "WITH summed AS MATERIALIZED (SELECT id, source, outcome FROM call_groups WHERE workspace_id = :ws AND assistant_id = '')
         SELECT starts_at, source, outcome, SUM(calls) AS calls, SUM(duration_ms) AS duration_ms, SUM(cost_microusd) AS cost_microusd
         FROM summed CROSS JOIN call_rollups AS sums
         WHERE workspace_id = :ws AND sums.group_id = summed.id AND span_ms = :interval AND starts_at >= :from AND starts_at < :to
         GROUP BY starts_at, source, outcome",
        interval = period.interval_ms,
        from = period.from_ms,
        to = period.to_ms(),
    );
    let [p50, p95, p99] = PERCENTILES;
    let waits = sql!(
        format!(
            "WITH intervals AS MATERIALIZED (SELECT value AS starts_at FROM json_each(:starts)),
             waits AS MATERIALIZED (SELECT starts_at, wait.value AS ms FROM (
               SELECT intervals.starts_at AS starts_at, latest.value AS seq FROM intervals CROSS JOIN json_each((
                 SELECT json_group_array(seq) FROM (SELECT seq FROM calls INDEXED BY calls_by_started_at
                   WHERE workspace_id = :ws AND calls.started_at >= intervals.starts_at
                   AND calls.started_at < intervals.starts_at + :interval
                   ORDER BY calls.started_at DESC, seq DESC LIMIT CAST(:most AS INTEGER)))) AS latest
             ) AS sampled CROSS JOIN calls AS c ON c.seq = sampled.seq CROSS JOIN json_each(c.waits) AS wait
             WHERE c.waits IS NOT NULL),
             counted AS MATERIALIZED (
               SELECT starts_at, COUNT(*) AS turns, json_group_array(ms ORDER BY ms) AS sorted FROM waits GROUP BY starts_at
               UNION ALL SELECT NULL, COUNT(*), json_group_array(ms ORDER BY ms) FROM waits)
             SELECT starts_at, turns, {p50}, {p95}, {p99} FROM counted"
        ),
        starts = json!(period.starts().collect::<Vec<_>>()).to_string(),
        interval = period.interval_ms,
        most = WAITS_CALLS_MAX / period.count.max(1),
    );
    [sums, waits]
}

impl CallsOverTime {
    /// From the rows of [`select`].
    pub fn read(period: Period, sums: &Rows, waits: &Rows) -> Result<Self, DatabaseError> {
        let mut intervals: Vec<Interval> = period
            .starts()
            .map(|ms| Interval { starts_at: time::format(ms), ..Interval::default() })
            .collect();
        let position = |starts_at| period.position(starts_at).unwrap_or(usize::MAX);
        for row in sums.iter() {
            let Some(interval) = intervals.get_mut(position(row.integer("starts_at")?)) else { continue };
            let calls = row.integer("calls")?;
            interval.total += calls;
            interval.total_duration_ms += row.integer("duration_ms")?;
            interval.total_cost_microusd += row.integer("cost_microusd")?;
            *interval.by_source.of(row.word("source")?) += calls;
            if let Some(outcome) = row.optional_word("outcome")? {
                *interval.by_outcome.of(outcome) += calls;
            }
        }
        let mut all = Waits::default();
        for row in waits.iter() {
            let waits = Waits::of_row(row)?;
            match row.optional_integer("starts_at")? {
                None => all = waits,
                Some(starts_at) => {
                    if let Some(interval) = intervals.get_mut(position(starts_at)) {
                        interval.waits = waits;
                    }
                }
            }
        }
        Ok(Self {
            from: time::format(period.from_ms),
            to: time::format(period.to_ms()),
            interval_ms: period.interval_ms,
            intervals,
            waits: all,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_period_ends_with_the_interval_of_the_present_and_starts_at_a_stored_sum() {
        let now_ms = 1_795_483_200_000 + 5 * 3_600_000 + 1;
        for (days, interval_ms, count) in
            [(1, FINEST_MS, 8), (2, FINEST_MS, 16), (3, DAY_MS, 3), (90, DAY_MS, 90)]
        {
            let period = Period::of(days, now_ms);
            assert_eq!((period.interval_ms, period.count), (interval_ms, count));
            assert_eq!(period.from_ms % interval_ms, 0);
            assert!(period.to_ms() > now_ms && period.to_ms() - interval_ms <= now_ms);
            let starts: Vec<i64> = period.starts().collect();
            assert_eq!(period.position(starts[1]), Some(1));
            assert_eq!(period.position(period.from_ms - 1), None);
        }
    }
}
