//! The configuration of a simulation.
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use crate::base::ids::RunId;
use crate::conversation::{ConversationLimits, Knowledge, ToolSpec};
use crate::simulation::VoiceSetup;
use crate::simulation::evaluation::Evaluation;

/// Spoken lines of one simulated conversation in total, unless its limits are overridden.
pub const SIMULATION_TURNS_MAX: u32 = 60;

/// The configuration of one simulation run, stored with the run so that later changes of the assistant or scenario do
/// not affect it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulationSetup {
    /// The run's id; tool-call ids are derived from it.
    pub run_id: RunId,
    /// The assistant under test.
    pub assistant: SimulatedAssistant,
    /// The persona's `system_prompt`.
    pub persona: String,
    /// The scenario's `instructions`: what the caller wants.
    pub scenario: String,
    /// The evaluations of the scenario.
    pub evaluations: Vec<Evaluation>,
    /// How often the judge rules on each criterion; 0 is once, too.
    #[serde(default)]
    pub judge_votes: usize,
    /// The same seed and the same responses produce the same simulation.
    pub seed: u64,
    /// The limits of the conversation.
    #[serde(default = "limits")]
    pub limits: ConversationLimits,
    /// How a voice run sounds; `None` for a chat.
    #[serde(default)]
    pub voice: Option<VoiceSetup>,
}

/// The assistant under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedAssistant {
    /// The assistant's business instructions.
    pub instructions: String,
    /// The opening message; when empty, the assistant waits for the caller.
    pub first_message: String,
    /// Attached documents.
    pub knowledge: Arc<[Knowledge]>,
    /// Attached tools.
    pub tools: Arc<[ToolSpec]>,
    /// As in [`ConversationSetup`](crate::conversation::ConversationSetup::has_transfers).
    #[serde(default)]
    pub has_transfers: bool,
}

impl SimulationSetup {
    /// The limits of a simulation: those of a conversation, with [`SIMULATION_TURNS_MAX`].
    #[must_use]
    pub fn default_limits() -> ConversationLimits {
        ConversationLimits { turns_max: SIMULATION_TURNS_MAX, ..ConversationLimits::default() }
    }
}

fn limits() -> ConversationLimits {
    SimulationSetup::default_limits()
}
