//! What the models of a conversation have cost.
use serde::{Deserialize, Serialize};

use crate::limits::INTEGER_MAX;
use crate::models::{Answered, ModelFailure};

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Spent {
    /// Tokens that models have read.
    pub input_tokens: i64,
    /// Tokens that models have written.
    pub output_tokens: i64,
    /// Millionths of a US dollar.
    pub microusd: i64,
}

impl Spent {
    /// Adds another sum.
    pub fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.microusd = self.microusd.saturating_add(other.microusd);
    }

    /// What an answer cost, or the lack of one.
    pub fn of<T>(answer: &Result<Answered<T>, ModelFailure>) -> Self {
        let (usage, microusd) = match answer {
            Ok(answered) => (answered.usage, answered.cost_microusd),
            Err(failure) => (failure.usage, failure.cost_microusd),
        };
        let tokens = |count: u64| i64::try_from(count).unwrap_or(INTEGER_MAX).min(INTEGER_MAX);
        Self {
            input_tokens: tokens(usage.input_tokens),
            output_tokens: tokens(usage.output_tokens),
            microusd,
        }
    }
}
