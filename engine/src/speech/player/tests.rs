use proptest::prelude::*;

use super::*;
use crate::speech::tone::ToneEncoder;

const FRAME: usize = Rate::Khz8.frame_samples();

fn spoken(ms: i64) -> Player {
    let mut player = Player::new(Rate::Khz8, true);
    player.begin_line(1);
    player.add_audio(1, &vec![1; FRAME * (ms / FRAME_MS) as usize]);
    player.finish_line(1);
    player
}

/// Sends everything that is due; returns the last mark.
fn flush(player: &mut Player, now_ms: i64) -> Option<u64> {
    let mut last = None;
    while let Some(output) = player.poll_output(now_ms) {
        if let PlayerOutput::Mark(mark) = output {
            last = Some(mark);
        }
    }
    last
}

#[test]
fn a_line_is_over_when_its_last_mark_returns() {
    let mut player = spoken(600);
    let mark = flush(&mut player, 1_000).unwrap();
    assert!(player.take_played(1_500).is_empty());
    player.played(1_620, mark);
    let over = player.take_played(1_620);
    assert_eq!(
        over,
        [LineProgress {
            line: 1,
            heard_ms: 600,
            audio_ms: 600,
            is_complete: true,
            heard_until_ms: Some(1_600)
        }]
    );
    assert!(player.lines.is_empty());
    let heard: Vec<_> = player.take_heard(1_620).collect();
    // The mark took 20 ms back to us, which is no gap.
    assert_eq!((heard.len(), heard[0].until_ms, heard[29].until_ms), (30, 1_020, 1_600));
}

#[test]
fn audio_that_waits_at_the_line_is_played_without_a_gap() {
    let mut player = spoken(1_400);
    let mark = flush(&mut player, 0).unwrap();
    assert_eq!(player.began_at_ms(19, 1), None);
    assert_eq!(player.began_at_ms(40, 1), Some(0));
    // The mark after the first second is late: the second mark was counted from it.
    player.played(1_200, 1);
    player.take_played(1_250);
    player.played(1_600, mark);
    assert_eq!(player.began_at_ms(1_600, 1), Some(0));
    player.begin_line(2);
    player.add_audio(2, &[1; FRAME]);
    flush(&mut player, 1_640);
    assert_eq!(player.began_at_ms(1_670, 2), Some(1_640));
    let heard: Vec<_> = player.take_heard(1_670).map(|frame| frame.until_ms).collect();
    let line = (1..=70).map(|n| n * FRAME_MS);
    assert_eq!(heard, line.chain([1_660]).collect::<Vec<_>>());
}

/// Plays four seconds whose marks return at these times; returns when each second was over in the recording.
fn seconds_over(returned_at_ms: [i64; 4]) -> [i64; 4] {
    let mut player = spoken(4_000);
    flush(&mut player, 0);
    let mut heard = Vec::new();
    for (mark, at_ms) in (1..).zip(returned_at_ms) {
        player.played(at_ms, mark);
        heard.extend(player.take_heard(at_ms).map(|frame| frame.until_ms));
    }
    let over = player.take_played(returned_at_ms[3]);
    assert_eq!(over[0].heard_until_ms, heard.last().copied());
    assert_eq!(heard.len(), 200);
    [heard[49], heard[99], heard[149], heard[199]]
}

#[test]
fn marks_that_a_network_holds_back_delay_no_audio() {
    assert_eq!(seconds_over([1_600, 2_020, 3_020, 4_020]), [1_000, 2_000, 3_000, 4_000]);
    assert_eq!(seconds_over([1_020, 3_700, 3_700, 4_020]), [1_000, 2_000, 3_000, 4_000]);
}

#[test]
fn a_line_that_plays_late_is_recorded_late() {
    assert_eq!(seconds_over([1_600, 2_600, 3_600, 4_600])[3], 4_600);
}

/// The end of a call is noticed after it, and the line has played on.
#[test]
fn progress_in_the_past_counts_no_later_marks() {
    let mut player = spoken(4_000);
    flush(&mut player, 0);
    for mark in 1..=3 {
        player.played(mark * 1_000, mark as u64);
        player.take_heard(mark * 1_000).count();
    }
    let heard_ms = |at_ms| player.progress(at_ms)[0].heard_ms;
    assert_eq!([0, 10, 1_500, 2_999, 3_000, 3_250].map(heard_ms), [0, 0, 1_500, 2_980, 3_000, 3_240]);
}

