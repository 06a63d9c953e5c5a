//! The spectrum of the last 16 ms.
use super::tones::{GROUP, PERIOD, SINE, TONES, byte, multiple};

/// Samples per step at 8 kHz: 2 ms.
pub(super) const STEP: usize = 16;
/// Milliseconds per step.
pub(super) const STEP_MS: i64 = 2;
/// Steps per symbol.
pub(super) const STEPS_PER_SYMBOL: u64 = 10;
/// Steps per window, in which tones are orthogonal.
pub(super) const STEPS_PER_WINDOW: usize = 8;
/// Samples per window.
const WINDOW: usize = STEP * STEPS_PER_WINDOW;

/// The energy of a window with two tones of amplitude 16 each, 48 dB below the encoder's level. Lower energy is the idle noise
/// of a telephone line.
const NOISE_FLOOR: i64 = WINDOW as i64 * 16 * 16;

/// A sine at half the encoder's amplitude, so that the sums of a step fit their type.
static WAVE: [i32; WINDOW] = wave();

/// The share of each tone in the last 16 ms, updated step by step.
#[derive(Debug, Clone)]
pub(super) struct Spectrum {
    /// The contributions of the last steps.
    steps: [Part; STEPS_PER_WINDOW],
    /// The index of the oldest step.
    oldest: usize,
    /// The sums of the contributions.
    real: [i64; TONES],
    imaginary: [i64; TONES],
    energy: i64,
}

/// The contribution of one step.
#[derive(Debug, Clone, Copy)]
struct Part {
    real: [i32; TONES],
    imaginary: [i32; TONES],
    energy: i64,
}

impl Spectrum {
    pub(super) const fn new() -> Self {
        Self {
            steps: [Part::SILENCE; STEPS_PER_WINDOW],
            oldest: 0,
            real: [0; TONES],
            imaginary: [0; TONES],
            energy: 0,
        }
    }

    /// Advances the window by one step.
    pub(super) fn push(&mut self, samples: &[i16; STEP]) {
        // A window is a whole number of periods of every tone, so a step's position in it determines its phase.
        let new = Part::of(samples, self.oldest * STEP);
        let Some(old) = self.steps.get_mut(self.oldest) else { return };
        for (sum, (new, old)) in self.real.iter_mut().zip(new.real.iter().zip(old.real)) {
            *sum += i64::from(new - old);
        }
        for (sum, (new, old)) in self.imaginary.iter_mut().zip(new.imaginary.iter().zip(old.imaginary)) {
            *sum += i64::from(new - old);
        }
        self.energy += new.energy - old.energy;
        *old = new;
        self.oldest = (self.oldest + 1) % STEPS_PER_WINDOW;
    }

    /// Whether the energy is above the noise floor.
    pub(super) const fn is_loud(&self) -> bool {
        self.energy >= NOISE_FLOOR
    }

    /// Whether these two tones have three fifths of the energy. A threshold of half would be too low: a window between two data
    /// symbols can reach it.
    pub(super) fn is_pair(&self, pair: [usize; 2]) -> bool {
        let [one, other] = pair.map(|tone| self.power(tone));
        self.is_most(one + other)
    }

    /// Whether any two tones have three fifths of the energy.
    pub(super) fn is_tonal(&self) -> bool {
        let (mut most, mut next) = (0, 0);
        for tone in 0..TONES {
            let power = self.power(tone);
            if power > most {
                (most, next) = (power, most);
            } else {
                next = next.max(power);
            }
        }
        self.is_loud() && self.is_most(most + next)
    }

    const fn is_most(&self, power: i64) -> bool {
        5 * power >= 3 * (self.energy << POWER_BITS)
    }

    /// The byte of the strongest tone in each group.
    pub(super) fn byte(&self) -> u8 {
        byte(self.strongest(0), self.strongest(GROUP))
    }

    /// The strongest tone of the group that starts at `first`, counted within the group.
    fn strongest(&self, first: usize) -> usize {
        let (mut strongest, mut most) = (0, -1);
        for place in 0..GROUP {
            let power = self.power(first + place);
            if power > most {
                (strongest, most) = (place, power);
            }
        }
        strongest
    }

    /// A tone's energy times 2 to the power of [`POWER_BITS`].
    fn power(&self, tone: usize) -> i64 {
        let square = |sums: &[i64; TONES]| {
            let sum = sums.get(tone).copied().unwrap_or(0) >> SUM_BITS;
            sum * sum
        };
        square(&self.real) + square(&self.imaginary)
    }
}

/// The sums lose this many bits before squaring, so that the squares fit.
const SUM_BITS: u32 = 8;
/// A tone of amplitude `a` has the energy `a² · 64`. Its sum is `a · 64 · 2¹¹ · 2⁻⁸`, whose square is that energy times 2 to
/// this power.
const POWER_BITS: u32 = 12;

impl Part {
    const SILENCE: Self = Self { real: [0; TONES], imaginary: [0; TONES], energy: 0 };

    /// The contribution of these samples; the first is at position `place` of the window.
    fn of(samples: &[i16; STEP], place: usize) -> Self {
        let mut part = Self::SILENCE;
        for sample in samples {
            part.energy += i64::from(*sample) * i64::from(*sample);
        }
        // Lines carry mostly silence, so skip it for speed.
        if part.energy * (STEPS_PER_WINDOW as i64) < NOISE_FLOOR / 16 {
            return part;
        }
        for (tone, (real, imaginary)) in part.real.iter_mut().zip(&mut part.imaginary).enumerate() {
            let multiple = multiple(tone);
            let mut phase = place * multiple;
            for sample in samples {
                // The remainder keeps indices within bounds, which the compiler recognises.
                *real += i32::from(*sample) * WAVE[(phase + WINDOW / 4) % WINDOW];
                *imaginary += i32::from(*sample) * WAVE[phase % WINDOW];
                phase += multiple;
            }
        }
        part
    }
}

const fn wave() -> [i32; WINDOW] {
    let mut wave = [0; WINDOW];
    let mut place = 0;
    while place < WINDOW {
        wave[place] = SINE[place * (PERIOD / WINDOW)] as i32 / 2;
        place += 1;
    }
    wave
}
