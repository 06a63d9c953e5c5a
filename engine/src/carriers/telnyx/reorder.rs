//! Audio in its order: Telnyx numbers its chunks and does not promise to send them in turn.
use std::collections::{BTreeMap, VecDeque};

/// Chunks that are held while one before them is missing.
const CHUNKS_MAX: usize = 10;
/// Audio that is held, in samples at 8 kHz: 200 ms.
const SAMPLES_MAX: usize = 1_600;
/// Gaps that are remembered, so that what fills them late is told from what came before.
const GAPS_MAX: usize = 64;
/// Chunks count from 1.
const FIRST: u64 = 1;

/// Puts chunks into the order of their numbers.
///
/// 1. A chunk whose turn it is goes out at once, with all that waited for it.
/// 2. A chunk before its turn waits, as long as [`CHUNKS_MAX`] and [`SAMPLES_MAX`] allow. Then the gap is passed over.
/// 3. A chunk that was passed over and comes after all goes out at once: late, and not lost.
/// 4. A chunk that went out before is dropped.
#[derive(Debug, Default)]
pub(super) struct Reorder {
    /// The number whose turn it is; `None` before the first went out.
    next: Option<u64>,
    waiting: BTreeMap<u64, Vec<i16>>,
    /// What was passed over: first and last number, in order.
    gaps: VecDeque<(u64, u64)>,
}

impl Reorder {
    /// Takes a chunk; what can be heard now, in order.
    pub(super) fn push(&mut self, chunk: u64, samples: Vec<i16>) -> Vec<Vec<i16>> {
        if self.next.is_some_and(|next| chunk < next) {
            return if self.fill(chunk) { vec![samples] } else { Vec::new() };
        }
        // Of two with one number the first counts.
        self.waiting.entry(chunk).or_insert(samples);
        let mut out = self.run();
        while self.is_full() {
            self.pass_over();
            out.extend(self.run());
        }
        out
    }

    /// All that waits, in order: nothing more is coming.
    pub(super) fn flush(&mut self) -> Vec<Vec<i16>> {
        let mut out = Vec::new();
        while !self.waiting.is_empty() {
            self.pass_over();
            out.extend(self.run());
        }
        out
    }

    fn is_full(&self) -> bool {
        let samples: usize = self.waiting.values().map(Vec::len).sum();
        self.waiting.len() > CHUNKS_MAX || (self.waiting.len() > 1 && samples > SAMPLES_MAX)
    }

    /// What goes out without a gap.
    fn run(&mut self) -> Vec<Vec<i16>> {
        if self.next.is_none() && self.waiting.first_key_value().is_some_and(|(chunk, _)| *chunk <= FIRST) {
            self.pass_over();
        }
        let mut out = Vec::new();
        while let Some(next) = self.next
            && let Some(samples) = self.waiting.remove(&next)
        {
            out.push(samples);
            self.next = Some(next.saturating_add(1));
        }
        out
    }

    /// It is the turn of the first that waits, and what is missing before it is a gap.
    fn pass_over(&mut self) {
        let Some((&first, _)) = self.waiting.first_key_value() else { return };
        let next = self.next.replace(first).unwrap_or(0);
        if next < first {
            self.gaps.push_back((next, first - 1));
            if self.gaps.len() > GAPS_MAX {
                self.gaps.pop_front();
            }
        }
    }

