//! The remote side of a live conversation: a text client, a browser with audio, or a telephone.
use crate::base::ids::CallId;
use crate::carriers::MediaCodec;
use crate::conversation::transcript::TranscriptRow;
use crate::conversation::{CallFault, EndedReason, Input, Party};
use crate::ports::sockets::Movable;
use crate::ports::{BoxFuture, Gone, Socket};
use crate::simulation::live_caller::TurnState;
use crate::speech::exchange::SpeechFailure;
use crate::speech::recorder::Segment;
use crate::speech::turn_times::TurnTimes;
use crate::storage::calls::Call;

/// The transport of a conversation, as its driver uses it.
///
/// 1. [`Peer::open`] comes first, [`Peer::end`] or [`Peer::fail`] last, each once.
/// 2. [`Peer::next_event`] may be dropped at any time, because it never sends. [`Peer::send_due`] sends, and must be awaited
///    to its end.
/// 3. After [`Gone`] or [`PeerEvent::Gone`], calls have no effect.
pub trait Peer: Movable {
    /// Waits until the peer is ready, which starts the conversation. An error is an event that came first; after
    /// [`PeerEvent::Nothing`], call it again.
    fn open<'a>(&'a mut self, call: &'a Call) -> BoxFuture<'a, Result<(), PeerEvent>>;

    /// Sends what is due.
    fn send_due(&mut self) -> BoxFuture<'_, ()>;

    /// The next event; [`PeerEvent::Nothing`] if there is none by `until_ms`. `None` if [`Peer::send_due`] must come first.
    fn next_event(&mut self, until_ms: i64) -> BoxFuture<'_, Option<PeerEvent>>;

    /// Reports a new transcript row.
    fn send_row<'a>(&'a mut self, row: &'a TranscriptRow) -> BoxFuture<'a, Result<(), Gone>>;

    /// Speaks a line of the assistant, or a part of it up to the end of a sentence; its row is sent when it
    /// `is_complete`. Returns whether it is spoken: nothing more is spoken of a line that was cut.
    fn say<'a>(&'a mut self, _text: &'a str, _is_complete: bool) -> BoxFuture<'a, Result<bool, Gone>> {
        Box::pin(async { Ok(true) })
    }

    /// Presses keys, after the lines before them were heard. [`PeerEvent::KeysPressed`] follows with this id. Only a telephone
    /// has any.
    fn press_keys(&mut self, _id: String, _keys: String) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Stops speaking; [`PeerEvent::Interrupted`] follows if a line was being spoken. Nothing interrupts later lines.
    fn hush(&mut self) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }

    /// Reports that a row of the assistant was cut, and what was heard of it. A client that speaks the lines itself knows.
    fn cut_row<'a>(&'a mut self, _row: &'a TranscriptRow) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async { Ok(()) })
    }

    /// Reports whose turn it is, whenever that changes. Who listens knows.
    fn turn_state(&mut self, _turn_state: TurnState) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(async { Ok(()) })
    }

    /// How much of each line being spoken was heard by `at_ms`, in thousandths, in the order of the lines. Empty if
    /// nothing is being spoken.
    fn heard_permille(&self, at_ms: i64) -> Vec<u32>;

    /// What the providers of speech bill so far: audio transcribed in ms, and characters spoken with each voice. A peer
    /// without speech costs nothing.
    fn speech_billed(&self) -> (i64, Vec<u64>) {
        (0, Vec::new())
    }

    /// The model has answered, and what it says follows.
    fn model_answered(&mut self) {}

    /// The times of the user's spoken turns so far, on the service's clock. Text has none.
    fn turns(&self) -> Vec<TurnTimes> {
        Vec::new()
    }

    /// What went wrong with speech since the last call, for the operator.
    fn take_speech_failures(&mut self) -> Vec<SpeechFailure> {
        Vec::new()
    }

    /// The carrier has the line, or is asked to take it: it may close the connection, which is no end. Until another one begins,
    /// the user is silent. From `leave_at_ms` on, the connection is closed here.
    fn may_leave(&mut self, _leave_at_ms: Option<i64>) {}

    /// The carrier does not take the line: a connection that it has closed is the end.
    fn stays(&mut self) {}

    /// Another connection. [`PeerEvent::Back`] follows once it has begun.
    fn reconnect(&mut self, _socket: Box<dyn Socket>, _codec: Box<dyn MediaCodec>) {}

    /// The conversation has begun, and with it the recording of a peer with audio, in segments of this duration. Offsets
    /// count from here.
    fn begin(&mut self, _started_ms: i64, _segment_ms: i64) {}

    /// The next segment of the recording that is complete at `now_ms`; with `is_over`, the rest of it.
    fn take_segment(&mut self, _now_ms: i64, _is_over: bool) -> Option<Segment> {
        None
    }

    /// When the connection ended, once it has. An event may be received later.
    fn ended_at_ms(&self) -> Option<i64>;

    /// The conversation has ended, but its end is not stored yet: plays the last lines to their end if possible.
    /// Returns what happened to them, each with its time.
    fn finish(&mut self) -> BoxFuture<'_, Vec<(i64, PeerEvent)>>;

    /// The conversation has ended, and its lines are over: what the user said last. If the connection `is_over`, because they
    /// hung up, it may be understood in a moment. Counts from the time of the end.
    fn last_words(&mut self, _is_over: bool, _ended_at_ms: i64) -> BoxFuture<'_, Vec<PeerEvent>> {
        Box::pin(async { Vec::new() })
    }

    /// Reports that the call has ended and is stored, and closes the connection.
    fn end<'a>(&'a mut self, call_id: &'a CallId, reason: EndedReason, duration_ms: i64)
    -> BoxFuture<'a, ()>;

    /// Reports an internal error and closes the connection; the end is not stored.
    fn fail(&mut self) -> BoxFuture<'_, ()>;
}

