//! `builtin/tone`: an offline voice whose audio encodes its text, and the transcriber that decodes it.
//!
//! It is not speech: to a person it sounds like a modem. It replaces a voice and a transcriber where neither a model nor a
//! network is available, so that everything between them (the carrier's socket, mu-law, resampling, pacing, interruption,
//! recording) runs for real and the expected text is known exactly. It takes about as long as speech:
//! [`ToneEncoder::duration_ms`].
//!
//! # The code
//!
//! Time is divided into **symbols** of 20 ms, the length of a frame of [`crate::speech::audio`], because lines lose and repeat
//! whole frames. A symbol is two simultaneous tones out of 32, which are 62.5 Hz apart, in two groups of 16:
//!
//! | group | tones |
//! | --- | --- |
//! | low | 687.5 Hz to 1,625 Hz |
//! | high | 1,687.5 Hz to 2,625 Hz |
//!
//! A data symbol has one tone of each group and encodes a byte: the lower four bits select the low tone, the upper four the
//! high one. A distance of 62.5 Hz makes tones orthogonal over 16 ms. The remaining 4 ms are a guard interval: the decoder may
//! place its window of 16 ms anywhere within the symbol, and the overlap that a resampler causes between symbols stays outside
//! the window. All tones pass through a telephone (300 Hz to 3,400 Hz), and no data symbol is a DTMF digit: both tones of a
//! digit (697 Hz to 1,633 Hz) are in the range of the low group.
//!
//! A text is sent in **packets**. Each is detected and checked separately, so that an error costs one packet:
//!
//! | symbols | content |
//! | --- | --- |
//! | 4 | preamble: pairs of tones of the *same* group, which data never contains. The first packet of an utterance has one order, the following packets the reverse |
//! | 3 | header, 24 bits, highest first: 7 bits tag of the utterance (lowest bits of the CRC-32 of its text), 1 bit last packet, 10 bits packet number from zero, 6 bits text length in bytes minus one |
//! | 1 | lowest byte of the header's CRC-32 |
//! | 1 to 40 | text in UTF-8, divided between characters |
//! | 4 | CRC-32 (that of Ethernet and zip) of header and text, highest byte first; after the first packet, its lowest 12 bits are XORed with the highest 12 bits of the CRC-32 of the first packet's text |
//!
//! The rate is 50 bytes per second within a packet, and about 38 including the overhead for a long text. The first 80 ms of
//! an utterance suffice to detect it; the last packet is marked, so the decoder does not wait for silence.
//!
//! # The decoder
//!
//! [`ToneDecoder`] converts its input to 8 kHz and keeps the spectrum of the last 16 ms as 32 sums, which advance in steps of
//! 2 ms. It searches for preambles at every step, also within packets, because an interrupted speaker stops in the middle of
//! one. A preamble is valid when, four times in a row, 20 ms apart, three fifths of the energy are in the two expected tones:
//! neither speech nor noise nor data meets this condition. The packet's symbol windows are aligned to the middle of the steps
//! that meet it.
//!
//! An utterance is [`ToneHeard::Said`] when its last packet has arrived, with `…` for each gap. It is [`ToneHeard::Garbled`]
//! when it ended early or no packet could be decoded. Text in `Said` was really sent: every packet is checked, and packets of
//! different utterances are not combined: tag and checksum tell all but one pair in half a million apart.
//!
//! All arithmetic uses integers, so that a text gives the same samples on every platform.
mod decoder;
mod encoder;
mod packet;
mod preamble;
mod spectrum;
#[cfg(test)]
mod tests;
mod tones;

pub use decoder::{ToneDecoder, ToneHeard};
pub use encoder::{MAX_CHARS, ToneEncoder, ToneSymbol};
pub(super) use tones::SINE;
