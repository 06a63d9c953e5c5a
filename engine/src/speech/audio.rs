//! The engine's audio format: mono, 16-bit linear samples, in frames of 20 ms.
//!
//! The boundary between telephones (and browsers) on one side and speech synthesis and recognition on the other:
//!
//! - A line ([`crate::carriers::MediaCodec`], or another kind of socket) has a [`Rate`], delivers samples in pieces of any
//!   size, and accepts whole frames of [`Rate::frame_samples`].
//! - Synthesis and recognition have a rate of their own; a resampler converts between the two.
//! - Audio that was sent has not necessarily been heard: `super::playback::Playback` counts what has been played by the
//!   marks that a line returns. The caller's times in a transcript come from `super::arrival_clock`, the assistant's from
//!   `super::playback_schedule`.
/// Duration of a frame.
pub const FRAME_MS: i64 = 20;

/// A sample rate.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rate {
    /// 8,000 samples per second, the telephone network's rate.
    Khz8,
    /// 16,000 samples per second.
    Khz16,
    /// 24,000 samples per second.
    Khz24,
}

impl Rate {
    /// Samples per second.
    pub const fn hz(self) -> u32 {
        match self {
            Self::Khz8 => 8_000,
            Self::Khz16 => 16_000,
            Self::Khz24 => 24_000,
        }
    }

    /// The duration of this many samples, rounded down.
    pub const fn ms_of(self, samples: usize) -> i64 {
        samples as i64 * 1_000 / self.hz() as i64
    }

    /// The number of samples in this duration. All rates have whole samples per millisecond.
    pub const fn samples_in(self, ms: i64) -> i64 {
        ms * (self.hz() / 1_000) as i64
    }

    /// Samples per frame of [`FRAME_MS`].
    pub const fn frame_samples(self) -> usize {
        self.hz() as usize / 50
    }
}
