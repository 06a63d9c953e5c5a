//! Somebody at a telephone: the conversation as audio over a carrier's media socket.
//!
//! What the assistant says is made into audio, sent somewhat ahead of time, and marked, so that it is known what was
//! heard. Who talks while the assistant does is listened to: what was not played is thrown away.
use std::collections::VecDeque;

use crate::base::limits::{
    PHONE_AHEAD_MS, PHONE_BURST_MS, PHONE_KEYS_MAX, PHONE_KEYS_MS, PHONE_LAST_WORDS_MS, PHONE_MARK_LATE_MS,
    PHONE_MARK_MS, PHONE_START_MS, PHONE_WRONG_MESSAGES_MAX,
};
use crate::carriers::{MediaCodec, MediaEvent, MediaMessage};
use crate::conversation::transcript::{TranscriptRole, TranscriptRow};
use crate::conversation::{CallFault, EndedReason};
use crate::live::peer::{Peer, PeerEvent};
use crate::ports::{BoxFuture, Clock, Gone, Received, Socket};
use crate::speech::audio::FRAME_MS;
use crate::speech::playback::Playback;
use crate::speech::tone::{ToneDecoder, ToneEncoder, ToneHeard};
use crate::storage::calls::Call;

/// A carrier's line that waits for its socket.
pub struct PhoneMedia(Box<dyn MediaCodec>);

impl PhoneMedia {
    /// A line as the carrier made it.
    pub fn new(line: Box<dyn MediaCodec>) -> Self {
        Self(line)
    }

    /// Whoever is at the other end of it.
    pub fn talk<'a>(self, socket: &'a mut dyn Socket, clock: &'a dyn Clock) -> PhonePeer<'a> {
        let rate = self.0.format().rate;
        PhonePeer {
            socket,
            clock,
            line: self.0,
            ear: ToneDecoder::new(rate),
            heard: VecDeque::new(),
            to_send: VecDeque::new(),
            playback: Playback::default(),
            unmarked_ms: 0,
            moved_at_ms: 0,
            spoken: None,
            keys: String::new(),
            keys_until_ms: i64::MAX,
            started_at_ms: None,
            samples: 0,
            wrong: 0,
            gone: false,
        }
    }
}

/// Somebody at a telephone.
pub struct PhonePeer<'a> {
    socket: &'a mut dyn Socket,
    clock: &'a dyn Clock,
    line: Box<dyn MediaCodec>,
    ear: ToneDecoder,
    /// What was heard and not told yet.
    heard: VecDeque<PeerEvent>,
    /// Frames on their way to the carrier.
    to_send: VecDeque<Vec<i16>>,
    playback: Playback,
    /// Audio that was sent since the last mark.
    unmarked_ms: i64,
    /// When audio was sent, or a mark came back, the last time.
    moved_at_ms: i64,
    /// The line that is being spoken.
    spoken: Option<Spoken>,
    /// Keys that were pressed and are not told yet.
    keys: String,
    keys_until_ms: i64,
    /// When audio began to come.
    started_at_ms: Option<i64>,
    /// How much has come: counted as it comes, for a part of a millisecond is none.
    samples: i64,
    wrong: u32,
    gone: bool,
}

/// Where a spoken line is in all that was ever sent.
#[derive(Debug, Clone, Copy)]
struct Spoken {
    from_ms: i64,
    until_ms: i64,
}

const LOST: PeerEvent = PeerEvent::Stop { reason: EndedReason::MediaLost, fault: CallFault::Carrier };

