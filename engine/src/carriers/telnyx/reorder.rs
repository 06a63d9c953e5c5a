//! Restores the order of audio chunks: Telnyx numbers them and may deliver them out of order.
use std::collections::{BTreeMap, VecDeque};

/// Most chunks that are buffered while an earlier one is missing.
const CHUNKS_MAX: usize = 10;
/// Most buffered audio, in samples at 8 kHz: 200 ms.
const SAMPLES_MAX: usize = 1_600;
/// Gaps that are remembered, to tell a late chunk from a repeated one.
const GAPS_MAX: usize = 64;
/// The number of the first chunk.
const FIRST: u64 = 1;

/// Sorts chunks by their numbers.
///
/// 1. The next chunk is released at once, with the chunks that waited for it.
/// 2. A later chunk waits within [`CHUNKS_MAX`] and [`SAMPLES_MAX`]. Beyond that, the gap before it is skipped.
/// 3. A chunk that was skipped and arrives after all is released at once: late but not lost.
/// 4. A repeated chunk is dropped.
#[derive(Debug, Default)]
pub(super) struct Reorder {
    /// The number of the next chunk; `None` before the first release.
    next: Option<u64>,
    waiting: BTreeMap<u64, Vec<i16>>,
    /// The skipped ranges: first and last number, in order.
    gaps: VecDeque<(u64, u64)>,
}

impl Reorder {
    /// Adds a chunk; returns the chunks that can be played now, in order.
    pub(super) fn push(&mut self, chunk: u64, samples: Vec<i16>) -> Vec<Vec<i16>> {
        if self.next.is_some_and(|next| chunk < next) {
            return if self.fill(chunk) { vec![samples] } else { Vec::new() };
        }
        // Of two chunks with the same number the first counts.
        self.waiting.entry(chunk).or_insert(samples);
        let mut out = self.release();
        while self.is_full() {
            self.skip_gap();
            out.extend(self.release());
        }
        out
    }

    /// Releases all waiting chunks in order, at the end of the stream.
    pub(super) fn flush(&mut self) -> Vec<Vec<i16>> {
        let mut out = Vec::new();
        while !self.waiting.is_empty() {
            self.skip_gap();
            out.extend(self.release());
        }
        out
    }

    fn is_full(&self) -> bool {
        let samples: usize = self.waiting.values().map(Vec::len).sum();
        self.waiting.len() > CHUNKS_MAX || (self.waiting.len() > 1 && samples > SAMPLES_MAX)
    }

    /// Releases the chunks up to the next gap.
    fn release(&mut self) -> Vec<Vec<i16>> {
        if self.next.is_none() && self.waiting.first_key_value().is_some_and(|(chunk, _)| *chunk <= FIRST) {
            self.skip_gap();
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

    /// Skips to the first waiting chunk and records the gap before it.
    fn skip_gap(&mut self) {
        let Some((&first, _)) = self.waiting.first_key_value() else { return };
        let next = self.next.replace(first).unwrap_or(0);
        if next < first {
            self.gaps.push_back((next, first - 1));
            if self.gaps.len() > GAPS_MAX {
                self.gaps.pop_front();
            }
        }
    }

    /// Removes a number from the gaps; false when it is in none.
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
        // Splitting a gap adds one; the oldest is dropped beyond the limit.
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

    /// A frame of 20 ms that contains its chunk's number.
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
    fn chunks_in_order_do_not_wait() {
        let mut reorder = Reorder::default();
        for chunk in 1..=100 {
            assert_eq!(numbers(reorder.push(chunk, frame(chunk))), [i16::try_from(chunk).unwrap()]);
        }
        assert!(reorder.flush().is_empty());
        assert_eq!(heard([0, 1, 2]), [0, 1, 2]);
    }

    #[test]
    fn early_chunks_wait() {
        assert_eq!(heard([1, 3, 4, 2, 5]), [1, 2, 3, 4, 5]);
        assert_eq!(heard([2, 1, 3]), [1, 2, 3]);
        assert_eq!(heard([1, 0, 2]), [1, 0, 2], "chunk 0 is not waited for and not lost");
    }

    #[test]
    fn the_wait_for_a_gap_is_bounded() {
        let mut reorder = Reorder::default();
        assert_eq!(numbers(reorder.push(1, frame(1))), [1]);
        for chunk in 3..=12 {
            assert!(reorder.push(chunk, frame(chunk)).is_empty(), "{chunk} waits");
        }
        let out = numbers(reorder.push(13, frame(13)));
        assert_eq!(out, (3..=13).collect::<Vec<_>>());
        assert_eq!(numbers(reorder.push(2, frame(2))), [2], "late but not lost");
        assert!(reorder.push(2, frame(2)).is_empty(), "a repeated chunk is dropped");
        assert_eq!(numbers(reorder.push(14, frame(14))), [14]);
        // Large chunks wait by their length.
        let mut reorder = Reorder::default();
        assert_eq!(reorder.push(1, vec![0; 800]).len(), 1);
        assert_eq!(reorder.push(3, vec![0; 900]).len(), 0);
        assert_eq!(reorder.push(4, vec![0; 900]).len(), 2);
    }

    #[test]
    fn numbering_may_start_anywhere() {
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
        /// Slightly shuffled, some repeated, some missing: each chunk is released once, in order, with little buffering.
        #[test]
        fn restores_the_order(keys in prop::collection::vec((0_u64..5, 0_u8..10), 1..200)) {
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

        /// In any order: nothing is repeated, and nothing is lost while gaps are few.
        #[test]
        fn audio_is_neither_lost_nor_repeated(chunks in prop::collection::vec(0_u64..60, 0..300)) {
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
