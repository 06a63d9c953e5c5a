//! What stands before a packet, and finding it.
use super::spectrum::{STEPS_A_SYMBOL, Spectrum};
use super::tones::GROUP;

/// Pairs of tones of one group. None is near a DTMF digit.
const PAIRS: [[usize; 2]; Preamble::SYMBOLS] =
    [[2, 9], [GROUP + 1, GROUP + 8], [6, 14], [GROUP + 5, GROUP + 13]];

/// What stands before a packet.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Preamble {
    /// Before an utterance's first packet.
    Opening,
    /// Before the others.
    Following,
}

impl Preamble {
    /// How many symbols it has.
    pub(super) const SYMBOLS: usize = 4;

    /// The tones of its symbols.
    pub(super) fn pairs(self) -> [[usize; 2]; Self::SYMBOLS] {
        let mut pairs = PAIRS;
        if self == Self::Following {
            pairs.reverse();
        }
        pairs
    }
}

/// What is known of a preamble, one after the other.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Found {
    /// It is one.
    Certain(Preamble),
    /// The window of its last symbol is best placed when it ends with this step.
    Placed(Preamble, u64),
}

/// Looks for preambles.
#[derive(Debug, Clone, Default)]
pub(super) struct Search {
    /// For each pair, at which of the last 64 steps it was what there was to hear; the last step is the lowest bit.
    heard: [u64; Preamble::SYMBOLS],
    /// The preamble that is being placed.
    run: Option<Run>,
}

/// The steps at which a preamble was heard. They are found within the time of a symbol.
#[derive(Debug, Clone, Copy)]
struct Run {
    preamble: Preamble,
    first: u64,
    /// The sum of their distances from the first.
    distances: u64,
    count: u64,
}

impl Search {
    /// Nothing has been heard.
    pub(super) const fn new() -> Self {
        Self { heard: [0; Preamble::SYMBOLS], run: None }
    }

    /// What `step`, at which the spectrum is this, tells.
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
        if distance + 1 < STEPS_A_SYMBOL {
            return None;
        }
        let middle = (run.distances + run.count / 2) / run.count;
        let placed = Found::Placed(run.preamble, run.first + middle);
        self.run = None;
        Some(placed)
    }

    /// The preamble of which the last symbol is being heard.
    fn present(&self) -> Option<Preamble> {
        // How long ago each pair was heard in an opening one; in a following one it is the other way round.
        let ago = |symbol: usize| STEPS_A_SYMBOL * (Preamble::SYMBOLS - 1 - symbol) as u64;
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
