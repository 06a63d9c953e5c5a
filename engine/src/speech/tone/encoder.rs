use super::packet;
use super::preamble::Preamble;
use super::tones::{self, PERIOD, SINE};
use crate::speech::audio::{FRAME_MS, Rate};

/// Longest text that is spoken, in characters.
pub const MAX_CHARS: usize = 4_000;

/// The voice of `builtin/tone`: its audio encodes its text. See [the module](super) for the encoding.
///
/// ```
/// use sidetone_engine::speech::audio::Rate;
/// use sidetone_engine::speech::tone::ToneDecoder;
/// use sidetone_engine::speech::tone::ToneHeard;
/// use sidetone_engine::speech::tone::ToneEncoder;
///
/// let samples = ToneEncoder::speak("Good morning.", Rate::Khz8);
/// let heard = ToneDecoder::new(Rate::Khz8).hear(&samples);
/// let said = ToneHeard::Said { text: "Good morning.".to_owned(), duration_ms: 500 };
/// assert_eq!(heard, [ToneHeard::Began, said]);
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToneEncoder;

impl ToneEncoder {
    /// The audio of a text: whole frames, without silence. A text longer than [`MAX_CHARS`] is truncated; an empty text gives no
    /// audio.
    #[must_use]
    pub fn speak(text: &str, rate: Rate) -> Vec<i16> {
        Self::symbols(text).flat_map(|symbol| symbol.samples(rate)).collect()
    }

    /// The same as symbols, which take less memory.
    pub fn symbols(text: &str) -> impl Iterator<Item = ToneSymbol> {
        packet::of_text(spoken(text)).into_iter().enumerate().flat_map(|(number, packet)| {
            let preamble = if number == 0 { Preamble::Opening } else { Preamble::Following };
            let bytes = packet.into_iter().map(tones::of_byte);
            preamble.pairs().into_iter().chain(bytes).map(ToneSymbol::of)
        })
    }

    /// The exact duration of [`ToneEncoder::speak`].
    #[must_use]
    pub fn duration_ms(text: &str) -> i64 {
        symbols(&packet::of_text(spoken(text))) as i64 * FRAME_MS
    }
}

fn spoken(text: &str) -> &str {
    text.char_indices().nth(MAX_CHARS).map_or(text, |(end, _)| &text[..end])
}

fn symbols(packets: &[Vec<u8>]) -> usize {
    packets.iter().map(|packet| Preamble::SYMBOLS + packet.len()).sum()
}

/// A frame of two tones.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ToneSymbol([u8; 2]);

impl ToneSymbol {
    /// The tones have numbers below 256.
    fn of(pair: [usize; 2]) -> Self {
        Self(pair.map(|tone| tone as u8))
    }

    /// One frame. It fades in and out for a millisecond, within the guard interval, to avoid clicks.
    #[must_use]
    pub fn samples(self, rate: Rate) -> Vec<i16> {
        let length = rate.frame_samples();
        let slope = length / 20;
        let step = PERIOD * 125 / 2 / rate.hz() as usize;
        let sample = |place: usize| {
            let [one, other] = self.0.map(|tone| {
                let place = place * step * tones::multiple(usize::from(tone)) % PERIOD;
                i32::from(SINE.get(place).copied().unwrap_or(0))
            });
            let gain = slope.min(place + 1).min(length - place) as i32;
            ((one + other) * gain / slope as i32) as i16
        };
        (0..length).map(sample).collect()
    }
}
