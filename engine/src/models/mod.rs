//! What a language model is asked and what it answers, whoever the model is.
//!
//! The conversation speaks only these types. `builtin/rules` answers them with a pure function
//! ([`rules`]); a provider's adapter turns them into its wire format ([`openai`]). Who asks need not
//! know which: [`AssistantModel`], [`CallerModel`], [`JudgeModel`] and [`Analyst`] ask either.
mod asking;
pub mod openai;
pub mod rules;
pub mod settings;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{Message, Sentiment};

pub use asking::{
    Analyst, Answered, AssistantModel, CallerModel, FailureCode, JudgeModel, ModelFailure, RULES_MODEL, Usage,
};

/// Everything the simulated caller's model may use to choose its next line.
#[derive(Debug, Clone, Copy)]
pub struct CallerTurn<'a> {
    /// The persona's instructions: who is calling.
    pub persona: &'a str,
    /// The scenario's instructions: what the caller wants.
    pub scenario: &'a str,
    /// The conversation so far, from the assistant's point of view (the caller is `User`).
    pub history: &'a [Message],
    /// Same seed and same inputs, same line.
    pub seed: u64,
}

/// What the simulated caller's model chose.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallerReply {
    /// The words.
    pub text: String,
    /// True when the caller hangs up after saying them.
    pub hang_up: bool,
}

/// A question for the judge.
#[derive(Debug, Clone, Copy)]
pub struct JudgeTurn<'a> {
    /// The criterion to rule on.
    pub criterion: &'a str,
    /// The turns ruled on, as `(index in the transcript, text)`.
    pub turns: &'a [(usize, &'a str)],
}

/// The judge's ruling.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the criterion holds.
    pub passed: bool,
    /// The transcript row that settled it, if one did.
    pub matched_index: Option<usize>,
    /// One sentence that says why.
    pub reason: String,
}

/// A call that is over.
#[derive(Debug, Clone, Copy)]
pub struct AnalysisTurn<'a> {
    /// What was said and done.
    pub transcript: &'a [TranscriptRow],
}

/// What an analyst makes of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// A few sentences; at most [`SUMMARY_BYTES_MAX`](crate::base::limits::SUMMARY_BYTES_MAX) bytes.
    pub summary: String,
    /// How the caller felt.
    pub sentiment: Sentiment,
}
