//! What a simulation starts from.
use serde::{Deserialize, Serialize};

use crate::conversation::{ConversationLimits, Knowledge, ToolSpec};
use crate::simulation::evaluation::Evaluation;

/// Spoken lines of one simulated conversation, both sides together, unless its limits say else.
pub const SIMULATION_TURNS_MAX: u32 = 60;

/// Everything one simulation run needs: the snapshot a run keeps, so that later changes of the
/// assistant or scenario do not change it.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct SimulationSetup {
    /// Names the run; tool-call ids are made of it.
    pub run_id: String,
    /// Who is tested.
    pub assistant: SimulatedAssistant,
    /// The persona's `system_prompt`: who is calling.
    pub persona: String,
    /// The scenario's `instructions`: what the caller wants.
    pub scenario: String,
    /// What is expected of the conversation.
    pub evaluations: Vec<Evaluation>,
    /// Same seed and same answers, same simulation.
    pub seed: u64,
    /// What bounds the conversation.
    #[serde(default = "limits")]
    pub limits: ConversationLimits,
}

/// The assistant under test.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct SimulatedAssistant {
    /// Its business instructions.
    pub instructions: String,
    /// What it opens with; empty: it waits for the caller.
    pub first_message: String,
    /// Attached documents.
    pub knowledge: Vec<Knowledge>,
    /// Attached tools.
    pub tools: Vec<ToolSpec>,
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
