//! Lines that lose and repeat frames.
use super::*;

/// Three packets; the first two have 52 symbols each.
const THREE: &str = "This is the first packet of forty bytes.and this, the second, which is as long. Last";

fn frames(text: &str) -> Vec<Vec<i16>> {
    ToneEncoder::speak(text, Rate::Khz8).chunks(Rate::Khz8.frame_samples()).map(<[i16]>::to_vec).collect()
}

/// Decodes the frames and a second of silence.
fn hear_frames(frames: &[Vec<i16>]) -> Vec<ToneHeard> {
    let mut samples = frames.concat();
    samples.extend(silence(1_000, Rate::Khz8));
    hear(&samples, Rate::Khz8)
}

/// The decoded texts.
fn texts(heard: &[ToneHeard]) -> Vec<&str> {
    let mut texts = Vec::new();
    for heard in heard {
        if let ToneHeard::Said { text, .. } = heard {
            texts.push(text.as_str());
        }
    }
    texts
}

/// A frame that is lost, repeated or silenced costs its packet.
#[test]
fn an_error_costs_a_packet() {
    let whole = frames(THREE);
    let [first, second, third] = [&THREE[..40], &THREE[40..80], &THREE[80..]];
    let mut harmless = 0;
    for place in 0..whole.len() {
        let (mut lost, mut repeated, mut silenced) = (whole.clone(), whole.clone(), whole.clone());
        lost.remove(place);
        repeated.insert(place, whole[place].clone());
        silenced[place].fill(0);
        let expected = match place {
            0..52 => format!("…{second}{third}"),
            52..104 => format!("{first}…{third}"),
            _ => format!("{first}{second}…"),
        };
        for (kind, frames) in [("lost", lost), ("repeated", repeated), ("silenced", silenced)] {
            let heard = hear_frames(&frames);
            let texts = texts(&heard);
            // One of two equal frames, a repetition of the last frame, a zero byte: the text is still complete.
            if texts == [THREE] {
                harmless += 1;
                continue;
            }
            // Without its preamble or header the last packet is missed, and with it the end marker.
            if (104..112).contains(&place) && texts.is_empty() {
                assert!(matches!(heard[..], [ToneHeard::Began, ToneHeard::Garbled { .. }]), "{heard:?}");
                continue;
            }
            assert_eq!(texts, [expected.as_str()], "{kind} {place}: {heard:?}");
        }
    }
    assert!(harmless < 20, "{harmless}");
}

#[test]
fn an_early_end_is_garbled() {
    let whole = frames(THREE);
    for length in 0..whole.len() {
        let heard = hear_frames(&whole[..length]);
        let duration_ms = length as i64 * FRAME_MS;
        let text = format!("{}…", &THREE[..80]);
        let expected = match length {
            0..4 => vec![],
            4..112 => vec![ToneHeard::Began, ToneHeard::Garbled { duration_ms }],
            // Enough of the last packet has arrived to know that it is the last.
            _ => vec![ToneHeard::Began, ToneHeard::Said { text, duration_ms }],
        };
        assert_eq!(heard, expected, "{length}");
    }
}

/// An interrupted speaker who starts again at once.
#[test]
fn a_new_utterance_ends_an_incomplete_one() {
    let whole = frames(THREE);
    for length in (4..112).step_by(3) {
        for pause in 0..3 {
            let mut frames = whole[..length].to_vec();
            frames.extend(vec![vec![0; 160]; pause]);
            frames.extend(self::frames("Sorry?"));
            let [began, garbled, again, end] = hear_frames(&frames).try_into().unwrap();
            assert_eq!(
                [began, again, end],
                [ToneHeard::Began, ToneHeard::Began, ended("Sorry?")],
                "{length}"
            );
            let ToneHeard::Garbled { duration_ms } = garbled else { panic!("{length}: {garbled:?}") };
            let sent_ms = length as i64 * FRAME_MS;
            assert!(
                (sent_ms - 20..=sent_ms + 20).contains(&duration_ms),
                "{length}: {duration_ms} of {sent_ms}"
            );
        }
    }
}

#[test]
fn decodes_an_utterance_without_its_start() {
    let whole = frames(THREE);
    let heard = hear_frames(&whole[30..]);
    let text = format!("…{}", &THREE[40..]);
    let duration_ms = (whole.len() as i64 - 52) * FRAME_MS;
    assert_eq!(heard, [ToneHeard::Began, ToneHeard::Said { text, duration_ms }]);
}

/// The end of one utterance and the start of the next are lost: their packets must not be combined.
#[test]
fn halves_of_two_utterances_are_not_one() {
    let other = "Something else altogether, as long as that, of which the begin is lost.";
    let mut frames = frames(THREE)[..60].to_vec();
    frames.extend(self::frames(other)[30..].to_vec());
    let heard = hear_frames(&frames);
    assert_eq!(texts(&heard), [format!("…{}", &other[40..])]);
    assert_eq!(heard.len(), 4);
    assert!(matches!(heard[..2], [ToneHeard::Began, ToneHeard::Garbled { .. }]));
}

/// A late line delivers silence for a while.
#[test]
fn a_pause_between_packets_does_no_harm() {
    for pause in [1, 5, 18] {
        let mut frames = frames(THREE);
        frames.splice(52..52, vec![vec![0; 160]; pause]);
        assert_eq!(texts(&hear_frames(&frames)), [THREE]);
    }
}

/// A repeated packet is decoded once.
#[test]
fn a_repeated_packet_is_heard_once() {
    let mut frames = frames(THREE);
    let second = frames[52..104].to_vec();
    frames.splice(104..104, second);
    assert_eq!(texts(&hear_frames(&frames)), [THREE]);
}

/// A continuous tone does not keep an utterance open.
#[test]
fn an_utterance_that_breaks_off_into_a_tone_ends() {
    let mut samples = frames(THREE)[..60].concat();
    let dialling = |place: usize| {
        let tone = |hz: f64| (place as f64 / 8_000.0 * hz * std::f64::consts::TAU).sin() * 4_000.0;
        (tone(1_000.0) + tone(1_900.0)) as i16
    };
    samples.extend((0..5 * 8_000).map(dialling));
    let heard = hear(&samples, Rate::Khz8);
    assert!(matches!(heard[..], [ToneHeard::Began, ToneHeard::Garbled { .. }]), "{heard:?}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    /// Whatever a line does to frames, only text that was sent is decoded.
    #[test]
    fn only_sent_text_is_decoded(
        text in "[a-z ]{1,200}",
        changes in prop::collection::vec((any::<prop::sample::Index>(), 0_u8..3), 0..5),
    ) {
        let mut frames = frames(&text);
        for (place, change) in changes {
            let place = place.index(frames.len());
            match change {
                0 => { frames.remove(place); }
                1 => frames.insert(place, frames[place].clone()),
                _ => frames[place].fill(0),
            }
        }
        for heard in texts(&hear_frames(&frames)) {
            let mut rest = text.as_str();
            for part in heard.split('…') {
                let place = rest.find(part);
                prop_assert!(place.is_some(), "{} of {}", heard, text);
                rest = &rest[place.unwrap() + part.len()..];
            }
        }
    }
}
