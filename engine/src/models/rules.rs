//! `builtin/rules`: a model made of rules. Free, offline, and the same on every machine.
//!
//! It understands words, not meaning. It exists so that a service can be tried, tested and
//! simulated without an account; it is not a substitute for a language model. What it does:
//!
//! - **As the assistant** ([`RulesAssistant`]) it calls an attached tool when the user's words
//!   match the tool's name or description, and fills the arguments from the user's words; it
//!   answers from the attached documents by their best-matching sentences; it says a tool's
//!   result; else it says what it can help with. It does not follow the instructions' wishes.
//! - **As the simulated caller** ([`RulesCaller`]) it says the scenario's quoted lines, or its
//!   sentences, one a turn, then says goodbye. It does not react to what the assistant says.
//! - **As the judge** ([`RulesJudge`]) it looks for the criterion's content words in the turns. See
//!   [`judge`] for what it cannot do.
//! - **As the analyst** ([`analyse`]) it quotes what was said and counts words of feeling.
mod analyst;
mod arguments;
mod assistant;
mod caller;
mod entities;
#[cfg(test)]
mod hostile;
mod judge;
mod knowledge;
mod phrases;
mod quotes;
mod sentences;
mod tools;
mod words;

pub use analyst::analyse;
pub use assistant::{RulesAssistant, assistant_reply};
pub use caller::{RulesCaller, caller_reply};
pub use judge::{RulesJudge, judge};
