//! The inputs and outputs of a conversation.
use std::borrow::Cow;

use serde::{Deserialize, Serialize};
use serde_json::Value;

#[cfg(doc)]
use super::Conversation;
use crate::base::text::truncate_with_note;
use crate::conversation::{AssistantReply, EndedReason, Greeting, TOOL_RESULT_BYTES_MAX};

/// One side of a conversation.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Party {
    /// The person, or the simulated caller.
    User,
    /// The assistant.
    Assistant,
}

/// An external input.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Input {
    /// The two sides are connected. Offsets in the transcript count from here.
    Start,
    /// The user spoke or wrote. If the model is being asked, it is asked again including this line; while a tool runs,
    /// the line waits for the result. After the end, it is recorded and not answered.
    UserText {
        /// The text.
        text: String,
        /// How long the speech took, in ms; 0 for typed text.
        duration_ms: i64,
        /// How long ago it ended, in ms.
        silence_ms: i64,
    },
    /// The user's last line before they hung up. It is not answered and ends the conversation as
    /// [`EndedReason::UserHungUp`], even if it is the last line within the limits.
    UserGoodbye {
        /// The text.
        text: String,
        /// How long the speech took, in ms; 0 for typed text.
        duration_ms: i64,
    },
    /// The user pressed keys on a telephone. They count as a line.
    Keys {
        /// `0`–`9`, `*`, `#`, `A`–`D`, in their order.
        keys: String,
        /// The time from the first of them to the last, in ms.
        #[serde(default)]
        duration_ms: i64,
        /// How long ago the last one was pressed, in ms: what it takes to know that no other follows.
        #[serde(default)]
        silence_ms: i64,
    },
    /// The lines being spoken were cut: the user interrupted the assistant, and the conversation continues with the part
    /// that was heard; or the conversation has ended in the middle of them.
    Interrupted {
        /// The part of the first of these lines that was heard, in thousandths. Nothing was heard of the others.
        heard_permille: u32,
    },
    /// The first of the lines being spoken ended in the middle, because its voice failed. The lines after it are spoken.
    BrokeOff {
        /// The part of it that was heard, in thousandths.
        heard_permille: u32,
    },
    /// A client that speaks the lines itself has stopped speaking one of them. Ignored unless the assistant said the line
    /// after the user's last one.
    Heard {
        /// The index of the line's transcript row.
        row: usize,
        /// How many of its characters were heard; all of them, or more, if the line was spoken to its end. Nothing was
        /// heard of later lines if this one was cut.
        chars: usize,
    },
    /// The user was silent during their turn. For drivers without a clock, such as a simulated caller without a line;
    /// with [`silence_ms`](crate::conversation::ConversationLimits::silence_ms) the conversation detects silence on
    /// [`Input::Tick`].
    Silence,
    /// Activity of the user without a line.
    Noise,
    /// The user said something that was lost before it became a line. A spoken assistant asks for it again, unless it is
    /// speaking or about to.
    NotUnderstood,
    /// The user's voice began, whatever it says. While they speak, they are not silent; but nobody speaks for minutes without
    /// a pause, and a television does.
    VoiceBegan,
    /// The user's voice ended.
    VoiceEnded,
    /// The model has written more of its response to [`Output::AskModel`] with the same number, which follows as
    /// [`Input::AssistantReply`]. A spoken assistant says it at once, and the user's next line waits for the whole; a written
    /// conversation ignores it.
    AssistantText {
        /// The number of the request.
        request: u64,
        /// What comes after the earlier texts of this request.
        text: String,
    },
    /// The model's response to [`Output::AskModel`] with the same number.
    AssistantReply {
        /// The number of the request. Responses to older requests are ignored.
        request: u64,
        /// The response.
        reply: AssistantReply,
    },
    /// The model failed to answer [`Output::AskModel`] with the same number.
    ModelFailed {
        /// The number of the request.
        request: u64,
        /// The reason, in words fit for the assistant's owner.
        reason: String,
    },
    /// The result of [`Output::CallTool`].
    ToolResult {
        /// The id of the call. Results of other calls are ignored.
        id: String,
        /// The tool's response, or the reason of its failure.
        text: String,
        /// Whether the tool failed.
        is_error: bool,
        /// Whether a scenario answered in place of the tool.
        #[serde(default, skip_serializing_if = "std::ops::Not::not")]
        mocked: bool,
    },
    /// Keys of [`Output::PressKeys`] were heard, or the call is over: then it counts after the end, too.
    KeysPressed {
        /// The id of the call.
        id: String,
        /// How many of the characters were heard.
        pressed: usize,
    },
    /// The service reports something that the owner must know: a failed voice, a failed transcriber. Adds a row of the role
    /// `system`, which the model does not see. At most [`NOTES_MAX`](crate::conversation::NOTES_MAX) of them.
    Note {
        /// What happened.
        text: String,
    },
    /// The carrier says that a machine has answered, or more about its greeting. May come before [`Input::Start`].
    MachineAnswered {
        /// What is known of its greeting.
        greeting: Option<Greeting>,
    },
    /// Time has passed: the user may have been silent for too long, or have waited for a tool, or the time limit may be
    /// reached. Due at
    /// [`Conversation::poll_timeout`]; harmless at any other time.
    Tick,
    /// The playback of the first of the lines being spoken began: its row starts there, not where its text was known.
    LineBegan {
        /// When, on the clock of [`Conversation::handle`](super::Conversation::handle).
        at_ms: i64,
    },
    /// The playback of the lines being spoken is paused: somebody may be talking over them, or their audio is still to come.
    /// If they are cut, they ended now.
    Paused,
    /// The playback of paused lines goes on.
    Resumed,
    /// The first of the lines being spoken was played completely. Sets the row's `end_ms`, also after the end of the
    /// conversation.
    Spoken {
        /// When its last audio was heard, on the clock of [`Conversation::handle`](super::Conversation::handle); `None` for
        /// now.
        until_ms: Option<i64>,
    },
    /// One side hung up.
    HangUp {
        /// The side that hung up.
        by: Party,
    },
    /// The conversation has reached its cost limit.
    CostLimit,
    /// An external end: the carrier's, a requested hang-up, or a failed model of a simulated caller.
    Stop {
        /// The reason.
        reason: EndedReason,
    },
}

