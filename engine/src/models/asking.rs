//! Model requests: `builtin/rules` answers at once; a provider's model is asked over HTTP with retries and fallbacks.
//!
//! Each use has its own type: [`AssistantModel`], [`CallerModel`], [`JudgeModel`], [`Analyst`]. All return [`Answered`] or
//! a [`ModelFailure`].
mod analyst;
pub(in crate::models) mod assistant;
mod attempt;
mod caller;
mod judge;
mod object;
mod outcome;
mod provider;
mod written;

pub use analyst::Analyst;
pub use assistant::{AssistantModel, for_realtime};
pub use caller::CallerModel;
pub use judge::JudgeModel;
pub use outcome::{Answered, FailureCode, ModelFailure, Usage};
pub use provider::Allowance;
pub use written::Written;

/// The built-in rule model, which needs no provider.
pub const RULES_MODEL: &str = "builtin/rules";
