//! Speech is made here: pulses of a voice through the resonances of vowels, in syllables.
use std::f64::consts::TAU;

use proptest::prelude::*;

use super::*;
use crate::speech::speech_like::speech_like;
use crate::speech::tone::ToneEncoder;

const RATES: [Rate; 3] = [Rate::Khz8, Rate::Khz16, Rate::Khz24];

fn samples_of(ms: i64, rate: Rate) -> usize {
    ms as usize * rate.hz() as usize / 1_000
}

fn silence(ms: i64, rate: Rate) -> Vec<i16> {
    vec![0; samples_of(ms, rate)]
}

/// Numbers without order, the same on every run.
fn noise(ms: i64, rate: Rate, level: f64) -> Vec<i16> {
    let mut state = 1_u64;
    (0..samples_of(ms, rate))
        .map(|_| {
            state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
            (((state >> 33) as f64 / f64::from(1_u32 << 30) - 1.0) * level) as i16
        })
        .collect()
}

fn chord(ms: i64, rate: Rate, frequencies: &[f64]) -> Vec<i16> {
    (0..samples_of(ms, rate))
        .map(|place| {
            let time = place as f64 / f64::from(rate.hz());
            (frequencies.iter().map(|frequency| (TAU * frequency * time).sin()).sum::<f64>() * 4_000.0) as i16
        })
        .collect()
}

fn speech(ms: i64, rate: Rate) -> Vec<i16> {
    speech_like(ms, rate, 120.0)
}

/// What is detected in a sound after half a second of silence and before a whole one, in ms.
fn detected(sound: &[i16], rate: Rate) -> Vec<(i64, i64)> {
    let mut voice = VoiceActivity::new(rate);
    let samples = [&silence(500, rate)[..], sound, &silence(1_000, rate)[..]].concat();
    spans(&voice.hear(&samples), rate)
}

fn spans(events: &[VoiceEvent], rate: Rate) -> Vec<(i64, i64)> {
    let ms = |at: u64| (at * 1_000 / u64::from(rate.hz())) as i64;
    events
        .chunks(2)
        .map(|pair| match pair {
            [VoiceEvent::SpeechBegan { at: from }, VoiceEvent::SpeechEnded { at: until }] => {
                (ms(*from), ms(*until))
            }
            other => panic!("{other:?}"),
        })
        .collect()
}

#[test]
fn speech_begins_and_ends() {
    for rate in RATES {
        let spans = detected(&speech(1_500, rate), rate);
        let [(from, until)] = spans[..] else { panic!("{rate:?}: {spans:?}") };
        assert!((450..=600).contains(&from) && (1_900..=2_160).contains(&until), "{rate:?}: {spans:?}");
    }
}

#[test]
fn a_pause_between_words_does_not_end_speech() {
    for rate in RATES {
        let sound = [speech(600, rate), silence(120, rate), speech(600, rate)].concat();
        assert_eq!(detected(&sound, rate).len(), 1, "{rate:?}");
        let sound = [speech(600, rate), silence(700, rate), speech(600, rate)].concat();
        assert_eq!(detected(&sound, rate).len(), 2, "{rate:?}");
    }
}

#[test]
fn speech_in_noise_is_detected() {
    for rate in RATES {
        let sound: Vec<i16> = speech(1_500, rate)
            .iter()
            .zip(noise(1_500, rate, 800.0))
            .map(|(one, other)| one + other)
            .collect();
        assert_eq!(detected(&sound, rate).len(), 1, "{rate:?}");
    }
}

#[test]
fn other_sounds_are_not_speech() {
    for rate in RATES {
        for (name, sound) in [
            ("silence", silence(3_000, rate)),
            ("hiss", noise(3_000, rate, 100.0)),
            ("a click", noise(15, rate, 16_000.0)),
        ] {
            assert_eq!(detected(&sound, rate), [], "{name} at {rate:?}");
        }
    }
}

#[test]
fn sound_that_stays_the_same_is_not_speech_for_long() {
    for rate in RATES {
        let tones = [&[440.0][..], &[350.0, 440.0], &[440.0, 550.0, 660.0]];
        let noises = [300.0, 1_000.0, 8_000.0];
        let sounds = tones.map(|tones| chord(8_000, rate, tones)).into_iter();
        for sound in sounds.chain(noises.map(|level| noise(8_000, rate, level))) {
            let spans = detected(&sound, rate);
            assert!(spans.len() <= 1 && spans.iter().all(|(_, until)| *until < 3_000), "{rate:?}: {spans:?}");
        }
    }
}

