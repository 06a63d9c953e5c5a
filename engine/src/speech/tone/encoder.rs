//! The voice.
use super::packet;
use super::preamble::Preamble;
use super::tones::{self, PERIOD, SINE};
use crate::speech::audio::{FRAME_MS, Rate};

/// The most characters that are spoken of a text.
pub const MAX_CHARS: usize = 4_000;

/// The voice of `builtin/tone`: its audio carries its text. See [the module](super) for how.
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
    /// The text as audio: whole frames, sound from the first to the last. Of a text longer than [`MAX_CHARS`] the
    /// beginning; a text without characters makes no sound.
    #[must_use]
    pub fn speak(text: &str, rate: Rate) -> Vec<i16> {
        let packets = packet::of_text(spoken(text));
        let mut samples = Vec::with_capacity(symbols(&packets) * rate.frame_samples());
        for (number, packet) in packets.iter().enumerate() {
            let preamble = if number == 0 { Preamble::Opening } else { Preamble::Following };
            for pair in preamble.pairs() {
                write_symbol(&mut samples, pair, rate);
            }
            for byte in packet {
                write_symbol(&mut samples, tones::of_byte(*byte), rate);
            }
        }
        samples
    }

    /// Exactly how long [`ToneEncoder::speak`] speaks.
    #[must_use]
    pub fn duration_ms(text: &str) -> i64 {
        symbols(&packet::of_text(spoken(text))) as i64 * FRAME_MS
    }
}

/// What is spoken of a text.
fn spoken(text: &str) -> &str {
    text.char_indices().nth(MAX_CHARS).map_or(text, |(end, _)| &text[..end])
}

fn symbols(packets: &[Vec<u8>]) -> usize {
    packets.iter().map(|packet| Preamble::SYMBOLS + packet.len()).sum()
}

/// A frame of two tones. It takes a millisecond to rise and to fall, within the guard, so that its edges do not
/// click.
fn write_symbol(samples: &mut Vec<i16>, pair: [usize; 2], rate: Rate) {
    let length = rate.frame_samples();
    let slope = length / 20;
    let step = PERIOD * 125 / 2 / rate.hz() as usize;
    for place in 0..length {
        let [one, other] = pair.map(|tone| {
            i32::from(SINE.get(place * step * tones::multiple(tone) % PERIOD).copied().unwrap_or(0))
        });
        let gain = slope.min(place + 1).min(length - place) as i32;
        samples.push(((one + other) * gain / slope as i32) as i16);
    }
}
