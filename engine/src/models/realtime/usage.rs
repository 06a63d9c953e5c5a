//! What a response costs.
//!
//! `response.done` has `usage`: `input_tokens`, of which `input_token_details` says how many are `audio_tokens` and which of
//! them were cached (`cached_tokens_details`), and `output_tokens` with `output_token_details`.
use serde_json::Value;

use crate::models::asking::Usage;
use crate::models::settings::ModelSettings;

/// The tokens of a response, and its price in millionths of a US dollar.
pub(super) fn cost(prices: &ModelSettings, usage: &Value) -> (Usage, i64) {
    let count = |path: &str| usage.pointer(path).and_then(Value::as_u64);
    let (Some(input), Some(output)) = (count("/input_tokens"), count("/output_tokens")) else {
        return (Usage { uncounted_answers: 1, ..Usage::default() }, 0);
    };
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
    (usage, ModelSettings::price(&tokens))
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
        assert_eq!(cost(&prices, &usage), (counted, 400 + 120 + 12_800 + 80 + 2_400 + 12_800));
        // Without prices of their own, audio costs what text does, and what was cached as much as what was not.
        let text = ModelSettings {
            input_microusd_per_1m_tokens: Some(1_000_000),
            output_microusd_per_1m_tokens: Some(2_000_000),
            ..ModelSettings::default()
        };
        assert_eq!(cost(&text, &usage), (counted, 1_600));
        // Nonsense costs no more than all of its tokens, and what is not counted is not free of notice.
        let wild = json!({"input_tokens": 10, "output_tokens": 1,
            "input_token_details": {"audio_tokens": u64::MAX, "cached_tokens": u64::MAX}});
        assert_eq!(cost(&text, &wild).1, 12);
        assert_eq!(cost(&text, &json!(null)), (Usage { uncounted_answers: 1, ..Usage::default() }, 0));
    }
}
