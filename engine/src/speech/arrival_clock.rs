//! When the audio that arrives was spoken, for the recording and the transcript alike: its arrival, without the delays of
//! single pieces.
use super::audio::Rate;

/// Audio may arrive this much later than its predecessor's end. Short, because the silence of a longer delay is taken back
/// when the audio follows.
const JITTER_MS: i64 = 40;
/// Audio may arrive this much earlier than it was spoken.
const EARLY_MS: i64 = 100;
/// A delay of which nothing was made up for this long is a loss.
const DELAY_MS: i64 = 2_000;
/// What arrives first was delayed if more follows within this time than was spoken.
pub(super) const STARTS_MS: i64 = 1_000;

/// The clock of one line's audio. Times are counted in samples, from the conversation's clock.
///
/// 1. A piece follows on its predecessor, unless it is more than 40 ms late: then it leaves a gap before it.
/// 2. Delayed audio comes faster than it is spoken: nothing has been spoken after it arrived, so the gap before it closes. A rest of up
///    to 40 ms is jitter: it closes, too.
/// 3. In the first second, what came before moves back instead: a line that opens is read late.
///
/// ```
/// use sidetone_engine::speech::arrival_clock::ArrivalClock;
/// use sidetone_engine::speech::audio::Rate;
///
/// let mut clock = ArrivalClock::new(Rate::Khz8);
/// assert_eq!(clock.arrived(5_000, 160), 5_000 * 8);
/// assert_eq!(clock.arrived(5_030, 160), 5_020 * 8, "10 ms of jitter");
/// assert_eq!(clock.arrived(5_540, 160), 5_540 * 8, "a gap of half a second");
/// assert_eq!(clock.arrived(5_540, 160), 5_540 * 8, "part of what was missing");
/// ```
#[derive(Debug)]
pub struct ArrivalClock {
    rate: Rate,
    started_ms: i64,
    /// The end of what has arrived.
    end: Option<i64>,
    /// What of the latest gaps may still close.
    gap: i64,
    /// When it last grew or closed.
    gap_ms: i64,
}

impl ArrivalClock {
    /// The clock of a line of this rate, before its first audio.
    #[must_use]
    pub const fn new(rate: Rate) -> Self {
        Self { rate, started_ms: 0, end: None, gap: 0, gap_ms: 0 }
    }

    /// So many samples have arrived. Returns when the last of them was spoken. If they do not fit between that and the end
    /// of their predecessor, the predecessor has moved back, too.
    pub fn arrived(&mut self, now_ms: i64, samples: usize) -> i64 {
        let now = self.rate.samples_in(now_ms);
        let samples = samples as i64;
        let Some(before) = self.end else {
            self.started_ms = now_ms;
            self.end = Some(now);
            return now;
        };
        let mut end = before.saturating_add(samples);
        let late = now - end;
        if now_ms - self.gap_ms > DELAY_MS {
            self.gap = 0;
        }
        if late > self.rate.samples_in(JITTER_MS) {
            self.gap += late;
            self.gap_ms = now_ms;
            end = now;
        } else if now_ms - self.started_ms <= STARTS_MS {
            self.gap = (self.gap + late.min(0)).max(0);
            end = end.min(now);
        } else {
            let made_up = (-late).clamp(0, self.gap);
            let is_jitter = self.gap - made_up <= self.rate.samples_in(JITTER_MS);
            let closed = if made_up > 0 && is_jitter { self.gap } else { made_up };
            if closed > 0 {
                self.gap -= closed;
                self.gap_ms = now_ms;
            }
            end = (end - closed).min(now + self.rate.samples_in(EARLY_MS));
        }
        self.end = Some(end);
        end
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    const FRAME: usize = 160;

    fn ends_ms(arrivals: &[i64]) -> Vec<i64> {
        let mut clock = ArrivalClock::new(Rate::Khz8);
        arrivals.iter().map(|now_ms| clock.arrived(*now_ms, FRAME) / 8).collect()
    }

    #[test]
    fn a_line_that_is_read_late_at_first_is_on_time_later() {
        assert_eq!(ends_ms(&[100, 100, 100, 104, 120, 140]), [100, 100, 100, 104, 120, 140]);
    }

    #[test]
    fn jitter_moves_nothing() {
        assert_eq!(ends_ms(&[0, 50, 41, 65, 80, 120, 121]), [0, 20, 40, 60, 80, 100, 120]);
    }

    #[test]
    fn a_delay_is_made_up_for_and_a_loss_is_not() {
        let steady: Vec<i64> = (0..60).map(|n| n * 20).collect();
        let late = [steady.clone(), vec![1_680; 25]].concat();
        let ends = ends_ms(&late);
        assert_eq!(ends[60..82], [1_680; 22]);
        assert_eq!(ends[82..], [1_640, 1_660, 1_680], "all of the gap, without jitter");
        let more = [steady.clone(), vec![1_680; 25], vec![1_700, 1_720]].concat();
        assert_eq!(ends_ms(&more)[85..], [1_700, 1_720]);
        let lost = [steady, vec![1_680, 1_700]].concat();
        assert_eq!(ends_ms(&lost)[60..], [1_680, 1_700]);
    }

    #[test]
    fn a_line_that_comes_in_bursts_and_stays_a_little_late_has_no_gaps() {
        let steady: Vec<i64> = (0..60).map(|n| n * 20).collect();
        // Three bursts, 15 ms late at the end.
        let bursts = [vec![1_270; 2], vec![1_340; 3], vec![1_430; 6], vec![1_435, 1_455, 1_475]].concat();
        let ends = ends_ms(&[steady, bursts].concat());
        assert_eq!(ends[ends.len() - 3..], [1_420, 1_440, 1_460]);
    }

    #[test]
    fn a_loss_of_which_nothing_was_made_up_for_long_stays() {
        let steady: Vec<i64> = (0..60).map(|n| n * 20).collect();
        let lost: Vec<i64> = (0..150).map(|n| 1_680 + n * 20).collect();
        let earlier: Vec<i64> = (0..5).map(|n| 4_640 + n * 20).collect();
        assert_eq!(ends_ms(&[steady, lost, earlier].concat())[210..], [4_680, 4_700, 4_720, 4_740, 4_760]);
    }

    #[test]
    fn a_line_that_runs_ahead_is_held_back() {
        let mut clock = ArrivalClock::new(Rate::Khz8);
        let ends: Vec<i64> = (0..500).map(|n| clock.arrived(n * 19, FRAME) / 8 - n * 19).collect();
        assert_eq!(ends.iter().max(), Some(&100));
        assert!(ends[..50].iter().all(|ahead_ms| *ahead_ms == 0), "{ends:?}");
    }

    proptest! {
        /// Whatever the delays are, no audio is placed more than 40 ms before it arrived alone, or 100 ms after.
        #[test]
        fn a_time_is_near_the_arrival(steps in prop::collection::vec((0_i64..400, 1_usize..1_600), 1..80)) {
            let mut clock = ArrivalClock::new(Rate::Khz8);
            let mut now_ms = 0;
            for (pause_ms, samples) in steps {
                now_ms += pause_ms;
                let ahead_ms = clock.arrived(now_ms, samples) as f64 / 8.0 - now_ms as f64;
                prop_assert!((-40.0..=100.0).contains(&ahead_ms), "{ahead_ms}");
            }
        }
    }
}
