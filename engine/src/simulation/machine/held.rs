//! A conversation that was held for real, outside of the simulation: what is left of the run are its evaluations.
use serde::{Deserialize, Serialize};

use super::{Phase, Simulation, SimulationPart};
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason};
use crate::speech::turn_times::TurnTimes;

/// What is known of the conversation.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct HeldConversation {
    /// The transcript, as it was heard and understood.
    pub transcript: Vec<TranscriptRow>,
    /// Why it ended.
    pub ended_reason: EndedReason,
    /// The cause, if the reason does not determine it.
    pub fault: Option<CallFault>,
    /// Lines spoken by both sides.
    pub turns: u32,
    /// How long it took.
    pub duration_ms: i64,
    /// When it ended, on the service's clock.
    pub ended_at_ms: i64,
    /// The times of the caller's turns.
    pub turn_times: Vec<TurnTimes>,
    /// Why it could not be held to its end, if that was nobody's decision.
    pub failure: Option<HeldFailure>,
}

/// Why a conversation could not be held to its end.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct HeldFailure {
    /// Whose part failed.
    pub part: SimulationPart,
    /// The error code of the run.
    pub code: String,
    /// The message for the run's owner.
    pub message: String,
}

impl Simulation {
    /// The conversation, if it was held for real.
    #[must_use]
    pub const fn held(&self) -> Option<&HeldConversation> {
        self.held.as_ref()
    }

    /// Takes over the conversation: evaluates it, or fails with it.
    pub(super) fn was_held(&mut self, held: HeldConversation) {
        self.outputs.clear();
        self.drop_questions();
        self.now_ms = held.duration_ms;
        let HeldConversation { transcript, ended_reason, turns, duration_ms, .. } = &held;
        self.conversation.replace_by_ended(transcript.clone(), *turns, *duration_ms, *ended_reason);
        let failure = held.failure.clone();
        self.held = Some(held);
        match failure {
            Some(failure) => self.fail(failure.part, failure.message),
            None => self.proceed(),
        }
        debug_assert!(self.phase != Phase::Talking, "the conversation is over");
    }
}
