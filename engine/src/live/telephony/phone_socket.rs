//! A telephone call's media socket: connects a [`PhonePeer`] to the socket and converts messages with the carrier's
//! [`MediaCodec`].
use std::pin::pin;

use futures_util::future::{Either, select};

use crate::base::ids::CallId;
use crate::base::limits::{PHONE_FINAL_PLAYBACK_MS, PHONE_START_MS};
use crate::carriers::MediaCodec;
use crate::conversation::EndedReason;
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::live::peer::{Peer, PeerEvent};
use crate::live::speech_exchanges::SpeechExchanges;
use crate::live::telephony::phone_peer::{PhoneInput, PhoneOutput, PhonePeer};
use crate::ports::{BoxFuture, Clock, Gone, Received, Socket};
use crate::speech::audio::Rate;
use crate::speech::exchange::SpeechFailure;
use crate::speech::recorder::Segment;
use crate::speech::turn_times::TurnTimes;
use crate::speech::voice::Voice;
use crate::storage::calls::Call;

/// A codec and a voice before their socket is open.
pub struct PhoneMedia {
    codec: Box<dyn MediaCodec>,
    peer: PhonePeer,
}

impl PhoneMedia {
    /// With the carrier's codec; `voice` makes the voice for its rate.
    pub fn new(codec: Box<dyn MediaCodec>, voice: impl FnOnce(Rate) -> Voice) -> Self {
        let rate = codec.format().rate;
        Self { codec, peer: PhonePeer::new(rate, voice(rate)) }
    }

    /// The peer on this socket. `exchanges` reach the providers of the voice.
    pub(in crate::live) fn into_peer<'a>(
        self,
        socket: &'a mut dyn Socket,
        clock: &'a dyn Clock,
        exchanges: SpeechExchanges<'a>,
    ) -> PhoneSocket<'a> {
        PhoneSocket { socket, clock, exchanges, codec: self.codec, peer: self.peer }
    }
}

/// The peer of a telephone call: the state machine and its socket.
pub struct PhoneSocket<'a> {
    socket: &'a mut dyn Socket,
    clock: &'a dyn Clock,
    exchanges: SpeechExchanges<'a>,
    codec: Box<dyn MediaCodec>,
    peer: PhonePeer,
}

