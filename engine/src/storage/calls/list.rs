//! Selects a page of calls without reading the pages before it.
//!
//! There are two query plans. *Walking* scans the index of the sort order and stops when the page is full: best where
//! many calls pass the filter. *Gathering* takes the calls of the groups that pass and sorts them: best where few do. The
//! roll-ups tell in advance which plan is cheaper. One statement holds both, and the plan that is not chosen costs
//! nothing. When calls are sorted by start, the roll-ups also tell on which day a far page begins, so that only the calls
//! of that day are skipped one by one.
use crate::base::limits::{CALL_ROW_BYTES_MAX, PAGE_BYTES_MAX};
use crate::base::page::Page;
use crate::ports::statement::Statement;
use crate::storage::archives;
use crate::storage::calls::call::COLUMNS;
use crate::storage::calls::filter::{Binds, CallFilter, sums};
use crate::storage::calls::rollup::{self, FINEST_MS, SPANS_MS};
use crate::storage::parts::CALL_SIZE;

/// The sort key of a list; calls with equal keys are sorted by arrival.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Sort {
    /// When they started.
    #[default]
    StartedAt,
    /// When they ended; calls that have not ended count as the earliest.
    EndedAt,
    /// How long they were; calls that have not ended count as the shortest.
    DurationMs,
    /// What they cost.
    Cost,
}

impl Sort {
    fn column(self) -> &'static str {
        match self {
            Self::StartedAt => "started_at",
            Self::EndedAt => "ended_at",
            Self::DurationMs => "duration_ms",
            Self::Cost => "cost_microusd",
        }
    }

    fn index(self) -> &'static str {
        match self {
            Self::StartedAt => "calls_by_started_at",
            Self::EndedAt => "calls_by_ended_at",
            Self::DurationMs => "calls_by_duration_ms",
            Self::Cost => "calls_by_cost",
        }
    }
}

/// The direction of the sort.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Order {
    /// The smallest or earliest first.
    Ascending,
    /// The largest or latest first.
    #[default]
    Descending,
}

impl Order {
    fn word(self) -> &'static str {
        match self {
            Self::Ascending => "ASC",
            Self::Descending => "DESC",
        }
    }
}

/// Whether transcripts and analyses are read.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub enum Texts {
    /// As many transcripts as fit.
    #[default]
    Read,
    /// They are NULL, and storage does not touch the transcripts.
    LeftOut,
}

/// Gathering a call costs about as much as scanning this many index entries: the call is sorted, and unless calls are
/// sorted by start, its row is looked up for the sort key.
const GATHER_STEPS: i64 = 2;
const GATHER_AND_LOOKUP_STEPS: i64 = 10;

/// The rows of the page, for [`crate::storage::calls::Call::read`]. Transcripts that do not fit beside the rest of all
/// rows are NULL.
pub fn select(filter: &CallFilter, sort: Sort, order: Order, page: Page, texts: Texts) -> Statement {
    let mut binds = Binds::default();
    let found = List { filter, sort, order, page, binds: &mut binds }.expressions();
    let (column, order) = (sort.column(), order.word());
    if texts == Texts::LeftOut {
        let columns = COLUMNS.replace("c.analysis AS analysis", "NULL AS analysis");
        return binds.statement(format!(
            "WITH {found} SELECT {columns}, NULL AS transcript, NULL AS turns, NULL AS variables
             FROM page CROSS JOIN calls AS c ON c.seq = page.seq JOIN call_groups AS g ON g.id = c.group_id
             ORDER BY c.{column} {order}, c.seq {order}"
        ));
    }
    binds.statement(format!(
        "WITH {found},
         sized AS (SELECT c.seq AS seq, SUM(c.transcript_bytes) OVER (ORDER BY c.{column} {order}, c.seq {order})
             + SUM({CALL_ROW_BYTES_MAX} + COALESCE(octet_length(c.analysis), 0) + COALESCE(octet_length(c.waits), 0)
               + octet_length(c.metadata)) OVER () AS bytes
           FROM page CROSS JOIN calls AS c ON c.seq = page.seq)
         SELECT {COLUMNS}, CASE WHEN bytes <= {PAGE_BYTES_MAX} THEN COALESCE(t.content, '[]') END AS transcript,
         NULL AS turns, NULL AS variables, {}
         FROM sized CROSS JOIN calls AS c ON c.seq = sized.seq JOIN call_groups AS g ON g.id = c.group_id
         LEFT JOIN call_transcripts AS t ON t.seq = c.seq AND bytes <= {PAGE_BYTES_MAX}
         ORDER BY c.{column} {order}, c.seq {order}",
        archives::COLUMNS
    ))
}

