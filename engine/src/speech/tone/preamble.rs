//! Preambles of packets and their detection.
use super::spectrum::{STEPS_PER_SYMBOL, Spectrum};
use super::tones::GROUP;

/// Pairs of tones of the same group, none near a DTMF digit.
const PAIRS: [[usize; 2]; Preamble::SYMBOLS] =
    [[2, 9], [GROUP + 1, GROUP + 8], [6, 14], [GROUP + 5, GROUP + 13]];

/// The preamble of a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preamble {
    /// Of an utterance's first packet.
    Opening,
    /// Of the following packets.
    Following,
}

impl Preamble {
    /// Number of symbols.
    pub(super) const SYMBOLS: usize = 4;

    /// The tones of its symbols, in order.
    pub(super) fn pairs(self) -> [[usize; 2]; Self::SYMBOLS] {
        let mut pairs = PAIRS;
        if self == Self::Following {
            pairs.reverse();
        }
        pairs
    }
}

/// The two stages of detection.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// A preamble is present.
    Certain(Preamble),
    /// The best alignment: the window of its last symbol ends at this step.
    Placed(Preamble, u64),
}

/// Searches for preambles.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    /// For each pair, at which of the last 64 steps it was dominant; the lowest bit is the last step.
    heard: [u64; Preamble::SYMBOLS],
    /// The preamble that is being aligned.
    run: Option<Run>,
}

/// The steps at which a preamble was detected, collected over the duration of a symbol.
#[derive(Debug, Clone, Copy)]
struct Run {
    preamble: Preamble,
    first: u64,
    /// The sum of their distances from the first one.
    distances: u64,
    count: u64,
}

impl Search {
    pub(super) const fn new() -> Self {
        Self { heard: [0; Preamble::SYMBOLS], run: None }
    }

    /// Processes the spectrum of a step.
    pub(super) fn step(&mut self, step: u64, spectrum: &Spectrum) -> Option<Found> {
        let is_loud = spectrum.is_loud();
        for (heard, pair) in self.heard.iter_mut().zip(PAIRS) {
            *heard = *heard << 1 | u64::from(is_loud && spectrum.is_pair(pair));
        }
        let present = self.present();
        let Some(run) = &mut self.run else {
            let preamble = present?;
            self.run = Some(Run { preamble, first: step, distances: 0, count: 1 });
            return Some(Found::Certain(preamble));
        };
        let distance = step - run.first;
        if present == Some(run.preamble) {
            run.distances += distance;
            run.count += 1;
        }
        if distance + 1 < STEPS_PER_SYMBOL {
            return None;
        }
        let middle = (run.distances + run.count / 2) / run.count;
        let placed = Found::Placed(run.preamble, run.first + middle);
        self.run = None;
        Some(placed)
    }

    /// The preamble whose last symbol is in the window.
    fn present(&self) -> Option<Preamble> {
        // The age of each pair in an opening preamble; a following one has the reverse order.
        let ago = |symbol: usize| STEPS_PER_SYMBOL * (Preamble::SYMBOLS - 1 - symbol) as u64;
        let all = |ago_of: &dyn Fn(usize) -> u64| {
            self.heard.iter().enumerate().all(|(pair, heard)| heard >> ago_of(pair) & 1 == 1)
        };
        if all(&ago) {
            Some(Preamble::Opening)
        } else if all(&|pair| ago(Preamble::SYMBOLS - 1 - pair)) {
            Some(Preamble::Following)
        } else {
            None
        }
    }
}
