//! The outcome of a model request.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::conversation::CallFault;

/// An answer with its usage and cost, failed requests included because they are billed too.
#[derive(Debug, Clone, PartialEq)]
pub struct Answered<T> {
    /// The answer.
    pub reply: T,
    /// Tokens of all requests.
    pub usage: Usage,
    /// Cost of all requests in millionths of a US dollar, based on an estimate where the provider did not report tokens; 0 for
    /// models without rates.
    pub cost_microusd: i64,
    /// Number of requests to providers; 0 for the rule model.
    pub requests: u32,
}

impl<T> Answered<T> {
    /// An answer without cost.
    pub fn free(reply: T) -> Self {
        Self { reply, usage: Usage::default(), cost_microusd: 0, requests: 0 }
    }
}

/// Tokens as reported by the providers.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Usage {
    /// Input (prompt) tokens.
    pub input_tokens: u64,
    /// Output (completion) tokens.
    pub output_tokens: u64,
    /// Answers, complete or partial, without reported tokens. The counts above exclude them; the cost includes an estimate
    /// for them.
    pub uncounted_answers: u32,
}

impl Usage {
    /// Adds another usage; saturates.
    pub fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.uncounted_answers = self.uncounted_answers.saturating_add(other.uncounted_answers);
    }
}

/// Why there is no answer, with the usage and cost of the attempts.
#[derive(Debug, Clone, PartialEq)]
pub struct ModelFailure {
    /// The code of the first model's failure.
    pub code: FailureCode,
    /// Whether the provider failed or the operator must fix settings or account.
    pub fault: CallFault,
    /// What happened, for the assistant's owner: contains no key and no address.
    pub message: String,
    /// As in [`Answered`].
    pub usage: Usage,
    /// As in [`Answered`].
    pub cost_microusd: i64,
    /// As in [`Answered`].
    pub requests: u32,
}

impl ModelFailure {
    /// The provider is not configured, so no request was sent.
    pub(super) fn not_configured(model: &str) -> Self {
        Self {
            code: FailureCode::Unavailable,
            fault: CallFault::Operator,
            message: format!("{model} is not available: its provider is not configured."),
            usage: Usage::default(),
            cost_microusd: 0,
            requests: 0,
        }
    }
}

crate::words! {
    /// Why a model request failed.
    json FailureCode {
        /// The model did not answer in time.
        Timeout = "model_timeout",
        /// The provider's rate limit or quota is exceeded.
        RateLimited = "model_rate_limited",
        /// The provider is not configured, cannot be reached, or fails.
        Unavailable = "model_unavailable",
        /// The provider rejected the request: unknown model, invalid key, or too much text.
        Rejected = "model_rejected",
        /// The model's answer cannot be used.
        Garbled = "model_garbled",
        /// The question alone would have cost more than the conversation may still spend.
        CostLimit = "cost_limit",
    }
}
