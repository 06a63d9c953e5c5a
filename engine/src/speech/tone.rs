//! `builtin/tone`: the offline voice, whose audio carries its text, and the transcriber that reads it back.
//!
//! It is not speech: to a person it is the warble of a modem. It stands in for a voice and a transcriber where
//! neither a model nor a network is to be had, so that everything between them (the carrier's socket, mu-law,
//! resampling, pacing, interruption, recording) is run for real and what arrived is known to the letter. It takes
//! about as long as speech would: [`ToneEncoder::duration_ms`].
//!
//! # The code
//!
//! Time is cut into **symbols** of 20 ms, which is a frame of [`crate::speech::audio`]: whatever a line loses or repeats
//! is whole symbols. A symbol is two tones at once, of 32 that stand 62.5 Hz apart, in two groups of 16:
//!
//! | group | tones |
//! | --- | --- |
//! | low | 687.5 Hz to 1,625 Hz |
//! | high | 1,687.5 Hz to 2,625 Hz |
//!
//! A data symbol has one tone of each group, and so is a byte: its lower four bits choose the low tone, its upper
//! four the high one. 62.5 Hz is what makes tones orthogonal over 16 ms. The remaining 4 ms are the guard: a
//! listener may place its window of 16 ms anywhere within the symbol, and what a resampler smears of one symbol
//! into the next stays outside of it. All tones pass through a telephone (300 Hz to 3,400 Hz), and no data symbol
//! is a DTMF digit: a digit's tones (697 Hz to 1,633 Hz) both lie where a data symbol has one.
//!
//! A text is said in **packets**, each of which is found and checked by itself, so that an error costs one packet:
//!
//! | symbols | what |
//! | --- | --- |
//! | 4 | preamble: pairs of tones of the *same* group, which no data has. It has one order before the first packet of an utterance and the reverse before those that follow |
//! | 3 | header, 24 bits from the highest: 7 the utterance's tag (lowest bits of the CRC-32 of its text), 1 whether this packet is the last, 10 its number from zero, 6 the bytes of text less one |
//! | 1 | the lowest byte of the header's CRC-32 |
//! | 1 to 40 | text, UTF-8, cut between characters |
//! | 4 | CRC-32 (that of Ethernet and zip) of header and text, highest byte first |
//!
//! That is 50 bytes a second while text is being sent, and about 38 of a long text with what surrounds it. The
//! first 80 ms of an utterance are enough to know that one has begun; the last packet says that it is the last, so
//! nothing waits for silence.
//!
//! # The listener
//!
//! [`ToneDecoder`] brings what it hears to 8 kHz and keeps the last 16 ms of it as 32 sums, which move on by 2 ms. It
//! looks for preambles at every step, also within packets, since who is interrupted falls silent in the middle of
//! one. A preamble counts when, four times, 20 ms apart, three fifths of all there is to hear is in the two tones
//! that it must be in: neither speech nor noise nor data is so. The middle of the steps at which that holds is
//! where the windows of the packet's symbols are placed.
//!
//! An utterance is [`ToneHeard::Said`] when its last packet has come, with a `…` wherever a packet was lost. It is
//! [`ToneHeard::Garbled`] when it broke off before, or when nothing in it could be understood. What is said to have
//! been said was said: every packet is checked, and packets of two utterances are not put together.
//!
//! Numbers are integers throughout, so that the same text is the same samples on every platform.
mod decoder;
mod encoder;
mod packet;
mod preamble;
mod spectrum;
#[cfg(test)]
mod tests;
mod tones;

pub use decoder::{ToneDecoder, ToneHeard};
pub use encoder::{MAX_CHARS, ToneEncoder};
