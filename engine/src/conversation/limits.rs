//! What bounds a conversation.
use serde::{Deserialize, Serialize};

/// Spoken lines of user and assistant together, first message and goodbye included.
pub const TURNS_MAX: u32 = 500;
/// How long a conversation lasts at most, in ms.
pub const DURATION_MS_MAX: i64 = 60 * 60 * 1000;
/// Tool calls the model may ask for between one line of the user and the assistant's answer.
pub const TOOL_CALLS_PER_TURN_MAX: u32 = 8;
/// Times in a row the assistant may say the same line (case and white space folded).
pub const REPEATS_MAX: u32 = 8;
/// Times in a row the user may stay silent.
pub const SILENCES_MAX: u32 = 3;
/// Bytes of one line that are kept; the rest is cut off, marked by `…`.
pub const TEXT_BYTES_MAX: usize = 65_536;
/// Bytes of one tool result that are kept, the mark that tells of the cut included.
pub const TOOL_RESULT_BYTES_MAX: usize = 8_192;
/// Bytes of a whole transcript as JSON. A row that would pass it ends the conversation.
pub const TRANSCRIPT_BYTES_MAX: usize = 1_048_576;
/// Bytes kept of a tool's name as a model gives it (valid names are shorter).
pub const TOOL_NAME_BYTES_MAX: usize = 128;

/// The limits of one conversation; a value left out has its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConversationLimits {
    /// See [`TURNS_MAX`]. The line that reaches the limit is still said; then it ends.
    pub turns_max: u32,
    /// See [`DURATION_MS_MAX`]. Counted from the start.
    pub duration_ms_max: i64,
    /// See [`TOOL_CALLS_PER_TURN_MAX`]. The call after the last is refused with an error the
    /// model can read; one more and the conversation ends.
    pub tool_calls_per_turn_max: u32,
    /// See [`REPEATS_MAX`].
    pub repeats_max: u32,
    /// See [`SILENCES_MAX`].
    pub silences_max: u32,
    /// How long it has to be the user's turn, and nothing to be heard of them, for a silence. `None`: time makes
    /// none.
    pub silence_ms: Option<i64>,
}

impl Default for ConversationLimits {
    fn default() -> Self {
        Self {
            turns_max: TURNS_MAX,
            duration_ms_max: DURATION_MS_MAX,
            tool_calls_per_turn_max: TOOL_CALLS_PER_TURN_MAX,
            repeats_max: REPEATS_MAX,
            silences_max: SILENCES_MAX,
            silence_ms: None,
        }
    }
}