#[test]
fn a_paused_line_goes_on_where_it_stopped() {
    let mut player = spoken(1_000);
    flush(&mut player, 0);
    player.pause(410);
    assert_eq!(player.poll_output(410), Some(PlayerOutput::Clear));
    assert_eq!(player.poll_output(410), None);
    assert_eq!(player.progress(9_000)[0].heard_ms, 400);
    player.resume(2_000);
    let mut frames = 0;
    let mut mark = 0;
    while let Some(output) = player.poll_output(2_000) {
        match output {
            PlayerOutput::Audio(_) => frames += 1,
            PlayerOutput::Mark(number) => mark = number,
            PlayerOutput::Clear => panic!("nothing to clear"),
        }
    }
    assert_eq!(frames, 30);
    assert_eq!(player.progress(2_300)[0].heard_ms, 700);
    player.played(2_610, mark);
    assert_eq!(player.take_played(2_610).len(), 1);
    assert_eq!(player.take_heard(2_610).count(), 50);
}

#[test]
fn a_cut_line_was_heard_up_to_the_cut() {
    let mut player = spoken(1_000);
    flush(&mut player, 0);
    player.begin_line(2);
    assert_eq!(
        player.cut(500),
        [
            LineProgress {
                line: 1,
                heard_ms: 500,
                audio_ms: 1_000,
                is_complete: true,
                heard_until_ms: Some(500)
            },
            LineProgress { line: 2, heard_ms: 0, audio_ms: 0, is_complete: false, heard_until_ms: None },
        ]
    );
    assert_eq!(player.poll_output(500), Some(PlayerOutput::Clear));
    // Audio of a discarded line that comes late.
    player.add_audio(2, &[1; FRAME]);
    assert_eq!(player.poll_output(520), None);
    assert_eq!(player.take_heard(520).count(), 25);
}

#[test]
fn a_line_without_marks_is_over_after_a_while() {
    let mut player = spoken(400);
    flush(&mut player, 0);
    let at_ms = player.poll_timeout().unwrap();
    player.tick(at_ms);
    assert_eq!(player.take_played(at_ms).len(), 1);
}

#[test]
fn a_line_ends_whose_mark_a_pause_discarded() {
    let mut player = spoken(20);
    flush(&mut player, 0);
    player.pause(20);
    player.resume(20);
    assert_eq!(player.take_played(20).len(), 1);
}

proptest! {
    #[test]
    fn nothing_is_heard_twice_or_lost(steps in prop::collection::vec((0_u8..7, 0_i64..900), 1..80)) {
        let mut player = Player::new(Rate::Khz8, true);
        let (mut now_ms, mut lines, mut queued, mut cut, mut marks) = (0, 0, 0, 0, Vec::new());
        let mut heard = 0;
        for (step, amount) in steps {
            match step {
                0 => {
                    lines += 1;
                    player.begin_line(lines);
                    let frames = amount / FRAME_MS;
                    player.add_audio(lines, &vec![0; FRAME * frames as usize]);
                    player.finish_line(lines);
                    queued += frames;
                }
                1 | 2 => now_ms += amount,
                3 => player.pause(now_ms),
                4 => player.resume(now_ms),
                5 => {
                    let at: i64 = player.cut(now_ms).iter().map(|line| line.audio_ms - line.heard_ms).sum();
                    cut += at / FRAME_MS;
                }
                _ => if let Some(mark) = marks.pop() {
                    player.played(now_ms, mark);
                }
            }
            marks.extend(flush(&mut player, now_ms));
            player.tick(now_ms);
            player.take_played(now_ms);
            heard += player.take_heard(now_ms).count() as i64;
            prop_assert!(heard + cut <= queued);
        }
        player.resume(now_ms);
        for _ in 0..40 {
            now_ms += 20_000;
            player.tick(now_ms);
            flush(&mut player, now_ms);
            player.take_played(now_ms);
        }
        heard += player.take_heard(now_ms).count() as i64;
        prop_assert_eq!(heard + cut, queued);
        prop_assert!(player.lines.is_empty());
    }
}

/// Ten minutes of a line that waits take a megabyte: 30,000 frames.
#[test]
fn a_frame_of_the_tone_code_that_waits_is_small() {
    assert!(size_of::<Frame>() <= 40, "{}", size_of::<Frame>());
    assert_eq!(
        Frame::new(Sound::Tone(ToneEncoder::symbols("a").next().unwrap())).samples(Rate::Khz8).len(),
        160
    );
}