impl PhonePeer<'_> {
    /// Sends what may be sent by now.
    async fn pump(&mut self) -> Result<(), Gone> {
        while self.ahead_ms() < PHONE_AHEAD_MS
            && let Some(frame) = self.to_send.pop_front()
        {
            let audio = self.line.audio(&frame);
            self.send(audio).await?;
            self.unmarked_ms += FRAME_MS;
            self.moved_at_ms = self.clock.now_ms();
            if self.unmarked_ms >= PHONE_MARK_MS || self.to_send.is_empty() {
                let mark = self.playback.sent(self.clock.now_ms(), std::mem::take(&mut self.unmarked_ms));
                let mark = self.line.mark(&mark.to_string());
                self.send(mark).await?;
            }
        }
        Ok(())
    }

    async fn send(&mut self, message: MediaMessage) -> Result<(), Gone> {
        let sent = self.socket.send(message).await;
        self.gone |= sent.is_err();
        sent
    }

    fn ahead_ms(&self) -> i64 {
        self.playback.sent_ms() - self.playback.heard_ms(self.clock.now_ms()) + self.unmarked_ms
    }

    fn queued_ms(&self) -> i64 {
        i64::try_from(self.to_send.len()).unwrap_or(i64::MAX).saturating_mul(FRAME_MS) + self.unmarked_ms
    }

    /// Takes in one message of the carrier. `Some` ends it.
    async fn received(&mut self, received: Received) -> Option<PeerEvent> {
        let events = match received {
            Received::Message(message) => self.line.read(message),
            Received::TooLarge => return Some(LOST),
            Received::Nothing => return None,
            Received::Stopping => {
                return Some(PeerEvent::Stop { reason: EndedReason::Aborted, fault: CallFault::Platform });
            }
            Received::Gone => {
                self.gone = true;
                return Some(PeerEvent::Gone);
            }
        };
        let Ok(events) = events else {
            return self.wrong();
        };
        for event in events {
            match event {
                MediaEvent::Started { .. } => {
                    self.started_at_ms.get_or_insert(self.clock.now_ms());
                }
                MediaEvent::Audio(samples) => {
                    if let Some(over) = self.audio(&samples).await {
                        return Some(over);
                    }
                }
                MediaEvent::Dtmf(key) => {
                    // Who presses keys has heard enough.
                    if self.interrupted().await.is_err() {
                        return Some(PeerEvent::Gone);
                    }
                    self.key(key);
                }
                MediaEvent::Played(name) => self.played(&name),
                MediaEvent::Cleared => {}
                MediaEvent::Stopped => {
                    self.gone = true;
                    return Some(PeerEvent::Gone);
                }
                MediaEvent::Complaint(_) => return self.wrong(),
            }
        }
        None
    }

    async fn audio(&mut self, samples: &[i16]) -> Option<PeerEvent> {
        let rate = i64::from(self.line.format().rate.hz());
        self.samples = self.samples.saturating_add(i64::try_from(samples.len()).unwrap_or(i64::MAX));
        let audio_ms = self.samples.saturating_mul(1_000) / rate;
        let passed_ms = self.clock.now_ms() - self.started_at_ms.unwrap_or(i64::MAX);
        if audio_ms > passed_ms.saturating_add(PHONE_BURST_MS) {
            // A telephone talks in real time: this is none.
            return Some(LOST);
        }
        for heard in self.ear.hear(samples) {
            match heard {
                ToneHeard::Began => {
                    if self.interrupted().await.is_err() {
                        return Some(PeerEvent::Gone);
                    }
                }
                ToneHeard::Said { text, duration_ms } => {
                    self.heard.push_back(PeerEvent::Said { text, duration_ms })
                }
                ToneHeard::Garbled { .. } => self.heard.push_back(PeerEvent::Noise),
            }
        }
        None
    }

    /// Somebody talks. If the assistant does too, it stops.
    async fn interrupted(&mut self) -> Result<(), Gone> {
        let Some(Spoken { from_ms, until_ms }) = self.spoken.take() else { return Ok(()) };
        self.to_send.clear();
        self.unmarked_ms = 0;
        let heard_ms = (self.playback.cleared(self.clock.now_ms()) - from_ms).max(0);
        let whole_ms = (until_ms - from_ms).max(1);
        let heard_permille =
            u32::try_from(heard_ms.saturating_mul(1_000) / whole_ms).unwrap_or(1_000).min(1_000);
        self.heard.push_back(PeerEvent::TalkedOver { heard_permille });
        let clear = self.line.clear();
        self.send(clear).await
    }

    fn played(&mut self, name: &str) {
        let now_ms = self.clock.now_ms();
        if let Ok(mark) = name.parse() {
            self.playback.played(now_ms, mark);
            self.moved_at_ms = now_ms;
        }
        self.spoken_to_the_end(now_ms);
    }

    /// A carrier that gives no marks back, or has lost them, has played by now what it was sent: else the line would
    /// be spoken for ever, and no silence be heard after it.
    fn give_up_on_marks(&mut self) {
        let now_ms = self.clock.now_ms();
        if self.spoken.is_some() && now_ms >= self.moved_at_ms + PHONE_AHEAD_MS + PHONE_MARK_LATE_MS {
            self.playback.sent(now_ms, std::mem::take(&mut self.unmarked_ms));
            self.playback.all_played(now_ms);
            self.moved_at_ms = now_ms;
            self.spoken_to_the_end(now_ms);
        }
    }

    fn spoken_to_the_end(&mut self, now_ms: i64) {
        if let Some(spoken) = self.spoken
            && self.to_send.is_empty()
            && self.playback.heard_ms(now_ms) >= spoken.until_ms
        {
            self.spoken = None;
            self.heard.push_back(PeerEvent::Spoken);
        }
    }

    fn key(&mut self, key: char) {
        self.keys.push(key);
        self.keys_until_ms = self.clock.now_ms() + PHONE_KEYS_MS;
        if key == '#' || self.keys.len() >= PHONE_KEYS_MAX {
            self.keys_until_ms = self.clock.now_ms();
        }
    }

    /// Keys are a line once no more are pressed for a moment.
    fn keys_due(&mut self) -> Option<PeerEvent> {
        if self.keys.is_empty() || self.clock.now_ms() < self.keys_until_ms {
            return None;
        }
        self.keys_until_ms = i64::MAX;
        Some(PeerEvent::Keys(std::mem::take(&mut self.keys)))
    }

    /// One more message that cannot be used; too many of them are the end.
    fn wrong(&mut self) -> Option<PeerEvent> {
        self.wrong += 1;
        (self.wrong >= PHONE_WRONG_MESSAGES_MAX).then_some(LOST)
    }

    async fn next(&mut self, until_ms: i64) -> PeerEvent {
        loop {
            self.give_up_on_marks();
            if let Some(heard) = self.heard.pop_front().or_else(|| self.keys_due()) {
                return heard;
            }
            if self.gone || self.pump().await.is_err() {
                return PeerEvent::Gone;
            }
            let now_ms = self.clock.now_ms();
            if now_ms >= until_ms {
                return PeerEvent::Nothing;
            }
            let mut wait_until_ms = until_ms.min(self.keys_until_ms);
            if !self.to_send.is_empty() {
                wait_until_ms = wait_until_ms.min(now_ms + PHONE_MARK_MS / 2);
            }
            let received = self.socket.receive(wait_until_ms).await;
            if let Some(over) = self.received(received).await {
                return over;
            }
        }
    }

    async fn started(&mut self) -> Result<(), PeerEvent> {
        let until_ms = self.clock.now_ms() + PHONE_START_MS;
        while self.started_at_ms.is_none() {
            if self.clock.now_ms() >= until_ms {
                return Err(PeerEvent::Nothing);
            }
            let received = self.socket.receive(until_ms).await;
            if let Some(over) = self.received(received).await {
                return Err(over);
            }
        }
        Ok(())
    }

    /// Speaks what was told to its end, or for as long as the call is surely still ours.
    async fn last_words(&mut self) -> bool {
        let now_ms = self.clock.now_ms();
        let until_ms = self.playback.over_at_ms(now_ms) + self.queued_ms() + PHONE_MARK_LATE_MS;
        let until_ms = until_ms.min(now_ms + PHONE_LAST_WORDS_MS);
        while self.spoken.is_some() && !self.gone {
            if self.clock.now_ms() >= until_ms {
                return false;
            }
            match self.next(until_ms).await {
                PeerEvent::Spoken => return true,
                PeerEvent::Gone | PeerEvent::Stop { .. } | PeerEvent::TalkedOver { .. } => return false,
                _ => {}
            }
        }
        false
    }
}

