//! The time limit, the detection of silence, and the wait for tools.
use super::{Conversation, State};
use crate::conversation::EndedReason;

/// A voice that goes on for so many silences without a line is none that talks with the assistant.
const VOICE_SILENCES: i64 = 3;

impl Conversation {
    /// When [`Input::Tick`](super::Input::Tick) is due, on the clock of [`handle`](Self::handle); `None` before the
    /// start and after the end. Every input may change it.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        if matches!(self.state, State::New | State::Ended { .. }) {
            return None;
        }
        let limit_ms = self.setup.limits.duration_ms_max;
        let due_ms = [self.silent_at_ms(), self.filler_at_ms(), self.message_at_ms()]
            .into_iter()
            .flatten()
            .fold(limit_ms, i64::min);
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

    /// The user was silent during their turn. They are asked whether they are there, until it ends the conversation.
    pub(super) fn count_silence(&mut self) {
        if self.state != State::Listening {
            return;
        }
        self.silences = self.silences.saturating_add(1);
        if self.silences >= self.setup.limits.silences_max {
            return self.end(EndedReason::Silence);
        }
        let question = self.setup.still_there.clone();
        if !question.trim().is_empty() {
            self.say(question);
        }
    }

    /// When the current silence counts, in ms from the start. Silence is measured only while the conversation waits for
    /// the user, not while the assistant speaks or thinks.
    fn silent_at_ms(&self) -> Option<i64> {
        let is_users_turn = self.state == State::Listening && !self.is_being_spoken;
        let silence_ms = self.setup.limits.silence_ms.filter(|_| is_users_turn)?;
        // Who speaks is not silent.
        let voices = if self.is_user_speaking { VOICE_SILENCES } else { 1 };
        Some(self.quiet_since_ms.saturating_add(silence_ms.saturating_mul(voices)))
    }
}

#[cfg(test)]
mod tests {
    use super::super::speech_tests::spoken;
    use crate::conversation::{EndedReason, Input, Message};

    #[test]
    fn who_is_silent_is_asked_twice_and_then_the_conversation_ends() {
        let mut call = spoken("");
        call.setup.limits.silence_ms = Some(20_000);
        call.setup.still_there = "Are you still there?".into();
        for asked in 1..=2 {
            call.handle(asked * 22_000 - 2_000, Input::Tick);
            assert_eq!(call.transcript().len(), usize::try_from(asked).unwrap());
            call.handle(asked * 22_000, Input::Spoken { until_ms: None });
        }
        assert_eq!(call.history().last(), Some(&Message::Assistant { text: "Are you still there?".into() }));
        assert_eq!(call.poll_timeout(), Some(64_000));
        call.handle(64_000, Input::Tick);
        assert_eq!((call.ended(), call.transcript().len()), (Some(EndedReason::Silence), 2));
    }

    #[test]
    fn who_speaks_is_not_silent_but_a_television_is() {
        let mut call = spoken("");
        call.setup.limits.silence_ms = Some(20_000);
        call.handle(19_000, Input::VoiceBegan);
        assert_eq!(call.poll_timeout(), Some(79_000));
        call.handle(50_000, Input::Tick);
        call.handle(60_000, Input::VoiceEnded);
        assert_eq!(call.poll_timeout(), Some(80_000));
        call.handle(70_000, Input::VoiceBegan);
        for _ in 0..3 {
            let due_ms = call.poll_timeout().unwrap();
            call.handle(due_ms, Input::Tick);
        }
        assert_eq!((call.ended(), call.offset_ms()), (Some(EndedReason::Silence), 250_000));
    }
}
