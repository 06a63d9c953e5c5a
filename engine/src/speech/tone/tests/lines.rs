//! Lines without losses.
use super::*;

#[test]
fn an_utterance_may_start_at_any_sample() {
    for rate in RATES {
        let samples = ToneEncoder::speak("Hello", rate);
        // Every sample at 8 kHz, every fifth at other rates: this covers every position within a step.
        for offset in (0..=rate.frame_samples()).step_by(if rate == Rate::Khz8 { 1 } else { 5 }) {
            let mut line = vec![0; offset];
            line.extend(&samples);
            assert_eq!(hear(&line, rate), said("Hello"), "{offset} at {rate:?}");
        }
    }
}

#[test]
fn decodes_mu_law_at_any_level() {
    for decibels in (-36..=12).step_by(12) {
        let level = 10_f64.powf(f64::from(decibels) / 20.0);
        for rate in RATES {
            let mut line = silence(333, rate);
            line.extend(line::gain(&ToneEncoder::speak(&long_text(), rate), level));
            assert_eq!(hear(&line::mu_law(&line), rate), said(&long_text()), "{decibels} dB at {rate:?}");
        }
    }
}

#[test]
fn decodes_clipped_audio_and_changing_levels() {
    let samples = ToneEncoder::speak(&long_text(), Rate::Khz8);
    assert_eq!(hear(&line::gain(&samples, 8.0), Rate::Khz8), said(&long_text()));
    let changing: Vec<i16> = samples
        .chunks(1_000)
        .enumerate()
        .flat_map(|(place, piece)| line::gain(piece, [1.0, 0.25, 4.0][place % 3]))
        .collect();
    assert_eq!(hear(&changing, Rate::Khz8), said(&long_text()));
}

#[test]
fn decodes_resampled_audio() {
    for (fast, factor) in [(Rate::Khz16, 2), (Rate::Khz24, 3)] {
        for offset in [0, 7, 79] {
            let mut quiet = vec![0; offset];
            quiet.extend(ToneEncoder::speak(&long_text(), Rate::Khz8));
            assert_eq!(hear(&line::up(&quiet, factor), fast), said(&long_text()), "{offset} up to {fast:?}");

            let mut quiet = vec![0; offset];
            quiet.extend(ToneEncoder::speak(&long_text(), fast));
            let down = line::mu_law(&line::down(&quiet, factor));
            assert_eq!(hear(&down, Rate::Khz8), said(&long_text()), "{offset} down from {fast:?}");
            let there_and_back = line::up(&down, factor);
            assert_eq!(hear(&there_and_back, fast), said(&long_text()), "{offset} over a telephone");
        }
    }
}

#[test]
fn decodes_with_hum_and_an_offset() {
    let hum = |place: usize| (200.0 + 800.0 * (place as f64 / 160.0 * std::f64::consts::TAU).sin()) as i16;
    let samples = ToneEncoder::speak(&long_text(), Rate::Khz8);
    let hum: Vec<i16> = (0..samples.len()).map(hum).collect();
    assert_eq!(hear(&line::mixed(&samples, &hum), Rate::Khz8), said(&long_text()));
}

#[test]
fn utterances_follow_one_another() {
    for rate in RATES {
        for pause_ms in [0, 3, 20, 100, 1_000] {
            let (mut line, mut expected) = (Vec::new(), Vec::new());
            for text in [SENTENCE, "Yes.", "Yes.", &long_text(), "No."] {
                line.extend(ToneEncoder::speak(text, rate));
                line.extend(silence(pause_ms, rate));
                expected.extend(said(text));
            }
            assert_eq!(hear(&line, rate), expected, "{pause_ms} ms at {rate:?}");
        }
    }
}

/// Two speakers on one line, one of them an echo or far away.
#[test]
fn decodes_the_louder_of_two_speakers() {
    let samples = ToneEncoder::speak(SENTENCE, Rate::Khz8);
    let mut other = silence(5, Rate::Khz8);
    other.extend(line::gain(&ToneEncoder::speak(&long_text(), Rate::Khz8), 0.2));
    assert_eq!(hear(&line::mixed(&samples, &other), Rate::Khz8), said(SENTENCE));
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(24))]

    #[test]
    fn decodes_with_noise(
        text in "\\PC{1,60}",
        rate in prop::sample::select(&RATES),
        offset in 0_usize..2_000,
        seed: u64,
    ) {
        let mut quiet = vec![0; offset];
        quiet.extend(ToneEncoder::speak(&text, rate));
        quiet.extend(silence(100, rate));
        // The encoder's root mean square is 4,096; a tenth of it is -20 dB, a quarter -12 dB.
        for peak in [709, 1_773] {
            let noisy = line::mixed(&quiet, &line::noise(quiet.len(), peak, seed));
            prop_assert_eq!(hear(&line::mu_law(&noisy), rate), said(&text), "{}", peak);
        }
    }
}