    /// Takes a number out of the gaps; false when it is in none.
    fn fill(&mut self, chunk: u64) -> bool {
        let Some(place) = self.gaps.iter().position(|(first, last)| (*first..=*last).contains(&chunk)) else {
            return false;
        };
        let Some((first, last)) = self.gaps.remove(place) else { return false };
        if chunk < last {
            self.gaps.insert(place, (chunk + 1, last));
        }
        if first < chunk {
            self.gaps.insert(place, (first, chunk - 1));
        }
        // A gap that was split counts twice: the oldest is forgotten.
        if self.gaps.len() > GAPS_MAX {
            self.gaps.pop_front();
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    /// Twenty milliseconds that say which chunk they are.
    fn frame(chunk: u64) -> Vec<i16> {
        vec![i16::try_from(chunk).unwrap(); 160]
    }

    fn numbers(frames: Vec<Vec<i16>>) -> Vec<i16> {
        frames.into_iter().map(|frame| frame[0]).collect()
    }

    fn heard(chunks: impl IntoIterator<Item = u64>) -> Vec<i16> {
        let mut reorder = Reorder::default();
        let mut out: Vec<i16> =
            chunks.into_iter().flat_map(|chunk| numbers(reorder.push(chunk, frame(chunk)))).collect();
        out.extend(numbers(reorder.flush()));
        out
    }

    #[test]
    fn chunks_in_turn_wait_for_nothing() {
        let mut reorder = Reorder::default();
        for chunk in 1..=100 {
            assert_eq!(numbers(reorder.push(chunk, frame(chunk))), [i16::try_from(chunk).unwrap()]);
        }
        assert!(reorder.flush().is_empty());
        assert_eq!(heard([0, 1, 2]), [0, 1, 2]);
    }

    #[test]
    fn what_overtook_waits() {
        assert_eq!(heard([1, 3, 4, 2, 5]), [1, 2, 3, 4, 5]);
        assert_eq!(heard([2, 1, 3]), [1, 2, 3]);
        assert_eq!(heard([1, 0, 2]), [1, 0, 2], "nobody waits for a chunk 0, and it is not lost");
    }

    #[test]
    fn a_gap_is_waited_for_no_longer_than_it_may_be() {
        let mut reorder = Reorder::default();
        assert_eq!(numbers(reorder.push(1, frame(1))), [1]);
        for chunk in 3..=12 {
            assert!(reorder.push(chunk, frame(chunk)).is_empty(), "{chunk} waits");
        }
        let out = numbers(reorder.push(13, frame(13)));
        assert_eq!(out, (3..=13).collect::<Vec<_>>());
        assert_eq!(numbers(reorder.push(2, frame(2))), [2], "late, and not lost");
        assert!(reorder.push(2, frame(2)).is_empty(), "and not twice");
        assert_eq!(numbers(reorder.push(14, frame(14))), [14]);
        // Large chunks are waited for by their length.
        let mut reorder = Reorder::default();
        assert_eq!(reorder.push(1, vec![0; 800]).len(), 1);
        assert_eq!(reorder.push(3, vec![0; 900]).len(), 0);
        assert_eq!(reorder.push(4, vec![0; 900]).len(), 2);
    }

    #[test]
    fn numbering_that_begins_anywhere_is_followed() {
        assert_eq!(heard(500..530), (500..530).collect::<Vec<_>>());
        assert_eq!(heard([20_000, 20_002, 20_001]), [20_000, 20_001, 20_002]);
    }

    fn heard_and_held(chunks: &[u64]) -> (Vec<u64>, usize) {
        let mut reorder = Reorder::default();
        let mut out = Vec::new();
        let mut held = 0;
        for chunk in chunks {
            let samples = vec![i16::try_from(chunk % 30_000).unwrap(); 160];
            out.extend(reorder.push(*chunk, samples).into_iter().map(|frame| frame[0]));
            held = held.max(reorder.waiting.len());
        }
        out.extend(reorder.flush().into_iter().map(|frame| frame[0]));
        (out.into_iter().map(|number| u64::try_from(number).unwrap()).collect(), held)
    }

    proptest! {
        /// Shuffled a little, some doubled, some missing: each that came is heard once, in order, and little is held.
        #[test]
        fn a_little_disorder_is_mended(keys in prop::collection::vec((0_u64..5, 0_u8..10), 1..200)) {
            let mut chunks: Vec<(u64, u64)> = Vec::new();
            for (chunk, (delay, fate)) in (1_u64..).zip(&keys) {
                match fate {
                    0 => {}
                    1 => chunks.extend([(chunk + delay, chunk), (chunk + 2, chunk)]),
                    _ => chunks.push((chunk + delay, chunk)),
                }
            }
            chunks.sort();
            let sent: Vec<u64> = chunks.iter().map(|(_, chunk)| *chunk).collect();
            let (heard, held) = heard_and_held(&sent);
            let mut expected = sent;
            expected.sort_unstable();
            expected.dedup();
            prop_assert_eq!(heard, expected);
            prop_assert!(held <= CHUNKS_MAX);
        }

        /// In whatever order they come: nothing twice, and as long as gaps are few nothing lost.
        #[test]
        fn no_numbers_lose_or_double_audio(chunks in prop::collection::vec(0_u64..60, 0..300)) {
            let (mut heard, held) = heard_and_held(&chunks);
            let mut expected = chunks;
            expected.sort_unstable();
            expected.dedup();
            heard.sort_unstable();
            prop_assert_eq!(heard, expected);
            prop_assert!(held <= CHUNKS_MAX);
        }
    }
}
