//! Scenarios with a clock that moves by waiting.
use std::sync::atomic::{AtomicI64, Ordering};

use futures_util::FutureExt;

use super::*;
use crate::carriers::{MediaError, MediaFormat, MediaMessage};
use crate::ports::Received;
use crate::speech::audio::Rate;
use crate::speech::tone::{MAX_CHARS, ToneEncoder};
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

/// Each test has its own.
fn clock() -> &'static AutoClock {
    Box::leak(Box::new(AutoClock(AtomicI64::new(1_000))))
}

/// A socket that accepts everything and sends nothing.
struct SilentSocket(&'static AutoClock, usize);

impl SilentSocket {
    const fn new(clock: &'static AutoClock) -> Self {
        Self(clock, 0)
    }
}

impl Socket for SilentSocket {
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
        self.0.0.fetch_max(until_ms, Ordering::Relaxed);
        Box::pin(async { Received::Nothing })
    }

    fn send(&mut self, _: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        self.1 += 1;
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

fn quiet_peer<'a>(socket: &'a mut dyn Socket, clock: &'a dyn Clock) -> LineSocket<'a> {
    let voice = Voice::tone(EmptyCodec.format().rate, TurnTaking::default(), false);
    LineMedia::new(Box::new(EmptyCodec), voice).into_peer(Box::new(socket), clock, SpeechExchanges::none())
}

#[test]
fn a_line_without_marks_ends() {
    let clock = clock();
    let mut socket = SilentSocket::new(clock);
    let mut peer = quiet_peer(&mut socket, &clock);
    for chars in [50, 1_000] {
        assert_eq!(peer.say(&"x".repeat(chars), true).now_or_never(), Some(Ok(true)));
        let mut waited = 0;
        while !matches!(peer.next(clock.now_ms() + 5_000).now_or_never(), Some(PeerEvent::Spoken { .. })) {
            waited += 1;
            assert!(waited < 20, "a line of {chars} characters does not end");
        }
        assert!(!peer.peer.is_speaking());
    }
}

#[test]
fn nothing_is_lost_of_a_line_when_an_answer_is_ready_first() {
    let clock = clock();
    let mut socket = SilentSocket::new(clock);
    let mut peer = quiet_peer(&mut socket, &clock);
    peer.handle(LineInput::Say("Hello, this is the shop.".to_owned()));
    // Each is dropped where a result of the model would be ready.
    for _ in 0..3 {
        assert_eq!(peer.next_event(2_000).now_or_never(), Some(None), "there is something to send");
    }
    peer.send_due().now_or_never().unwrap();
    assert!(!matches!(peer.next_event(1_000).now_or_never(), Some(None)), "all is sent");
    drop(peer);
    let frames = (ToneEncoder::duration_ms("Hello, this is the shop.") + 19) / 20;
    assert_eq!(socket.1, usize::try_from(frames).unwrap() + 1, "the frames and their mark");
}

#[test]
fn the_final_playback_ends_before_the_lease() {
    let clock = clock();
    let mut socket = SilentSocket::new(clock);
    let mut peer = quiet_peer(&mut socket, &clock);
    assert_eq!(peer.say(&"x".repeat(MAX_CHARS), true).now_or_never(), Some(Ok(true)));
    let played = peer.finish().now_or_never().unwrap();
    assert!(
        matches!(played[..], [(_, PeerEvent::LineBegan { .. }), (_, PeerEvent::Interrupted { .. })]),
        "{played:?}"
    );
    let passed_ms = clock.now_ms() - 1_000;
    assert!(passed_ms <= PHONE_FINAL_PLAYBACK_MS, "{passed_ms} ms");
}
