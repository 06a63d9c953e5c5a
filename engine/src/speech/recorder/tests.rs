use std::ops::{Deref, DerefMut};

use proptest::prelude::*;

use super::*;
use crate::speech::arrival_clock::ArrivalClock;

const FRAME: usize = 160;
const SEGMENT_MS: i64 = 5_000;

/// A recorder with the clock of its line.
struct Line {
    recorder: Recorder,
    clock: ArrivalClock,
}

impl Line {
    fn hear(&mut self, now_ms: i64, samples: &[i16]) {
        let until = self.clock.arrived(now_ms, samples.len());
        self.recorder.hear(until, samples);
    }

    fn lose(&mut self, now_ms: i64, samples: usize) {
        let until = self.clock.arrived(now_ms, samples);
        self.recorder.lose(until, samples);
    }
}

impl Deref for Line {
    type Target = Recorder;

    fn deref(&self) -> &Recorder {
        &self.recorder
    }
}

impl DerefMut for Line {
    fn deref_mut(&mut self) -> &mut Recorder {
        &mut self.recorder
    }
}

fn begun() -> Line {
    let mut recorder = Recorder::new(Rate::Khz8);
    recorder.begin(0, SEGMENT_MS);
    Line { recorder, clock: ArrivalClock::new(Rate::Khz8) }
}

fn played(recorder: &mut Recorder, until_ms: i64, samples: &[i16]) {
    recorder.played(&HeardFrame { until_ms, samples: samples.to_vec() });
}

/// The recording of what is left, in one piece.
fn rest(recorder: &mut Recorder, ended_at_ms: i64) -> Vec<[i16; 2]> {
    std::iter::from_fn(|| recorder.finish(ended_at_ms)).flat_map(|segment| segment.frames).collect()
}

#[test]
fn what_is_missing_fades_to_silence_and_is_counted() {
    let mut recorder = begun();
    recorder.hear(20, &[160; FRAME]);
    recorder.hear(520, &[2; FRAME]);
    let end = recorder.finish(540).unwrap();
    assert_eq!(end.missing_ms, 480);
    let caller: Vec<i16> = end.frames.iter().map(|frame| frame[0]).collect();
    let fading = (1..=160).rev().collect();
    let silence = vec![0; 480 * 8 - FRAME];
    assert!(caller == [vec![160; FRAME], fading, silence, vec![2; FRAME], vec![0; FRAME]].concat());
}

/// The same, whatever pieces the line says it has lost.
#[test]
fn what_the_line_has_lost_fades_to_silence_and_is_counted() {
    for pieces in [&[480][..], &[160, 160, 160], &[80, 400], &[40, 280, 160]] {
        let mut recorder = begun();
        recorder.hear(20, &[160; FRAME]);
        recorder.hear(40, &[320; FRAME]);
        let mut lost = 0;
        for piece in pieces {
            lost += piece;
            recorder.lose(40 + lost / 8, *piece as usize);
        }
        recorder.hear(120, &[5; FRAME]);
        let end = recorder.finish(120).unwrap();
        assert_eq!(end.missing_ms, 60);
        let caller: Vec<i16> = end.frames.iter().map(|frame| frame[0]).collect();
        let again = [160; FRAME].into_iter().chain([320; FRAME]);
        let fading =
            again.zip((1..=320_i64).rev()).map(|(sample, left)| (i64::from(sample) * left / 320) as i16);
        let expected =
            [vec![160; FRAME], vec![320; FRAME], fading.collect(), vec![0; FRAME], vec![5; FRAME]].concat();
        assert_eq!(caller, expected, "{pieces:?}");
    }
}

#[test]
fn each_loss_begins_with_the_audio_before_it() {
    let mut recorder = begun();
    // Nothing was heard before the first.
    recorder.lose(20, FRAME);
    for (until_ms, value) in [(60, 160), (120, 320)] {
        recorder.hear(until_ms, &[value; 2 * FRAME]);
        recorder.lose(until_ms + 20, FRAME);
    }
    let end = recorder.finish(140).unwrap();
    assert_eq!(end.missing_ms, 60);
    let at = |ms: usize| end.frames[ms * 8][0];
    assert_eq!([at(0), at(20), at(60), at(80), at(120), at(130)], [0, 160, 160, 320, 320, 240]);
}

