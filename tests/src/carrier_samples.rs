//! What the engine and the stand-ins say in each carrier's language, for the carriers' own SDKs to judge.
pub mod twilio;
