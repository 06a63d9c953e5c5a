//! What a telephone's receiver of keys hears (ITU-T Q.24): two tones, one of each group, far above everything else, for 40 ms.

const ROWS: [f64; 4] = [697.0, 770.0, 852.0, 941.0];
const COLUMNS: [f64; 4] = [1_209.0, 1_336.0, 1_477.0, 1_633.0];
const KEYS: [[char; 4]; 4] =
    [['1', '2', '3', 'A'], ['4', '5', '6', 'B'], ['7', '8', '9', 'C'], ['*', '0', '#', 'D']];
/// The length of a window.
const WINDOW_MS: usize = 20;
/// Windows in a row that make a key.
const WINDOWS_MIN: usize = 2;

/// The keys in the audio, in their order.
#[must_use]
pub fn keys_in(samples: &[i16], rate_hz: u32) -> String {
    let (mut keys, mut last, mut windows) = (String::new(), None, 0);
    for window in samples.chunks_exact(rate_hz as usize * WINDOW_MS / 1_000) {
        let key = key_in(window, f64::from(rate_hz));
        windows = if key == last { windows + 1 } else { 1 };
        last = key;
        if windows == WINDOWS_MIN {
            keys.extend(key);
        }
    }
    keys
}

fn key_in(window: &[i16], rate_hz: f64) -> Option<char> {
    let energy: f64 =
        window.iter().map(|sample| f64::from(*sample).powi(2)).sum::<f64>() / window.len() as f64;
    let strongest = |tones: &[f64; 4]| {
        let powers = tones.map(|hz| power(window, hz, rate_hz));
        let best = (0..4).max_by(|one, other| powers[*one].total_cmp(&powers[*other])).unwrap_or(0);
        (best, powers[best])
    };
    let ((row, low), (column, high)) = (strongest(&ROWS), strongest(&COLUMNS));
    let twist = low / high;
    // -25 dBm0 is the least that receivers take; both tones have about the same power, and nearly all of it.
    let is_key = low > 1e6 && low + high > 0.9 * energy && (0.4..2.5).contains(&twist);
    is_key.then_some(KEYS[row][column])
}

/// The mean power of one frequency (G. Goertzel, 1958).
fn power(samples: &[i16], hz: f64, rate_hz: f64) -> f64 {
    let turn = 2.0 * (std::f64::consts::TAU * hz / rate_hz).cos();
    let (one, two) =
        samples.iter().fold((0.0, 0.0), |(one, two), sample| (f64::from(*sample) + turn * one - two, one));
    2.0 * (one * one + two * two - turn * one * two) / (samples.len() as f64).powi(2)
}
