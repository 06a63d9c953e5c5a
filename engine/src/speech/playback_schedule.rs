//! When a line plays the audio that it was sent, on the service's clock.
use std::collections::VecDeque;

use super::audio::FRAME_MS;

/// Audio that arrives this much after its predecessor's end followed it without a gap.
const JITTER_MS: i64 = 40;
/// A mark that is late by no more than this took its time to return.
const MARK_DELAY_MS: i64 = 250;
/// A mark that was held back is late, and those after it are not. When all marks are late for this long, the line plays
/// late.
const LATE_FOR_MS: i64 = 1_500;

/// A mark that did not return.
#[derive(Debug, Clone, Copy)]
struct Mark {
    number: u64,
    /// When it should return.
    until_ms: i64,
}

/// Marks that are late, one after the other.
#[derive(Debug, Clone, Copy)]
struct Late {
    since_ms: i64,
    /// By how much at least.
    by_ms: i64,
}

/// Plans when each frame is played. A line plays in real time, from the arrival of the first frame on, and has no gap while
/// audio waits. Marks correct the plan: one that returns early at once, late ones when the delay stays.
#[derive(Debug, Default)]
pub struct PlaybackSchedule {
    /// When all audio will have been played.
    until_ms: i64,
    marks: VecDeque<Mark>,
    late: Option<Late>,
}

impl PlaybackSchedule {
    /// A frame is sent; returns when its playback begins.
    pub fn sent(&mut self, now_ms: i64) -> i64 {
        if now_ms - self.until_ms > JITTER_MS {
            self.until_ms = now_ms;
            self.late = None;
        }
        let from_ms = self.until_ms;
        self.until_ms += FRAME_MS;
        from_ms
    }

    /// A mark is requested after what was sent.
    pub fn mark_sent(&mut self, number: u64) {
        self.marks.push_back(Mark { number, until_ms: self.until_ms });
    }

    /// A mark was returned; returns by how much the frames that were sent are played later than planned.
    pub fn played(&mut self, now_ms: i64, number: u64) -> i64 {
        let Some(place) = self.marks.iter().position(|mark| mark.number == number) else { return 0 };
        let Some(mark) = self.marks.drain(..=place).next_back() else { return 0 };
        let moved_ms = self.delay_ms(now_ms, now_ms - mark.until_ms);
        if moved_ms != 0 {
            self.late = None;
            self.until_ms += moved_ms;
            for mark in &mut self.marks {
                mark.until_ms += moved_ms;
            }
        }
        moved_ms
    }

    /// The line discarded its audio, and its marks say nothing any more.
    pub fn cleared(&mut self, now_ms: i64) {
        *self = Self { until_ms: self.until_ms.min(now_ms), ..Self::default() };
    }

    /// How far a mark that is late by so much moves the plan.
    fn delay_ms(&mut self, now_ms: i64, late_ms: i64) -> i64 {
        if late_ms <= MARK_DELAY_MS {
            self.late = None;
            return late_ms.min(0);
        }
        let late = self.late.get_or_insert(Late { since_ms: now_ms, by_ms: late_ms });
        late.by_ms = late.by_ms.min(late_ms);
        if now_ms - late.since_ms < LATE_FOR_MS { 0 } else { late.by_ms }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// A schedule with ten seconds of audio that was sent at once, and a mark after each of them.
    fn ten_seconds() -> PlaybackSchedule {
        let mut schedule = PlaybackSchedule::default();
        for mark in 1..=10 {
            for _ in 0..50 {
                schedule.sent(1_000);
            }
            schedule.mark_sent(mark);
        }
        schedule
    }

    #[test]
    fn marks_that_were_held_back_move_nothing() {
        let mut schedule = ten_seconds();
        let held_back = [(1, 2_050), (2, 4_900), (3, 4_900), (4, 5_050), (5, 6_030)];
        assert!(held_back.iter().all(|(mark, at_ms)| schedule.played(*at_ms, *mark) == 0));
        assert_eq!(schedule.until_ms, 11_000);
    }

    #[test]
    fn a_line_that_stood_still_plays_later() {
        let mut schedule = ten_seconds();
        let moved =
            [(1, 2_000), (2, 3_600), (3, 4_590), (4, 5_610)].map(|(mark, at)| schedule.played(at, mark));
        assert_eq!(moved, [0, 0, 0, 590]);
        assert_eq!(schedule.played(6_600, 5), 0);
        // A queue that is discarded is late no more.
        schedule.cleared(6_700);
        assert_eq!(schedule.sent(6_900), 6_900);
    }

    #[test]
    fn a_mark_that_is_early_moves_the_rest() {
        let mut schedule = ten_seconds();
        assert_eq!(
            (schedule.played(1_990, 1), schedule.played(2_990, 2), schedule.played(2_990, 2)),
            (-10, 0, 0)
        );
    }

    #[test]
    fn audio_that_comes_late_begins_on_arrival() {
        let mut schedule = PlaybackSchedule::default();
        let sent = [1_000, 1_010, 1_060, 1_120].map(|at_ms| schedule.sent(at_ms));
        assert_eq!(sent, [1_000, 1_020, 1_040, 1_120]);
    }
}
