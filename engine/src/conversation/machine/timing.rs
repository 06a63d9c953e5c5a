//! Time: the limit of duration, and what counts as silence.
use super::{Conversation, State};
use crate::conversation::EndedReason;

impl Conversation {
    /// When [`Input::Tick`](super::Input::Tick) is due at the latest, on the clock of
    /// [`handle`](Self::handle); `None` before the start and after the end. Every input may change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        if matches!(self.state, State::New | State::Ended { .. }) {
            return None;
        }
        let limit_ms = self.setup.limits.duration_ms_max;
        let due_ms = self.silent_at_ms().map_or(limit_ms, |silent_at_ms| silent_at_ms.min(limit_ms));
        Some(self.started_ms.saturating_add(due_ms))
    }

    /// Time has passed and nothing else happened. The limit of duration is [`handle`](Self::handle)'s,
    /// because every input can reach it, and it precedes a silence.
    pub(super) fn time_passed(&mut self) {
        let is_silent = self.silent_at_ms().is_some_and(|silent_at_ms| self.offset_ms >= silent_at_ms);
        if is_silent && self.offset_ms < self.setup.limits.duration_ms_max {
            self.note_activity();
            self.count_silence();
        }
    }

    /// Somebody spoke, or something happened that they wait for: a silence counts from now.
    pub(super) const fn note_activity(&mut self) {
        self.quiet_since_ms = self.offset_ms;
    }

    /// The user let their turn pass.
    pub(super) fn count_silence(&mut self) {
        if self.state != State::Listening {
            return;
        }
        self.silences = self.silences.saturating_add(1);
        if self.silences >= self.setup.limits.silences_max {
            self.end(EndedReason::Silence);
        }
    }

    /// When the user will have been silent for long enough, in ms from the start. Nobody is silent who
    /// listens to the assistant, or waits for it.
    fn silent_at_ms(&self) -> Option<i64> {
        let is_users_turn = self.state == State::Listening && !self.is_being_spoken;
        let silence_ms = self.setup.limits.silence_ms.filter(|_| is_users_turn)?;
        Some(self.quiet_since_ms.saturating_add(silence_ms))
    }
}
