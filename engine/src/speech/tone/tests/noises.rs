//! Signals without an utterance give no text.
use super::*;

/// Ten seconds of each level.
#[test]
fn noise_is_no_utterance() {
    for rate in RATES {
        let length = 10 * rate.hz() as usize;
        for (seed, peak) in [(1, 8), (2, 500), (3, 8_000), (4, i16::MAX)] {
            assert_eq!(hear(&line::noise(length, peak, seed), rate), [], "{peak} at {rate:?}");
        }
    }
}

#[test]
fn silence_and_the_loudest_are_no_utterance() {
    for value in [0, 1, -8, i16::MAX, i16::MIN] {
        assert_eq!(hear(&vec![value; 80_000], Rate::Khz8), [], "{value}");
    }
    let square: Vec<i16> =
        (0..80_000).map(|place| if place / 4 % 2 == 0 { i16::MIN } else { i16::MAX }).collect();
    assert_eq!(hear(&square, Rate::Khz8), []);
}

#[test]
fn speech_is_no_utterance() {
    for rate in RATES {
        for seed in 0..2 {
            let samples = line::babble(5 * rate.hz() as usize, f64::from(rate.hz()), seed);
            let loudest = samples.iter().map(|sample| sample.unsigned_abs()).max().unwrap();
            assert!(loudest > 4_000, "{loudest}");
            assert_eq!(hear(&samples, rate), [], "{seed} at {rate:?}");
        }
    }
}

/// Every DTMF digit, long and loud.
#[test]
fn digits_are_no_utterance() {
    let mut samples = Vec::new();
    for low in [697.0, 770.0, 852.0, 941.0] {
        for high in [1_209.0, 1_336.0, 1_477.0, 1_633.0] {
            let tone = |place: i32, hz: f64| (f64::from(place) / 8_000.0 * hz * std::f64::consts::TAU).sin();
            samples.extend((0..800).map(|place| ((tone(place, low) + tone(place, high)) * 8_000.0) as i16));
            samples.extend(silence(50, Rate::Khz8));
        }
    }
    assert_eq!(hear(&samples, Rate::Khz8), []);
}

/// Data contains no preamble at any alignment: without its preamble a packet is not decoded.
#[test]
fn data_is_no_preamble() {
    let text: String = ('\u{0}'..='\u{7f}').chain("aaaa    ()[]{}".repeat(20).chars()).collect();
    for rate in RATES {
        let frames = ToneEncoder::speak(&text, rate);
        for offset in 0..20 {
            let mut line = vec![0; offset * rate.frame_samples() / 20];
            for packet in frames.chunks(52 * rate.frame_samples()) {
                line.extend(packet.iter().skip(rate.frame_samples()));
            }
            assert_eq!(hear(&line, rate), [], "{offset} at {rate:?}");
        }
    }
}

/// Two utterances with the same tag, of which the second outlasts the first.
#[test]
fn two_speakers_with_the_same_tag_are_not_mixed() {
    let one = " oxder  h clo   n   iz s  urnvk  j lmg yv   zq fu ba t rb  n p  dl qaw du";
    let other = " UL  Q  ZUS VV  B J     A YLO UFC XMZNP Q EOM EPBAOCGY  LW T    ";
    let mut later = vec![0; 7_398];
    later.extend(line::gain(&ToneEncoder::speak(other, Rate::Khz8), 0.886_869_945));
    let mut samples = ToneEncoder::speak(one, Rate::Khz8);
    samples.resize(samples.len().max(later.len()) + 8_000, 0);
    let heard = hear(&line::mixed(&samples, &later), Rate::Khz8);
    let expected = format!("{}…", &one[..40]);
    assert!(
        matches!(&heard[..], [ToneHeard::Began, ToneHeard::Said { text, .. }] if *text == expected),
        "{heard:?}"
    );
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn arbitrary_samples_are_not_an_utterance(samples: Vec<i16>, rate in prop::sample::select(&RATES)) {
        prop_assert_eq!(hear(&samples, rate), []);
    }

    /// Two simultaneous speakers of any relative level: decoded text comes from one of them.
    #[test]
    fn two_speakers_are_not_mixed(
        one in "[a-z ]{1,100}",
        other in "[A-Z ]{1,100}",
        offset in 0_usize..8_000,
        level in 0.2_f64..5.0,
    ) {
        let mut quiet = vec![0; offset];
        quiet.extend(line::gain(&ToneEncoder::speak(&other, Rate::Khz8), level));
        let mut samples = ToneEncoder::speak(&one, Rate::Khz8);
        samples.resize(samples.len().max(quiet.len()) + 8_000, 0);
        for heard in hear(&line::mixed(&samples, &quiet), Rate::Khz8) {
            if let ToneHeard::Said { text, .. } = heard {
                let is_part = |said: &str| text.split('…').all(|part| said.contains(part));
                prop_assert!(is_part(&one) || is_part(&other), "{}: {} and {}", text, one, other);
            }
        }
    }

    /// Utterances with randomly replaced samples.
    #[test]
    fn damaged_audio_gives_no_wrong_text(
        text in "\\PC{1,100}",
        damage in prop::collection::vec((any::<prop::sample::Index>(), any::<i16>()), 0..2_000),
    ) {
        let mut samples = ToneEncoder::speak(&text, Rate::Khz8);
        for (place, value) in damage {
            let place = place.index(samples.len());
            samples[place] = value;
        }
        for heard in hear(&samples, Rate::Khz8) {
            if let ToneHeard::Said { text: heard, .. } = heard {
                prop_assert!(heard.split('…').all(|part| text.contains(part)));
            }
        }
    }
}
