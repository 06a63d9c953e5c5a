//! What comes of asking.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::CallFault;

/// An answer, and what it took. Requests that came to nothing count too: they were paid.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered<T> {
    /// The answer.
    pub reply: T,
    /// Tokens of all requests.
    pub usage: Usage,
    /// What all requests cost, in millionths of a US dollar, where tokens were not told by an estimate of them; 0 for
    /// models without rates.
    pub cost_microusd: i64,
    /// Requests that were sent to providers; 0 for the rule model.
    pub requests: u32,
}

impl<T> Answered<T> {
    /// An answer that took nothing.
    pub fn free(reply: T) -> Self {
        Self { reply, usage: Usage::default(), cost_microusd: 0, requests: 0 }
    }
}

/// Tokens, as the providers counted them.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Tokens read.
    pub input_tokens: u64,
    /// Tokens written.
    pub output_tokens: u64,
    /// Answers, or beginnings of one, whose tokens the provider did not tell. They are not in the numbers above; in the
    /// cost they are by an estimate.
    pub uncounted_answers: u32,
}

impl Usage {
    /// Adds another's.
    pub fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.uncounted_answers = self.uncounted_answers.saturating_add(other.uncounted_answers);
    }
}

/// Why there is no answer, and what it took to find out.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFailure {
    /// What kind.
    pub code: FailureCode,
    /// Whose fault it is: the provider's, or the operator's, whose settings lead nowhere or whose account is not good.
    pub fault: CallFault,
    /// What happened, in words fit for the assistant's owner: no key, no address.
    pub message: String,
    /// As in [`Answered`].
    pub usage: Usage,
    /// As in [`Answered`].
    pub cost_microusd: i64,
    /// As in [`Answered`].
    pub requests: u32,
}

impl ModelFailure {
    /// Nobody could be asked: the settings do not know the provider.
    pub(super) fn not_configured(model: &str) -> Self {
        Self {
            code: FailureCode::Unavailable,
            fault: CallFault::Operator,
            message: format!("{model} cannot be asked: its provider is not configured here."),
            usage: Usage::default(),
            cost_microusd: 0,
            requests: 0,
        }
    }
}

crate::words! {
    /// The kinds of failure.
    json FailureCode {
        /// It did not answer in time.
        Timeout = "model_timeout",
        /// The provider wants fewer requests, or its account has nothing left.
        RateLimited = "model_rate_limited",
        /// It is not configured, cannot be reached, or its provider is not well.
        Unavailable = "model_unavailable",
        /// The provider does not take the request: an unknown model, a wrong key, too much text.
        Rejected = "model_rejected",
        /// What it answered cannot be used.
        Garbled = "model_garbled",
    }
}