#[test]
fn delayed_audio_takes_the_place_of_its_silence() {
    let mut recorder = begun();
    recorder.hear(20, &[1; FRAME]);
    // Nothing for half a second, then all of it at once.
    for n in 0..25 {
        recorder.hear(520, &[10 + n; FRAME]);
    }
    let end = recorder.finish(520).unwrap();
    assert_eq!(end.missing_ms, 0);
    let expected: Vec<i16> = std::iter::once(1).chain(10..35).flat_map(|n| [n; FRAME]).collect();
    assert_eq!(end.frames.iter().map(|frame| frame[0]).collect::<Vec<_>>(), expected);
}

/// A line that opens is read late: what waited was spoken before.
#[test]
fn what_was_spoken_before_the_recording_is_no_part_of_it() {
    let mut recorder = begun();
    for n in 1..=4 {
        recorder.hear(50, &[n; FRAME]);
    }
    recorder.hear(70, &[5; FRAME]);
    let end = recorder.finish(70).unwrap();
    let caller: Vec<i16> = end.frames.iter().map(|frame| frame[0]).collect();
    assert_eq!(caller, [vec![2; FRAME / 2], vec![3; FRAME], vec![4; FRAME], vec![5; FRAME]].concat());
    assert_eq!(end.missing_ms, 0);
}

#[test]
fn jitter_leaves_no_holes() {
    let mut recorder = begun();
    for n in 0..100 {
        recorder.hear(20 * (n + 1) + [0, 60, 30, 5][n as usize % 4], &[1; FRAME]);
    }
    let frames = rest(&mut recorder, 2_000);
    // The last delay is not made up for any more.
    assert!(frames[1_600..15_000].iter().all(|frame| frame[0] == 1));
}

#[test]
fn an_interruption_leaves_silence_until_the_next_line() {
    let mut recorder = begun();
    for n in 1..=10 {
        played(&mut recorder, 1_000 + n * 20, &[5; FRAME]);
    }
    played(&mut recorder, 3_020, &[6; FRAME]);
    let frames = rest(&mut recorder, 4_000);
    let of = |ms: usize| frames[ms * 8][1];
    assert_eq!([of(999), of(1_000), of(1_199), of(1_200), of(2_999), of(3_000)], [0, 5, 5, 0, 0, 6]);
    assert_eq!(frames.len(), 32_000);
}

#[test]
fn a_segment_is_cut_when_nothing_more_can_come() {
    let mut recorder = begun();
    recorder.hear(20, &[1; FRAME]);
    assert_eq!(recorder.take_segment(SEGMENT_MS + LATE_MS - 1, None), None);
    played(&mut recorder, SEGMENT_MS + 10, &[3; FRAME]);
    let segment = recorder.take_segment(SEGMENT_MS + LATE_MS, None).unwrap();
    assert_eq!(segment.frames.len() as i64, SEGMENT_MS * 8);
    assert_eq!(segment.frames.last(), Some(&[0, 3]));
    assert_eq!(recorder.take_segment(SEGMENT_MS + LATE_MS, None), None);
    let end = recorder.finish(SEGMENT_MS + 20).unwrap();
    assert_eq!((end.frames[79], end.frames[80], end.frames.len()), ([0, 3], [0, 0], 160));
    assert_eq!(recorder.finish(SEGMENT_MS + 20), None);
}

#[test]
fn a_segment_waits_for_audio_whose_marks_are_late() {
    let mut recorder = begun();
    recorder.hear(20, &[1; FRAME]);
    let now_ms = SEGMENT_MS + LATE_MS + 2_000;
    assert_eq!(recorder.take_segment(now_ms, Some(SEGMENT_MS - 1_000)), None);
    for n in 0..50 {
        played(&mut recorder, SEGMENT_MS - 1_000 + (n + 1) * 20, &[4; FRAME]);
    }
    let segment = recorder.take_segment(now_ms, Some(SEGMENT_MS)).unwrap();
    assert!(segment.frames.iter().rev().take(8_000).all(|frame| frame[1] == 4));
}

proptest! {
    #[test]
    fn the_recording_is_as_long_as_the_conversation(
        steps in prop::collection::vec((0_u8..3, 0_i64..900, 1_usize..400), 0..80),
    ) {
        let mut recorder = begun();
        let (mut now_ms, mut samples) = (0, 0);
        for (kind, pause_ms, length) in steps {
            now_ms += pause_ms;
            match kind {
                0 => recorder.hear(now_ms, &vec![1; length]),
                1 => played(&mut recorder, now_ms, &vec![2; length]),
                _ => {
                    while let Some(segment) = recorder.take_segment(now_ms, None) {
                        prop_assert_eq!(segment.frames.len() as i64, SEGMENT_MS * 8);
                        samples += segment.frames.len() as i64;
                    }
                }
            }
        }
        samples += rest(&mut recorder, now_ms).len() as i64;
        prop_assert_eq!(samples, now_ms * 8);
    }
}

