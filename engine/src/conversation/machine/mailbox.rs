//! An answering machine at the other end: nothing is asked or answered any more, a message is left, and the conversation ends.
use serde::{Deserialize, Serialize};

use super::{Conversation, Output, State};
use crate::conversation::{EndedReason, Greeting, Message, VOICEMAIL_SILENCE_MS, VOICEMAIL_WAIT_MS};

/// What the transcript says of the machine.
const MACHINE: &str = "The carrier reports that a machine answered";
/// What becomes of a transfer that was not asked for yet.
const NOT_TRANSFERRED: &str = "Nobody is connected with a machine: the call was not transferred.";

/// The machine.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(super) struct Mailbox {
    /// Since when it is known.
    since_ms: i64,
    greeting: Option<Greeting>,
    /// Whether the message was begun.
    has_message: bool,
}

impl Conversation {
    /// The carrier says that a machine has answered, or more about it.
    pub(super) fn machine_answered(&mut self, greeting: Option<Greeting>) {
        if let Some(mailbox) = &mut self.mailbox {
            mailbox.greeting = mailbox.greeting.or(greeting);
        } else if self.setup.voicemail.is_some() {
            self.mailbox = Some(Mailbox { since_ms: self.offset_ms, greeting, has_message: false });
            if self.state != State::New {
                self.meet_machine();
            }
        }
    }

    /// Stops whatever was going on. Tools that run are still recorded.
    pub(super) fn meet_machine(&mut self) {
        self.state = State::Mailbox;
        self.note(MACHINE.to_owned());
        self.outputs.push_back(Output::Hush);
        self.has_said_rest = false;
        let held: Vec<_> =
            self.pending.iter().filter(|call| call.is_held).map(|call| call.id.clone()).collect();
        for id in held {
            self.tool_result(&id, NOT_TRANSFERRED.to_owned(), true, false);
        }
        self.history.extend(self.held.drain(..).map(|text| Message::User { text }));
    }

    /// Leaves the message once the greeting is over, and ends the conversation once there is nothing more to say.
    pub(super) fn serve_machine(&mut self) {
        if self.state != State::Mailbox || self.is_being_spoken {
            return;
        }
        match self.message_at_ms() {
            Some(at_ms) if self.offset_ms < at_ms => {}
            Some(_) => {
                if let Some(mailbox) = &mut self.mailbox {
                    mailbox.has_message = true;
                }
                self.speak(self.message().unwrap_or_default().to_owned());
                // What is written is said at once.
                self.serve_machine();
            }
            None => self.end(EndedReason::AssistantEnded),
        }
    }

    /// When the message is due, in ms from the start; `None` if none is.
    pub(super) fn message_at_ms(&self) -> Option<i64> {
        let mailbox =
            self.mailbox.as_ref().filter(|_| self.state == State::Mailbox && !self.is_being_spoken)?;
        self.message().filter(|_| !mailbox.has_message)?;
        let latest_ms = mailbox.since_ms.saturating_add(VOICEMAIL_WAIT_MS);
        match mailbox.greeting {
            Some(Greeting::Ended) => Some(self.offset_ms),
            Some(Greeting::None) => None,
            None if self.is_user_speaking => Some(latest_ms),
            None => Some(latest_ms.min(self.quiet_since_ms.saturating_add(VOICEMAIL_SILENCE_MS))),
        }
    }

    /// The message to leave, if one is to be left.
    fn message(&self) -> Option<&str> {
        self.setup.voicemail.as_ref()?.to_leave()
    }

    /// Whether the message was begun.
    pub(super) fn is_leaving_message(&self) -> bool {
        self.state == State::Mailbox && self.mailbox.as_ref().is_some_and(|mailbox| mailbox.has_message)
    }
}
