//! Conversion between sample rates, piece by piece.
use rubato::audioadapter_buffers::direct::SequentialSlice;
use rubato::{
    Async, FixedAsync, Resampler as _, SincInterpolationParameters, SincInterpolationType, WindowFunction,
};

/// Samples per second that are possible.
pub const RATES_HZ: std::ops::RangeInclusive<u32> = 4_000..=192_000;
/// More places between two input samples than this are interpolated. 22,050 Hz to 48,000 Hz has 320.
const PLACES_MAX: u32 = 640;
/// Length of the low-pass filter in samples of the lower rate. 64 pass a telephone's 3,400 Hz at 8 kHz.
const FILTER_SAMPLES: usize = 64;
/// Input is filtered in blocks of this duration; what is left waits for the next [`Resampler::push`]. A block costs more than
/// its samples, and is a delay. Two blocks are a frame of the voice activity detector.
const BLOCK_MS: u32 = 8;

/// Converts a stream of samples from one rate to another.
///
/// The state is carried from piece to piece, so any division of the input gives the same output. Output sample `n` belongs
/// to the same moment as input sample `n * from / to`: the filter's delay is not part of the output, but the output comes
/// that much later ([`delay_ms`](Self::delay_ms)). After [`flush`](Self::flush) the output is exactly as long as the input:
/// `input * to / from` samples, rounded up.
///
/// Equal rates, and rates outside 4 to 192 kHz, pass through.
///
/// ```
/// use sidetone_engine::speech::resample::Resampler;
///
/// let mut resampler = Resampler::new(24_000, 8_000);
/// let mut output = resampler.push(&[0; 480]); // 20 ms
/// output.extend(resampler.flush());
/// assert_eq!(output.len(), 160);
/// ```
pub struct Resampler {
    from_hz: u32,
    to_hz: u32,
    /// The library's part; none where samples pass through.
    filter: Option<Async<f32>>,
    /// Input that waits for a full block.
    waiting: Vec<f32>,
    /// What the filter returned last: its memory is used again for the next block.
    converted: Vec<f32>,
    /// Samples since the beginning, or since the last flush.
    received: u64,
    returned: u64,
    /// Output of the filter that is still to be dropped: its delay.
    to_drop: usize,
}

impl Resampler {
    /// A resampler at the beginning of its stream.
    #[must_use]
    pub fn new(from_hz: u32, to_hz: u32) -> Self {
        let filter = filter(from_hz, to_hz);
        let mut resampler = Self {
            from_hz,
            to_hz,
            filter,
            waiting: Vec::new(),
            converted: Vec::new(),
            received: 0,
            returned: 0,
            to_drop: 0,
        };
        resampler.begin();
        resampler
    }

    /// Whether samples pass through unchanged.
    #[must_use]
    pub const fn passes_through(&self) -> bool {
        self.filter.is_none()
    }

    /// Converts the next samples. Returns what is complete.
    pub fn push(&mut self, samples: &[i16]) -> Vec<i16> {
        if self.filter.is_none() {
            return samples.to_vec();
        }
        self.received += samples.len() as u64;
        self.waiting.extend(samples.iter().map(|sample| f32::from(*sample)));
        let mut output = Vec::with_capacity(self.whole_output().saturating_sub(self.returned) as usize);
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut blocks = waiting.chunks_exact(block_samples(self.from_hz));
        for block in &mut blocks {
            self.convert(block, &mut output);
        }
        let rest = blocks.remainder().len();
        waiting.drain(..waiting.len() - rest);
        self.waiting = waiting;
        output
    }

    /// Returns the rest of the output. The resampler is then at the beginning of a new stream.
    pub fn flush(&mut self) -> Vec<i16> {
        let mut output = Vec::new();
        let mut block = std::mem::take(&mut self.waiting);
        // A filter that gives nothing would never be empty.
        let length = block_samples(self.from_hz);
        let mut blocks = 2 + 2 * self.delay_samples() / length;
        while self.returned < self.whole_output() && blocks > 0 {
            block.resize(length, 0.0);
            self.convert(&block, &mut output);
            block.clear();
            blocks -= 1;
        }
        let surplus = self.returned.saturating_sub(self.whole_output()) as usize;
        output.truncate(output.len().saturating_sub(surplus));
        self.begin();
        output
    }

    /// How much later than its input a sample is returned at most, in ms, rounded up.
    #[must_use]
    pub fn delay_ms(&self) -> i64 {
        (self.delay_samples() as u64 * 1_000).div_ceil(u64::from(self.from_hz.max(1))) as i64
    }