/// So the test voice passes the same gate as a person.
#[test]
fn the_test_voice_is_speech() {
    for rate in RATES {
        let sound = ToneEncoder::speak("Good morning, this is the reception. How can I help you?", rate);
        let spans = detected(&sound, rate);
        assert_eq!(spans.len(), 1, "{rate:?}: {spans:?}");
    }
}

#[test]
fn voice_is_counted_without_pauses() {
    let rate = Rate::Khz8;
    let mut voice = VoiceActivity::new(rate);
    assert_eq!((voice.voiced_ms(), voice.is_speech(), voice.voiced_until()), (0, false, None));
    voice.hear(&speech(700, rate));
    let voiced_ms = voice.voiced_ms();
    assert!((500..=704).contains(&voiced_ms), "{voiced_ms}");
    assert!(voice.is_speech());
    voice.hear(&silence(150, rate));
    let paused_ms = voice.voiced_ms();
    assert!(paused_ms - voiced_ms <= 112, "{voiced_ms} {paused_ms}");
    let until = voice.voiced_until().unwrap();
    assert!((5_200..=6_500).contains(&until), "{until}");
    voice.hear(&silence(500, rate));
    assert_eq!((voice.voiced_ms(), voice.is_speech(), voice.voiced_until()), (0, false, None));
}

#[test]
fn a_gap_is_silence_of_its_length() {
    for gap_ms in [400, 60_000] {
        let rate = Rate::Khz8;
        let mut voice = VoiceActivity::new(rate);
        let mut events = voice.hear(&speech(800, rate));
        events.extend(voice.gap(samples_of(gap_ms, rate) as u64));
        assert_eq!(spans(&events, rate).len(), 1, "the gap ends speech");
        events.extend(voice.hear(&[speech(800, rate), silence(800, rate)].concat()));
        let (from, until) = spans(&events, rate)[1];
        let expected = 800 + gap_ms;
        assert!((expected - 60..=expected + 120).contains(&from), "{gap_ms}: {from}");
        assert!((expected + 740..=expected + 920).contains(&until), "{gap_ms}: {until}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(16))]
    #[test]
    fn any_division_gives_the_same_events(
        rate in prop::sample::select(&RATES[..]),
        pieces in prop::collection::vec(1_usize..4_000, 1..40),
    ) {
        let samples = [silence(200, rate), speech(500, rate), silence(600, rate)].concat();
        let whole = VoiceActivity::new(rate).hear(&samples);
        prop_assert_eq!(whole.len(), 2);
        let (mut voice, mut divided, mut rest) = (VoiceActivity::new(rate), Vec::new(), &samples[..]);
        for piece in pieces.iter().cycle() {
            let (now, later) = rest.split_at((*piece).min(rest.len()));
            divided.extend(voice.hear(now));
            rest = later;
            if rest.is_empty() {
                break;
            }
        }
        prop_assert_eq!(divided, whole);
    }
}

/// Within a frame of the detector, whatever the voice and the line; a telephone's codec is in between.
#[test]
fn speech_begins_and_ends_where_its_sound_does() {
    for rate in RATES {
        for pitch_hz in [90.0, 120.0, 160.0, 220.0] {
            for before_ms in [300, 3_000] {
                let sound = speech_like(1_200, rate, pitch_hz);
                let line = [&silence(before_ms, rate)[..], &sound, &silence(1_000, rate)].concat();
                let line = crate::speech::g711::decode(&crate::speech::g711::encode(&line));
                let spans = spans(&VoiceActivity::new(rate).hear(&line), rate);
                let [(from, until)] = spans[..] else { panic!("{rate:?}: {spans:?}") };
                let what = format!("{rate:?}, {pitch_hz} Hz after {before_ms} ms: {spans:?}");
                assert!((from - before_ms).abs() <= 20, "{what}");
                assert!((-50..=20).contains(&(until - before_ms - 1_200)), "{what}");
            }
        }
    }
}
