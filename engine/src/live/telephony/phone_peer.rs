//! The audio of a telephone call as a pure state machine: it turns the assistant's speech into frames, and the
//! carrier's messages into [`PeerEvent`]s.
//!
//! Speech is sent ahead of time, up to [`PHONE_AHEAD_MS`], followed by marks, so that the machine knows how much of it
//! was played. Callers can interrupt the assistant: speech that was not played is then discarded.
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

/// An input of the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum PhoneInput {
    /// A parsed message from the carrier.
    Media(MediaEvent),
    /// A message from the carrier that cannot be parsed. [`PHONE_WRONG_MESSAGES_MAX`] of them end the call.
    Unreadable,
    /// A message from the carrier that exceeds the size limit.
    TooLarge,
    /// Speech of the assistant, to play after its earlier speech.
    Say(String),
    /// Time has passed. Due at [`PhonePeer::poll_timeout`].
    Tick,
    /// The service is shutting down.
    Stopping,
    /// The connection broke, or the carrier closed it.
    Gone,
}

/// An output to the carrier.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum PhoneOutput {
    /// One frame to play.
    Audio(Vec<i16>),
    /// Requests a mark with this number: the carrier returns it when all earlier audio was played.
    Mark(u64),
    /// Discards audio that was not played.
    Clear,
}

/// The audio of one telephone call. After each [`handle`](Self::handle), drain [`poll_output`](Self::poll_output) and
/// [`poll_event`](Self::poll_event), then wait no longer than [`poll_timeout`](Self::poll_timeout).
pub struct PhonePeer {
    rate: Rate,
    decoder: ToneDecoder,
    events: VecDeque<PeerEvent>,
    /// Why the call has ended.
    ended: Option<PeerEvent>,
    /// When it ended.
    ended_at_ms: Option<i64>,
    /// Frames waiting to be sent.
    frames: VecDeque<Vec<i16>>,
    /// Whether [`PhoneOutput::Clear`] must be sent before anything else.
    must_clear: bool,
    playback: Playback,
    /// Audio sent since the last mark.
    unmarked_ms: i64,
    /// When audio was last sent, or a mark last returned.
    progress_at_ms: i64,
    /// When waiting frames are sent next.
    send_at_ms: Option<i64>,
    /// The lines being spoken, in their order.
    lines: VecDeque<SpokenLine>,
    /// Pressed keys that are not reported yet.
    keys: String,
    /// When they are reported.
    keys_at_ms: i64,
    /// When audio from the caller began.
    started_at_ms: Option<i64>,
    /// Received samples. They are summed because a message may contain a fraction of a millisecond.
    samples: i64,
    wrong_messages: u32,
}

/// The position of a spoken line within all audio sent.
#[derive(Debug, Clone, Copy)]
struct SpokenLine {
    from_ms: i64,
    until_ms: i64,
}

impl SpokenLine {
    /// The part of the line that was heard when `heard_ms` of all audio were, in thousandths.
    fn heard_permille(self, heard_ms: i64) -> u32 {
        let whole_ms = (self.until_ms - self.from_ms).max(1);
        let heard_ms = (heard_ms - self.from_ms).max(0);
        u32::try_from(heard_ms.saturating_mul(1_000) / whole_ms).unwrap_or(1_000).min(1_000)
    }
}

const LOST: PeerEvent = PeerEvent::Stop { reason: EndedReason::MediaLost, fault: CallFault::Carrier };
const STOPPING: PeerEvent = PeerEvent::Stop { reason: EndedReason::Aborted, fault: CallFault::Platform };

