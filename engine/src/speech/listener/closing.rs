//! The end of a call in the middle of what the person says: their last words belong to the transcript.
use super::{Listener, Turn, WANTS_TO_SPEAK_MS};

impl Listener {
    /// The call ends, and with it what the person is saying. Its words may still come, so drain
    /// [`poll_transmit`](Self::poll_transmit) and continue while [`awaits_words`](Self::awaits_words).
    pub fn close(&mut self, now_ms: i64) {
        if self.turn.as_ref().is_some_and(|turn| turn.is_voiced) {
            self.speech_ended(now_ms, self.activity.voiced_until().unwrap_or(self.samples));
        }
        self.is_closed = true;
        self.transcriber.close(now_ms);
        self.understand(now_ms);
    }

    /// Whether words of the person are still to come after [`close`](Self::close).
    #[must_use]
    pub fn awaits_words(&self) -> bool {
        let is_open = self.turn.is_some() || !self.late.is_empty();
        let awaits = is_open && self.pending > 0 || self.transcriber.is_in_turn();
        awaits && self.transcriber.poll_timeout().is_some()
    }

    /// Waits no longer: the turn is over, with the words that came.
    pub fn end_turn(&mut self) {
        let Some(mut turn) = self.turn.take() else { return };
        let is_speech = turn.voiced_until_ms - turn.began_ms >= WANTS_TO_SPEAK_MS;
        turn.has_lost |= is_speech && self.pending > self.late.len();
        self.heard.push_back(Turn::over(turn));
    }
}