impl Peer for PhonePeer<'_> {
    fn open<'a>(&'a mut self, _: &'a Call) -> BoxFuture<'a, Result<(), PeerEvent>> {
        Box::pin(self.started())
    }

    fn hear(&mut self, until_ms: i64) -> BoxFuture<'_, PeerEvent> {
        Box::pin(self.next(until_ms))
    }

    fn tell<'a>(&'a mut self, row: &'a TranscriptRow) -> BoxFuture<'a, Result<(), Gone>> {
        Box::pin(async move {
            if self.gone {
                return Err(Gone);
            }
            if row.role != TranscriptRole::Assistant {
                return Ok(());
            }
            let rate = self.line.format().rate;
            let from_ms = self.playback.sent_ms() + self.queued_ms();
            let audio = ToneEncoder::speak(&row.text, rate);
            self.to_send.extend(audio.chunks_exact(rate.frame_samples()).map(<[i16]>::to_vec));
            let until_ms = self.playback.sent_ms() + self.queued_ms();
            // Lines that follow each other at once are heard as one.
            let from_ms = self.spoken.map_or(from_ms, |spoken| spoken.from_ms);
            self.spoken = Some(Spoken { from_ms, until_ms });
            self.pump().await
        })
    }

    fn is_speaking(&self) -> bool {
        self.spoken.is_some()
    }

    fn finish(&mut self, reason: EndedReason) -> BoxFuture<'_, bool> {
        // Who hung up, or wants it over at once, hears no more.
        let cut_off = matches!(
            reason,
            EndedReason::UserHungUp
                | EndedReason::HungUpByRequest
                | EndedReason::MediaLost
                | EndedReason::Aborted
        );
        Box::pin(async move { !cut_off && self.last_words().await })
    }

    fn over<'a>(&'a mut self, _: &'a str, _: EndedReason, _: i64) -> BoxFuture<'a, ()> {
        self.socket.close(1000, "the call is over")
    }

    fn broken(&mut self) -> BoxFuture<'_, ()> {
        self.socket.close(1011, "something broke on our side")
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicI64, Ordering};

    use futures_util::FutureExt;

    use super::*;
    use crate::carriers::{MediaError, MediaFormat};
    use crate::ports::SocketMessage;
    use crate::speech::audio::Rate;
    use crate::speech::tone::MAX_CHARS;

    /// The time, which passes when somebody waits.
    struct Waits(AtomicI64);

    impl Clock for &'static Waits {
        fn now_ms(&self) -> i64 {
            self.0.load(Ordering::Relaxed)
        }

        fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
            self.0.fetch_add(i64::try_from(ms).unwrap(), Ordering::Relaxed);
            Box::pin(async {})
        }
    }

    /// Takes everything and says nothing.
    struct Mute(&'static Waits);

    impl Socket for Mute {
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

    struct Plain;

    impl MediaCodec for Plain {
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

    #[test]
    fn a_line_without_marks_comes_to_its_end() {
        static CLOCK: Waits = Waits(AtomicI64::new(1_000));
        let clock = &CLOCK;
        let mut socket = Mute(clock);
        let mut peer = PhoneMedia::new(Box::new(Plain)).talk(&mut socket, &clock);
        for chars in [50, 1_000] {
            assert_eq!(peer.tell(&line(&"x".repeat(chars))).now_or_never(), Some(Ok(())));
            let mut waited = 0;
            while peer.hear(clock.now_ms() + 5_000).now_or_never() != Some(PeerEvent::Spoken) {
                waited += 1;
                assert!(waited < 20, "{chars} characters are spoken for ever");
            }
            assert!(!peer.is_speaking());
        }
    }

    #[test]
    fn the_last_words_end_before_the_lease_does() {
        static CLOCK: Waits = Waits(AtomicI64::new(1_000));
        let clock = &CLOCK;
        let mut socket = Mute(clock);
        let mut peer = PhoneMedia::new(Box::new(Plain)).talk(&mut socket, &clock);
        let row = line(&"x".repeat(MAX_CHARS));
        assert_eq!(peer.tell(&row).now_or_never(), Some(Ok(())));
        assert_eq!(peer.finish(EndedReason::AssistantEnded).now_or_never(), Some(false));
        let passed_ms = clock.now_ms() - 1_000;
        assert!(passed_ms <= PHONE_LAST_WORDS_MS, "{passed_ms} ms");
    }
}
