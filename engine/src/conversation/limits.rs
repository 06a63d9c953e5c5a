//! The limits of a conversation.
use serde::{Deserialize, Serialize};

/// Spoken lines of user and assistant in total, including first message and goodbye.
pub const TURNS_MAX: u32 = 500;
/// The maximum duration of a conversation, in ms.
pub const DURATION_MS_MAX: i64 = 60 * 60 * 1000;
/// Tool calls between one line of the user and the assistant's answer.
pub const TOOL_CALLS_PER_TURN_MAX: u32 = 8;
/// How long the user hears nothing, while a tool runs, until the assistant says its filler.
pub const FILLER_AFTER_MS: i64 = 1_500;
/// How long a machine is silent until its greeting counts as over, if its carrier has not said so before.
pub const VOICEMAIL_SILENCE_MS: i64 = 3_000;
/// The longest wait for the end of a greeting, after which the message is left in any case.
pub const VOICEMAIL_WAIT_MS: i64 = 45_000;
/// How often in a row the assistant may repeat a line (ignoring case and white space).
pub const REPEATS_MAX: u32 = 8;
/// How often in a row the user may stay silent.
pub const SILENCES_MAX: u32 = 3;
/// The maximum size of one line in bytes; the rest is cut off, marked by `…`.
pub const TEXT_BYTES_MAX: usize = 65_536;
/// Rows of the role `system` in a transcript.
pub const NOTES_MAX: usize = 20;
/// The maximum size of one tool result in bytes, including the mark for a cut.
pub const TOOL_RESULT_BYTES_MAX: usize = 8_192;
/// The maximum size of a transcript as JSON, in bytes. A row that would exceed it ends the conversation.
pub const TRANSCRIPT_BYTES_MAX: usize = 1_048_576;
/// The maximum size of a tool's name from a model, in bytes (valid names are shorter).
pub const TOOL_NAME_BYTES_MAX: usize = 128;

/// The limits of one conversation; a value left out has its default.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ConversationLimits {
    /// See [`TURNS_MAX`]. The line that reaches the limit is still spoken.
    pub turns_max: u32,
    /// See [`DURATION_MS_MAX`]. Counted from the start.
    pub duration_ms_max: i64,
    /// See [`TOOL_CALLS_PER_TURN_MAX`]. The next call is rejected with an error for the model; one more ends the
    /// conversation.
    pub tool_calls_per_turn_max: u32,
    /// See [`REPEATS_MAX`].
    pub repeats_max: u32,
    /// See [`SILENCES_MAX`].
    pub silences_max: u32,
    /// How long the user may be silent during their turn. `None`: the driver reports silences.
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
