//! Somebody at a telephone, as a pure state machine: what the assistant says becomes frames of audio, what the carrier
//! sends becomes [`PeerEvent`]s.
//!
//! A line is sent ahead of time, up to [`PHONE_AHEAD_MS`], and marked, so that it is known how much of it was heard.
//! Callers can interrupt the assistant: what was not played is then thrown away.
use std::collections::VecDeque;

use crate::base::limits::{
    PHONE_AHEAD_MS, PHONE_BURST_MS, PHONE_KEYS_MAX, PHONE_KEYS_MS, PHONE_MARK_LATE_MS, PHONE_MARK_MS,
    PHONE_WRONG_MESSAGES_MAX,
};
use crate::carriers::MediaEvent;
use crate::conversation::{CallFault, EndedReason};
use crate::live::peer::PeerEvent;
use crate::speech::audio::{FRAME_MS, Rate};
use crate::speech::playback::Playback;
use crate::speech::tone::{ToneDecoder, ToneEncoder, ToneHeard};

/// What happens to a telephone call's audio.
#[derive(Debug, Clone, PartialEq)]
pub enum PhoneInput {
    /// The carrier's message says this.
    Media(MediaEvent),
    /// The carrier's message cannot be read. [`PHONE_WRONG_MESSAGES_MAX`] of them end the call.
    Unreadable,
    /// The carrier's message is larger than any that carries speech.
    TooLarge,
    /// The assistant says this, after what it has said before.
    Say(String),
    /// Nothing, but time has passed. Due at [`PhonePeer::poll_timeout`].
    Tick,
    /// The service is about to stop.
    Stopping,
    /// The connection broke, or the carrier closed it.
    Gone,
}

/// What goes to the carrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhoneOutput {
    /// One frame to be played.
    Audio(Vec<i16>),
    /// Asks to be told, under this number, when all audio before it was played.
    Mark(u64),
    /// What was not played is to be thrown away.
    Clear,
}

/// Somebody at a telephone. After each [`handle`](Self::handle), drain [`poll_output`](Self::poll_output) and
/// [`poll_event`](Self::poll_event), then wait no longer than [`poll_timeout`](Self::poll_timeout).
pub struct PhonePeer {
    rate: Rate,
    decoder: ToneDecoder,
    events: VecDeque<PeerEvent>,
    /// Why nothing more comes.
    over: Option<PeerEvent>,
    /// Frames on their way to the carrier.
    frames: VecDeque<Vec<i16>>,
    /// [`PhoneOutput::Clear`] is to be sent before anything else.
    clears: bool,
    playback: Playback,
    /// Audio that was sent since the last mark.
    unmarked_ms: i64,
    /// When audio was sent, or a mark came back, the last time.
    moved_at_ms: i64,
    /// When waiting frames are tried again.
    send_at_ms: Option<i64>,
    /// The line that is being spoken.
    spoken: Option<Spoken>,
    /// Keys that were pressed and are not reported yet.
    keys: String,
    /// When they will be.
    keys_at_ms: i64,
    /// When audio began to come.
    started_at_ms: Option<i64>,
    /// Samples that have come. They are added up, because a message may hold a part of a millisecond.
    samples: i64,
    wrong_messages: u32,
}

/// Where a spoken line is in all that was ever sent.
#[derive(Debug, Clone, Copy)]
struct Spoken {
    from_ms: i64,
    until_ms: i64,
}

const LOST: PeerEvent = PeerEvent::Stop { reason: EndedReason::MediaLost, fault: CallFault::Carrier };
const STOPPING: PeerEvent = PeerEvent::Stop { reason: EndedReason::Aborted, fault: CallFault::Platform };

