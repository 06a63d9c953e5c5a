//! Sound as the engine handles it: mono, 16-bit linear samples, cut into frames of 20 ms.
//!
//! The border between telephones (and browsers) on one side and what speaks and listens on the other:
//!
//! - A line ([`crate::carriers::MediaCodec`], or another kind of socket) says at which [`Rate`] it runs, gives
//!   samples as they come, in pieces of any size, and takes whole frames of [`Rate::frame_samples`].
//! - What listens and speaks works at a rate of its own; between the two stands a resampler.
//! - What was sent is not what was heard: [`super::playback::Playback`] counts what has been played by the marks a line
//!   gives back. Every time in a transcript is one of its clock.
/// How long a frame is.
pub const FRAME_MS: i64 = 20;

/// Samples a second.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Rate {
    /// A telephone's: 8,000 a second.
    Khz8,
    /// 16,000 a second.
    Khz16,
    /// 24,000 a second.
    Khz24,
}

impl Rate {
    /// Samples a second.
    pub const fn hz(self) -> u32 {
        match self {
            Self::Khz8 => 8_000,
            Self::Khz16 => 16_000,
            Self::Khz24 => 24_000,
        }
    }

    /// Samples of one frame of [`FRAME_MS`].
    pub const fn frame_samples(self) -> usize {
        self.hz() as usize / 50
    }
}
