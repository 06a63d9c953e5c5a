//! Telephone keys as sound: the dual tones of ITU-T Q.23, at a level and for times that Q.24 lets every receiver read. All
//! arithmetic uses integers, so that keys give the same samples on every platform.
use super::audio::{FRAME_MS, Rate};
use super::tone::SINE;

/// How long a key sounds. Q.24: receivers take 40 ms.
const TONE_MS: i64 = 100;
/// The silence after each key. Q.24: receivers take 40 ms.
const GAP_MS: i64 = 100;
/// How long `w` waits: half a second, as in the digits that carriers send.
const WAIT_MS: i64 = 500;

/// Of a key, the row's frequency in Hz.
const ROWS: [u64; 4] = [697, 770, 852, 941];
/// The column's.
const COLUMNS: [u64; 4] = [1_209, 1_336, 1_477, 1_633];
/// The keys, row by row.
const KEYS: &[u8; 16] = b"123A456B789C*0#D";

/// One frame of the sound of keys.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct KeyFrame {
    /// The place in [`KEYS`]; `None` for silence.
    key: Option<usize>,
    /// Its number within the sound of this key.
    nth: usize,
}

impl KeyFrame {
    /// Its samples: each of the two tones at -9 dBm0, where a sine of full scale has 3.17 dBm0.
    pub(super) fn samples(self, rate: Rate) -> Vec<i16> {
        let from = self.nth * rate.frame_samples();
        (from..from + rate.frame_samples()).map(|sample| self.sample(sample as u64, rate)).collect()
    }

    fn sample(self, sample: u64, rate: Rate) -> i16 {
        let tones = self.key.map(|key| [ROWS.get(key / 4), COLUMNS.get(key % 4)]);
        let tones = tones.into_iter().flatten().flatten();
        let sine = |hz: &u64| {
            let period = SINE.len() as u64;
            let place = hz * sample * period / u64::from(rate.hz()) % period;
            i32::from(SINE.get(place as usize).copied().unwrap_or(0))
        };
        // The table's amplitude is 4,096 and the level's is 7,936. The sum of two does not exceed a sample.
        (tones.map(sine).sum::<i32>() * 31 / 16) as i16
    }
}

/// The sound of keys and of pauses (`w`), frame by frame. Other characters are silent for as long as a key.
pub fn frames(keys: &str) -> impl Iterator<Item = KeyFrame> + '_ {
    keys.bytes().flat_map(|key| {
        let place = KEYS.iter().position(|known| *known == key);
        let all = frames_of(duration_ms(key));
        (0..all).map(move |nth| KeyFrame { key: place.filter(|_| nth < frames_of(TONE_MS)), nth })
    })
}

/// How many of the characters were pressed, or waited for, in the first `heard_ms` of their sound. A key counts when its whole
/// tone was heard.
#[must_use]
pub fn pressed(keys: &str, heard_ms: i64) -> usize {
    let mut from_ms = 0;
    let is_pressed = |key: &u8| {
        let until_ms = from_ms + if *key == b'w' { WAIT_MS } else { TONE_MS };
        from_ms += duration_ms(*key);
        until_ms <= heard_ms
    };
    keys.as_bytes().iter().map(is_pressed).take_while(|is_pressed| *is_pressed).count()
}

const fn duration_ms(key: u8) -> i64 {
    if key == b'w' { WAIT_MS } else { TONE_MS + GAP_MS }
}

const fn frames_of(ms: i64) -> usize {
    (ms / FRAME_MS) as usize
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::speech::g711;

    #[test]
    fn a_receiver_reads_the_keys_after_mu_law() {
        let keys = "123A456B789C*0#D1122w3";
        for rate in [Rate::Khz8, Rate::Khz16, Rate::Khz24] {
            let sound: Vec<i16> = frames(keys).flat_map(|frame| frame.samples(rate)).collect();
            let sound = g711::decode(&g711::encode(&sound));
            assert_eq!(read(&sound, rate), "123A456B789C*0#D11223");
        }
    }

    #[test]
    fn both_tones_have_their_level_and_the_pauses_their_length() {
        let sound: Vec<i16> = frames("5w5").flat_map(|frame| frame.samples(Rate::Khz8)).collect();
        assert_eq!(sound.len(), (200 + 500 + 200) * 8);
        assert!(sound[800..200 * 8 + 500 * 8].iter().all(|sample| *sample == 0));
        for hz in [770, 1_336] {
            let amplitude = amplitude_of(&sound[..800], hz, Rate::Khz8);
            let dbm0 = 20.0 * (amplitude / 32_124.0).log10() + 3.17;
            assert!((dbm0 + 9.0).abs() < 0.2, "{hz} Hz: {dbm0} dBm0");
        }
        assert!(sound.iter().all(|sample| sample.unsigned_abs() < 16_000));
    }

    #[test]
    fn a_key_counts_when_its_tone_was_heard() {
        let counts = [0, 99, 100, 299, 300, 800, 900].map(|heard_ms| pressed("12w3", heard_ms));
        assert_eq!(counts, [0, 0, 1, 1, 2, 2, 3]);
        assert_eq!(pressed("12w3", 10_000), 4);
    }

    /// A receiver: in windows of 20 ms, a key is present whose two tones have nearly all the energy.
    fn read(sound: &[i16], rate: Rate) -> String {
        let (mut read, mut last) = (String::new(), None);
        for window in sound.chunks(rate.frame_samples()) {
            let strongest = |tones: &[u64; 4]| {
                let all = tones.map(|hz| amplitude_of(window, hz, rate));
                let best = (0..4).max_by(|one, other| all[*one].total_cmp(&all[*other])).unwrap();
                (best, all[best])
            };
            let ((row, low), (column, high)) = (strongest(&ROWS), strongest(&COLUMNS));
            let key = (low > 6_000.0 && high > 6_000.0).then(|| char::from(KEYS[row * 4 + column]));
            if key != last {
                read.extend(key);
            }
            last = key;
        }
        read
    }

    fn amplitude_of(samples: &[i16], hz: u64, rate: Rate) -> f64 {
        let step = std::f64::consts::TAU * hz as f64 / f64::from(rate.hz());
        let (mut one, mut two) = (0.0, 0.0);
        for sample in samples {
            (one, two) = (f64::from(*sample) + 2.0 * step.cos() * one - two, one);
        }
        let power = one * one + two * two - 2.0 * step.cos() * one * two;
        2.0 * power.sqrt() / samples.len() as f64
    }
}
