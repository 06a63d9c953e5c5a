//! Statistics over the calls that match a filter.
use schemars::JsonSchema;
use serde::Serialize;

use crate::conversation::{Outcome, Sentiment};
use crate::ports::DatabaseError;
use crate::ports::statement::{Rows, Statement};
use crate::storage::calls::filter::{Binds, CallFilter, sums};
use crate::storage::calls::rollup;
use crate::storage::calls::waits::Waits;

/// Statistics over all calls that match the filter, on all pages.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
pub struct CallStats {
    /// The number of calls.
    pub total: i64,
    /// Their total duration.
    pub total_duration_ms: i64,
    /// Their average duration, including calls that were not answered; 0 without calls.
    pub average_duration_ms: i64,
    /// Their total cost.
    pub total_cost_microusd: i64,
    /// Calls by outcome; calls that have not ended are not counted.
    pub by_outcome: ByOutcome,
    /// Calls by sentiment; calls that are not analyzed are not counted.
    pub by_sentiment: BySentiment,
    /// How long callers waited for answers.
    pub waits: Waits,
}

/// Calls by outcome.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CallsByOutcome")]
#[allow(missing_docs, reason = "the outcomes themselves")]
pub struct ByOutcome {
    pub completed: i64,
    pub no_answer: i64,
    pub busy: i64,
    pub failed: i64,
    pub canceled: i64,
    pub voicemail: i64,
}

/// Calls by sentiment.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, JsonSchema)]
#[schemars(rename = "CallsBySentiment")]
#[allow(missing_docs, reason = "the sentiments themselves")]
pub struct BySentiment {
    pub positive: i64,
    pub neutral: i64,
    pub negative: i64,
    pub unknown: i64,
}

impl ByOutcome {
    pub(super) fn of(&mut self, outcome: Outcome) -> &mut i64 {
        match outcome {
            Outcome::Completed => &mut self.completed,
            Outcome::NoAnswer => &mut self.no_answer,
            Outcome::Busy => &mut self.busy,
            Outcome::Failed => &mut self.failed,
            Outcome::Canceled => &mut self.canceled,
            Outcome::Voicemail => &mut self.voicemail,
        }
    }
}

impl BySentiment {
    fn of(&mut self, sentiment: Sentiment) -> &mut i64 {
        match sentiment {
            Sentiment::Positive => &mut self.positive,
            Sentiment::Neutral => &mut self.neutral,
            Sentiment::Negative => &mut self.negative,
            Sentiment::Unknown => &mut self.unknown,
        }
    }
}

/// One row for each outcome and sentiment. Without a search, it reads only roll-ups, and single calls only of partly
/// matching spans.
pub fn select(filter: &CallFilter) -> Statement {
    let mut binds = Binds::default();
    let (tables, counted) = match filter.found(&mut binds) {
        Some(found) => {
            let picked = if filter.has_groups() { " AND c.group_id IN (SELECT id FROM picked)" } else { "" };
            let counted = format!(
                "SELECT c.group_id AS group_id, 1 AS calls, COALESCE(c.duration_ms, 0) AS duration_ms, c.cost_microusd AS cost_microusd
                 FROM ({found}) AS found CROSS JOIN calls AS c ON c.seq = found.seq WHERE c.workspace_id = :ws{}{picked}",
                filter.started("c.started_at", &mut binds)
            );
            (format!("picked AS MATERIALIZED ({})", filter.groups(&mut binds)), counted)
        }
        None => {
            let picked = filter.has_groups().then_some("picked");
            let pieces = rollup::cover(filter.from_ms, filter.to_ms);
            let counted = sums(&pieces, "summed", picked, &mut binds);
            let (groups, summed) = (filter.groups(&mut binds), filter.summed(&mut binds));
            (format!("picked AS MATERIALIZED ({groups}), summed AS MATERIALIZED ({summed})"), counted)
        }
    };
    binds.statement(format!(
        "WITH {tables}
         SELECT outcome, sentiment, SUM(calls) AS calls, SUM(duration_ms) AS duration_ms, SUM(cost_microusd) AS cost_microusd
         FROM (SELECT group_id, SUM(calls) AS calls, SUM(duration_ms) AS duration_ms, SUM(cost_microusd) AS cost_microusd
               FROM ({counted}) GROUP BY group_id)
         JOIN call_groups ON call_groups.id = group_id GROUP BY outcome, sentiment"
    ))
}

impl CallStats {
    /// From the rows of [`select`] and the waits.
    pub fn read(rows: &Rows, waits: Waits) -> Result<Self, DatabaseError> {
        let mut stats = Self { waits, ..Self::default() };
        for row in rows.iter() {
            let calls = row.integer("calls")?;
            stats.total += calls;
            stats.total_duration_ms += row.integer("duration_ms")?;
            stats.total_cost_microusd += row.integer("cost_microusd")?;
            if let Some(outcome) = row.optional_word("outcome")? {
                *stats.by_outcome.of(outcome) += calls;
            }
            if let Some(sentiment) = row.optional_word("sentiment")? {
                *stats.by_sentiment.of(sentiment) += calls;
            }
        }
        if stats.total > 0 {
            stats.average_duration_ms = (stats.total_duration_ms + stats.total / 2) / stats.total;
        }
        Ok(stats)
    }
}
