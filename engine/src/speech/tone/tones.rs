//! The tones and their assignment to symbols.

/// Tones per group.
pub(super) const GROUP: usize = 16;
/// Number of tones, numbered from the lowest.
pub(super) const TONES: usize = 2 * GROUP;
/// The lowest tone, in steps of 62.5 Hz: 687.5 Hz.
const LOWEST: usize = 11;

/// Length of [`SINE`]: a period of 62.5 Hz at 48 kHz, a multiple of every [`crate::speech::audio::Rate`].
pub(super) const PERIOD: usize = 768;
/// The largest value of [`SINE`]. The sum of two tones stays 12 dB below full scale.
pub(super) const AMPLITUDE: i16 = 4_096;
/// One period of a sine.
pub(in crate::speech) static SINE: [i16; PERIOD] = sine();

/// The frequency of `tone` as a multiple of 62.5 Hz.
pub(super) const fn multiple(tone: usize) -> usize {
    LOWEST + tone
}

/// The two tones of a byte.
pub(super) const fn of_byte(byte: u8) -> [usize; 2] {
    [(byte & 15) as usize, GROUP + (byte >> 4) as usize]
}

/// The byte of two tones, each counted within its group.
pub(super) const fn byte(low: usize, high: usize) -> u8 {
    (high << 4 | low) as u8
}

/// Computed in integers with a Taylor series: floats differ between platforms in their last bits.
const fn sine() -> [i16; PERIOD] {
    const QUARTER: usize = PERIOD / 4;
    let mut sine = [0; PERIOD];
    let mut step = 0;
    while step <= QUARTER {
        let value = sine_of_quarter(step as i128, QUARTER as i128);
        sine[step] = value;
        sine[2 * QUARTER - step] = value;
        sine[2 * QUARTER + step] = -value;
        sine[(4 * QUARTER - step) % PERIOD] = -value;
        step += 1;
    }
    sine
}

/// The sine of `step / steps` of a right angle, times [`AMPLITUDE`], rounded.
const fn sine_of_quarter(step: i128, steps: i128) -> i16 {
    const ONE: i128 = 1 << 40;
    const PI: i128 = 3_454_217_652_358; // times `ONE`
    let angle = PI * step / (2 * steps);
    let (mut term, mut sum, mut power) = (angle, angle, 1);
    while power < 25 {
        term = -term * angle / ONE * angle / ONE / ((power + 1) * (power + 2));
        sum += term;
        power += 2;
    }
    ((sum * AMPLITUDE as i128 + ONE / 2) / ONE) as i16
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_table_is_a_sine() {
        for (step, value) in SINE.iter().enumerate() {
            let exact = f64::from(AMPLITUDE) * (step as f64 / PERIOD as f64 * std::f64::consts::TAU).sin();
            assert_eq!(f64::from(*value), exact.round() + 0.0, "{step}");
        }
    }

    #[test]
    fn bytes_and_tones_convert_both_ways() {
        for value in 0..=u8::MAX {
            let [low, high] = of_byte(value);
            assert!(low < GROUP && (GROUP..TONES).contains(&high));
            assert_eq!(byte(low, high - GROUP), value);
        }
    }
}