impl PhoneSocket<'_> {
    fn handle(&mut self, input: PhoneInput) {
        self.peer.handle(self.clock.now_ms(), input);
        while let Some((party, transmit)) = self.peer.poll_transmit() {
            self.exchanges.perform(party, transmit);
        }
    }

    /// Sends all outputs that are due.
    async fn flush(&mut self) -> Result<(), Gone> {
        if self.peer.ended() == Some(&PeerEvent::Gone) {
            return Err(Gone);
        }
        while let Some(output) = self.peer.poll_output(self.clock.now_ms()) {
            let message = match output {
                PhoneOutput::Audio(frame) => self.codec.audio(&frame),
                PhoneOutput::Mark(mark) => self.codec.mark(&mark.to_string()),
                PhoneOutput::Clear => self.codec.clear(),
            };
            // A connection that takes nothing any more was lost when it stopped, not when the host gave up.
            let since_ms = self.clock.now_ms();
            if self.socket.send(message).await.is_err() {
                self.peer.handle(since_ms, PhoneInput::Gone);
                return Err(Gone);
            }
        }
        Ok(())
    }

    /// Waits for one message from the carrier or a speech provider, until `until_ms` at most.
    async fn receive(&mut self, until_ms: i64) {
        let next = match select(self.socket.receive(until_ms), pin!(self.exchanges.next())).await {
            Either::Left((received, _)) => Ok(received),
            Either::Right((arrived, _)) => Err(arrived),
        };
        let input = match next {
            Err((party, id, arrival)) => PhoneInput::Arrived(party, id, arrival),
            Ok(received) => match self.media_input(received) {
                Some(input) => input,
                None => return,
            },
        };
        self.handle(input);
    }

    /// The input of what the carrier sent; `None` when it was handled, or nothing came.
    fn media_input(&mut self, received: Received) -> Option<PhoneInput> {
        Some(match received {
            Received::Message(message) => match self.codec.read(message) {
                Ok(events) => {
                    events.into_iter().for_each(|event| self.handle(PhoneInput::Media(event)));
                    return None;
                }
                Err(_) => PhoneInput::Unreadable,
            },
            Received::TooLarge => PhoneInput::TooLarge,
            Received::Nothing => return None,
            Received::Stopping => PhoneInput::Stopping,
            Received::Gone => PhoneInput::Gone,
        })
    }

    async fn next(&mut self, until_ms: i64) -> PeerEvent {
        loop {
            self.handle(PhoneInput::Tick);
            // `poll_event` reports a closed socket.
            let _ = self.flush().await;
            if let Some(event) = self.peer.poll_event() {
                return event;
            }
            if self.clock.now_ms() >= until_ms {
                return PeerEvent::Nothing;
            }
            let until_ms = self.peer.poll_timeout().map_or(until_ms, |at_ms| at_ms.min(until_ms));
            self.receive(until_ms).await;
        }
    }

    async fn started(&mut self) -> Result<(), PeerEvent> {
        let until_ms = self.clock.now_ms() + PHONE_START_MS;
        loop {
            if let Some(end) = self.peer.ended() {
                return Err(end.clone());
            }
            if self.peer.is_started() {
                return Ok(());
            }
            if self.clock.now_ms() >= until_ms {
                return Err(PeerEvent::Nothing);
            }
            self.receive(until_ms).await;
        }
    }

    /// Plays the remaining speech, but not beyond the lease.
    async fn play_remaining(&mut self) -> Vec<(i64, PeerEvent)> {
        let now_ms = self.clock.now_ms();
        let until_ms = self.peer.playback_ends_at_ms(now_ms).min(now_ms + PHONE_FINAL_PLAYBACK_MS);
        let mut played = Vec::new();
        let mut is_over = false;
        while !is_over
            && (self.peer.is_speaking() || self.peer.has_events())
            && self.clock.now_ms() < until_ms
        {
            let event = self.next(until_ms).await;
            is_over = matches!(event, PeerEvent::Gone | PeerEvent::Stop { .. });
            if matches!(event, PeerEvent::Spoken | PeerEvent::Interrupted { .. }) {
                played.push((self.clock.now_ms(), event));
            }
        }
        let over_at_ms = self.peer.ended_at_ms().unwrap_or_else(|| self.clock.now_ms());
        let cut = PeerEvent::lines_cut(&self.peer.heard_permille(over_at_ms));
        played.extend(cut.into_iter().map(|event| (over_at_ms, event)));
        played
    }
}

