//! How long the person on a line waited for each answer, and for what.
use std::collections::VecDeque;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::synthesizer::LineId;
use crate::base::limits::CALL_TURNS_MAX;

/// When the steps from the caller's speech to the assistant's were done, in ms from the start of the conversation. Null if a
/// step was not reached, because the caller went on or the call ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct TurnTimes {
    /// When the caller stopped speaking.
    pub end_of_speech_ms: Option<i64>,
    /// When the turn was over and its text known: the model is asked.
    pub transcript_ms: Option<i64>,
    /// When the model's first answer had arrived, also one that calls tools.
    pub model_first_ms: Option<i64>,
    /// When the first audio of the assistant's next line had arrived from the voice.
    pub speech_first_ms: Option<i64>,
    /// When the caller began to hear it.
    pub heard_first_ms: Option<i64>,
}

impl TurnTimes {
    /// How long the caller waited until they heard the answer, if they did.
    #[must_use]
    pub fn wait_ms(&self) -> Option<i64> {
        Some(self.heard_first_ms?.saturating_sub(self.end_of_speech_ms?).max(0))
    }

    /// The same on a clock that started at `started_ms`.
    #[must_use]
    pub fn since(self, started_ms: i64) -> Self {
        let since = |at_ms: Option<i64>| at_ms.map(|at_ms| at_ms.saturating_sub(started_ms).max(0));
        Self {
            end_of_speech_ms: since(self.end_of_speech_ms),
            transcript_ms: since(self.transcript_ms),
            model_first_ms: since(self.model_first_ms),
            speech_first_ms: since(self.speech_first_ms),
            heard_first_ms: since(self.heard_first_ms),
        }
    }
}

/// What is awaited after a turn.
#[derive(Debug, Default, PartialEq, Eq)]
enum Answer {
    #[default]
    Nothing,
    /// The assistant's next line.
    Line,
    /// The audio of this line.
    Audio(LineId),
    /// Its playback.
    Playback(LineId),
}

/// Takes the times of the caller's turns, on the clock of its callers. The latest [`CALL_TURNS_MAX`] are kept.
#[derive(Debug, Default)]
pub struct TurnClock {
    turns: VecDeque<TurnTimes>,
    answer: Answer,
}

impl TurnClock {
    /// The caller stopped speaking at `end_of_speech_ms`, and the turn is over.
    pub fn turn_ended(&mut self, end_of_speech_ms: i64, now_ms: i64) {
        if self.turns.len() >= CALL_TURNS_MAX {
            self.turns.pop_front();
        }
        self.turns.push_back(TurnTimes {
            end_of_speech_ms: Some(end_of_speech_ms.min(now_ms)),
            transcript_ms: Some(now_ms),
            ..TurnTimes::default()
        });
        self.answer = Answer::Line;
    }

    /// The latest turn.
    #[must_use]
    pub fn last_turn(&self) -> Option<TurnTimes> {
        self.turns.back().copied()
    }

    /// The model has answered.
    pub fn model_answered(&mut self, now_ms: i64) {
        if let Some(turn) = self.turns.back_mut() {
            turn.model_first_ms.get_or_insert(now_ms);
        }
    }

    /// The assistant says this line next.
    pub fn line_said(&mut self, line: LineId) {
        if self.answer == Answer::Line {
            self.answer = Answer::Audio(line);
        }
    }

    /// A line has another id now.
    pub fn line_renamed(&mut self, before: LineId, line: LineId) {
        if self.answer == Answer::Audio(before) {
            self.answer = Answer::Audio(line);
        }
    }

    /// Audio of this line is there.
    pub fn audio_arrived(&mut self, line: LineId, now_ms: i64) {
        if self.answer == Answer::Audio(line)
            && let Some(turn) = self.turns.back_mut()
        {
            turn.speech_first_ms = Some(now_ms);
            self.answer = Answer::Playback(line);
        }
    }

    /// The line whose playback has to be reported, if any.
    #[must_use]
    pub const fn awaits_playback_of(&self) -> Option<LineId> {
        match self.answer {
            Answer::Playback(line) => Some(line),
            Answer::Nothing | Answer::Line | Answer::Audio(_) => None,
        }
    }

    /// The playback of the awaited line began at `at_ms`.
    pub fn playback_began(&mut self, at_ms: i64) {
        if let Some(turn) = self.turns.back_mut() {
            turn.heard_first_ms = Some(at_ms.max(turn.speech_first_ms.unwrap_or(at_ms)));
        }
        self.answer = Answer::Nothing;
    }

    /// The turns so far, oldest first.
    #[must_use]
    pub fn turns(&self) -> Vec<TurnTimes> {
        self.turns.iter().copied().collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_turn_gets_the_times_of_the_first_line_after_it() {
        let mut clock = TurnClock::default();
        // The greeting belongs to no turn.
        clock.model_answered(0);
        clock.line_said(1);
        clock.audio_arrived(1, 10);
        assert_eq!(clock.awaits_playback_of(), None);
        clock.turn_ended(4_000, 4_500);
        // The rest of the greeting is not the answer, nor is the second line.
        clock.audio_arrived(1, 4_600);
        clock.model_answered(5_000);
        clock.model_answered(5_900);
        clock.line_said(2);
        clock.line_said(3);
        clock.audio_arrived(2, 5_200);
        clock.audio_arrived(3, 5_300);
        assert_eq!(clock.awaits_playback_of(), Some(2));
        clock.playback_began(5_250);
        assert_eq!(clock.awaits_playback_of(), None);
        let turn = TurnTimes {
            end_of_speech_ms: Some(3_000),
            transcript_ms: Some(3_500),
            model_first_ms: Some(4_000),
            speech_first_ms: Some(4_200),
            heard_first_ms: Some(4_250),
        };
        let turns: Vec<_> = clock.turns().into_iter().map(|turn| turn.since(1_000)).collect();
        assert_eq!(turns, [turn]);
    }

    #[test]
    fn a_step_that_was_not_reached_has_no_time() {
        let mut clock = TurnClock::default();
        clock.turn_ended(100, 200);
        clock.line_said(1);
        clock.turn_ended(300, 400);
        clock.audio_arrived(1, 500);
        let turns = clock.turns();
        assert_eq!(turns.len(), 2);
        assert!(turns.iter().all(|turn| turn.model_first_ms.is_none() && turn.speech_first_ms.is_none()));
    }

    #[test]
    fn the_latest_turns_are_kept() {
        let mut clock = TurnClock::default();
        for turn in 0..=i64::try_from(CALL_TURNS_MAX).unwrap() {
            clock.turn_ended(turn, turn);
        }
        assert_eq!(clock.turns().len(), CALL_TURNS_MAX);
        assert_eq!(clock.turns()[0].transcript_ms, Some(1));
    }
}
