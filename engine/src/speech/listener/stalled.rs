//! A voice whose audio stops coming: the line sends nothing while nobody speaks, or it is broken.
use super::Listener;

/// Audio that is so late is not awaited: the person is silent, as far as can be heard. Longer than the jitter of a line that
/// works.
const STALLED_MS: i64 = 1_500;

impl Listener {
    /// When a voice is given up whose audio no longer comes.
    pub(super) fn stalls_at_ms(&self) -> Option<i64> {
        let is_voiced = self.turn.as_ref().is_some_and(|turn| turn.is_voiced);
        (is_voiced && !self.is_closed).then_some(self.spoken_until_ms + STALLED_MS)
    }

    /// Hears silence in place of audio that does not come: so the voice ends, here and for the transcriber.
    pub(super) fn hear_what_is_missing(&mut self, now_ms: i64) {
        if self.stalls_at_ms().is_some_and(|at_ms| now_ms >= at_ms) {
            let silence = vec![0; self.rate.samples_in(STALLED_MS).unsigned_abs() as usize];
            self.hear(now_ms, now_ms, &silence);
        }
    }
}
