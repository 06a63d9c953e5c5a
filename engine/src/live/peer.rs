//! The other end of a live conversation: a text client or a telephone.
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason, Input, Party};
use crate::ports::sockets::Movable;
use crate::ports::{BoxFuture, Gone};
use crate::storage::calls::Call;

/// What the driver of a conversation needs from the other end.
///
/// 1. [`Peer::open`] comes first, [`Peer::over`] or [`Peer::broken`] last, each once.
/// 2. Dropping the future of [`Peer::hear`] loses nothing.
/// 3. After [`Gone`], or [`PeerEvent::Gone`], nothing more is said; saying it does nothing.
pub trait Peer: Movable {
    /// Waits until the other end can hear, which begins the conversation. An error is what came instead; after
    /// [`PeerEvent::Nothing`] it may be called again.
    fn open<'a>(&'a mut self, call: &'a Call) -> BoxFuture<'a, Result<(), PeerEvent>>;

    /// What the other end does next; [`PeerEvent::Nothing`] when that is nothing by `until_ms`.
    fn hear(&mut self, until_ms: i64) -> BoxFuture<'_, PeerEvent>;

    /// The transcript has a new row.
    fn tell<'a>(&'a mut self, row: &'a TranscriptRow) -> BoxFuture<'a, Result<(), Gone>>;

    /// The conversation is over, and its end is not on disk yet: speaks the last line to its end if anybody can hear it.
    /// True when the line was heard to its end.
    fn finish(&mut self, reason: EndedReason) -> BoxFuture<'_, bool>;

    /// The call is over and on disk.
    fn over<'a>(&'a mut self, call_id: &'a str, reason: EndedReason, duration_ms: i64) -> BoxFuture<'a, ()>;

    /// Something broke on our side, and the end is not on disk.
    fn broken(&mut self) -> BoxFuture<'_, ()>;
}

/// What the other end did.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerEvent {
    /// They said or typed something.
    Said {
        /// The words.
        text: String,
        /// How long it took to say, in ms; 0 for typed text.
        duration_ms: i64,
    },
    /// They began to talk while the assistant did: so much of its last line had been heard, in parts of a thousand.
    TalkedOver {
        /// 0: nothing of it. 1,000: all of it.
        heard_permille: u32,
    },
    /// The assistant's last line has been heard to its end.
    Spoken,
    /// They pressed keys.
    Keys(String),
    /// Something that tells only that they are there.
    Noise,
    /// They hung up, or the connection broke.
    Gone,
    /// The conversation cannot go on.
    Stop {
        /// Why.
        reason: EndedReason,
        /// Whose fault it is.
        fault: CallFault,
    },
    /// Nothing, until the time given.
    Nothing,
}

impl PeerEvent {
    /// What the conversation is told of it.
    #[must_use]
    pub fn into_input(self) -> Input {
        match self {
            Self::Said { text, duration_ms } => Input::UserText { text, duration_ms },
            Self::TalkedOver { heard_permille } => Input::Interrupted { heard_permille },
            Self::Spoken => Input::Spoken,
            Self::Keys(keys) => Input::Keys { keys },
            Self::Noise => Input::Noise,
            Self::Gone => Input::HangUp { by: Party::User },
            Self::Stop { reason, .. } => Input::Stop { reason },
            Self::Nothing => Input::Tick,
        }
    }
}
