//! A caller who is handed over: the carrier closes the media socket, and opens another one if nobody takes the call. Meanwhile
//! the line is silent, as of a caller who says nothing: transcriber, recording and turns go on without a gap.
use super::LineSocket;
use crate::base::limits::PHONE_AWAY_PIECE_MS;
use crate::carriers::{MediaCodec, MediaEvent};
use crate::live::audio_line::LineInput;
use crate::live::line::CarrierLine;
use crate::ports::Socket;

/// Where the caller is.
pub(super) enum Presence {
    /// On this connection.
    Here,
    /// Still here. The carrier may close the connection; from this time on, it is closed here.
    MayLeave(Option<i64>),
    /// There is no connection. The silence reaches up to this time.
    Away(i64),
    /// There is another connection, whose stream has not begun; likewise.
    Returning(i64),
}

impl Presence {
    /// Whether nothing reaches the caller.
    pub(super) const fn is_away(&self) -> bool {
        matches!(self, Self::Away(_) | Self::Returning(_))
    }

    /// Whether messages may arrive.
    pub(super) const fn has_socket(&self) -> bool {
        !matches!(self, Self::Away(_))
    }

    /// The carrier may close the connection, and has to by this time: not the one that the caller came back on since it might.
    pub(super) fn may_leave(&mut self, leave_at_ms: Option<i64>) {
        if matches!((&*self, leave_at_ms), (Self::Here, None) | (Self::MayLeave(_), _)) {
            *self = Self::MayLeave(leave_at_ms);
        }
    }

    /// Whether the connection has to be closed.
    pub(super) fn is_due(&self, now_ms: i64) -> bool {
        matches!(self, Self::MayLeave(Some(at_ms)) if now_ms >= *at_ms)
    }

    /// When something has to be done.
    pub(super) const fn poll_timeout(&self) -> Option<i64> {
        match self {
            Self::Here => None,
            Self::MayLeave(leave_at_ms) => *leave_at_ms,
            Self::Away(until_ms) | Self::Returning(until_ms) => Some(*until_ms + PHONE_AWAY_PIECE_MS),
        }
    }
}

impl LineSocket<'_> {
    /// What an input of the connection means now.
    pub(super) fn of_presence(&mut self, now_ms: i64, input: LineInput) -> Option<LineInput> {
        let is_end =
            matches!(input, LineInput::Media(MediaEvent::Stopped) | LineInput::Gone | LineInput::Broken);
        match self.presence {
            Presence::MayLeave(_) if is_end => {
                self.outbox.clear();
                self.presence = Presence::Away(now_ms);
                self.is_to_close = true;
                None
            }
            // What was on its way when the connection was closed.
            Presence::Away(_) => None,
            // The carrier knows why.
            Presence::Returning(_) if is_end => Some(LineInput::Broken),
            Presence::Returning(_) => {
                if matches!(input, LineInput::Media(MediaEvent::Started { .. })) {
                    (self.presence, self.is_back) = (Presence::Here, true);
                }
                (!matches!(input, LineInput::Media(_))).then_some(input)
            }
            Presence::Here | Presence::MayLeave(_) => Some(input),
        }
    }

    /// Closes a connection that the carrier has not closed in time.
    pub(super) async fn leave_in_time(&mut self) {
        let now_ms = self.clock.now_ms();
        let is_due = self.presence.is_due(now_ms);
        if std::mem::take(&mut self.is_to_close) || is_due {
            self.socket.close(1000, "the call is handed over").await;
        }
        if is_due {
            self.outbox.clear();
            self.presence = Presence::Away(now_ms);
        }
    }

    /// Hears the silence of a caller who is away.
    pub(super) fn keep_silent(&mut self) {
        let now_ms = self.clock.now_ms();
        let (Presence::Away(until_ms) | Presence::Returning(until_ms)) = &mut self.presence else { return };
        let pieces = (now_ms - *until_ms) / PHONE_AWAY_PIECE_MS;
        *until_ms += pieces * PHONE_AWAY_PIECE_MS;
        let samples = usize::try_from(self.line.rate().samples_in(PHONE_AWAY_PIECE_MS)).unwrap_or(0);
        for _ in 0..pieces {
            self.handle_at(now_ms, LineInput::Media(MediaEvent::Audio(vec![0; samples])));
        }
    }

    /// The caller comes back on this connection.
    pub(super) fn come_back(&mut self, socket: Box<dyn Socket>, codec: Box<dyn MediaCodec>) {
        let silent_until_ms = match self.presence {
            Presence::Away(until_ms) | Presence::Returning(until_ms) => until_ms,
            Presence::Here | Presence::MayLeave(_) => self.clock.now_ms(),
        };
        self.socket = socket;
        self.line = Box::new(CarrierLine(codec));
        self.outbox.clear();
        self.is_to_close = false;
        self.presence = Presence::Returning(silent_until_ms);
    }
}
