//! Speech recognition: what every provider's protocol does for [`super`].
use super::audio::Rate;
use super::exchange::{Arrival, ExchangeId, SpeechFailure, Transmit};
use crate::ports::sockets::Movable;

/// One provider's protocol for the recognition of one person's speech in one call: a pure state machine.
///
/// 1. [`hear`](Self::hear) receives all audio of the person without gaps, silence included, at [`rate`](Self::rate).
///    [`speech_began`](Self::speech_began) and [`speech_ended`](Self::speech_ended) are our own detector's view, which a
///    protocol without turn detection needs: the audio from 500 ms before `speech_began` to `speech_ended` is an utterance.
/// 2. After each call, drain [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), then wait no
///    longer than [`poll_timeout`](Self::poll_timeout) and call [`tick`](Self::tick).
/// 3. A broken connection is opened again, and audio that was not finalised is sent again (at most the last 10 s).
///    [`TranscriberEvent::Failed`] comes when that does not help: three attempts in a row, pauses of 0, 0.5 and 2 s.
/// 4. Every utterance that [`speech_ended`](Self::speech_ended) reported gets exactly one [`TranscriberEvent::Final`], in
///    order, or one [`TranscriberEvent::Failed`], within bounded time even if the driver reports nothing more. With
///    [`detects_turns`](Self::detects_turns), one [`TranscriberEvent::TurnEnded`] or `Failed` stands for all utterances since
///    the previous one: a turn may have several, and may end before our own detector notices.
/// 5. After [`close`](Self::close), utterances without a result get theirs, and later ones fail. When
///    [`poll_timeout`](Self::poll_timeout) is `None`, nothing more follows.
pub trait Transcriber: Movable {
    /// The rate of the audio that it takes.
    fn rate(&self) -> Rate;

    /// Whether the provider itself decides when a turn ends; ours is then only a backstop.
    fn detects_turns(&self) -> bool {
        false
    }

    /// Whether the provider that detects turns hears one that has not ended, whatever our own detector says.
    fn is_in_turn(&self) -> bool {
        false
    }

    /// Whether there are words while the person speaks, or only when they have spoken.
    fn has_words_meanwhile(&self) -> bool {
        true
    }

    /// How long after the end of speech a final transcript is awaited, in ms (the 99th percentile as measured by the field).
    fn final_wait_ms(&self) -> i64;

    /// Audio of the person.
    fn hear(&mut self, now_ms: i64, samples: &[i16]);

    /// Speech began in the audio just heard.
    fn speech_began(&mut self, now_ms: i64);

    /// Speech ended in the audio just heard.
    fn speech_ended(&mut self, now_ms: i64);

    /// The call ends: finalises and closes.
    fn close(&mut self, now_ms: i64);

    /// Something arrived on an exchange.
    fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival);

    /// Time has passed.
    fn tick(&mut self, now_ms: i64);

    /// The next thing to transmit.
    fn poll_transmit(&mut self) -> Option<Transmit>;

    /// The next event.
    fn poll_event(&mut self) -> Option<TranscriberEvent>;

    /// When [`tick`](Self::tick) is due.
    fn poll_timeout(&self) -> Option<i64>;

    /// Audio that the provider bills so far, in ms.
    fn billed_ms(&self) -> i64;
}

/// What a transcriber understood.
#[derive(Debug, Clone, PartialEq)]
pub enum TranscriberEvent {
    /// The words of the current utterance (or turn) so far; replaces the previous ones.
    Partial(String),
    /// The words of the oldest utterance without a result; empty when it had none.
    Final(String),
    /// All words of an utterance that had its result before: the provider told them only now.
    Late {
        /// The words that were its result.
        told: String,
        /// The words that it has now; never empty.
        text: String,
    },
    /// The provider expects that the turn is over, with its words so far.
    LikelyEnd(String),
    /// The person went on after [`TranscriberEvent::LikelyEnd`].
    Resumed,
    /// The provider decided that the turn is over, with all its words.
    TurnEnded(String),
    /// The oldest utterance without a result (or the turn) was lost. If the failure is not temporary, so are all later ones.
    Failed(SpeechFailure),
}
