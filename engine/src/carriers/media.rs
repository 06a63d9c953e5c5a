//! The protocol of a carrier's media socket.
use crate::ports::Port;
pub use crate::ports::SocketMessage as MediaMessage;
use crate::speech::audio::Rate;

/// Translates one media socket's messages; keeps the state they depend on (ids, sequence numbers, formats).
///
/// 1. [`MediaCodec::read`] receives every message, in order. Nothing is sent before [`MediaEvent::Started`].
/// 2. [`MediaCodec::audio`] takes exactly one frame of 20 ms at the rate of [`MediaCodec::format`] and returns one message.
/// 3. [`MediaCodec::mark`] requests a [`MediaEvent::Played`] when all audio before it has been played.
///    [`MediaCodec::clear`] discards audio that has not been played. Carriers differ in what they do with the marks of
///    discarded audio, so the driver drops these marks itself.
pub trait MediaCodec: Port {
    /// The events of a message, in order. An unreadable message is an error and changes nothing.
    fn read(&mut self, message: MediaMessage) -> Result<Vec<MediaEvent>, MediaError>;

    /// The audio format of both directions.
    fn format(&self) -> MediaFormat;

    /// A message with one frame of audio to play; see [`Rate::frame_samples`].
    fn audio(&mut self, samples: &[i16]) -> MediaMessage;

    /// A message that requests a confirmation when the audio so far has been played. Our names have at most 40 characters.
    fn mark(&mut self, name: &str) -> MediaMessage;

    /// Whether the carrier sends [`MediaEvent::Stopped`] before it closes the socket, so that one that closes without it broke.
    fn says_stop(&self) -> bool {
        false
    }

    /// A message that discards audio that has been sent and not played.
    fn clear(&mut self) -> MediaMessage;
}

/// A line's audio format: mono, 16-bit, in frames of 20 ms once decoded.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct MediaFormat {
    /// The sample rate.
    pub rate: Rate,
}

/// The meaning of a carrier's message.
#[derive(Debug, Clone, PartialEq)]
pub enum MediaEvent {
    /// The stream starts. Media before this event is an error.
    Started {
        /// The carrier's call id, if the message contains it.
        carrier_call_id: Option<String>,
    },
    /// Decoded audio from the other end; any number of samples.
    Audio(Vec<i16>),
    /// A key was pressed: `0`–`9`, `*`, `#`, `A`–`D`.
    Dtmf(char),
    /// All audio before the mark with this name has been played or discarded.
    Played(String),
    /// Unplayed audio has been discarded.
    Cleared,
    /// The stream ended.
    Stopped,
    /// The carrier reports an error in our messages; its text.
    Complaint(String),
}

/// Why a message cannot be read; for logs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum MediaError {
    /// Not a message of this carrier.
    Malformed,
    /// Media before the start or after the stop.
    OutOfPlace,
    /// Undecodable audio: not base64, an odd number of bytes, empty, or longer than
    /// [`MEDIA_CHUNK_MS_MAX`](crate::base::limits::MEDIA_CHUNK_MS_MAX).
    Audio,
    /// The stream does not have the requested format.
    Format,
}
