//! The time limit, and the detection of silence.
use super::{Conversation, State};
use crate::conversation::EndedReason;

impl Conversation {
    /// When [`Input::Tick`](super::Input::Tick) is due, on the clock of [`handle`](Self::handle); `None` before the
    /// start and after the end. Every input may change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        if matches!(self.state, State::New | State::Ended { .. }) {
            return None;
        }
        let limit_ms = self.setup.limits.duration_ms_max;
        let due_ms = self.silent_at_ms().map_or(limit_ms, |silent_at_ms| silent_at_ms.min(limit_ms));
        Some(self.started_ms.saturating_add(due_ms))
    }

    /// Counts a silence that is due. [`handle`](Self::handle) checks the time limit, because every input can reach it;
    /// it takes precedence over a silence.
    pub(super) fn time_passed(&mut self) {
        let is_silent = self.silent_at_ms().is_some_and(|silent_at_ms| self.offset_ms >= silent_at_ms);
        if is_silent && self.offset_ms < self.setup.limits.duration_ms_max {
            self.note_activity();
            self.count_silence();
        }
    }

    /// Restarts the measurement of silence: one side spoke, or an event arrived that the user was waiting for.
    pub(super) const fn note_activity(&mut self) {
        self.quiet_since_ms = self.offset_ms;
    }

    /// The user was silent during their turn.
    pub(super) fn count_silence(&mut self) {
        if self.state != State::Listening {
            return;
        }
        self.silences = self.silences.saturating_add(1);
        if self.silences >= self.setup.limits.silences_max {
            self.end(EndedReason::Silence);
        }
    }

    /// When the current silence counts, in ms from the start. Silence is measured only while the conversation waits for
    /// the user, not while the assistant speaks or thinks.
    fn silent_at_ms(&self) -> Option<i64> {
        let is_users_turn = self.state == State::Listening && !self.is_being_spoken;
        let silence_ms = self.setup.limits.silence_ms.filter(|_| is_users_turn)?;
        Some(self.quiet_since_ms.saturating_add(silence_ms))
    }
}
