//! The latest audio of a person, by position, for as long as it may have to be sent again.
use std::collections::VecDeque;

use bytes::Bytes;

use crate::base::limits::SPEECH_REPLAY_MS;
use crate::speech::audio::Rate;

/// A position: samples since the beginning of the call.
pub(super) type Position = u64;

/// A ring of samples. What exceeds [`SPEECH_REPLAY_MS`] is forgotten, the oldest first.
pub(super) struct AudioLog {
    rate: Rate,
    samples: VecDeque<i16>,
    end: Position,
}

impl AudioLog {
    pub(super) fn new(rate: Rate) -> Self {
        Self { rate, samples: VecDeque::new(), end: 0 }
    }

    pub(super) fn rate(&self) -> Rate {
        self.rate
    }

    /// The position of the first sample that is still there.
    pub(super) fn start(&self) -> Position {
        self.end - self.samples.len() as u64
    }

    /// The position after the last sample.
    pub(super) fn end(&self) -> Position {
        self.end
    }

    pub(super) fn push(&mut self, samples: &[i16]) {
        let most = usize::try_from(self.samples_in(SPEECH_REPLAY_MS)).unwrap_or(usize::MAX);
        self.end += samples.len() as u64;
        let fitting = samples.get(samples.len().saturating_sub(most)..).unwrap_or_default();
        let over = (self.samples.len() + fitting.len()).saturating_sub(most);
        self.samples.drain(..over);
        self.samples.extend(fitting);
    }

    /// Silence of this length, as if it had been heard.
    pub(super) fn push_silence(&mut self, ms: i64) {
        let samples = usize::try_from(self.samples_in(ms)).unwrap_or_default();
        self.push(&vec![0; samples]);
    }

    /// Forgets everything before a position.
    pub(super) fn forget_until(&mut self, position: Position) {
        let forgotten = position.min(self.end).saturating_sub(self.start());
        self.samples.drain(..usize::try_from(forgotten).unwrap_or(usize::MAX).min(self.samples.len()));
        if self.samples.is_empty() || self.samples.capacity() / 4 > self.samples.len() {
            self.samples.shrink_to(2 * self.samples.len());
        }
    }

    /// What is there between two positions.
    pub(super) fn read(&self, from: Position, to: Position) -> Vec<i16> {
        let start = self.start();
        let index =
            |position: Position| usize::try_from(position.clamp(start, self.end) - start).unwrap_or_default();
        let (from, to) = (index(from), index(to));
        self.samples.range(from.min(to)..to).copied().collect()
    }

    /// Samples in a duration.
    pub(super) fn samples_in(&self, ms: i64) -> u64 {
        ms.max(0).unsigned_abs() * u64::from(self.rate.hz()) / 1_000
    }

    /// The duration of samples.
    pub(super) fn ms_of(&self, samples: u64) -> i64 {
        i64::try_from(samples.saturating_mul(1_000) / u64::from(self.rate.hz())).unwrap_or(i64::MAX)
    }

    /// The position at `seconds`, as a provider says it, of a stream that began at `origin`. Always within what was heard.
    pub(super) fn position(&self, origin: Position, seconds: f64) -> Position {
        // A cast of a float saturates, and NaN becomes 0.
        let samples = (seconds * f64::from(self.rate.hz())).round() as u64;
        origin.saturating_add(samples).min(self.end)
    }
}

/// Samples as 16-bit little-endian bytes.
pub(super) fn linear16(samples: &[i16]) -> Bytes {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn keeps_the_last_ten_seconds() {
        let mut log = AudioLog::new(Rate::Khz8);
        for second in 0..12 {
            log.push(&[second; 8_000]);
        }
        assert_eq!((log.start(), log.end()), (16_000, 96_000));
        assert_eq!(log.read(23_999, 24_002), [2, 3, 3]);
        assert_eq!(log.read(0, 16_001), [2]);
        assert_eq!(log.read(30_000, 20_000), [0; 0]);
        log.push(&vec![7; 100_000]);
        assert_eq!((log.start(), log.end()), (116_000, 196_000));
        log.forget_until(195_999);
        assert_eq!((log.start(), log.read(0, u64::MAX)), (195_999, vec![7]));
        log.forget_until(u64::MAX);
        assert_eq!((log.start(), log.samples.capacity()), (196_000, 0));
    }

    #[test]
    fn positions_stay_within_what_was_heard() {
        let mut log = AudioLog::new(Rate::Khz16);
        log.push(&[0; 32_000]);
        assert_eq!(log.position(16_000, 0.5), 24_000);
        for (seconds, position) in
            [(f64::NAN, 16_000), (-3.0, 16_000), (f64::INFINITY, 32_000), (1e300, 32_000)]
        {
            assert_eq!(log.position(16_000, seconds), position, "{seconds}");
        }
        assert_eq!((log.ms_of(24_000), log.samples_in(1_500)), (1_500, 24_000));
    }
}
