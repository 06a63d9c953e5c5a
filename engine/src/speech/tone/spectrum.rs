//! How much of each tone the last 16 ms hold.
use super::tones::{GROUP, PERIOD, SINE, TONES, byte, multiple};

/// Samples of a step at 8 kHz: 2 ms.
pub(super) const STEP: usize = 16;
/// Milliseconds of a step.
pub(super) const STEP_MS: i64 = 2;
/// Steps of a symbol.
pub(super) const STEPS_A_SYMBOL: u64 = 10;
/// Steps of the window in which tones are orthogonal.
pub(super) const STEPS_A_WINDOW: usize = 8;
/// Samples of that window.
const WINDOW: usize = STEP * STEPS_A_WINDOW;

/// The energy of a window of two tones at an amplitude of 16 each, 48 dB below what the voice speaks at. What is
/// less is the idle noise of a telephone line.
const LEAST_ENERGY: i64 = WINDOW as i64 * 16 * 16;

/// A sine, at half the voice's amplitude so that the sums of a step fit.
static WAVE: [i32; WINDOW] = wave();

/// How much of each tone the last 16 ms hold, moved on by a step at a time.
#[derive(Debug, Clone)]
pub(super) struct Spectrum {
    /// What each of the last steps adds to the sums.
    steps: [Part; STEPS_A_WINDOW],
    /// The oldest of them.
    oldest: usize,
    /// The sums over them.
    real: [i64; TONES],
    imaginary: [i64; TONES],
    energy: i64,
}

/// What a step adds.
#[derive(Debug, Clone, Copy)]
struct Part {
    real: [i32; TONES],
    imaginary: [i32; TONES],
    energy: i64,
}

impl Spectrum {
    /// Nothing has been heard.
    pub(super) const fn new() -> Self {
        Self {
            steps: [Part::SILENCE; STEPS_A_WINDOW],
            oldest: 0,
            real: [0; TONES],
            imaginary: [0; TONES],
            energy: 0,
        }
    }

    /// The window moves on by a step.
    pub(super) fn push(&mut self, samples: &[i16; STEP]) {
        // A window is a whole number of periods of every tone, so that a step's place in it is its phase.
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
        self.oldest = (self.oldest + 1) % STEPS_A_WINDOW;
    }

    /// Whether there is anything to hear.
    pub(super) const fn is_loud(&self) -> bool {
        self.energy >= LEAST_ENERGY
    }

    /// Whether three fifths of all there is to hear are in these two tones. Half would be too little: that much
    /// can the two data symbols have between which a window lies.
    pub(super) fn is_pair(&self, pair: [usize; 2]) -> bool {
        let [one, other] = pair.map(|tone| self.power(tone));
        self.is_most(one + other)
    }

    /// Whether three fifths of all there is to hear are in any two tones.
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

    /// The byte that the window holds, if it holds one.
    pub(super) fn byte(&self) -> u8 {
        byte(self.strongest(0), self.strongest(GROUP))
    }

    /// The strongest tone of the group that begins at `first`, counted within the group.
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

    /// A tone's share of the energy, times 2 to the power of [`POWER_BITS`].
    fn power(&self, tone: usize) -> i64 {
        let square = |sums: &[i64; TONES]| {
            let sum = sums.get(tone).copied().unwrap_or(0) >> SUM_BITS;
            sum * sum
        };
        square(&self.real) + square(&self.imaginary)
    }
}

/// The sums lose as many bits before they are squared, for the squares to fit.
const SUM_BITS: u32 = 8;
/// A tone of amplitude `a` has the energy `a² · 64`. Its sum is `a · 64 · 2¹¹ · 2⁻⁸`, the square of which is that
/// energy times 2 to this power.
const POWER_BITS: u32 = 12;

impl Part {
    const SILENCE: Self = Self { real: [0; TONES], imaginary: [0; TONES], energy: 0 };

    /// What these samples add, the first of which stands at `place` of the window.
    fn of(samples: &[i16; STEP], place: usize) -> Self {
        let mut part = Self::SILENCE;
        for sample in samples {
            part.energy += i64::from(*sample) * i64::from(*sample);
        }
        // Most of what lines carry is silence, which is to cost nothing.
        if part.energy * (STEPS_A_WINDOW as i64) < LEAST_ENERGY / 16 {
            return part;
        }
        for (tone, (real, imaginary)) in part.real.iter_mut().zip(&mut part.imaginary).enumerate() {
            let multiple = multiple(tone);
            let mut phase = place * multiple;
            for sample in samples {
                // Indices are within bounds by the remainder, which the compiler sees.
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
