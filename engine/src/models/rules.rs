//! `builtin/rules`: a model made of rules. Free, offline, and deterministic on every machine.
//!
//! It matches words, not meaning. It allows trying, testing and simulating a service without an account, and does not replace
//! a language model. What it does:
//!
//! - **As the assistant** ([`RulesAssistant`]) it calls an attached tool when the user's words match the tool's name or
//!   description, with arguments from the user's words; it answers with the best-matching sentences of the attached
//!   documents; it reports a tool's result; otherwise it says what it can help with. It ignores the instructions.
//! - **As the simulated caller** ([`RulesCaller`]) it says the scenario's quoted lines, asks and tells what it is instructed
//!   to, one line per turn, answers the assistant's questions from the facts of persona and scenario, then says goodbye.
//! - **As the judge** ([`RulesJudge`]) it decides criteria in a small language, and leaves all others open.
//! - **As the analyst** ([`analyse`]) it quotes the conversation and counts words of sentiment.
mod analyst;
mod arguments;
mod assistant;
mod caller;
mod entities;
mod judge;
mod knowledge_search;
#[cfg(test)]
mod linear_time_tests;
mod phrases;
mod postings;
mod quotes;
mod sentences;
mod tools;
mod words;

pub use analyst::analyse;
pub use assistant::RulesAssistant;
pub use caller::RulesCaller;
pub use judge::RulesJudge;
