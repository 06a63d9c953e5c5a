//! Encoder and decoder together, over lines of every kind.
mod line;
mod lines;
mod losses;
mod noises;

use super::*;
use crate::base::hash::sha256_hex;
use crate::speech::audio::{FRAME_MS, Rate};
use proptest::prelude::*;

const RATES: [Rate; 3] = [Rate::Khz8, Rate::Khz16, Rate::Khz24];
const SENTENCE: &str = "Good morning, this is the reception. How can I help you today?";

fn hear(samples: &[i16], rate: Rate) -> Vec<ToneHeard> {
    ToneDecoder::new(rate).hear(samples)
}

/// The events of a complete utterance.
fn said(text: &str) -> Vec<ToneHeard> {
    vec![ToneHeard::Began, ended(text)]
}

fn ended(text: &str) -> ToneHeard {
    ToneHeard::Said { text: text.to_owned(), duration_ms: ToneEncoder::duration_ms(text) }
}

fn silence(ms: i64, rate: Rate) -> Vec<i16> {
    vec![0; ms as usize * rate.hz() as usize / 1_000]
}

/// Longer than a packet, with characters of every encoded length.
fn long_text() -> String {
    "Grüße aus Köln, 你好, 🦀 and a good day. ".repeat(8)
}

#[test]
fn decodes_what_was_encoded() {
    for rate in RATES {
        for text in ["a", "OK", "\u{0}", "\n", "…", "你好", "🦀", SENTENCE, &long_text(), &"x".repeat(40)]
        {
            assert_eq!(hear(&ToneEncoder::speak(text, rate), rate), said(text), "{text} at {rate:?}");
        }
    }
}

#[test]
fn every_byte_a_text_can_have_arrives() {
    let text: String = ('\u{0}'..='\u{7ff}').chain('\u{10000}'..='\u{10100}').collect();
    assert_eq!(hear(&ToneEncoder::speak(&text, Rate::Khz8), Rate::Khz8), said(&text));
}

/// The samples are part of the format: a change would break existing decoders.
#[test]
fn the_samples_are_the_same_everywhere() {
    let hashes = [
        (Rate::Khz8, "5b357bacf2b16ef8315e58acbb2dc23bbe4616880bf996dc01457e2150a2b057"),
        (Rate::Khz16, "3c95abd09b6a6c579f1d85919b1688e1453750b69412d6b2bb508f226befb04e"),
        (Rate::Khz24, "06c598a7ec4932b9d343a1fcf8049efc7156c15c2d5e495c3b0f3e5064186d3d"),
    ];
    for (rate, hash) in hashes {
        let samples = ToneEncoder::speak(SENTENCE, rate);
        let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        assert_eq!(sha256_hex(&bytes), hash, "{rate:?}");
    }
}

#[test]
fn audio_is_whole_frames_of_sound() {
    for rate in RATES {
        for text in ["a", SENTENCE, &long_text()] {
            let samples = ToneEncoder::speak(text, rate);
            let frames: Vec<&[i16]> = samples.chunks(rate.frame_samples()).collect();
            assert_eq!(frames.len() as i64 * FRAME_MS, ToneEncoder::duration_ms(text));
            assert_eq!(samples.len() % rate.frame_samples(), 0);
            for frame in frames {
                let loudest = frame.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
                assert!((4_096..=8_192).contains(&loudest), "{loudest}");
            }
        }
    }
}

#[test]
fn nothing_is_said_without_text() {
    for rate in RATES {
        assert!(ToneEncoder::speak("", rate).is_empty());
    }
    assert_eq!(ToneEncoder::duration_ms(""), 0);
}

#[test]
fn a_long_text_is_truncated() {
    let (longest, longer) = ("é".repeat(MAX_CHARS), "é".repeat(MAX_CHARS + 1));
    let samples = ToneEncoder::speak(&longer, Rate::Khz8);
    assert_eq!(ToneEncoder::duration_ms(&longer), ToneEncoder::duration_ms(&longest));
    assert_eq!(hear(&samples, Rate::Khz8), said(&longest));
    // The largest number of packets.
    let widest = "a🦀".repeat(MAX_CHARS / 2);
    assert_eq!(hear(&ToneEncoder::speak(&widest, Rate::Khz8), Rate::Khz8), said(&widest));
    let widest = "🦀".repeat(MAX_CHARS);
    assert_eq!(hear(&ToneEncoder::speak(&widest, Rate::Khz8), Rate::Khz8), said(&widest));
}

/// About as long as a person would take.
#[test]
fn a_sentence_takes_seconds() {
    for (text, least, most) in
        [("Yes, please do.", 20, 40), (SENTENCE, 25, 40), (&"word ".repeat(200), 35, 40)]
    {
        let a_second = text.len() as i64 * 1_000 / ToneEncoder::duration_ms(text);
        assert!((least..=most).contains(&a_second), "{a_second}: {text}");
    }
}

#[test]
fn an_utterance_is_detected_early() {
    for rate in RATES {
        let (mut decoder, mut heard_ms) = (ToneDecoder::new(rate), 0);
        decoder.hear(&silence(1_000, rate));
        for piece in ToneEncoder::speak(SENTENCE, rate).chunks(rate.frame_samples() / 20) {
            heard_ms += 1;
            if decoder.hear(piece) == [ToneHeard::Began] {
                break;
            }
        }
        assert!((60..=85).contains(&heard_ms), "{heard_ms}");
    }
}

#[test]
fn the_end_is_detected_with_the_last_symbol() {
    for rate in RATES {
        let samples = ToneEncoder::speak(SENTENCE, rate);
        let (start, last_symbol) = samples.split_at(samples.len() - rate.frame_samples());
        let mut decoder = ToneDecoder::new(rate);
        assert_eq!(decoder.hear(start), [ToneHeard::Began]);
        assert_eq!(decoder.hear(last_symbol), [ended(SENTENCE)]);
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn any_text_arrives(text in "\\PC{1,120}", rate in prop::sample::select(&RATES)) {
        prop_assert_eq!(hear(&ToneEncoder::speak(&text, rate), rate), said(&text));
    }

    #[test]
    fn the_division_of_the_audio_does_not_matter(
        text in "[ -~]{1,60}",
        rate in prop::sample::select(&RATES),
        sizes in prop::collection::vec(1_usize..2_000, 1..20),
    ) {
        let samples = ToneEncoder::speak(&text, rate);
        let (mut decoder, mut heard, mut rest) = (ToneDecoder::new(rate), Vec::new(), samples.as_slice());
        for size in sizes.iter().cycle() {
            let (piece, left) = rest.split_at((*size).min(rest.len()));
            heard.extend(decoder.hear(piece));
            rest = left;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(heard, said(&text));
    }
}
