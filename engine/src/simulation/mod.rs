//! Simulated conversations: a caller, an assistant, and the scenario's evaluations.
//!
//! [`Simulation`] is a pure state machine; [`run_offline`] drives one with `builtin/rules`.
pub(crate) mod callers_phone;
mod conditions;
pub(crate) mod evaluation;
pub(crate) mod live_caller;
mod machine;
mod pace;
mod run_offline;
mod setup;
mod soundtrack;
pub(crate) mod tool_mocks;
mod voice_line;

pub use conditions::Conditions;
pub use evaluation::{
    EVALUATION_ARGUMENTS_BYTES_MAX, EVALUATION_INCLUDES_CHARS_MAX, EVALUATION_TIMES_MAX,
    EVALUATIONS_PER_SCENARIO_MAX,
};
pub use machine::{
    HeldConversation, HeldFailure, Input, Output, Simulation, SimulationFailure, SimulationPart,
    SimulationResult,
};
pub use pace::{SPOKEN_CHAR_MS, SPOKEN_MS_MIN, spoken_ms};
pub use run_offline::run_offline;
pub use setup::{SIMULATION_TURNS_MAX, SimulatedAssistant, SimulationSetup};
pub use soundtrack::Soundtrack;
pub use voice_line::{VoiceLine, VoiceSetup};
