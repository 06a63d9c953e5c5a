//! Speech synthesis: what every provider's protocol does for [`super`].
use super::audio::Rate;
use super::exchange::{Arrival, ExchangeId, SpeechFailure, Transmit};
use super::synthesizers;
use crate::ports::sockets::Movable;

/// Identifies a line being synthesized; counts up within a call.
pub type LineId = u64;

/// One provider's protocol for one voice in one call: a pure state machine.
///
/// 1. A line is one or more [`speak`](Self::speak), each a sentence or clause that ends at a word boundary, then
///    [`finish`](Self::finish). Its audio arrives in order. Lines are synthesized in order, one at a time where the provider
///    requires it.
/// 2. [`cancel`](Self::cancel) ends a line at once, and nothing of it is reported afterwards. [`close`](Self::close) does
///    that with every line.
/// 3. After each call, drain [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), then wait no
///    longer than [`poll_timeout`](Self::poll_timeout) and call [`tick`](Self::tick).
/// 4. Every finished line gets exactly one [`SynthesizerEvent::Done`] or [`SynthesizerEvent::Failed`], and nothing after it.
///    `Failed` may come before [`finish`](Self::finish). A line without any audio has failed, and so has one whose first audio
///    does not come within 3 s of its text (or of the end of the line before it).
/// 5. A [`tick`](Self::tick) before the first line opens the connection ahead of it; [`poll_timeout`](Self::poll_timeout)
///    asks for one.
pub trait Synthesizer: Movable {
    /// The rate of its audio.
    fn rate(&self) -> Rate {
        synthesizers::RATE
    }

    /// Whether it is itself the model that wrote the text: it is given a line as it was written, and at once.
    fn speaks_its_own_text(&self) -> bool {
        false
    }

    /// How much of a line was heard that is cancelled next, in ms of its audio.
    fn heard(&mut self, _line: LineId, _heard_ms: i64) {}

    /// Text to speak, a part of `line`.
    fn speak(&mut self, now_ms: i64, line: LineId, text: &str);

    /// The line has no more text.
    fn finish(&mut self, now_ms: i64, line: LineId);

    /// The line is not needed any more.
    fn cancel(&mut self, now_ms: i64, line: LineId);

    /// The call ends.
    fn close(&mut self, now_ms: i64);

    /// Something arrived on an exchange.
    fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival);

    /// Time has passed.
    fn tick(&mut self, now_ms: i64);

    /// The next thing to transmit.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// The next event.
    fn poll_event(&mut self) -> Option<SynthesizerEvent>;

    /// When [`tick`](Self::tick) is due.
    fn poll_timeout(&self) -> Option<i64>;

    /// Characters that are billed so far: of this voice, then of each that takes its place, in their order. Text counts when it
    /// is sent, and no longer once the provider has failed to make any audio of it.
    fn billed_chars(&self) -> Vec<u64>;
}

/// What a synthesizer made.
#[derive(Debug, Clone, PartialEq)]
pub enum SynthesizerEvent {
    /// Audio of a line at [`Synthesizer::rate`].
    Audio {
        /// The line.
        line: LineId,
        /// Mono samples, any number.
        samples: Vec<i16>,
    },
    /// When words are spoken, from the beginning of the line's audio, in order. Only providers with word times have this.
    Words {
        /// The line.
        line: LineId,
        /// The words.
        words: Vec<WordTime>,
    },
    /// The audio reported so far speaks the text as far as here, the end of a part. Protocols report this that have no word
    /// times but know where a part's audio ends.
    PartEnd {
        /// The line.
        line: LineId,
        /// As for [`WordTime::text_end`].
        text_end: usize,
    },
    /// A voice failed, and another one went on with the line; or it said the line in other words.
    VoiceFailed {
        /// The line.
        line: LineId,
        /// Why.
        failure: SpeechFailure,
    },
    /// All audio of the line has been reported.
    Done {
        /// The line.
        line: LineId,
    },
    /// The line cannot be completed. Audio that was reported stays valid.
    Failed {
        /// The line.
        line: LineId,
        /// Why.
        failure: SpeechFailure,
    },
}

/// The end of a word within its line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WordTime {
    /// The end of the word in the text given to [`Synthesizer::speak`], all parts of the line joined, in bytes.
    pub text_end: usize,
    /// When it has been spoken, in ms from the beginning of the line's audio.
    pub end_ms: i64,
}