impl Peer for PhoneSocket<'_> {
    fn open<'a>(&'a mut self, _: &'a Call) -> BoxFuture<'a, Result<(), PeerEvent>> {
        Box::pin(self.started())
    }

    fn next_event(&mut self, until_ms: i64) -> BoxFuture<'_, PeerEvent> {
        Box::pin(self.next(until_ms))
    }

    fn send_row<'a>(&'a mut self, row: &'a TranscriptRow) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move {
            if row.role == TranscriptRole::Assistant {
                self.handle(PhoneInput::Say(row.text.clone()));
            }
            self.flush().await
        })
    }

    fn heard_permille(&self, at_ms: i64) -> Vec<u32> {
        self.peer.heard_permille(at_ms)
    }

    fn speech_billed(&self) -> (i64, u64) {
        self.peer.billed()
    }

    fn model_answered(&mut self) {
        self.handle(PhoneInput::Answered);
    }

    fn turns(&self) -> Vec<TurnTimes> {
        self.peer.turns()
    }

    fn take_speech_failures(&mut self) -> Vec<SpeechFailure> {
        self.peer.take_failures()
    }

    fn begin_recording(&mut self, now_ms: i64, segment_ms: i64) {
        self.peer.begin_recording(now_ms, segment_ms);
    }

    fn take_segment(&mut self, now_ms: i64, is_over: bool) -> Option<Segment> {
        self.peer.take_segment(now_ms, is_over)
    }

    fn ended_at_ms(&self) -> Option<i64> {
        self.peer.ended_at_ms()
    }

    fn finish(&mut self) -> BoxFuture<'_, Vec<(i64, PeerEvent)>> {
        Box::pin(self.play_remaining())
    }

    fn end<'a>(&'a mut self, _: &'a CallId, _: EndedReason, _: i64) -> BoxFuture<'a, ()> {
        self.socket.close(1000, "the call has ended")
    }

    fn fail(&mut self) -> BoxFuture<'_, ()> {
        self.socket.close(1011, "internal error")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use futures_util::FutureExt;

    use super::*;
    use crate::carriers::{MediaError, MediaEvent, MediaFormat, MediaMessage};
    use crate::ports::SocketMessage;
    use crate::speech::tone::MAX_CHARS;
    use crate::speech::voice::TurnTaking;

    /// A clock that advances with each wait.
    struct AutoClock(AtomicI64);

    impl Clock for &'static AutoClock {
        fn now_ms(&self) -> i64 {
            self.0.load(Ordering::Relaxed)
        }

        fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
            self.0.fetch_add(i64::try_from(ms).unwrap(), Ordering::Relaxed);
            Box::pin(async {})
        }
    }

    /// A socket that accepts everything and sends nothing.
    struct SilentSocket(&'static AutoClock);

    impl Socket for SilentSocket {
        fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
            self.0.0.fetch_max(until_ms, Ordering::Relaxed);
            Box::pin(async { Received::Nothing })
        }

        fn send(&mut self, _: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
            Box::pin(async { Ok(()) })
        }

        fn close(&mut self, _: u16, _: &'static str) -> BoxFuture<'_, ()> {
            Box::pin(async {})
        }
    }

    struct EmptyCodec;

    impl MediaCodec for EmptyCodec {
        fn read(&mut self, _: MediaMessage) -> Result<Vec<MediaEvent>, MediaError> {
            Ok(Vec::new())
        }

        fn format(&self) -> MediaFormat {
            MediaFormat { rate: Rate::Khz8 }
        }

        fn audio(&mut self, _: &[i16]) -> MediaMessage {
            MediaMessage::Text(String::new())
        }

        fn mark(&mut self, _: &str) -> MediaMessage {
            MediaMessage::Text(String::new())
        }

        fn clear(&mut self) -> MediaMessage {
            MediaMessage::Text(String::new())
        }
    }

    fn line(text: &str) -> TranscriptRow {
        let row = serde_json::json!({
            "index": 0, "role": "assistant", "text": text, "start_ms": 0, "end_ms": 0, "interrupted": false,
        });
        serde_json::from_value(row).unwrap()
    }

    fn quiet_peer<'a>(socket: &'a mut dyn Socket, clock: &'a dyn Clock) -> PhoneSocket<'a> {
        let voice = |rate| Voice::tone(rate, TurnTaking::default(), false);
        PhoneMedia::new(Box::new(EmptyCodec), voice).into_peer(socket, clock, SpeechExchanges::none())
    }

    #[test]
    fn a_line_without_marks_ends() {
        static CLOCK: AutoClock = AutoClock(AtomicI64::new(1_000));
        let clock = &CLOCK;
        let mut socket = SilentSocket(clock);
        let mut peer = quiet_peer(&mut socket, &clock);
        for chars in [50, 1_000] {
            assert_eq!(peer.send_row(&line(&"x".repeat(chars))).now_or_never(), Some(Ok(())));
            let mut waited = 0;
            while peer.next_event(clock.now_ms() + 5_000).now_or_never() != Some(PeerEvent::Spoken) {
                waited += 1;
                assert!(waited < 20, "a line of {chars} characters does not end");
            }
            assert!(!peer.peer.is_speaking());
        }
    }

    #[test]
    fn the_final_playback_ends_before_the_lease() {
        static CLOCK: AutoClock = AutoClock(AtomicI64::new(1_000));
        let clock = &CLOCK;
        let mut socket = SilentSocket(clock);
        let mut peer = quiet_peer(&mut socket, &clock);
        let row = line(&"x".repeat(MAX_CHARS));
        assert_eq!(peer.send_row(&row).now_or_never(), Some(Ok(())));
        let played = peer.finish().now_or_never().unwrap();
        assert!(matches!(played[..], [(_, PeerEvent::Interrupted { .. })]), "{played:?}");
        let passed_ms = clock.now_ms() - 1_000;
        assert!(passed_ms <= PHONE_FINAL_PLAYBACK_MS, "{passed_ms} ms");
    }
}
