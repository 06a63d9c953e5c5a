//! Roll-ups: sums stored beside the calls, so that statistics need not read every call.
//!
//! A call counts in five spans: all time, and the 64 days, 8 days, day and 3 hours in which it started. Any time range
//! consists of a few spans of each length and at most two partial spans of 3 hours; only for the partial ones the calls
//! themselves are read. Each span is eight times as long as the next, so that few of each length are needed for any
//! range. The lengths are fixed and count from 1970, so span boundaries are computed.
//!
//! A call counts twice in each span: in its own group, and in the wide group of its source, outcome and sentiment. A
//! filter without assistant, model and voice reads only the wide groups, whose number does not grow with the number of
//! assistants.

const HOUR_MS: i64 = 60 * 60 * 1000;
/// A day: one of the spans.
pub const DAY_MS: i64 = 24 * HOUR_MS;
/// The spans except all time, the longest first.
pub const SPANS_MS: [i64; 4] = [64 * DAY_MS, 8 * DAY_MS, DAY_MS, 3 * HOUR_MS];
/// The shortest span.
pub const FINEST_MS: i64 = SPANS_MS[SPANS_MS.len() - 1];
/// The stored value of the span of all time.
pub const ALL_MS: i64 = 0;
/// Later than every call; a boundary of every span, and exact as a float.
const END_OF_TIME_MS: i64 = (1 << 52) / SPANS_MS[0] * SPANS_MS[0];

/// The spans as a table of one column, `column1`.
pub const SPANS: &str = "(VALUES (0), (5529600000), (691200000), (86400000), (10800000)) AS span";
/// When the span `column1` that holds the time `started_at` starts.
pub const STARTS_AT: &str = "CASE span.column1 WHEN 0 THEN 0 ELSE started_at - started_at % span.column1 END";
/// The conflict clause that adds to an existing sum.
pub const ADD: &str = "ON CONFLICT DO UPDATE SET calls = calls + excluded.calls,
 duration_ms = duration_ms + excluded.duration_ms, cost_microusd = cost_microusd + excluded.cost_microusd";

/// Where the sums of a period are stored.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Grain {
    /// In one row for each group.
    All,
    /// In the rows of spans of this many milliseconds.
    Span(i64),
    /// In the calls themselves.
    Calls,
}

/// A period, its end excluded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Piece {
    /// Where its sums are stored.
    pub grain: Grain,
    /// Its start, in ms since 1970.
    pub from_ms: i64,
    /// Its end (excluded).
    pub to_ms: i64,
}

/// The periods that cover the time from `from_ms` to before `to_ms`, oldest first; `None` is no limit.
pub fn cover(from_ms: Option<i64>, to_ms: Option<i64>) -> Vec<Piece> {
    if (from_ms, to_ms) == (None, None) {
        return vec![Piece { grain: Grain::All, from_ms: 0, to_ms: END_OF_TIME_MS }];
    }
    spans_of(from_ms, to_ms)
}

/// [`cover`] without the sums over all time.
pub fn spans_of(from_ms: Option<i64>, to_ms: Option<i64>) -> Vec<Piece> {
    let bounded = |ms: i64| ms.clamp(0, END_OF_TIME_MS);
    let mut pieces = Vec::new();
    let (from_ms, to_ms) = (bounded(from_ms.unwrap_or(0)), bounded(to_ms.unwrap_or(END_OF_TIME_MS)));
    split(&SPANS_MS, from_ms, to_ms, &mut pieces);
    pieces
}

fn split(spans_ms: &[i64], from_ms: i64, to_ms: i64, pieces: &mut Vec<Piece>) {
    if from_ms >= to_ms {
        return;
    }
    let Some((span_ms, finer)) = spans_ms.split_first() else {
        pieces.push(Piece { grain: Grain::Calls, from_ms, to_ms });
        return;
    };
    let first = (from_ms + span_ms - 1) / span_ms * span_ms;
    let last = to_ms / span_ms * span_ms;
    if first >= last {
        return split(finer, from_ms, to_ms, pieces);
    }
    split(finer, from_ms, first, pieces);
    pieces.push(Piece { grain: Grain::Span(*span_ms), from_ms: first, to_ms: last });
    split(finer, last, to_ms, pieces);
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn spans_in_sql_equal_spans_in_code() {
        for span in SPANS_MS.iter().chain(&[ALL_MS]) {
            assert!(SPANS.contains(&format!("({span})")));
        }
        assert_eq!(SPANS.matches("), (").count(), SPANS_MS.len());
    }

    #[test]
    fn whole_days_are_read_from_sums_only() {
        let days = |n: i64| n * DAY_MS;
        let pieces = spans_of(Some(days(7)), Some(days(64 * 3 + 1)));
        let grains: Vec<Grain> = pieces.iter().map(|piece| piece.grain).collect();
        let spans = [1, 8, 64, 1].map(|n| Grain::Span(days(n)));
        assert_eq!(grains, spans);
        assert_eq!(cover(None, None).len(), 1);
        assert_eq!(cover(Some(5), Some(5)), []);
        assert_eq!(cover(Some(6), Some(5)), []);
    }

    proptest! {
        #[test]
        fn pieces_are_contiguous_and_only_partial_spans_read_calls(
            from in -DAY_MS..200 * DAY_MS, length in 0..200 * DAY_MS
        ) {
            let pieces = spans_of(Some(from), Some(from + length));
            let mut at = from.max(0);
            for piece in &pieces {
                prop_assert_eq!(piece.from_ms, at);
                prop_assert!(piece.to_ms > at);
                match piece.grain {
                    Grain::Span(ms) => prop_assert!(piece.from_ms % ms == 0 && piece.to_ms % ms == 0),
                    Grain::Calls => prop_assert!(piece.to_ms - piece.from_ms < 2 * FINEST_MS),
                    Grain::All => prop_assert!(false),
                }
                at = piece.to_ms;
            }
            prop_assert_eq!(at, (from + length).max(from.max(0)));
            prop_assert!(pieces.len() <= 9);
        }
    }
}
