//! What of the audio that was sent has been heard.
use std::collections::VecDeque;

/// Counts, by the marks that a line gives back, how much of what was sent has been played.
///
/// A line plays in real time what it was sent faster. Between two marks that came back, time is the measure: as
/// much has been played as has passed, and never more than was sent.
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
    /// Audio known to have been played, from the first that was ever sent.
    played_ms: i64,
    /// The driver's time when that was so.
    played_at_ms: i64,
    /// Audio that was sent.
    sent_ms: i64,
    /// Marks that are out, each with how much had been sent before it.
    marks: VecDeque<(u64, i64)>,
    last_mark: u64,
}

impl Playback {
    /// `audio_ms` more were sent at `now_ms`; the mark to ask for after them.
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

    /// A mark came back: all that was sent before it has been played. One that is unknown, or came before, tells
    /// nothing.
    pub fn played(&mut self, now_ms: i64, mark: u64) {
        let Some(place) = self.marks.iter().position(|(known, _)| *known == mark) else { return };
        for (_, sent_ms) in self.marks.drain(..=place) {
            self.played_ms = sent_ms;
        }
        self.played_at_ms = now_ms;
    }

    /// No mark comes back any more: all that was sent is taken for played.
    pub fn all_played(&mut self, now_ms: i64) {
        self.marks.clear();
        self.played_ms = self.sent_ms;
        self.played_at_ms = now_ms;
    }

    /// What has not been played is thrown away: how much had been heard, of all that was ever sent.
    pub fn cleared(&mut self, now_ms: i64) -> i64 {
        let heard_ms = self.heard_ms(now_ms);
        self.marks.clear();
        self.played_ms = heard_ms;
        self.sent_ms = heard_ms;
        self.played_at_ms = now_ms;
        heard_ms
    }

    /// How much has been heard, of all that was ever sent and not thrown away.
    #[must_use]
    pub fn heard_ms(&self, now_ms: i64) -> i64 {
        let passed_ms = now_ms.saturating_sub(self.played_at_ms).max(0);
        // Not past the next mark: had that been played, it would have come back.
        let until_ms = self.marks.front().map_or(self.played_ms, |(_, sent_ms)| *sent_ms);
        self.played_ms.saturating_add(passed_ms).min(until_ms)
    }

    /// How much has been sent.
    #[must_use]
    pub const fn sent_ms(&self) -> i64 {
        self.sent_ms
    }

    /// When all that was sent will have been played, if the line plays in real time.
    #[must_use]
    pub fn over_at_ms(&self, now_ms: i64) -> i64 {
        now_ms + (self.sent_ms - self.heard_ms(now_ms))
    }

    /// Whether nothing is being played as far as the marks tell.
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
    fn heard_is_what_was_played_until_it_was_thrown_away() {
        let mut playback = Playback::default();
        playback.sent(0, 1_000);
        let second = playback.sent(100, 500);
        assert_eq!(playback.heard_ms(400), 400);
        assert_eq!(playback.cleared(400), 400);
        assert_eq!((playback.sent_ms(), playback.is_idle()), (400, true));
        // The carrier gives back the marks of what it threw away.
        playback.played(420, second);
        assert_eq!(playback.heard_ms(9_000), 400);
    }

    #[test]
    fn a_line_that_is_slow_has_not_played_what_it_gave_no_mark_for() {
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
        fn what_was_heard_grows_and_never_passes_what_was_sent(
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
