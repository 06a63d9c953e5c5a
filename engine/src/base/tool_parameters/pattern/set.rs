const LAST: u32 = char::MAX as u32;

/// A set of characters as disjoint, non-adjacent ranges in ascending order.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Set {
    /// One bit per ASCII character, the common case.
    ascii: u128,
    ranges: Vec<(u32, u32)>,
}

impl Set {
    /// Builds a set from inclusive ranges in any order.
    pub fn of(mut ranges: Vec<(u32, u32)>) -> Self {
        ranges.sort_unstable();
        ranges.dedup_by(|next, previous| {
            let joined = next.0 <= previous.1.saturating_add(1);
            if joined {
                previous.1 = previous.1.max(next.1);
            }
            joined
        });
        let ascii = (0..128).filter(|code| within(&ranges, *code)).fold(0, |bits, code| bits | 1 << code);
        Self { ascii, ranges }
    }

    /// The complement.
    pub fn negated(&self) -> Self {
        let mut ranges = Vec::with_capacity(self.ranges.len() + 1);
        let mut next = 0;
        for (first, last) in &self.ranges {
            if next < *first {
                ranges.push((next, first - 1));
            }
            next = last + 1;
        }
        if next <= LAST {
            ranges.push((next, LAST));
        }
        Self::of(ranges)
    }

    pub fn ranges(&self) -> &[(u32, u32)] {
        &self.ranges
    }

    pub fn contains(&self, character: char) -> bool {
        let code = u32::from(character);
        if code < 128 { self.ascii >> code & 1 == 1 } else { within(&self.ranges, code) }
    }
}

fn within(ranges: &[(u32, u32)], code: u32) -> bool {
    let after = ranges.partition_point(|(first, _)| *first <= code);
    after.checked_sub(1).and_then(|at| ranges.get(at)).is_some_and(|(_, last)| code <= *last)
}
