//! The effects of lines on samples.
use crate::speech::g711;

/// A round trip through mu-law.
pub(super) fn mu_law(samples: &[i16]) -> Vec<i16> {
    g711::decode(&g711::encode(samples))
}

/// Amplifies; overflow is clipped.
pub(super) fn gain(samples: &[i16], gain: f64) -> Vec<i16> {
    samples.iter().map(|sample| (f64::from(*sample) * gain) as i16).collect()
}

/// Upsamples by `factor` with linear interpolation.
pub(super) fn up(samples: &[i16], factor: usize) -> Vec<i16> {
    let next = samples.iter().skip(1).chain(&[0]);
    let between = |(from, to): (&i16, &i16)| {
        let (from, to) = (i64::from(*from), i64::from(*to));
        (0..factor as i64).map(move |part| (from + (to - from) * part / factor as i64) as i16)
    };
    samples.iter().zip(next).flat_map(between).collect()
}

/// Downsamples by `factor`: a low-pass filter of 31 taps (a sinc with a Hann window), then every `factor`th sample.
pub(super) fn down(samples: &[i16], factor: usize) -> Vec<i16> {
    let weights: Vec<f64> = (-15..=15)
        .map(|place| {
            let (place, factor) = (f64::from(place), factor as f64);
            let angle = std::f64::consts::PI * place / factor;
            let sinc = if place == 0.0 { 1.0 } else { angle.sin() / angle };
            sinc / factor * (0.5 + 0.5 * (std::f64::consts::PI * place / 16.0).cos())
        })
        .collect();
    let at = |middle: usize| -> f64 {
        let sample = |weight: usize| (middle + weight).checked_sub(15).and_then(|place| samples.get(place));
        let weighed = weights
            .iter()
            .enumerate()
            .map(|(place, weight)| weight * sample(place).map_or(0.0, |sample| f64::from(*sample)));
        weighed.sum()
    };
    (0..samples.len()).step_by(factor).map(|middle| at(middle) as i16).collect()
}

/// The sum of two signals.
pub(super) fn mixed(samples: &[i16], others: &[i16]) -> Vec<i16> {
    let others = others.iter().copied().chain(std::iter::repeat(0));
    samples.iter().zip(others).map(|(one, other)| one.saturating_add(other)).collect()
}

/// White noise, uniform from `-peak` to `peak`, with a root mean square of `peak / √3`.
pub(super) fn noise(length: usize, peak: i16, seed: u64) -> Vec<i16> {
    let mut state = seed;
    let mut draw = || {
        // The multiplier and the increment of Knuth's MMIX.
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as i64
    };
    let width = 2 * i64::from(peak) + 1;
    (0..length).map(|_| (draw() % width - i64::from(peak)) as i16).collect()
}

/// A speech-like signal: a buzz whose harmonics near three formants are loud; pitch and formants vary, with pauses.
pub(super) fn babble(length: usize, hz: f64, seed: u64) -> Vec<i16> {
    let turns = noise(length / 400 + 2, 1_000, seed);
    let mut phase = 0.0_f64;
    (0..length)
        .map(|place| {
            let turn = |other: usize| {
                let (at, part) = (place / 400, (place % 400) as f64 / 400.0);
                let value = |at: usize| f64::from(turns[(at + other) % turns.len()]) / 1_000.0;
                value(at) * (1.0 - part) + value(at + 1) * part
            };
            let pitch = 150.0 + 60.0 * turn(0);
            phase += pitch / hz;
            let resonances =
                [550.0 + 250.0 * turn(7), 1_500.0 + 700.0 * turn(13), 2_500.0 + 300.0 * turn(29)];
            let voice: f64 = (1..20)
                .map(|harmonic| {
                    let distance = |resonance: &f64| (f64::from(harmonic) * pitch - resonance) / 90.0;
                    let loud: f64 = resonances.iter().map(|at| 1.0 / (1.0 + distance(at).powi(2))).sum();
                    loud * (phase * f64::from(harmonic) * std::f64::consts::TAU).sin()
                })
                .sum();
            (voice * 4_000.0 * turn(41).max(0.0)) as i16
        })
        .collect()
}
