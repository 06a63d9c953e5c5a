//! A carrier's media socket: its messages, and what they mean.
use crate::ports::Port;
pub use crate::ports::SocketMessage as MediaMessage;
use crate::speech::audio::Rate;

/// The carrier's side of one media socket. It keeps what its messages depend on (ids, numbers, formats).
///
/// 1. [`Line::read`] is called with every message, in order. Until [`MediaEvent::Started`] has come nothing is sent.
/// 2. [`Line::audio`] takes exactly one frame of 20 ms at [`Line::format`]'s rate, and gives one message.
/// 3. [`Line::mark`] asks to be told ([`MediaEvent::Played`]) when all audio sent before it has been played;
///    [`Line::clear`] throws away what has not. What a carrier does with the marks of thrown-away audio differs:
///    the driver forgets them itself.
pub trait MediaCodec: Port {
    /// What a message says, in its order. A message that cannot be read is an error and changes nothing.
    fn read(&mut self, message: MediaMessage) -> Result<Vec<MediaEvent>, MediaError>;

    /// How this line's audio is, both ways.
    fn format(&self) -> MediaFormat;

    /// One frame of audio to be played; see [`Rate::frame_samples`].
    fn audio(&mut self, samples: &[i16]) -> MediaMessage;

    /// Asks to be told when what was sent so far has been played. Names are ours: at most 40 characters.
    fn mark(&mut self, name: &str) -> MediaMessage;

    /// Throws away what has been sent and not been played.
    fn clear(&mut self) -> MediaMessage;
}

/// How a line's audio is: mono, 16-bit, in frames of 20 ms once decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaFormat {
    /// Samples a second.
    pub rate: Rate,
}

/// What a carrier's message means.
#[derive(Debug, Clone, PartialEq)]
pub enum MediaEvent {
    /// The stream begins. Media that came before it was an error.
    Started {
        /// The carrier's id of the call, where the message tells.
        carrier_call_id: Option<String>,
    },
    /// What was heard at the other end, decoded; any number of samples.
    Audio(Vec<i16>),
    /// A key was pressed: `0`–`9`, `*`, `#`, `A`–`D`.
    Dtmf(char),
    /// All that was sent before the mark of this name has been played, or thrown away.
    Played(String),
    /// What was not played has been thrown away.
    Cleared,
    /// The stream is over.
    Stopped,
    /// The carrier complains of something we sent; its words.
    Complaint(String),
}

/// Why a message cannot be read. The texts are for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaError {
    /// It is no message of this carrier.
    Malformed,
    /// Audio before the start, or after the stop.
    OutOfPlace,
    /// Audio that cannot be decoded: not base64, an odd number of bytes, none at all, more than a second at once.
    Audio,
    /// The stream has a format that was not asked for.
    Format,
}
