//! The log of a conversation's inputs with their times. The conversation is a function of them: the log is enough to replay
//! it, or to let it go on differently from any place.
//!
//! A log is a list of JSON entries. The first is the [`Beginning`]; each other one is `[offset_ms, input]`, as
//! [`Input`] serialises. A log that has reached its limit ends with [`FULL`]. What only the model reads of the setup, the
//! documents, is not in it: the model's answers are inputs. No request reads a log; the tests do, after each telephone call.
use serde::{Deserialize, Serialize};

use super::{Conversation, ConversationSetup, Input};
use crate::base::limits::CALL_INPUTS_BYTES_MAX;

/// The last entry of a log that was too long to be kept whole.
pub const FULL: &str = "\"full\"";

/// The first entry of a log.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Beginning {
    /// When the conversation began, on the clock of the times in its inputs, in ms.
    pub started_ms: i64,
    /// What it was configured with, without documents.
    pub setup: ConversationSetup,
}

/// The inputs of one conversation that are not stored yet.
#[derive(Debug)]
pub struct InputLog {
    /// For the first entry.
    setup: Option<ConversationSetup>,
    pending: Vec<String>,
    /// How many entries are stored.
    stored: usize,
    /// The size of all entries.
    bytes: usize,
    is_full: bool,
}

impl InputLog {
    /// The log of a conversation that has not begun.
    #[must_use]
    pub fn new(setup: &ConversationSetup) -> Self {
        let setup = ConversationSetup { knowledge: Vec::new().into(), ..setup.clone() };
        Self { setup: Some(setup), pending: Vec::new(), stored: 0, bytes: 0, is_full: false }
    }

    /// Passes an input to the conversation and logs it. The time of an input is logged as the conversation counts it, so it
    /// does not depend on what is left out: time that passes without consequence.
    pub fn handle(&mut self, conversation: &mut Conversation, now_ms: i64, input: Input) {
        let is_idle =
            input == Input::Tick && conversation.poll_timeout().is_none_or(|due_ms| now_ms < due_ms);
        let logged = (!is_idle && !self.is_full).then(|| serde_json::to_string(&input.as_kept()));
        conversation.handle(now_ms, input);
        // Serialising our own types cannot fail.
        let Some(Ok(input)) = logged else { return };
        let offset_ms = conversation.offset_ms();
        if let Some(setup) = self.setup.take() {
            let started_ms = conversation.now_ms() - offset_ms;
            self.add(serde_json::to_string(&Beginning { started_ms, setup }).unwrap_or_default());
        }
        self.add(format!("[{offset_ms},{input}]"));
    }

    /// The entries that are not stored yet, and how many come before them. They stay until [`stored`](Self::stored).
    #[must_use]
    pub fn pending(&self) -> (usize, &[String]) {
        (self.stored, &self.pending)
    }

    /// All entries are stored.
    pub fn stored(&mut self) {
        self.stored += self.pending.len();
        self.pending.clear();
    }

    fn add(&mut self, entry: String) {
        if self.is_full {
            return;
        }
        self.bytes += entry.len();
        self.is_full = self.bytes > CALL_INPUTS_BYTES_MAX;
        self.pending.push(if self.is_full { FULL.to_owned() } else { entry });
    }
}

/// The conversation that results from a log's entries, in their order; of a full log, as far as it goes.
///
/// # Errors
/// An entry cannot be parsed.
pub fn replay<'a>(entries: impl IntoIterator<Item = &'a str>) -> Result<Conversation, serde_json::Error> {
    let mut entries = entries.into_iter();
    let Beginning { started_ms, setup } = serde_json::from_str(entries.next().unwrap_or_default())?;
    let mut conversation = Conversation::new(setup);
    for entry in entries.filter(|entry| *entry != FULL) {
        let (offset_ms, input): (i64, Input) = serde_json::from_str(entry)?;
        conversation.handle(started_ms.saturating_add(offset_ms), input);
        // What it asks for was done: the answers are among the inputs.
        while conversation.poll().is_some() {}
    }
    Ok(conversation)
}
