//! Tracks how much of the sent audio has been heard.
use std::collections::VecDeque;

/// Counts how much of the sent audio has been played, by the marks that a line returns.
///
/// A line plays in real time what it received faster. Between two returned marks the clock is the measure: as much has been
/// played as time has passed, up to the next mark.
///
/// ```
/// use sidetone_engine::speech::playback::Playback;
///
/// let mut playback = Playback::default();
/// let mark = playback.sent(1_000, 600); // 600 ms of audio, sent at once
/// assert_eq!(playback.heard_ms(1_200), 200);
/// playback.played(1_650, mark);
/// assert_eq!(playback.heard_ms(1_650), 600);
/// assert!(playback.is_idle());
/// ```
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Playback {
    /// Audio known to have been played, counted from the first audio ever sent.
    played_ms: i64,
    /// The time of that knowledge.
    played_at_ms: i64,
    /// Audio that was sent.
    sent_ms: i64,
    /// Outstanding marks, each with the audio sent before it.
    marks: VecDeque<(u64, i64)>,
    last_mark: u64,
}

impl Playback {
    /// Records that `audio_ms` were sent at `now_ms`; returns the mark to request after them.
    pub fn sent(&mut self, now_ms: i64, audio_ms: i64) -> u64 {
        if self.is_idle() {
            self.played_at_ms = now_ms;
            self.played_ms = self.sent_ms;
        }
        self.sent_ms += audio_ms.max(0);
        self.last_mark += 1;
        self.marks.push_back((self.last_mark, self.sent_ms));
        self.last_mark
    }

    /// A mark was returned: all audio before it has been played. An unknown or repeated mark has no effect.
    pub fn played(&mut self, now_ms: i64, mark: u64) {
        let Some(place) = self.marks.iter().position(|(known, _)| *known == mark) else { return };
        for (_, sent_ms) in self.marks.drain(..=place) {
            self.played_ms = sent_ms;
        }
        self.played_at_ms = now_ms;
    }

    /// No further marks are expected: all audio counts as played.
    pub fn all_played(&mut self, now_ms: i64) {
        self.marks.clear();
        self.played_ms = self.sent_ms;
        self.played_at_ms = now_ms;
    }

    /// Unplayed audio was discarded; returns how much has been heard in total.
    pub fn cleared(&mut self, now_ms: i64) -> i64 {
        let heard_ms = self.heard_ms(now_ms);
        self.marks.clear();
        self.played_ms = heard_ms;
        self.sent_ms = heard_ms;
        self.played_at_ms = now_ms;
        heard_ms
    }

    /// How much has been heard in total, without discarded audio.
    #[must_use]
    pub fn heard_ms(&self, now_ms: i64) -> i64 {
        let passed_ms = now_ms.saturating_sub(self.played_at_ms).max(0);
        // At most up to the next mark, which was not returned yet.
        let until_ms = self.marks.front().map_or(self.played_ms, |(_, sent_ms)| *sent_ms);
        self.played_ms.saturating_add(passed_ms).min(until_ms)
    }

    /// How much has been sent in total, without discarded audio.
    #[must_use]
    pub const fn sent_ms(&self) -> i64 {
        self.sent_ms
    }

    /// When all sent audio will have been played, if the line plays in real time.
    #[must_use]
    pub fn over_at_ms(&self, now_ms: i64) -> i64 {
        now_ms + (self.sent_ms - self.heard_ms(now_ms))
    }

    /// Whether all marks have been returned.
    #[must_use]
    pub fn is_idle(&self) -> bool {
        self.marks.is_empty()
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::*;

    #[test]
    fn discarded_audio_is_not_heard() {
        let mut playback = Playback::default();
        playback.sent(0, 1_000);
        let second = playback.sent(100, 500);
        assert_eq!(playback.heard_ms(400), 400);
        assert_eq!(playback.cleared(400), 400);
        assert_eq!((playback.sent_ms(), playback.is_idle()), (400, true));
        // The carrier returns the marks of discarded audio.
        playback.played(420, second);
        assert_eq!(playback.heard_ms(9_000), 400);
    }

    #[test]
    fn a_slow_line_is_bounded_by_its_marks() {
        let mut playback = Playback::default();
        let first = playback.sent(0, 100);
        playback.sent(0, 100);
        assert_eq!(playback.heard_ms(5_000), 100);
        playback.played(5_000, first);
        assert_eq!(playback.heard_ms(5_040), 140);
        assert_eq!(playback.over_at_ms(5_040), 5_100);
    }

    proptest! {
        #[test]
        fn heard_audio_grows_up_to_sent_audio(
            steps in prop::collection::vec((0_u8..4, 0_i64..2_000), 0..60)
        ) {
            let mut playback = Playback::default();
            let (mut now_ms, mut heard_ms, mut marks) = (0, 0, Vec::new());
            for (step, amount) in steps {
                match step {
                    0 => marks.push(playback.sent(now_ms, amount)),
                    1 => now_ms += amount,
                    2 => { playback.cleared(now_ms); }
                    _ => if let Some(mark) = marks.get(amount as usize % marks.len().max(1)) {
                        playback.played(now_ms, *mark);
                    }
                }
                let now_heard_ms = playback.heard_ms(now_ms);
                prop_assert!(now_heard_ms >= heard_ms && now_heard_ms <= playback.sent_ms());
                heard_ms = now_heard_ms;
            }
        }
    }
}
