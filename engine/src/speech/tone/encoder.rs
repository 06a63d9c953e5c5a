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

/// Writes a frame of two tones. It fades in and out for a millisecond, within the guard interval, to avoid clicks.
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