impl Input {
    /// The input as far as the conversation keeps it.
    pub(in crate::conversation) fn as_kept(&self) -> Cow<'_, Self> {
        match self {
            Self::ToolResult { id, text, is_error, mocked } if text.len() > TOOL_RESULT_BYTES_MAX => {
                let text = truncate_with_note(text.clone(), TOOL_RESULT_BYTES_MAX);
                Cow::Owned(Self::ToolResult { id: id.clone(), text, is_error: *is_error, mocked: *mocked })
            }
            _ => Cow::Borrowed(self),
        }
    }

    /// Whether the input says how much of a line was played.
    const fn is_about_a_line(&self) -> bool {
        matches!(
            self,
            Self::LineBegan { .. }
                | Self::Paused
                | Self::Resumed
                | Self::Spoken { .. }
                | Self::Interrupted { .. }
                | Self::BrokeOff { .. }
                | Self::Heard { .. }
        )
    }

    /// Whether the input counts after the end, too: it is about a line, it is what one side said or pressed last, or says
    /// what went wrong meanwhile.
    pub(crate) const fn counts_after_the_end(&self) -> bool {
        self.is_about_a_line()
            || matches!(
                self,
                Self::UserText { .. }
                    | Self::Keys { .. }
                    | Self::KeysPressed { .. }
                    | Self::ToolResult { .. }
                    | Self::Note { .. }
            )
    }

    /// Whether the input is an end from outside, whose time may be before the latest input.
    pub(super) const fn may_be_found_late(&self) -> bool {
        matches!(self, Self::HangUp { .. } | Self::Stop { .. })
    }

    /// Whether the input is activity, which ends a silence.
    pub(super) const fn is_activity(&self) -> bool {
        match self {
            Self::Start
            | Self::UserText { .. }
            | Self::UserGoodbye { .. }
            | Self::Keys { .. }
            | Self::KeysPressed { .. }
            | Self::Interrupted { .. }
            | Self::BrokeOff { .. }
            | Self::Silence
            | Self::Noise
            | Self::NotUnderstood
            | Self::VoiceBegan
            | Self::VoiceEnded
            | Self::Spoken { .. } => true,
            Self::AssistantText { .. }
            | Self::AssistantReply { .. }
            | Self::ModelFailed { .. }
            | Self::ToolResult { .. }
            | Self::Note { .. }
            | Self::MachineAnswered { .. }
            | Self::Tick
            | Self::LineBegan { .. }
            | Self::Paused
            | Self::Resumed
            // It is activity only if the line is known.
            | Self::Heard { .. }
            | Self::HangUp { .. }
            | Self::CostLimit
            | Self::Stop { .. } => false,
        }
    }
}

/// The driver's next action.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "snake_case")]
pub enum Output {
    /// Say this to the user: a line, or more of the line that [`Conversation::being_written`] names.
    Say {
        /// The text.
        text: String,
    },
    /// Ask the model about the current [`Conversation::assistant_turn`] and pass its response with this number. An
    /// earlier open request may be dropped.
    AskModel {
        /// The number of this request.
        request: u64,
    },
    /// Call this tool and pass its result with this id. Several calls may be open at once; the model is asked again
    /// after all results.
    CallTool {
        /// Unique in the conversation and the same after a restart, so it can be the tool's idempotency key.
        id: String,
        /// One of the attached tools.
        name: String,
        /// A JSON object that fits the tool's `parameters`.
        arguments: Value,
    },
    /// Press these keys on the telephone, once all earlier lines were heard, and pass [`Input::KeysPressed`] with this id. It is
    /// a call of the tool [`SEND_KEYS`](crate::conversation::SEND_KEYS).
    PressKeys {
        /// As in [`Output::CallTool`].
        id: String,
        /// The keys; `w` is half a second of pause.
        keys: String,
    },
    /// Stop speaking: [`Input::Interrupted`] follows if a line was being spoken. From now on nothing that the other side says or
    /// presses interrupts the assistant.
    Hush,
    /// The conversation has ended; nothing comes after this.
    Ended {
        /// The reason.
        reason: EndedReason,
    },
}

/// The input that the conversation waits for.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum WaitingFor {
    /// [`Input::Start`].
    Start,
    /// [`Input::UserText`] or [`Input::Silence`].
    User,
    /// [`Input::AssistantReply`] or [`Input::ModelFailed`].
    Model,
    /// [`Input::ToolResult`], one or several.
    Tool,
    /// The end of a machine's greeting, or of the message.
    Machine,
    /// None: it has ended.
    Nothing,
}
