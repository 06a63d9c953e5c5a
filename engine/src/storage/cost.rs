//! The cost of the models and the speech in a conversation.
use serde::{Deserialize, Serialize};

use crate::base::limits::INTEGER_MAX;
use crate::models::{Answered, ModelFailure, Usage as TokenUsage};
use crate::storage::calls::Usage;

/// Tokens and money.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Cost {
    /// Input tokens of all models.
    pub input_tokens: i64,
    /// Output tokens of all models.
    pub output_tokens: i64,
    /// Responses without a token count, for which `microusd` holds an estimate. Journals of earlier versions lack it.
    #[serde(default)]
    pub uncounted_answers: i64,
    /// Everything, in millionths of a US dollar.
    pub microusd: i64,
    /// The part of it for speech recognition.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub stt_microusd: i64,
    /// The part of it for speech synthesis.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub tts_microusd: i64,
}

#[allow(
    clippy::trivially_copy_pass_by_ref,
    reason = "serde passes a reference; the lint depends on the platform"
)]
const fn is_zero(microusd: &i64) -> bool {
    *microusd == 0
}

impl Cost {
    /// Adds another sum.
    pub fn add(&mut self, other: Self) {
        self.input_tokens = self.input_tokens.saturating_add(other.input_tokens);
        self.output_tokens = self.output_tokens.saturating_add(other.output_tokens);
        self.uncounted_answers = self.uncounted_answers.saturating_add(other.uncounted_answers);
        self.microusd = self.microusd.saturating_add(other.microusd);
        self.stt_microusd = self.stt_microusd.saturating_add(other.stt_microusd);
        self.tts_microusd = self.tts_microusd.saturating_add(other.tts_microusd);
    }

    /// Replaces the cost of speech by what it is now.
    pub fn set_speech(&mut self, stt_microusd: i64, tts_microusd: i64) {
        let models = self.models_microusd();
        (self.stt_microusd, self.tts_microusd) = (stt_microusd, tts_microusd);
        self.microusd = models.saturating_add(stt_microusd).saturating_add(tts_microusd);
    }

    /// The part for models.
    pub const fn models_microusd(&self) -> i64 {
        self.microusd.saturating_sub(self.stt_microusd).saturating_sub(self.tts_microusd)
    }

    /// The part that a call reports.
    pub fn usage(self) -> Usage {
        Usage {
            llm_input_tokens: self.input_tokens,
            llm_output_tokens: self.output_tokens,
            llm_uncounted_answers: self.uncounted_answers,
        }
    }

    /// The cost of a response, or of a failed request.
    pub fn of<T>(answer: &Result<Answered<T>, ModelFailure>) -> Self {
        let (usage, microusd) = match answer {
            Ok(answered) => (answered.usage, answered.cost_microusd),
            Err(failure) => (failure.usage, failure.cost_microusd),
        };
        Self::of_tokens(usage, microusd)
    }

    /// The cost of these tokens.
    pub fn of_tokens(usage: TokenUsage, microusd: i64) -> Self {
        let tokens = |count: u64| i64::try_from(count).unwrap_or(INTEGER_MAX).min(INTEGER_MAX);
        Self {
            input_tokens: tokens(usage.input_tokens),
            output_tokens: tokens(usage.output_tokens),
            uncounted_answers: i64::from(usage.uncounted_answers),
            microusd,
            stt_microusd: 0,
            tts_microusd: 0,
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
        let expected =
            Cost { input_tokens: 3, output_tokens: 2, uncounted_answers: 0, microusd: 1, ..Cost::default() };
        assert_eq!(spent, expected);
    }
}
