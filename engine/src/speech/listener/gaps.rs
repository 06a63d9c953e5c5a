//! Gaps in the times of a voice's audio, by the line's [`ArrivalClock`](crate::speech::arrival_clock::ArrivalClock): late
//! audio leaves one, and closes it when it catches up.
use std::collections::VecDeque;

/// Older gaps stay.
const GAPS_MAX: usize = 8;

/// Nothing was heard from `from_ms` on for this long.
#[derive(Debug, Clone, Copy)]
struct Gap {
    from_ms: i64,
    ms: i64,
}

/// The latest gaps, the latest last.
#[derive(Debug, Default)]
pub(super) struct Gaps {
    gaps: VecDeque<Gap>,
}

impl Gaps {
    /// Audio came this late, where its predecessor ended at `from_ms`; negative if part of the gaps before it closes. These
    /// times of what was heard before move with the gaps before them. What is read late when a line opens was all spoken
    /// earlier: its times move with more than the gaps.
    pub(super) fn late<'time>(
        &mut self,
        from_ms: i64,
        late_ms: i64,
        opens: bool,
        times: impl Iterator<Item = &'time mut i64>,
    ) {
        // Pieces need not be whole ms. The clock's gaps are longer than its jitter.
        if late_ms > 1 {
            if self.gaps.len() == GAPS_MAX {
                self.gaps.pop_front();
            }
            self.gaps.push_back(Gap { from_ms, ms: late_ms });
        }
        let mut early_ms = (-late_ms).max(0);
        let mut closed: Vec<Gap> = Vec::new();
        while early_ms > 0
            && let Some(gap) = self.gaps.back_mut()
        {
            let ms = early_ms.min(gap.ms);
            gap.ms -= ms;
            early_ms -= ms;
            closed.push(Gap { ms, ..*gap });
            self.gaps.pop_back_if(|gap| gap.ms == 0);
        }
        for time_ms in times {
            for gap in &closed {
                *time_ms = (*time_ms).min((*time_ms - gap.ms).max(gap.from_ms));
            }
            *time_ms -= if opens { early_ms } else { 0 };
        }
    }

    /// The time of what was heard this long before `until_ms`, without the gaps between.
    pub(super) fn before(&self, until_ms: i64, heard_ms: i64) -> i64 {
        let at_ms = until_ms - heard_ms;
        self.gaps.iter().rev().fold(at_ms, |at_ms, gap| match at_ms < gap.from_ms + gap.ms {
            true => at_ms - gap.ms,
            false => at_ms,
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Where these times move to.
    fn late<const N: usize>(gaps: &mut Gaps, from_ms: i64, late_ms: i64, mut times: [i64; N]) -> [i64; N] {
        gaps.late(from_ms, late_ms, false, times.iter_mut());
        times
    }

    #[test]
    fn what_was_heard_moves_with_the_gaps_before_it() {
        let mut gaps = Gaps::default();
        late(&mut gaps, 1_000, 200, []);
        late(&mut gaps, 1_400, 100, []);
        assert_eq!(gaps.before(1_600, 50), 1_550, "after both");
        assert_eq!(gaps.before(1_600, 250), 1_250, "between");
        assert_eq!(gaps.before(1_600, 350), 950, "before");
        let moved = late(&mut gaps, 1_600, -150, [950, 1_250, 1_550]);
        assert_eq!(moved, [950, 1_200, 1_400], "the second closes, and 50 ms of the first");
        assert_eq!(gaps.before(1_450, 250), 1_200);
        assert_eq!(late(&mut gaps, 1_450, -500, moved), [950, 1_050, 1_250], "no more than there was");
        assert_eq!(late(&mut gaps, 1_300, -500, [1_050]), [1_050]);
    }

    #[test]
    fn a_line_that_is_read_late_at_first_moves_whole() {
        let mut gaps = Gaps::default();
        let mut times = [700, 900];
        gaps.late(1_000, -200, true, times.iter_mut());
        assert_eq!(times, [500, 700]);
    }

    #[test]
    fn pieces_of_no_whole_ms_leave_no_gaps() {
        let mut gaps = Gaps::default();
        late(&mut gaps, 1_000, 300, []);
        for n in 0..100 {
            late(&mut gaps, 1_300 + n * 21, n % 3 / 2, []);
        }
        assert_eq!(late(&mut gaps, 3_400, -300, [1_400]), [1_100]);
    }

    #[test]
    fn there_are_no_more_than_eight() {
        let mut gaps = Gaps::default();
        for n in 0..1_000 {
            late(&mut gaps, n * 100, 60, []);
        }
        assert_eq!(gaps.gaps.len(), GAPS_MAX);
    }
}
