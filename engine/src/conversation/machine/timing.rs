//! The time limit, the detection of silence, and the wait for tools.
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
        let due_ms =
            [self.silent_at_ms(), self.filler_at_ms()].into_iter().flatten().fold(limit_ms, i64::min);
        Some(self.started_ms.saturating_add(due_ms))
    }

    /// Counts a silence, or says the filler, if it is due. [`handle`](Self::handle) checks the time limit, because every
    /// input can reach it; it takes precedence over both.
    pub(super) fn time_passed(&mut self) {
        if self.offset_ms >= self.setup.limits.duration_ms_max {
            return;
        }
        let is_due = |at_ms: Option<i64>| at_ms.is_some_and(|at_ms| self.offset_ms >= at_ms);
        let (is_silent, is_filler_due) = (is_due(self.silent_at_ms()), is_due(self.filler_at_ms()));
        if is_silent {
            self.note_activity();
            self.count_silence();
        }
        if is_filler_due {
            self.fill();
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
