//! Requests to language models and their answers, independent of the model.
//!
//! The conversation uses only these types. `builtin/rules` answers them with a pure function (`rules`); a provider's
//! adapter translates them to its wire format ([`openai`]). [`AssistantModel`], [`CallerModel`], [`JudgeModel`] and
//! [`Analyst`] hide the difference.
mod asking;
mod in_use;
pub mod openai;
pub mod realtime;
pub mod rules;
pub(crate) mod settings;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::conversation::{Message, Sentiment};

pub use in_use::AssistantInUse;

pub use asking::{
    Allowance, Analyst, Answered, AssistantModel, CallerModel, FailureCode, JudgeModel, ModelFailure,
    RULES_MODEL, Usage, Written, for_realtime,
};

/// The input of the simulated caller's model.
#[derive(Debug, Clone, Copy)]
pub struct CallerTurn<'a> {
    /// The persona's instructions: who is calling.
    pub persona: &'a str,
    /// The scenario's instructions: what the caller wants.
    pub scenario: &'a str,
    /// The conversation so far, from the assistant's point of view (the caller is `User`).
    pub history: &'a [Message],
    /// The same seed and input give the same line, if the model supports that.
    pub seed: u64,
}

/// The answer of the simulated caller's model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CallerReply {
    /// The words to say.
    pub text: String,
    /// Whether the caller hangs up after these words.
    pub hang_up: bool,
}

/// The input of the judge's model.
#[derive(Debug, Clone, Copy)]
pub struct JudgeTurn<'a> {
    /// The criterion to judge.
    pub criterion: &'a str,
    /// The only role whose turns are shown; `None` for all.
    pub only: Option<TranscriptRole>,
    /// The turns to judge.
    pub turns: &'a [&'a TranscriptRow],
    /// How often a model was asked the same before.
    pub vote: u64,
}

/// The judge's answer.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Verdict {
    /// Whether the criterion holds; `None` if the judge cannot tell.
    pub passed: Option<bool>,
    /// The transcript row that decided, if one did.
    pub matched_index: Option<usize>,
    /// A one-sentence explanation.
    pub reason: String,
}

/// The input of the analyst.
#[derive(Debug, Clone, Copy)]
pub struct AnalysisTurn<'a> {
    /// The transcript of the ended call.
    pub transcript: &'a [TranscriptRow],
}

/// The analysis of a call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Analysis {
    /// A summary of a few sentences; at most [`SUMMARY_BYTES_MAX`](crate::base::limits::SUMMARY_BYTES_MAX) bytes.
    pub summary: String,
    /// The caller's sentiment.
    pub sentiment: Sentiment,
}