#[test]
fn audio_that_comes_in_bursts_is_whole() {
    let mut recorder = begun();
    let steady: Vec<i64> = (0..60).map(|n| n * 20).collect();
    let bursts = [vec![1_270; 2], vec![1_340; 3], vec![1_430; 6], vec![1_435, 1_455, 1_475]].concat();
    for (now_ms, n) in [steady, bursts].concat().into_iter().zip(1_i16..) {
        recorder.hear(now_ms, &[n; FRAME]);
    }
    let end = recorder.finish(1_460).unwrap();
    assert_eq!(end.missing_ms, 0);
    let caller: Vec<i16> = end.frames.iter().map(|frame| frame[0]).collect();
    let whole: Vec<i16> = (2..=74).flat_map(|n| [n; FRAME]).collect();
    assert_eq!(caller, whole);
}

#[test]
fn all_of_a_gap_that_is_longer_than_segments_is_missing() {
    let mut recorder = begun();
    recorder.hear(20, &[1; FRAME]);
    let first = recorder.take_segment(SEGMENT_MS + LATE_MS, None).unwrap();
    let second = recorder.take_segment(2 * SEGMENT_MS + LATE_MS, None).unwrap();
    assert_eq!([first.missing_ms, second.missing_ms], [SEGMENT_MS - 20, 2 * SEGMENT_MS - 20]);
    recorder.hear(12_000, &[2; FRAME]);
    assert_eq!(recorder.finish(12_000).unwrap().missing_ms, 12_000 - 40);
}

#[test]
fn of_a_delay_across_a_cut_only_what_belongs_before_is_missing() {
    let mut recorder = begun();
    let frames = |from_ms: i64, until_ms: i64| (from_ms / 20 + 1..=until_ms / 20).map(|n| (n * 20, n as i16));
    frames(0, 4_500).for_each(|(now_ms, n)| recorder.hear(now_ms, &[n; FRAME]));
    let first = recorder.take_segment(SEGMENT_MS + LATE_MS, None).unwrap();
    assert_eq!(first.missing_ms, 500);
    frames(4_500, 6_200).for_each(|(_, n)| recorder.hear(6_200, &[n; FRAME]));
    frames(6_200, 6_400).for_each(|(now_ms, n)| recorder.hear(now_ms, &[n; FRAME]));
    let end = recorder.finish(6_400).unwrap();
    assert_eq!(end.missing_ms, 500);
    let caller: Vec<i16> = end.frames.iter().map(|frame| frame[0]).collect();
    let whole: Vec<i16> = frames(5_000, 6_400).flat_map(|(_, n)| [n; FRAME]).collect();
    assert_eq!(caller, whole);
}

#[test]
fn a_line_that_opens_with_a_delay_is_whole() {
    let mut recorder = begun();
    recorder.hear(100, &[1; FRAME]);
    (2..=10).for_each(|n| recorder.hear(200, &[n; FRAME]));
    (11..=60).for_each(|n| recorder.hear(i64::from(n) * 20, &[n; FRAME]));
    let end = recorder.finish(1_200).unwrap();
    assert_eq!(end.missing_ms, 0);
    let caller: Vec<i16> = end.frames.iter().map(|frame| frame[0]).collect();
    assert_eq!(caller, (1..=60).flat_map(|n| [n; FRAME]).collect::<Vec<_>>());
}

#[test]
fn a_line_with_less_delay_later_keeps_its_audio_beside_an_old_loss() {
    let mut recorder = begun();
    (1..=100).for_each(|n| recorder.hear(n * 20 + 80, &[1; FRAME]));
    // 500 ms are lost; long after, the delay is 80 ms shorter.
    (126..=300).for_each(|n| recorder.hear(n * 20 + 80, &[1; FRAME]));
    let mut segments: Vec<Segment> = recorder.take_segment(6_080, None).into_iter().collect();
    (301..=400).for_each(|n| recorder.hear(n * 20, &[2; FRAME]));
    segments.extend(recorder.finish(8_080));
    let caller: Vec<i16> =
        segments.iter().flat_map(|segment| &segment.frames).map(|frame| frame[0]).collect();
    assert_eq!(caller.iter().filter(|sample| **sample == 2).count(), 100 * FRAME);
}
