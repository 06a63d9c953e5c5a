//! Recordings of people, which `.ci/recordings` fetches: files of 8 kHz with one channel.
use std::path::{Path, PathBuf};

/// The folder of one person's prompts. Tests that need it are ignored where `RECORDINGS` is not set.
///
/// # Panics
///
/// If `RECORDINGS` is not set.
#[must_use]
pub fn prompts() -> PathBuf {
    PathBuf::from(std::env::var("RECORDINGS").expect("RECORDINGS is set")).join("prompts")
}

/// The samples of a file.
///
/// # Panics
///
/// If it is no such file.
#[must_use]
pub fn samples(path: &Path) -> Vec<i16> {
    let mut file = hound::WavReader::open(path).expect("a WAV file");
    assert_eq!((file.spec().sample_rate, file.spec().channels), (8_000, 1), "{path:?}");
    file.samples::<i16>().map(|sample| sample.expect("a sample")).collect()
}

/// The first sample of the audible part of a sound, and the one after its last: as loud as its loudest moment, down to 30 dB
/// below.
#[must_use]
pub fn audible(samples: &[i16]) -> (usize, usize) {
    above(samples, 1_000)
}

/// The same down to this part of the loudest moment's energy.
#[must_use]
pub fn above(samples: &[i16], divisor: i64) -> (usize, usize) {
    /// Frames of 10 ms.
    const FRAME: usize = 80;
    let energy = |frame: &[i16]| frame.iter().map(|sample| i64::from(*sample).pow(2)).sum::<i64>();
    let energies: Vec<i64> = samples.chunks(FRAME).map(energy).collect();
    let least = energies.iter().max().copied().unwrap_or(0) / divisor;
    let is_loud = |energy: &i64| *energy >= least;
    let first = energies.iter().position(is_loud).unwrap_or(0);
    let last = energies.iter().rposition(is_loud).unwrap_or(0);
    (FRAME * first, FRAME * (last + 1))
}
