//! One conversation between a user and an assistant, as a pure state machine.
//!
//! [`Conversation`] makes the decisions and a driver executes them. [`transcript`] has the rows that result.
mod configuration;
mod ended_reason;
mod filled_texts;
pub mod input_log;
pub mod keys;
mod limits;
mod machine;
mod model_turn;
mod outcome;
pub mod transcript;
mod transfer;
mod voicemail;

pub use configuration::{AssistantSnapshot, PipelineMode, ToolMethod, ToolSnapshot};
pub use ended_reason::EndedReason;
pub use filled_texts::{FilledTexts, Texts, Values, Wanted};
pub use keys::SEND_KEYS;
pub use limits::{
    ConversationLimits, DURATION_MS_MAX, FILLER_AFTER_MS, NOTES_MAX, REPEATS_MAX, SILENCES_MAX,
    TEXT_BYTES_MAX, TOOL_CALLS_PER_TURN_MAX, TOOL_NAME_BYTES_MAX, TOOL_RESULT_BYTES_MAX,
    TRANSCRIPT_BYTES_MAX, TURNS_MAX, VOICEMAIL_SILENCE_MS, VOICEMAIL_WAIT_MS,
};
pub use machine::{Conversation, ConversationSetup, Input, Output, Party, WaitingFor};
pub use model_turn::{AssistantReply, AssistantTurn, Knowledge, Message, ToolRequest, ToolSpec};
pub use outcome::{CallFault, Outcome, Sentiment};
pub use transfer::{TRANSFER_TOOL, Transfer};
pub use voicemail::{Greeting, Voicemail, VoicemailAction};