    /// Begins a stream. What the filter gives first is the time before the input. Silence in front of the input puts one sample
    /// of the output exactly at the input's first; all before it are dropped.
    fn begin(&mut self) {
        (self.received, self.returned) = (0, 0);
        let Some(filter) = &mut self.filter else { return };
        filter.reset();
        let divisor = greatest_common_divisor(self.from_hz, self.to_hz);
        let (step, places) = (self.from_hz / divisor, self.to_hz / divisor);
        let half = filter_samples(self.from_hz, self.to_hz) as u64 / 2;
        // The first sample of the output is half of the filter before the input, plus a step of the output, plus one place.
        let places_before =
            |silence: u32| u64::from(places) * (half + u64::from(silence)) - u64::from(step) - 1;
        let silence = (0..step).find(|silence| places_before(*silence) % u64::from(step) == 0).unwrap_or(0);
        self.waiting = vec![0.0; silence as usize];
        self.to_drop = (places_before(silence) / u64::from(step)) as usize;
    }

    /// Half of the filter and one block, in samples of the input.
    fn delay_samples(&self) -> usize {
        match self.filter {
            Some(_) => filter_samples(self.from_hz, self.to_hz) / 2 + block_samples(self.from_hz),
            None => 0,
        }
    }

    /// The length of the output of everything received.
    fn whole_output(&self) -> u64 {
        (self.received * u64::from(self.to_hz)).div_ceil(u64::from(self.from_hz.max(1)))
    }

    /// Converts one block.
    fn convert(&mut self, block: &[f32], output: &mut Vec<i16>) {
        let Some(filter) = &mut self.filter else { return };
        let Ok(input) = SequentialSlice::new(block, 1, block.len()) else { return };
        let frames = filter.output_frames_next();
        self.converted.resize(frames, 0.0);
        let Ok(mut buffer) = SequentialSlice::new_mut(&mut self.converted, 1, frames) else { return };
        let Ok((_, written)) = filter.process_into_buffer(&input, &mut buffer, None) else { return };
        let dropped = self.to_drop.min(written);
        self.to_drop -= dropped;
        self.returned += (written - dropped) as u64;
        // `as` cuts the rest off, and keeps the result within the range of a sample. `round` is a call for each sample.
        output
            .extend(self.converted[dropped..written].iter().map(|one| (one + 0.5_f32.copysign(*one)) as i16));
    }
}

/// The length of a block of the input.
fn block_samples(from_hz: u32) -> usize {
    (from_hz * BLOCK_MS / 1_000).max(1) as usize
}

/// The length of the filter: the same duration at every rate of the input.
fn filter_samples(from_hz: u32, to_hz: u32) -> usize {
    (FILTER_SAMPLES * from_hz as usize).div_ceil(from_hz.min(to_hz).max(1) as usize).next_multiple_of(8)
}

fn filter(from_hz: u32, to_hz: u32) -> Option<Async<f32>> {
    if from_hz == to_hz || !RATES_HZ.contains(&from_hz) || !RATES_HZ.contains(&to_hz) {
        return None;
    }
    // One filter for each place that a sample of the output can have between two of the input. Nothing is interpolated,
    // except for odd rates, which would need thousands.
    let places = to_hz / greatest_common_divisor(from_hz, to_hz);
    let interpolation = match places {
        ..=PLACES_MAX => SincInterpolationType::Nearest,
        _ => SincInterpolationType::Cubic,
    };
    let parameters = SincInterpolationParameters::new(filter_samples(from_hz, to_hz), WindowFunction::Hann2)
        .oversampling_factor(places.min(PLACES_MAX) as usize)
        .interpolation(interpolation);
    let ratio = f64::from(to_hz) / f64::from(from_hz);
    Async::new_sinc(ratio, 1.0, &parameters, block_samples(from_hz), 1, FixedAsync::Input).ok()
}

const fn greatest_common_divisor(mut one: u32, mut other: u32) -> u32 {
    while other != 0 {
        (one, other) = (other, one % other);
    }
    one
}

#[cfg(test)]
mod tests {
    use std::f64::consts::TAU;

    use proptest::prelude::*;

    use super::*;

    const HZ: [u32; 6] = [8_000, 16_000, 22_050, 24_000, 44_100, 48_000];

    fn tone(frequency: f64, hz: u32, ms: u32) -> Vec<i16> {
        (0..hz * ms / 1_000)
            .map(|place| (10_000.0 * (TAU * frequency * f64::from(place) / f64::from(hz)).sin()) as i16)
            .collect()
    }

