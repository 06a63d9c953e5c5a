//! How an assistant takes turns and speaks, as its author sets it.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::limits;

/// How the assistant takes turns and speaks. All fields are optional.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize, JsonSchema)]
#[serde(default, deny_unknown_fields)]
#[schemars(inline)]
pub struct SpeechOptions {
    /// The shortest silence after which the caller's turn can end, in milliseconds: after a complete sentence.
    #[schemars(range(min = limits::END_OF_TURN_MS_MIN, max = limits::END_OF_TURN_MS_MAX))]
    pub end_of_turn_min_ms: i64,
    /// The silence after which the caller's turn ends in any case, in milliseconds. At least `end_of_turn_min_ms`.
    #[schemars(range(min = limits::END_OF_TURN_MS_MIN, max = limits::END_OF_TURN_MS_MAX))]
    pub end_of_turn_max_ms: i64,
    /// Whether callers can interrupt the assistant. If not, what they say during a line is answered after it.
    pub interruptible: bool,
    /// How many words interrupt the assistant. Fewer, and sounds without words, only pause it.
    #[schemars(range(min = 0, max = limits::INTERRUPTION_WORDS_MAX))]
    pub interruption_words_min: i64,
    /// Whether the model is asked as soon as the turn has probably ended. Its answer is spoken only if the caller does not
    /// go on; tools are never called early.
    pub think_early: bool,
    /// What the assistant says when a tool takes longer than 1.5 seconds and nothing else is heard; when empty, nothing.
    /// Once per turn, on the telephone only. The model does not learn of it.
    #[schemars(length(max = limits::FILLER_CHARS_MAX))]
    pub filler: String,
    /// The speed of the voice, for voices with a variable speed: 1 is normal.
    #[schemars(range(min = 0.5, max = 2.0))]
    pub speed: f64,
}

impl Default for SpeechOptions {
    fn default() -> Self {
        Self {
            end_of_turn_min_ms: 500,
            end_of_turn_max_ms: 3_000,
            interruptible: true,
            interruption_words_min: 1,
            think_early: true,
            filler: String::new(),
            speed: 1.0,
        }
    }
}