impl PhonePeer {
    /// Nobody yet: the carrier's stream has not begun.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            decoder: ToneDecoder::new(rate),
            events: VecDeque::new(),
            over: None,
            frames: VecDeque::new(),
            clears: false,
            playback: Playback::default(),
            unmarked_ms: 0,
            moved_at_ms: 0,
            send_at_ms: None,
            spoken: None,
            keys: String::new(),
            keys_at_ms: 0,
            started_at_ms: None,
            samples: 0,
            wrong_messages: 0,
        }
    }

    /// Takes in what happened at `now_ms`. After the end it takes in nothing.
    pub fn handle(&mut self, now_ms: i64, input: PhoneInput) {
        if self.over.is_some() {
            return;
        }
        match input {
            PhoneInput::Media(event) => self.media(now_ms, event),
            PhoneInput::Unreadable => self.wrong_message(),
            PhoneInput::TooLarge => self.over = Some(LOST),
            PhoneInput::Say(text) => self.say(&text),
            PhoneInput::Tick => {
                self.give_up_on_marks(now_ms);
                self.report_keys(now_ms);
            }
            PhoneInput::Stopping => self.over = Some(STOPPING),
            PhoneInput::Gone => self.over = Some(PeerEvent::Gone),
        }
    }

    /// The next thing to send, if it may be sent by now.
    pub fn poll_output(&mut self, now_ms: i64) -> Option<PhoneOutput> {
        self.send_at_ms = None;
        if std::mem::take(&mut self.clears) {
            return Some(PhoneOutput::Clear);
        }
        if self.unmarked_ms > 0 && (self.unmarked_ms >= PHONE_MARK_MS || self.frames.is_empty()) {
            return Some(PhoneOutput::Mark(self.mark_sent(now_ms)));
        }
        if self.frames.is_empty() {
            return None;
        }
        if self.ahead_ms(now_ms) >= PHONE_AHEAD_MS {
            self.send_at_ms = Some(now_ms + PHONE_MARK_MS / 2);
            return None;
        }
        self.unmarked_ms += FRAME_MS;
        self.moved_at_ms = now_ms;
        self.frames.pop_front().map(PhoneOutput::Audio)
    }

    /// What they did, in order; at the end, again and again, that it is over.
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        self.events.pop_front().or_else(|| self.over.clone())
    }

    /// When [`PhoneInput::Tick`] and [`poll_output`](Self::poll_output) are due, if nothing comes before.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let keys = (!self.keys.is_empty()).then_some(self.keys_at_ms);
        let marks = self.spoken.map(|_| self.marks_are_late_at_ms());
        [keys, marks, self.send_at_ms].into_iter().flatten().min()
    }

    /// Why it is over, once it is.
    #[must_use]
    pub const fn over(&self) -> Option<&PeerEvent> {
        self.over.as_ref()
    }

    /// Whether the carrier's stream has begun.
    #[must_use]
    pub const fn is_started(&self) -> bool {
        self.started_at_ms.is_some()
    }

    /// Whether what the assistant said is still being spoken.
    #[must_use]
    pub const fn is_speaking(&self) -> bool {
        self.spoken.is_some()
    }

    /// When all that the assistant said will have been heard, and its last mark be back, if the carrier plays in real time.
    #[must_use]
    pub fn heard_by_ms(&self, now_ms: i64) -> i64 {
        self.playback.over_at_ms(now_ms) + self.queued_ms() + PHONE_MARK_LATE_MS
    }

    fn media(&mut self, now_ms: i64, event: MediaEvent) {
        match event {
            MediaEvent::Started { .. } => {
                self.started_at_ms.get_or_insert(now_ms);
            }
            MediaEvent::Audio(samples) => self.audio(now_ms, &samples),
            MediaEvent::Dtmf(key) => {
                // Pressing keys interrupts the assistant as speech does.
                self.interrupt(now_ms);
                self.key(now_ms, key);
            }
            MediaEvent::Played(name) => self.played(now_ms, &name),
            MediaEvent::Cleared => {}
            MediaEvent::Stopped => self.over = Some(PeerEvent::Gone),
            MediaEvent::Complaint(_) => self.wrong_message(),
        }
    }

    fn audio(&mut self, now_ms: i64, samples: &[i16]) {
        self.samples = self.samples.saturating_add(i64::try_from(samples.len()).unwrap_or(i64::MAX));
        let audio_ms = self.samples.saturating_mul(1_000) / i64::from(self.rate.hz());
        let burst = |at_ms: i64| audio_ms > (now_ms - at_ms).saturating_add(PHONE_BURST_MS);
        if self.started_at_ms.is_none_or(burst) {
            // A telephone sends in real time: this is none.
            self.over = Some(LOST);
            return;
        }
        for heard in self.decoder.hear(samples) {
            match heard {
                ToneHeard::Began => self.interrupt(now_ms),
                ToneHeard::Said { text, duration_ms } => {
                    self.events.push_back(PeerEvent::Said { text, duration_ms });
                }
                ToneHeard::Garbled { .. } => self.events.push_back(PeerEvent::Noise),
            }
        }
    }

    fn say(&mut self, text: &str) {
        let from_ms = self.playback.sent_ms() + self.queued_ms();
        let audio = ToneEncoder::speak(text, self.rate);
        self.frames.extend(audio.chunks_exact(self.rate.frame_samples()).map(<[i16]>::to_vec));
        let until_ms = self.playback.sent_ms() + self.queued_ms();
        // Lines that follow each other at once are heard as one.
        let from_ms = self.spoken.map_or(from_ms, |spoken| spoken.from_ms);
        self.spoken = Some(Spoken { from_ms, until_ms });
    }

    /// Stops the assistant, if it speaks.
    fn interrupt(&mut self, now_ms: i64) {
        let Some(Spoken { from_ms, until_ms }) = self.spoken.take() else { return };
        self.frames.clear();
        self.unmarked_ms = 0;
        self.clears = true;
        let heard_ms = (self.playback.cleared(now_ms) - from_ms).max(0);
        let whole_ms = (until_ms - from_ms).max(1);
        let heard_permille =
            u32::try_from(heard_ms.saturating_mul(1_000) / whole_ms).unwrap_or(1_000).min(1_000);
        self.events.push_back(PeerEvent::TalkedOver { heard_permille });
    }

    fn played(&mut self, now_ms: i64, name: &str) {
        if let Ok(mark) = name.parse() {
            self.playback.played(now_ms, mark);
            self.moved_at_ms = now_ms;
        }
        self.report_spoken(now_ms);
    }

    /// A carrier that gives no marks back, or has lost them, has played by now what it was sent: else the line would
    /// be spoken for ever, and no silence be heard after it.
    fn give_up_on_marks(&mut self, now_ms: i64) {
        if self.spoken.is_some() && now_ms >= self.marks_are_late_at_ms() {
            self.mark_sent(now_ms);
            self.playback.all_played(now_ms);
            self.moved_at_ms = now_ms;
            self.report_spoken(now_ms);
        }
    }

    const fn marks_are_late_at_ms(&self) -> i64 {
        self.moved_at_ms + PHONE_AHEAD_MS + PHONE_MARK_LATE_MS
    }

    fn report_spoken(&mut self, now_ms: i64) {
        if let Some(spoken) = self.spoken
            && self.frames.is_empty()
            && self.playback.heard_ms(now_ms) >= spoken.until_ms
        {
            self.spoken = None;
            self.events.push_back(PeerEvent::Spoken);
        }
    }

    fn key(&mut self, now_ms: i64, key: char) {
        self.keys.push(key);
        let is_complete = key == '#' || self.keys.len() >= PHONE_KEYS_MAX;
        self.keys_at_ms = if is_complete { now_ms } else { now_ms + PHONE_KEYS_MS };
    }

    /// Keys are one line once no more are pressed for a moment.
    fn report_keys(&mut self, now_ms: i64) {
        if !self.keys.is_empty() && now_ms >= self.keys_at_ms {
            self.events.push_back(PeerEvent::Keys(std::mem::take(&mut self.keys)));
        }
    }

    fn wrong_message(&mut self) {
        self.wrong_messages += 1;
        if self.wrong_messages >= PHONE_WRONG_MESSAGES_MAX {
            self.over = Some(LOST);
        }
    }

    /// Counts what was sent since the last mark as sent; the mark to ask for after it.
    fn mark_sent(&mut self, now_ms: i64) -> u64 {
        self.playback.sent(now_ms, std::mem::take(&mut self.unmarked_ms))
    }

    fn ahead_ms(&self, now_ms: i64) -> i64 {
        self.playback.sent_ms() - self.playback.heard_ms(now_ms) + self.unmarked_ms
    }

    fn queued_ms(&self) -> i64 {
        i64::try_from(self.frames.len()).unwrap_or(i64::MAX).saturating_mul(FRAME_MS) + self.unmarked_ms
    }
}

#[cfg(test)]
mod tests;