/// An event of the peer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PeerEvent {
    /// The user spoke or typed.
    Said {
        /// The text.
        text: String,
        /// How long the speech took, in ms; 0 for typed text.
        duration_ms: i64,
        /// How long ago it ended, in ms: what it takes to notice and understand it.
        silence_ms: i64,
    },
    /// The user has probably said this and ended the turn; [`PeerEvent::Said`] or [`PeerEvent::WentOn`] follows.
    ProbablySaid(String),
    /// The user goes on after [`PeerEvent::ProbablySaid`].
    WentOn,
    /// The user interrupted the assistant, with the part of the first line being spoken that was played, in thousandths.
    Interrupted {
        /// 0: nothing was played. 1,000: all of it was.
        heard_permille: u32,
    },
    /// The first of the lines being spoken ended in the middle, because its voice failed. The lines after it are spoken.
    BrokeOff {
        /// The part of it that was heard, in thousandths.
        heard_permille: u32,
    },
    /// The playback of the first of the lines being spoken began.
    LineBegan {
        /// When, on the service's clock.
        at_ms: i64,
    },
    /// The user's voice began, whatever it says.
    VoiceBegan,
    /// It ended.
    VoiceEnded,
    /// The playback of the lines being spoken is paused: somebody may be talking over them.
    Paused,
    /// It goes on.
    Resumed,
    /// The first of the lines being spoken was played completely.
    Spoken {
        /// When its last audio was heard, if that is known.
        until_ms: Option<i64>,
    },
    /// A client that speaks the lines itself has stopped speaking this one.
    Heard {
        /// The index of its transcript row.
        row: usize,
        /// How many of its characters were heard.
        chars: usize,
    },
    /// The user pressed keys.
    Keys {
        /// `0`–`9`, `*`, `#`, `A`–`D`, in their order.
        keys: String,
        /// The time from the first of them to the last, in ms.
        duration_ms: i64,
        /// How long ago the last one was pressed, in ms.
        silence_ms: i64,
    },
    /// Keys that the assistant pressed were heard, or the connection is over.
    KeysPressed {
        /// The id of the request.
        id: String,
        /// How many of the characters were heard.
        pressed: usize,
    },
    /// Activity without content.
    Noise,
    /// The user said something, and the transcriber lost it.
    NotUnderstood,
    /// Something about the call that its record should have.
    Note(String),
    /// The user hung up, or the connection broke.
    Gone,
    /// The user is back, on another connection.
    Back,
    /// The connection is closed, and its other end, which says that it ends, has not. The carrier may report why.
    Broke,
    /// The conversation cannot continue.
    Stop {
        /// The reason.
        reason: EndedReason,
        /// The cause.
        fault: CallFault,
    },
    /// No event by the given time.
    Nothing,
}

impl PeerEvent {
    /// The events of lines that are cut, of each of which this part was heard, in thousandths.
    pub fn lines_cut(heard_permille: &[u32]) -> Vec<Self> {
        let whole = heard_permille.iter().take_while(|heard| **heard >= 1_000).count();
        // The last line is interrupted even if all of it was heard.
        let whole = whole.min(heard_permille.len().saturating_sub(1));
        let mut events = vec![Self::Spoken { until_ms: None }; whole];
        events.extend(heard_permille.get(whole).map(|heard| Self::Interrupted { heard_permille: *heard }));
        events
    }

    /// Whether no other event follows.
    pub(in crate::live) const fn is_the_end(&self) -> bool {
        matches!(self, Self::Gone | Self::Broke | Self::Stop { .. })
    }

    /// The matching input of the conversation.
    #[must_use]
    pub fn into_input(self) -> Input {
        match self {
            Self::Said { text, duration_ms, silence_ms } => Input::UserText { text, duration_ms, silence_ms },
            Self::LineBegan { at_ms } => Input::LineBegan { at_ms },
            Self::Interrupted { heard_permille } => Input::Interrupted { heard_permille },
            Self::BrokeOff { heard_permille } => Input::BrokeOff { heard_permille },
            Self::VoiceBegan => Input::VoiceBegan,
            Self::VoiceEnded => Input::VoiceEnded,
            Self::Paused => Input::Paused,
            Self::Resumed => Input::Resumed,
            Self::Spoken { until_ms } => Input::Spoken { until_ms },
            Self::Heard { row, chars } => Input::Heard { row, chars },
            Self::Keys { keys, duration_ms, silence_ms } => Input::Keys { keys, duration_ms, silence_ms },
            Self::KeysPressed { id, pressed } => Input::KeysPressed { id, pressed },
            Self::Note(text) => Input::Note { text },
            // What was probably said becomes a line once it was said for certain.
            Self::Noise | Self::ProbablySaid(_) | Self::WentOn => Input::Noise,
            Self::NotUnderstood => Input::NotUnderstood,
            Self::Gone => Input::HangUp { by: Party::User },
            Self::Broke => Input::Stop { reason: EndedReason::MediaLost },
            Self::Stop { reason, .. } => Input::Stop { reason },
            Self::Nothing | Self::Back => Input::Tick,
        }
    }
}
