//! What the models of a conversation have cost.
use serde::{Deserialize, Serialize};

use crate::base::limits::INTEGER_MAX;
use crate::models::{Answered, ModelFailure};
use crate::storage::calls::Usage;

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Tokens that models have read.
    pub input_tokens: i64,
    /// Tokens that models have written.
    pub output_tokens: i64,
    /// Answers whose tokens nobody told; they are in the money by an estimate. Journals of earlier versions lack it.
    #[serde(default)]
    pub uncounted_answers: i64,
    /// Millionths of a US dollar.
    pub microusd: i64,
}

impl Cost {
    /// Adds another sum.
    pub fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.uncounted_answers = self.uncounted_answers.saturating_add(other.uncounted_answers);
        self.microusd = self.microusd.saturating_add(other.microusd);
    }

    /// As a call shows it.
    pub fn usage(self) -> Usage {
        Usage {
            llm_input_tokens: self.input_tokens,
            llm_output_tokens: self.output_tokens,
            llm_uncounted_answers: self.uncounted_answers,
        }
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
            uncounted_answers: i64::from(usage.uncounted_answers),
            microusd,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_journal_of_an_earlier_version_is_read() {
        let spent: Cost =
            serde_json::from_str(r#"{"input_tokens": 3, "output_tokens": 2, "microusd": 1}"#).unwrap();
        let expected = Cost { input_tokens: 3, output_tokens: 2, uncounted_answers: 0, microusd: 1 };
        assert_eq!(spent, expected);
    }
}