/// The ids, statuses and sizes of calls that match: those that ended last, then those that have not ended.
pub fn ended_first(filter: &CallFilter, most: i64) -> Statement {
    let mut binds = Binds::default();
    let page = Page { page: 1, limit: most };
    let order = Order::Descending;
    let found = List { filter, sort: Sort::EndedAt, order, page, binds: &mut binds }.expressions();
    binds.statement(format!(
        "WITH {found} SELECT c.status AS status, {CALL_SIZE} FROM page CROSS JOIN calls AS c ON c.seq = page.seq"
    ))
}

/// Common table expressions of which the last, `page`, has the `seq` of the latest calls.
pub(super) fn latest(filter: &CallFilter, most: i64, binds: &mut Binds) -> String {
    let page = Page { page: 1, limit: most };
    List { filter, sort: Sort::StartedAt, order: Order::Descending, page, binds }.expressions()
}

/// The statement under construction.
struct List<'a> {
    filter: &'a CallFilter,
    sort: Sort,
    order: Order,
    page: Page,
    binds: &'a mut Binds,
}

impl List<'_> {
    /// Common table expressions of which the last, `page`, has the `seq` of the page's calls.
    fn expressions(&mut self) -> String {
        let picked = format!("picked AS MATERIALIZED ({})", self.filter.groups(self.binds));
        if let Some(matches) = self.filter.found(self.binds) {
            return format!("{picked}, page AS ({})", self.found(&matches));
        }
        let picked = format!("{picked}, summed AS MATERIALIZED ({})", self.filter.summed(self.binds));
        let start = if self.is_far() { self.start() } else { String::new() };
        if !self.has_a_choice() {
            return format!("{picked}{start}, page AS ({})", self.walked("1"));
        }
        let choice = self.choice();
        let walked = self.walked("(SELECT walk FROM choice)");
        let gathered = self.gathered("(SELECT NOT walk FROM choice)");
        format!(
            "{picked}{start}{choice}, page AS (SELECT seq FROM ({walked}) UNION ALL SELECT seq FROM ({gathered}))"
        )
    }

    /// The page of the calls that the text index finds; the cost grows with their number.
    fn found(&mut self, matches: &str) -> String {
        let started = self.filter.started("calls.started_at", self.binds);
        let (picked, limited) = (self.in_picked("calls.group_id"), self.limited("1"));
        format!(
            "SELECT calls.seq AS seq FROM ({matches}) AS found CROSS JOIN calls ON calls.seq = found.seq
             WHERE calls.workspace_id = :ws{started}{picked} {limited}"
        )
    }

    /// `chosen` is 0 when the other plan is chosen. It is in the LIMIT, because SQLite evaluates it once there; in a
    /// condition it would be evaluated for every row.
    fn walked(&mut self, chosen: &str) -> String {
        let started = self.filter.started("calls.started_at", self.binds);
        let (index, edge) = (self.sort.index(), self.edge());
        let (picked, limited) = (self.in_picked("calls.group_id"), self.limited(chosen));
        format!(
            "SELECT calls.seq AS seq FROM calls INDEXED BY {index}
             WHERE workspace_id = :ws{started}{edge}{picked} {limited}"
        )
    }

    fn gathered(&mut self, chosen: &str) -> String {
        let started = self.filter.started("calls.started_at", self.binds);
        let (edge, limited) = (self.edge(), self.limited(chosen));
        let from = if self.filter.has_groups() {
            // The groups belong to the workspace. A condition on the calls would need a lookup for each call.
            "picked CROSS JOIN calls INDEXED BY calls_by_group ON calls.group_id = picked.id WHERE true"
        } else {
            "calls INDEXED BY calls_by_started_at WHERE calls.workspace_id = :ws"
        };
        format!("SELECT calls.seq AS seq FROM {from}{started}{edge} {limited}")
    }

    /// Whether the roll-ups can tell where the page begins.
    fn is_far(&self) -> bool {
        self.sort == Sort::StartedAt && self.page.offset() > 0
    }

    /// Whether the filter may let few calls pass, so that walking could take long.
    fn has_a_choice(&self) -> bool {
        let ranged = self.filter.from_ms.is_some() || self.filter.to_ms.is_some();
        self.filter.has_groups() || (ranged && self.sort != Sort::StartedAt)
    }

    /// `choice`: whether walking is cheaper. `entries` index entries can be scanned, `matching` of them pass the filter,
    /// and the scan stops after `wanted` of these.
    fn choice(&mut self) -> String {
        let pieces = rollup::cover(self.filter.from_ms, self.filter.to_ms);
        let picked = self.filter.has_groups().then_some("picked");
        let matching = sums(&pieces, "summed", picked, self.binds);
        // An index for another sort key is not limited to the time range.
        let walked = if self.sort == Sort::StartedAt { pieces } else { rollup::cover(None, None) };
        let everything = CallFilter::default().summed(self.binds);
        let entries = sums(&walked, "everything", None, self.binds);
        let steps = if self.sort == Sort::StartedAt { GATHER_STEPS } else { GATHER_AND_LOOKUP_STEPS };
        let skipped = if self.is_far() { 0 } else { self.page.offset() };
        let wanted = self.binds.add(skipped + self.page.limit);
        format!(
            ", everything AS MATERIALIZED ({everything}), choice AS MATERIALIZED (
               SELECT {steps}.0 * matching * MAX(matching, {wanted}) >= entries * {wanted} AS walk FROM (
               SELECT (SELECT COALESCE(SUM(calls), 0) FROM ({entries})) AS entries,
               (SELECT COALESCE(SUM(calls), 0) FROM ({matching})) AS matching))"
        )
    }

    /// `start`: the span in which the page begins, and how many calls of the list come `before` the span; no row when
    /// the list is shorter. The search begins with the longest spans and continues within the span found.
    fn start(&mut self) -> String {
        let pieces = rollup::spans_of(self.filter.from_ms, self.filter.to_ms);
        let picked = self.filter.has_groups().then_some("picked");
        let counted = sums(&pieces, "summed", picked, self.binds);
        let offset = self.binds.add(self.page.offset());
        let order = self.order.word();
        let there = format!("before <= {offset} AND before + calls > {offset}");
        let mut sql = format!(
            ", pieces AS (SELECT starts_at, ends_at, SUM(calls) AS calls FROM ({counted}) GROUP BY starts_at, ends_at),
             span{} AS MATERIALIZED (SELECT starts_at, ends_at, before FROM
               (SELECT *, SUM(calls) OVER (ORDER BY starts_at {order}) - calls AS before FROM pieces) WHERE {there})",
            SPANS_MS[0]
        );
        for (span, finer) in SPANS_MS.iter().zip(&SPANS_MS[1..]) {
            sql.push_str(&format!(
                ", in{span} AS (SELECT sums.starts_at AS starts_at, SUM(calls) AS calls, before AS base
                   FROM span{span} AS span CROSS JOIN summed CROSS JOIN call_rollups AS sums
                   WHERE workspace_id = :ws AND sums.group_id = summed.id AND span_ms = {finer} AND sums.starts_at >= span.starts_at
                   AND sums.starts_at < span.ends_at AND span.ends_at - span.starts_at = {span} GROUP BY sums.starts_at),
                 span{finer} AS MATERIALIZED (SELECT starts_at, starts_at + {finer} AS ends_at, before FROM
                   (SELECT *, base + SUM(calls) OVER (ORDER BY starts_at {order}) - calls AS before FROM in{span}) WHERE {there}
                   UNION ALL SELECT starts_at, ends_at, before FROM span{span} WHERE ends_at - starts_at < {span})"
            ));
        }
        sql + &format!(", start AS MATERIALIZED (SELECT * FROM span{FINEST_MS})")
    }

    /// ` AND …`: skips the spans before the one in which the page begins.
    fn edge(&self) -> &'static str {
        match self.order {
            _ if !self.is_far() => "",
            Order::Ascending => " AND calls.started_at >= (SELECT starts_at FROM start)",
            Order::Descending => " AND calls.started_at < (SELECT ends_at FROM start)",
        }
    }

    /// ` AND …`: only the groups that pass.
    fn in_picked(&self, column: &str) -> String {
        match self.filter.has_groups() {
            true => format!(" AND {column} IN (SELECT id FROM picked)"),
            false => String::new(),
        }
    }

    /// ORDER BY, LIMIT and OFFSET of the page.
    fn limited(&mut self, chosen: &str) -> String {
        let (column, order) = (self.sort.column(), self.order.word());
        let (limit, offset) = (self.binds.add(self.page.limit), self.binds.add(self.page.offset()));
        let searches = self.filter.is_looked_up();
        let before =
            if self.is_far() && !searches { " - COALESCE((SELECT before FROM start), 0)" } else { "" };
        format!(
            "ORDER BY calls.{column} {order}, calls.seq {order}
             LIMIT CAST({limit} AS INTEGER) * {chosen} OFFSET CAST({offset} AS INTEGER){before}"
        )
    }
}