impl PhonePeer {
    /// A call whose media stream has not begun.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            decoder: ToneDecoder::new(rate),
            events: VecDeque::new(),
            ended: None,
            ended_at_ms: None,
            frames: VecDeque::new(),
            must_clear: false,
            playback: Playback::default(),
            unmarked_ms: 0,
            progress_at_ms: 0,
            send_at_ms: None,
            lines: VecDeque::new(),
            keys: String::new(),
            keys_at_ms: 0,
            started_at_ms: None,
            samples: 0,
            wrong_messages: 0,
        }
    }

    /// Handles an input at `now_ms`. Inputs after the end are ignored.
    pub fn handle(&mut self, now_ms: i64, input: PhoneInput) {
        if self.ended.is_some() {
            return;
        }
        match input {
            PhoneInput::Media(event) => self.media(now_ms, event),
            PhoneInput::Unreadable => self.wrong_message(),
            PhoneInput::TooLarge => self.ended = Some(LOST),
            PhoneInput::Say(text) => self.say(&text),
            PhoneInput::Tick => {
                self.expire_marks(now_ms);
                self.report_keys(now_ms);
            }
            PhoneInput::Stopping => self.ended = Some(STOPPING),
            PhoneInput::Gone => self.ended = Some(PeerEvent::Gone),
        }
        if self.ended.is_some() {
            self.ended_at_ms = Some(now_ms);
        }
    }

    /// The next output that is due.
    pub fn poll_output(&mut self, now_ms: i64) -> Option<PhoneOutput> {
        self.send_at_ms = None;
        if std::mem::take(&mut self.must_clear) {
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
        self.progress_at_ms = now_ms;
        self.frames.pop_front().map(PhoneOutput::Audio)
    }

    /// The next event, in order; after the end, always the final event.
    pub fn poll_event(&mut self) -> Option<PeerEvent> {
        self.events.pop_front().or_else(|| self.ended.clone())
    }

    /// Whether an event waits for [`poll_event`](Self::poll_event), other than the end.
    #[must_use]
    pub fn has_events(&self) -> bool {
        !self.events.is_empty()
    }

    /// When [`PhoneInput::Tick`] and [`poll_output`](Self::poll_output) are due, without earlier inputs.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let keys = (!self.keys.is_empty()).then_some(self.keys_at_ms);
        let marks = self.is_speaking().then(|| self.marks_are_late_at_ms());
        [keys, marks, self.send_at_ms].into_iter().flatten().min()
    }

    /// Why the call has ended, once it has.
    #[must_use]
    pub const fn ended(&self) -> Option<&PeerEvent> {
        self.ended.as_ref()
    }

    /// When the call has ended, once it has.
    #[must_use]
    pub const fn ended_at_ms(&self) -> Option<i64> {
        self.ended_at_ms
    }

    /// Whether the media stream has begun.
    #[must_use]
    pub const fn is_started(&self) -> bool {
        self.started_at_ms.is_some()
    }

    /// Whether the assistant's speech is still being played.
    #[must_use]
    pub fn is_speaking(&self) -> bool {
        !self.lines.is_empty()
    }

    /// How much of each line being spoken was heard by `at_ms`, in thousandths.
    #[must_use]
    pub fn heard_permille(&self, at_ms: i64) -> Vec<u32> {
        let heard_ms = self.playback.heard_ms(at_ms);
        self.lines.iter().map(|line| line.heard_permille(heard_ms)).collect()
    }

    /// When all speech will have been played and its last mark returned, if the carrier plays in real time.
    #[must_use]
    pub fn playback_ends_at_ms(&self, now_ms: i64) -> i64 {
        self.playback.over_at_ms(now_ms) + self.queued_ms() + PHONE_MARK_LATE_MS
    }

    fn media(&mut self, now_ms: i64, event: MediaEvent) {
        match event {
            MediaEvent::Started { .. } => {
                self.started_at_ms.get_or_insert(now_ms);
            }
            MediaEvent::Audio(samples) => self.audio(now_ms, &samples),
            MediaEvent::Dtmf(key) => {
                // Pressed keys interrupt the assistant as speech does.
                self.interrupt(now_ms);
                self.key(now_ms, key);
            }
            MediaEvent::Played(name) => self.played(now_ms, &name),
            MediaEvent::Cleared => {}
            MediaEvent::Stopped => self.ended = Some(PeerEvent::Gone),
            MediaEvent::Complaint(_) => self.wrong_message(),
        }
    }

    fn audio(&mut self, now_ms: i64, samples: &[i16]) {
        self.samples = self.samples.saturating_add(i64::try_from(samples.len()).unwrap_or(i64::MAX));
        let audio_ms = self.samples.saturating_mul(1_000) / i64::from(self.rate.hz());
        let burst = |at_ms: i64| audio_ms > (now_ms - at_ms).saturating_add(PHONE_BURST_MS);
        if self.started_at_ms.is_none_or(burst) {
            // Telephones send in real time; faster audio is a protocol error.
            self.ended = Some(LOST);
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
        self.lines.push_back(SpokenLine { from_ms, until_ms });
    }

    /// Stops the assistant if it speaks.
    fn interrupt(&mut self, now_ms: i64) {
        if !self.is_speaking() {
            return;
        }
        let heard_permille = self.heard_permille(now_ms);
        self.lines.clear();
        self.frames.clear();
        self.unmarked_ms = 0;
        self.must_clear = true;
        self.playback.cleared(now_ms);
        self.events.extend(PeerEvent::lines_cut(&heard_permille));
    }

    fn played(&mut self, now_ms: i64, name: &str) {
        if let Ok(mark) = name.parse() {
            self.playback.played(now_ms, mark);
            self.progress_at_ms = now_ms;
        }
        self.report_spoken(now_ms);
    }

    /// Treats all sent audio as played when the carrier returns no marks, or has lost them: otherwise the line would
    /// never end, and silence after it would not be detected.
    fn expire_marks(&mut self, now_ms: i64) {
        if self.is_speaking() && now_ms >= self.marks_are_late_at_ms() {
            self.mark_sent(now_ms);
            self.playback.all_played(now_ms);
            self.progress_at_ms = now_ms;
            self.report_spoken(now_ms);
        }
    }

    const fn marks_are_late_at_ms(&self) -> i64 {
        self.progress_at_ms + PHONE_AHEAD_MS + PHONE_MARK_LATE_MS
    }

    fn report_spoken(&mut self, now_ms: i64) {
        let heard_ms = self.playback.heard_ms(now_ms);
        while self.lines.front().is_some_and(|line| line.until_ms <= heard_ms) {
            self.lines.pop_front();
            self.events.push_back(PeerEvent::Spoken);
        }
    }

    fn key(&mut self, now_ms: i64, key: char) {
        self.keys.push(key);
        let is_complete = key == '#' || self.keys.len() >= PHONE_KEYS_MAX;
        self.keys_at_ms = if is_complete { now_ms } else { now_ms + PHONE_KEYS_MS };
    }

    /// Reports pressed keys as one line after a short pause without keys.
    fn report_keys(&mut self, now_ms: i64) {
        if !self.keys.is_empty() && now_ms >= self.keys_at_ms {
            self.events.push_back(PeerEvent::Keys(std::mem::take(&mut self.keys)));
        }
    }

    fn wrong_message(&mut self) {
        self.wrong_messages += 1;
        if self.wrong_messages >= PHONE_WRONG_MESSAGES_MAX {
            self.ended = Some(LOST);
        }
    }

    /// Moves the audio since the last mark to the sent total, and returns the mark to request.
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
