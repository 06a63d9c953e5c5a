//! A sound like speech, for tests: pulses of a voice through the resonances of vowels, in syllables. A detector of voice
//! takes it for a person's; it has no words.
use std::f64::consts::TAU;

use super::audio::Rate;

/// Frequencies of the three resonances of vowels as in "father", "see", "you", "bed", "go".
const VOWELS: [[f64; 3]; 5] = [
    [730.0, 1_090.0, 2_440.0],
    [270.0, 2_290.0, 3_010.0],
    [300.0, 870.0, 2_240.0],
    [530.0, 1_840.0, 2_480.0],
    [450.0, 800.0, 2_830.0],
];

/// This much of it: a vowel every 180 ms, around this pitch.
#[must_use]
pub fn speech_like(ms: i64, rate: Rate, pitch_hz: f64) -> Vec<i16> {
    let hz = f64::from(rate.hz());
    let mut phase = 0.0;
    let mut resonators = [[0.0_f64; 2]; 3];
    let mut sound: Vec<f64> = Vec::new();
    let samples = ms.max(0).unsigned_abs() * u64::from(rate.hz()) / 1_000;
    for place in 0..samples {
        let time = place as f64 / hz;
        let syllable = time / 0.18;
        let within = syllable.fract();
        let pitch = pitch_hz + 25.0 * (TAU * 0.7 * time).sin() + 6.0 * (TAU * 5.0 * time).sin();
        phase += pitch / hz;
        let pulse = if phase >= 1.0 { 1.0 } else { 0.0 };
        phase -= pulse;
        let [from, to] = [0, 1].map(|next| VOWELS[(syllable as usize + next) % VOWELS.len()]);
        let loud = 0.3 + 0.7 * (TAU / 2.0 * within).sin();
        let mut sum = 0.0;
        for (which, state) in resonators.iter_mut().enumerate() {
            let glide = ((within - 0.6) / 0.4).max(0.0);
            let frequency = from[which] + (to[which] - from[which]) * glide;
            let radius = (-TAU / 2.0 * (60.0 + 40.0 * which as f64) / hz).exp();
            let next = pulse * loud + 2.0 * radius * (TAU * frequency / hz).cos() * state[0]
                - radius * radius * state[1];
            *state = [next, state[0]];
            sum += next / (1.0 + which as f64);
        }
        sound.push(sum);
    }
    let loudest = sound.iter().fold(1e-9_f64, |loudest, sample| loudest.max(sample.abs()));
    sound.iter().map(|sample| (sample / loudest * 16_000.0) as i16).collect()
}
