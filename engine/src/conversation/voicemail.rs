//! What an assistant does when an answering machine answers its call.
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::base::limits::VOICEMAIL_MESSAGE_CHARS_MAX;

crate::words! {
    /// What the assistant does with a machine.
    json VoicemailAction {
        /// It ends the call.
        HangUp = "hang_up",
        /// It says `message` after the greeting, and ends the call.
        LeaveMessage = "leave_message",
    }
}

crate::words! {
    /// What is known of the greeting of a machine.
    json Greeting {
        /// It is over: a message can be left.
        Ended = "ended",
        /// There is none, because nobody listens to messages: it is a fax.
        None = "none",
    }
}

/// What the assistant does when a machine answers its outbound call.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
#[schemars(inline)]
pub struct Voicemail {
    /// What it does.
    pub action: VoicemailAction,
    /// What it says to the machine; needed for `leave_message`.
    #[serde(default)]
    #[schemars(length(max = VOICEMAIL_MESSAGE_CHARS_MAX))]
    pub message: String,
}

impl Voicemail {
    /// The message to leave, if one is to be left.
    #[must_use]
    pub fn to_leave(&self) -> Option<&str> {
        let message = self.message.trim();
        (self.action == VoicemailAction::LeaveMessage && !message.is_empty()).then_some(message)
    }
}
