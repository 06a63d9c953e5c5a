//! A line with audio, as the conversation's socket uses it: a carrier's media socket, or a browser.
use crate::base::ids::CallId;
use crate::base::limits::PHONE_TRANSFER_CLOSE_MS;
use crate::carriers::{MediaCodec, MediaError};
use crate::conversation::EndedReason;
use crate::conversation::transcript::TranscriptRow;
use crate::live::audio_line::LineInput;
use crate::ports::sockets::Movable;
use crate::ports::{Received, SocketMessage};
use crate::simulation::live_caller::TurnState;
use crate::speech::audio::Rate;
use crate::speech::turn_times::TurnTimes;
use crate::storage::calls::Call;

/// What a received message means.
#[derive(Debug, Default)]
pub(in crate::live) struct LineRead {
    /// The inputs of the machine, in order.
    pub(in crate::live) inputs: Vec<LineInput>,
    /// What is answered at once.
    pub(in crate::live) answer: Option<SocketMessage>,
}

impl LineRead {
    /// One input and no answer.
    pub(in crate::live) fn of(input: LineInput) -> Self {
        Self { inputs: vec![input], answer: None }
    }
}

/// The last messages on a line, and how its socket is closed.
pub(in crate::live) struct Farewell {
    /// What is said before.
    pub(in crate::live) messages: Vec<SocketMessage>,
    /// The close code (RFC 6455, 7.4).
    pub(in crate::live) code: u16,
    /// Its reason.
    pub(in crate::live) reason: &'static str,
    /// How long the other end may close the socket first.
    pub(in crate::live) wait_ms: i64,
}

impl Farewell {
    /// The end of a line whose other end is told nothing else.
    pub(in crate::live) fn ended() -> Self {
        Self { messages: Vec::new(), code: 1000, reason: "the call has ended", wait_ms: 0 }
    }
}

/// The messages of one kind of line. Audio goes in whole frames of 20 ms at [`Line::rate`].
///
/// A telephone has nothing but audio; a browser also shows the conversation, so the other messages are empty by default.
pub(in crate::live) trait Line: Movable {
    /// The sample rate of both directions.
    fn rate(&self) -> Rate;

    /// What was received at `now_ms`.
    fn read(&mut self, now_ms: i64, received: Received) -> LineRead;

    /// A message with one frame to play.
    fn audio(&mut self, frame: &[i16]) -> SocketMessage;

    /// Requests a confirmation when all earlier audio has been played.
    fn mark(&mut self, mark: u64) -> SocketMessage;

    /// Discards audio that has not been played.
    fn clear(&mut self) -> SocketMessage;

    /// The first message. A line that has one is open at once; another says itself when its stream begins.
    fn opened(&mut self, _call: &Call) -> Option<SocketMessage> {
        None
    }

    /// The conversation has begun at this time.
    fn begin(&mut self, _started_ms: i64) {}

    /// Reports a row of the transcript, or that one was cut.
    fn row(&mut self, _row: &TranscriptRow) -> Option<SocketMessage> {
        None
    }

    /// Reports whose turn it is, on a line whose other end cannot hear it.
    fn turn_state(&mut self, _turn_state: TurnState) -> Option<SocketMessage> {
        None
    }

    /// Reports the words of a turn that has not ended; empty once it is over.
    fn words_so_far(&mut self, _text: &str) -> Option<SocketMessage> {
        None
    }

    /// Reports how long an answer took, once it is heard.
    fn turn(&mut self, _turn: TurnTimes) -> Option<SocketMessage> {
        None
    }

    /// The end of the call.
    fn ended(&mut self, _call_id: &CallId, _reason: EndedReason, _duration_ms: i64) -> Farewell {
        Farewell::ended()
    }

    /// An internal error.
    fn failed(&mut self) -> Farewell {
        Farewell { code: 1011, reason: "internal error", ..Farewell::ended() }
    }
}

/// A carrier's media socket.
pub(in crate::live) struct CarrierLine(pub(in crate::live) Box<dyn MediaCodec>);

impl Line for CarrierLine {
    fn rate(&self) -> Rate {
        self.0.format().rate
    }

    fn read(&mut self, _: i64, received: Received) -> LineRead {
        LineRead::of(match received {
            Received::Message(message) => match self.0.read(message) {
                Ok(events) => {
                    let inputs = events.into_iter().map(LineInput::Media).collect();
                    return LineRead { inputs, answer: None };
                }
                Err(MediaError::Format) => LineInput::WrongFormat,
                Err(_) => LineInput::Unreadable,
            },
            Received::TooLarge => LineInput::TooLarge,
            Received::Nothing | Received::Control => return LineRead::default(),
            Received::Stopping => LineInput::Stopping,
            Received::Gone if self.0.says_stop() => LineInput::Broken,
            Received::Gone => LineInput::Gone,
        })
    }

    fn audio(&mut self, frame: &[i16]) -> SocketMessage {
        self.0.audio(frame)
    }

    fn mark(&mut self, mark: u64) -> SocketMessage {
        self.0.mark(&mark.to_string())
    }

    fn clear(&mut self) -> SocketMessage {
        self.0.clear()
    }

    fn ended(&mut self, _: &CallId, reason: EndedReason, _: i64) -> Farewell {
        // The second reason is also that of a transfer about which the carrier said nothing.
        let may_be_transferred = matches!(reason, EndedReason::Transferred | EndedReason::CarrierFailed);
        let wait_ms = if may_be_transferred { PHONE_TRANSFER_CLOSE_MS } else { 0 };
        Farewell { wait_ms, ..Farewell::ended() }
    }
}
