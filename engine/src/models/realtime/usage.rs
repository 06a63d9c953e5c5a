//! What a response costs.
//!
//! `response.done` has `usage`: `input_tokens`, of which `input_token_details` says how many are `audio_tokens` and which of
//! them were cached (`cached_tokens_details`), and `output_tokens` with `output_token_details`.
use serde_json::Value;

use crate::models::asking::Usage;
use crate::models::openai::completion::TokenCount;
use crate::models::settings::ModelSettings;

/// A token of the person's audio, and one of the assistant's: "Managing costs" in OpenAI's guide to the Realtime API.
const HEARD_TOKEN_MS: i64 = 100;
const SAID_TOKEN_MS: i64 = 50;

/// No model reads or writes so much at once: a larger number is no count.
const TOKENS_BELIEVED_MAX: u64 = 100_000_000;

/// What a server reads for a response.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Input {
    pub(super) text_bytes: usize,
    pub(super) heard_ms: i64,
    pub(super) said_ms: i64,
}

/// An estimate for a response that the server has not counted; its tokens are no count.
pub(super) fn estimate(
    prices: &ModelSettings,
    input: Input,
    output_bytes: usize,
    audio_ms: i64,
) -> (Usage, i64) {
    let tokens = |ms: i64, each_ms: i64| u64::try_from(ms / each_ms).unwrap_or(0);
    let text = TokenCount::estimate(input.text_bytes, output_bytes);
    let microusd = ModelSettings::price(&[
        (text.input, prices.input_microusd_per_1m_tokens),
        (tokens(input.heard_ms, HEARD_TOKEN_MS) + tokens(input.said_ms, SAID_TOKEN_MS), prices.audio_input()),
        (text.output, prices.output_microusd_per_1m_tokens),
        (tokens(audio_ms, SAID_TOKEN_MS), prices.audio_output()),
    ]);
    (Usage { uncounted_answers: 1, ..Usage::default() }, microusd)
}

/// The tokens of a response, and its price in millionths of a US dollar; `None` if the server does not tell them.
pub(super) fn cost(prices: &ModelSettings, usage: &Value) -> Option<(Usage, i64)> {
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let (input, output) = (count("/input_tokens")?, count("/output_tokens")?);
    if input.max(output) > TOKENS_BELIEVED_MAX {
        return None;
    }
    let part = |path: &str, whole: u64| count(path).unwrap_or(0).min(whole);
    let audio_in = part("/input_token_details/audio_tokens", input);
    let cached = part("/input_token_details/cached_tokens", input);
    let cached_audio = part("/input_token_details/cached_tokens_details/audio_tokens", audio_in.min(cached));
    let cached_text = (cached - cached_audio).min(input - audio_in);
    let audio_out = part("/output_token_details/audio_tokens", output);
    let tokens = [
        (input - audio_in - cached_text, prices.input_microusd_per_1m_tokens),
        (cached_text, prices.cached_input()),
        (audio_in - cached_audio, prices.audio_input()),
        (cached_audio, prices.cached_audio_input()),
        (output - audio_out, prices.output_microusd_per_1m_tokens),
        (audio_out, prices.audio_output()),
    ];
    let usage = Usage { input_tokens: input, output_tokens: output, uncounted_answers: 0 };
    Some((usage, ModelSettings::price(&tokens)))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn every_kind_of_token_has_its_price() {
        let prices = ModelSettings {
            input_microusd_per_1m_tokens: Some(4_000_000),
            output_microusd_per_1m_tokens: Some(24_000_000),
            cached_input_microusd_per_1m_tokens: Some(400_000),
            audio_input_microusd_per_1m_tokens: Some(32_000_000),
            cached_audio_input_microusd_per_1m_tokens: Some(400_000),
            audio_output_microusd_per_1m_tokens: Some(64_000_000),
            ..ModelSettings::default()
        };
        let usage = json!({
            "total_tokens": 1_300, "input_tokens": 1_000, "output_tokens": 300,
            "input_token_details": {"text_tokens": 400, "audio_tokens": 600, "cached_tokens": 500,
                "cached_tokens_details": {"text_tokens": 300, "audio_tokens": 200}},
            "output_token_details": {"text_tokens": 100, "audio_tokens": 200}});
        // 100 × 4 + 300 × 0.4 + 400 × 32 + 200 × 0.4 + 100 × 24 + 200 × 64.
        let counted = Usage { input_tokens: 1_000, output_tokens: 300, uncounted_answers: 0 };
        assert_eq!(cost(&prices, &usage), Some((counted, 400 + 120 + 12_800 + 80 + 2_400 + 12_800)));
        // Without prices of their own, audio costs what text does, and what was cached as much as what was not.
        let text = ModelSettings {
            input_microusd_per_1m_tokens: Some(1_000_000),
            output_microusd_per_1m_tokens: Some(2_000_000),
            ..ModelSettings::default()
        };
        assert_eq!(cost(&text, &usage), Some((counted, 1_600)));
        // Nonsense costs no more than all of its tokens.
        let wild = json!({"input_tokens": 10, "output_tokens": 1,
            "input_token_details": {"audio_tokens": u64::MAX, "cached_tokens": u64::MAX}});
        assert_eq!(cost(&text, &wild).map(|cost| cost.1), Some(12));
        assert_eq!(cost(&text, &json!(null)), None);
        let absurd = json!({"input_tokens": 1, "output_tokens": 9_000_000_000_000_000_000_u64});
        assert_eq!(cost(&text, &absurd), None);
        // What is not counted is estimated: 1,000 text tokens, 20 + 40 of audio; 10 and 100 of the answer.
        let input = Input { text_bytes: 3_000, heard_ms: 2_000, said_ms: 2_000 };
        let uncounted = Usage { uncounted_answers: 1, ..Usage::default() };
        let microusd = 4_000 + 60 * 32 + 10 * 24 + 100 * 64;
        assert_eq!(estimate(&prices, input, 30, 5_000), (uncounted, microusd));
        assert_eq!(estimate(&ModelSettings::default(), input, 30, 5_000).1, 0);
    }
}
