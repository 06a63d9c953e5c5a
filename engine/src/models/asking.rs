//! Asking a model, whoever it is: the rule model at once, a provider's over HTTP with patience.
//!
//! Each part of the service has a type of its own to ask: [`AssistantModel`], [`CallerModel`],
//! [`JudgeModel`], [`Analyst`]. All answer [`Answered`] or a [`ModelFailure`].
mod analyst;
mod assistant;
mod attempt;
mod caller;
mod judge;
mod object;
mod outcome;
mod provider;

pub use analyst::Analyst;
pub use assistant::AssistantModel;
pub use caller::CallerModel;
pub use judge::JudgeModel;
pub use outcome::{Answered, FailureCode, ModelFailure, Usage};

/// The model that needs no provider.
pub const RULES_MODEL: &str = "builtin/rules";