    fn convert(samples: &[i16], from_hz: u32, to_hz: u32) -> Vec<i16> {
        let mut resampler = Resampler::new(from_hz, to_hz);
        let mut output = resampler.push(samples);
        output.extend(resampler.flush());
        output
    }

    #[test]
    fn a_tone_keeps_frequency_level_and_phase() {
        for from_hz in HZ {
            for to_hz in HZ {
                let output = convert(&tone(1_000.0, from_hz, 400), from_hz, to_hz);
                let expected = tone(1_000.0, to_hz, 400);
                assert_eq!(output.len(), expected.len());
                let edge = to_hz as usize / 50;
                for place in edge..output.len() - edge {
                    let difference = i32::from(output[place]) - i32::from(expected[place]);
                    assert!(difference.abs() <= 20, "{from_hz} {to_hz} {place}: {difference}");
                }
            }
        }
    }

    #[test]
    fn what_the_lower_rate_cannot_hold_is_removed() {
        for (from_hz, to_hz) in [(16_000, 8_000), (24_000, 8_000), (48_000, 8_000), (44_100, 8_000)] {
            let output = convert(&tone(5_000.0, from_hz, 400), from_hz, to_hz);
            let middle = &output[400..output.len() - 400];
            let loudest = middle.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
            assert!(loudest < 50, "{from_hz}: {loudest}");
        }
        let telephone = convert(&tone(3_300.0, 24_000, 400), 24_000, 8_000);
        let loudest = telephone[400..].iter().map(|sample| sample.unsigned_abs()).max().unwrap();
        assert!(loudest > 9_000, "{loudest}");
    }

    #[test]
    fn full_volume_is_not_inverted() {
        let square: Vec<i16> =
            (0..8_000).map(|place| if place / 40 % 2 == 0 { i16::MAX } else { i16::MIN }).collect();
        let output = convert(&square, 8_000, 24_000);
        for (place, sample) in output.iter().enumerate().skip(240).filter(|(place, _)| place % 120 == 60) {
            assert_eq!(*sample > 0, place / 120 % 2 == 0, "{place}: {sample}");
        }
    }

    /// Ten minutes give ten minutes.
    #[test]
    fn nothing_drifts() {
        for (from_hz, to_hz) in [(22_050, 8_000), (44_100, 16_000), (8_000, 16_000)] {
            let mut resampler = Resampler::new(from_hz, to_hz);
            let frame = vec![0; from_hz as usize / 10];
            let minutes = 10;
            let returned: usize = (0..minutes * 600).map(|_| resampler.push(&frame).len()).sum();
            let expected = to_hz as usize * 60 * minutes;
            let late = expected - returned;
            let most = resampler.delay_ms() as usize * to_hz as usize / 1_000 + 1;
            assert!(late <= most, "{from_hz} {to_hz}: {late} of {most}");
            assert_eq!(returned + resampler.flush().len(), expected);
        }
    }

    #[test]
    fn equal_rates_pass_through() {
        let mut resampler = Resampler::new(16_000, 16_000);
        assert_eq!(resampler.push(&[1, -2, 3]), [1, -2, 3]);
        assert!(resampler.flush().is_empty());
        assert_eq!(resampler.delay_ms(), 0);
    }

    #[test]
    fn a_rate_of_zero_passes_through() {
        let mut resampler = Resampler::new(0, 8_000);
        assert_eq!(resampler.push(&[1, 2]), [1, 2]);
        assert_eq!((resampler.delay_ms(), resampler.flush().len()), (0, 0));
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(48))]
        #[test]
        fn any_division_gives_the_same_samples(
            from_hz in prop::sample::select(&HZ[..]),
            to_hz in prop::sample::select(&HZ[..]),
            pieces in prop::collection::vec(0_usize..700, 0..12),
        ) {
            let samples = tone(700.0, from_hz, 1_000)[..pieces.iter().sum::<usize>().min(8_000)].to_vec();
            let whole = convert(&samples, from_hz, to_hz);
            let expected = (samples.len() as u64 * u64::from(to_hz)).div_ceil(u64::from(from_hz));
            prop_assert_eq!(whole.len() as u64, expected);

            let mut resampler = Resampler::new(from_hz, to_hz);
            // A flush leaves nothing behind.
            resampler.push(&[9_000; 77]);
            resampler.flush();
            let (mut divided, mut rest) = (Vec::new(), &samples[..]);
            for piece in pieces {
                let (now, later) = rest.split_at(piece.min(rest.len()));
                divided.extend(resampler.push(now));
                rest = later;
            }
            divided.extend(resampler.flush());
            prop_assert_eq!(divided, whole);
        }
    }
}
