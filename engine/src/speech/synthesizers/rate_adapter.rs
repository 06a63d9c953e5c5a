//! Converts audio from a voice's own rate to the rate that was declared for it.
use std::f64::consts::PI;

/// Zero crossings of the filter on each side.
const CROSSINGS: f64 = 16.0;
/// The share of the lower rate's band that passes.
const PASS: f64 = 0.94;
/// The rates that can be converted.
const RATES_HZ: [u32; 9] = [8_000, 11_025, 12_000, 16_000, 22_050, 24_000, 32_000, 44_100, 48_000];

/// A linear-phase filter for each position of an output sample between two input samples.
#[derive(Debug, Clone)]
pub(super) struct RateAdapter {
    /// `phases[p][k]`: the weight of the input sample `k` places after `at`, for an output `p / up` after its middle.
    phases: Vec<Vec<f32>>,
    down: usize,
    /// Input that is still needed.
    input: Vec<f32>,
    /// The first input sample under the filter.
    at: usize,
    phase: usize,
    half: usize,
}

impl RateAdapter {
    /// A conversion; `None` for a rate that no voice has.
    pub(super) fn new(from_hz: u32, to_hz: u32) -> Option<Self> {
        if !RATES_HZ.contains(&from_hz) || !RATES_HZ.contains(&to_hz) {
            return None;
        }
        let common = gcd(from_hz, to_hz);
        let (up, down) = ((to_hz / common) as usize, (from_hz / common) as usize);
        if up == down {
            return Some(Self { phases: Vec::new(), down, input: Vec::new(), at: 0, phase: 0, half: 0 });
        }
        let band = (f64::from(to_hz) / f64::from(from_hz)).min(1.0);
        let width = CROSSINGS / band;
        let half = width.ceil() as usize;
        let phases =
            (0..up).map(|phase| weights(half, width, band * PASS, phase as f64 / up as f64)).collect();
        // The silence before the audio puts the middle of the filter on its first sample.
        Some(Self { phases, down, input: vec![0.0; half.saturating_sub(1)], at: 0, phase: 0, half })
    }

    /// Converts the next samples.
    pub(super) fn convert(&mut self, samples: &[i16]) -> Vec<i16> {
        if self.phases.is_empty() {
            return samples.to_vec();
        }
        self.input.extend(samples.iter().map(|sample| f32::from(*sample)));
        let mut out = Vec::with_capacity(samples.len() * self.phases.len() / self.down.max(1) + 1);
        while let (Some(weights), Some(window)) =
            (self.phases.get(self.phase), self.input.get(self.at..self.at + 2 * self.half))
        {
            let sum: f32 = weights.iter().zip(window).map(|(weight, sample)| weight * sample).sum();
            // The conversion saturates.
            out.push(sum.round() as i16);
            self.phase += self.down;
            self.at += self.phase / self.phases.len();
            self.phase %= self.phases.len();
        }
        let used = self.at.min(self.input.len());
        self.input.drain(..used);
        self.at -= used;
        out
    }

    /// The end of the audio.
    pub(super) fn finish(&mut self) -> Vec<i16> {
        self.convert(&vec![0; self.half])
    }
}

/// The filter for an output `offset` after the sample in its middle; its weights add up to one.
fn weights(half: usize, width: f64, cutoff: f64, offset: f64) -> Vec<f32> {
    let raw: Vec<f64> = (0..2 * half)
        .map(|index| {
            let x = index as f64 - (half as f64 - 1.0) - offset;
            let window = if x.abs() < width { 0.5 + 0.5 * (PI * x / width).cos() } else { 0.0 };
            let angle = PI * cutoff * x;
            window * if angle.abs() < 1e-9 { 1.0 } else { angle.sin() / angle }
        })
        .collect();
    let sum: f64 = raw.iter().sum();
    raw.iter().map(|weight| (weight / sum) as f32).collect()
}

fn gcd(a: u32, b: u32) -> u32 {
    if b == 0 { a } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn tone(hz: f64, rate: u32) -> Vec<i16> {
        (0..rate).map(|n| (8_000.0 * (2.0 * PI * hz * f64::from(n) / f64::from(rate)).sin()) as i16).collect()
    }

    fn converted(samples: &[i16], from: u32, to: u32, piece: usize) -> Vec<i16> {
        let mut adapter = RateAdapter::new(from, to).unwrap();
        let mut out: Vec<i16> = samples.chunks(piece).flat_map(|piece| adapter.convert(piece)).collect();
        out.extend(adapter.finish());
        out
    }

    #[test]
    fn a_tone_keeps_its_length_pitch_and_place_at_every_rate() {
        for from in RATES_HZ {
            for to in [8_000, 16_000, 24_000] {
                let out = converted(&tone(1_000.0, from), from, to, 777);
                assert!(out.len().abs_diff(to as usize) <= 1, "{from} to {to}: {} samples", out.len());
                let expected = tone(1_000.0, to);
                let middle = to as usize / 4..to as usize / 2;
                let worst =
                    out[middle.clone()].iter().zip(&expected[middle]).map(|(a, b)| a.abs_diff(*b)).max();
                assert!(worst.unwrap() < 80, "{from} to {to}: off by {worst:?}");
            }
        }
    }

    #[test]
    fn what_the_lower_rate_cannot_hold_is_silent() {
        let out = converted(&tone(7_000.0, 24_000), 24_000, 8_000, 480);
        assert!(out[400..7_600].iter().all(|sample| sample.abs() < 80));
    }

    #[test]
    fn pieces_of_any_size_give_the_same_audio() {
        let samples = tone(440.0, 22_050);
        let whole = converted(&samples, 22_050, 24_000, samples.len());
        assert_eq!(converted(&samples, 22_050, 24_000, 1), whole);
        assert_eq!(converted(&samples, 22_050, 24_000, 333), whole);
        assert!(RateAdapter::new(22_051, 24_000).is_none());
        assert!(converted(&[i16::MAX; 4_000], 16_000, 24_000, 100).iter().all(|sample| *sample > -4_000));
    }
}
