//! The line of a spoken conversation as a pure state machine, to a telephone, a browser or a simulated caller: it turns
//! their messages into [`PeerEvent`]s. What is said and spoken is the [`Voice`]'s; keys, the pace of the caller's audio,
//! and the end of the call are decided here.
mod last_words;

use std::collections::VecDeque;

use crate::base::limits::{
    PHONE_BURST_MS, PHONE_DEAD_MS, PHONE_KEYS_MAX, PHONE_KEYS_MS, PHONE_WRONG_MESSAGES_MAX,
};
use crate::carriers::MediaEvent;
use crate::conversation::{CallFault, EndedReason};
use crate::live::peer::PeerEvent;
use crate::speech::audio::Rate;
use crate::speech::exchange::{Arrival, ExchangeId, SpeechFailure, SpeechService, Transmit};
pub use crate::speech::player::PlayerOutput as LineOutput;
use crate::speech::recorder::{Recorder, Segment};
use crate::speech::turn_times::TurnTimes;
use crate::speech::voice::{Voice, VoiceEvent};

/// An input of the machine.
#[derive(Debug, Clone, PartialEq)]
pub enum LineInput {
    /// A parsed message from the line.
    Media(MediaEvent),
    /// So many samples should have arrived, and are lost: the line has said so.
    Lost(usize),
    /// A message of the line that cannot be parsed. [`PHONE_WRONG_MESSAGES_MAX`] of them end the call.
    Unreadable,
    /// A message of the line that exceeds the size limit.
    TooLarge,
    /// The line's audio has another format than the one that was asked for.
    WrongFormat,
    /// The user typed a text, on a line that has a keyboard. It interrupts the assistant as speech does.
    Typed(String),
    /// Something about the call that its record should have.
    Note(String),
    /// The conversation must end: the other end breaks its rules, or the service stops.
    End(PeerEvent),
    /// The model has answered.
    Answered,
    /// A line of the assistant, to play after its earlier speech; or the rest of a line after [`LineInput::SayPart`].
    Say(String),
    /// A part of a line of the assistant, up to the end of a sentence.
    SayPart(String),
    /// Keys that the assistant presses, after its earlier speech, with the id of the request.
    Press(String, String),
    /// The assistant stops speaking, and nothing interrupts what it says later.
    Hush,
    /// Something arrived from a speech provider.
    Arrived(SpeechService, ExchangeId, Arrival),
    /// All that has arrived on the line was passed on. Due at [`AudioLine::poll_timeout`], too.
    Quiet,
    /// Time has passed. Due at [`AudioLine::poll_timeout`].
    Tick,
    /// The service is shutting down.
    Stopping,
    /// The other end closed the connection, or it broke.
    Gone,
    /// The connection of a line that says so before it closes is closed, and the line has not said so.
    Broken,
}

/// A conversation with audio: on the telephone, in a browser, or with a simulated caller. After each [`handle`](Self::handle), drain [`poll_output`](Self::poll_output),
/// [`poll_transmit`](Self::poll_transmit) and [`poll_event`](Self::poll_event), then wait no longer than
/// [`poll_timeout`](Self::poll_timeout).
pub struct AudioLine {
    rate: Rate,
    voice: Voice,
    /// If the call is recorded.
    recorder: Option<Recorder>,
    events: VecDeque<PeerEvent>,
    /// Failures of speech providers, oldest first.
    failures: Vec<SpeechFailure>,
    /// Why the call has ended.
    ended: Option<PeerEvent>,
    /// When it ended.
    ended_at_ms: Option<i64>,
    /// Pressed keys that are not reported yet.
    keys: String,
    /// When the first and the last of them were pressed.
    pressed_ms: (i64, i64),
    /// When they are reported.
    keys_at_ms: i64,
    /// When the line ends if nothing arrives: for one that sends audio all the time, once it has begun.
    dead_at_ms: Option<i64>,
    is_steady: bool,
    /// When audio from the caller began.
    started_at_ms: Option<i64>,
    /// Received samples. They are summed because a message may contain a fraction of a millisecond.
    samples: i64,
    wrong_messages: u32,
    /// Whose fault it is if the stream is not one.
    fault: CallFault,
}

const STOPPING: PeerEvent = PeerEvent::Stop { reason: EndedReason::Aborted, fault: CallFault::Platform };

impl AudioLine {
    /// A call whose media stream, of this rate, has not begun.
    #[must_use]
    pub fn new(rate: Rate, voice: Voice) -> Self {
        Self {
            rate,
            recorder: voice.is_recorded().then(|| Recorder::new(rate)),
            voice,
            events: VecDeque::new(),
            failures: Vec::new(),
            ended: None,
            ended_at_ms: None,
            keys: String::new(),
            pressed_ms: (0, 0),
            keys_at_ms: 0,
            dead_at_ms: None,
            is_steady: false,
            started_at_ms: None,
            samples: 0,
            wrong_messages: 0,
            fault: CallFault::Carrier,
        }
    }

    /// The same of a line that sends audio all the time, silence too: if nothing arrives for [`PHONE_DEAD_MS`], it is lost.
    #[must_use]
    pub const fn steady(mut self) -> Self {
        self.is_steady = true;
        self
    }

    /// The same with somebody else at fault if the stream breaks its rules.
    #[must_use]
    pub const fn with_fault(mut self, fault: CallFault) -> Self {
        self.fault = fault;
        self
    }

    /// Handles an input at `now_ms`. Inputs after the end are ignored.
    pub fn handle(&mut self, now_ms: i64, input: LineInput) {
        if self.ended_at_ms.is_some() {
            return;
        }
        if matches!(input, LineInput::Media(_) | LineInput::Unreadable) {
            self.dead_at_ms = self.is_steady.then_some(now_ms + PHONE_DEAD_MS);
        }
        match input {
            LineInput::Media(event) => self.media(now_ms, event),
            LineInput::Lost(samples) => {
                if self.arrived(now_ms, samples) {
                    let until = self.voice.hear(now_ms, &vec![0; samples]);
                    if let Some(recorder) = &mut self.recorder {
                        recorder.lose(until, samples);
                    }
                }
            }
            LineInput::Unreadable => self.wrong_message(),
            LineInput::TooLarge | LineInput::WrongFormat => self.ended = Some(self.lost()),
            LineInput::Typed(text) => {
                self.voice.key_pressed(now_ms);
                self.take_voice_events();
                self.events.push_back(PeerEvent::Said { text, duration_ms: 0, silence_ms: 0 });
            }
            LineInput::Note(text) => self.events.push_back(PeerEvent::Note(text)),
            LineInput::End(end) => self.ended = Some(end),
            LineInput::Answered => self.voice.model_answered(now_ms),
            LineInput::Say(text) => self.voice.say(now_ms, &text),
            LineInput::SayPart(text) => self.voice.say_part(now_ms, &text),
            LineInput::Press(id, keys) => self.voice.press_keys(now_ms, id, keys),
            LineInput::Hush => self.voice.hush(now_ms),
            LineInput::Arrived(service, id, arrival) => self.voice.arrived(now_ms, service, id, arrival),
            LineInput::Tick => {
                self.voice.tick(now_ms);
                self.report_keys(now_ms);
            }
            LineInput::Quiet => {
                if self.dead_at_ms.is_some_and(|at_ms| now_ms >= at_ms) {
                    self.ended = Some(self.lost());
                }
            }
            LineInput::Stopping => self.ended = Some(STOPPING),
            LineInput::Gone => self.ended = Some(PeerEvent::Gone),
            LineInput::Broken => self.ended = Some(PeerEvent::Broke),
        }
        self.take_voice_events();
        if self.ended.is_some() {
            self.end(now_ms, now_ms);
        }
    }

    /// The next output to the carrier that is due.
    pub fn poll_output(&mut self, now_ms: i64) -> Option<LineOutput> {
        self.voice.poll_output(now_ms)
    }

    /// The next thing to transmit to a speech provider.
    pub fn poll_transmit(&mut self) -> Option<(SpeechService, Transmit)> {
        self.voice.poll_transmit()
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

    /// When [`LineInput::Tick`] and [`poll_output`](Self::poll_output) are due, without earlier inputs.
    #[must_use]
    pub fn poll_timeout(&self) -> Option<i64> {
        let keys = (!self.keys.is_empty()).then_some(self.keys_at_ms);
        [keys, self.dead_at_ms, self.voice.poll_timeout()].into_iter().flatten().min()
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
        self.voice.is_speaking()
    }

    /// Whether more of the open line is spoken; it may have been cut.
    #[must_use]
    pub fn speaks_more(&self) -> bool {
        self.ended.is_none() && !self.voice.is_open_line_cut()
    }

    /// How much of each line being spoken was heard by `at_ms`, in thousandths. A line that is over is among them until its
    /// event is taken: who reads the events knows of no other order.
    #[must_use]
    pub fn heard_permille(&self, at_ms: i64) -> Vec<u32> {
        let over = self.events.iter().filter_map(|event| match event {
            PeerEvent::Spoken { .. } => Some(1_000),
            PeerEvent::BrokeOff { heard_permille } | PeerEvent::Interrupted { heard_permille } => {
                Some(*heard_permille)
            }
            _ => None,
        });
        over.chain(self.voice.heard_permille(at_ms)).collect()
    }

    /// Whether audio of the assistant's speech is still to come, or playback is paused.
    pub fn awaits_audio(&mut self, now_ms: i64) -> bool {
        self.voice.awaits_audio(now_ms)
    }

    /// When all speech will have been played and its last mark returned, if the carrier plays in real time.
    #[must_use]
    pub fn playback_ends_at_ms(&self, now_ms: i64) -> i64 {
        self.voice.ends_at_ms(now_ms)
    }

    /// What the speech providers bill so far: see [`Voice::billed`].
    #[must_use]
    pub fn billed(&self) -> (i64, Vec<u64>) {
        self.voice.billed()
    }

    /// The conversation begins, and with it the recording, in segments of this duration.
    pub fn begin_recording(&mut self, now_ms: i64, segment_ms: i64) {
        if let Some(recorder) = &mut self.recorder {
            recorder.begin(now_ms, segment_ms);
        }
    }

    /// The next segment of the recording that is complete at `now_ms`; with `is_over`, the rest of it.
    pub fn take_segment(&mut self, now_ms: i64, is_over: bool) -> Option<Segment> {
        let recorder = self.recorder.as_mut()?;
        let heard_ms = self.ended_at_ms.map_or(now_ms, |ended_at_ms| ended_at_ms.min(now_ms));
        for frame in self.voice.take_heard(heard_ms) {
            recorder.played(&frame);
        }
        if is_over {
            recorder.finish(heard_ms)
        } else {
            recorder.take_segment(now_ms, self.voice.awaited_ms())
        }
    }

    /// The caller's turns so far, on the clock of [`handle`](Self::handle).
    #[must_use]
    pub fn turns(&self) -> Vec<TurnTimes> {
        self.voice.turns()
    }

    /// The caller's latest turn.
    #[must_use]
    pub fn last_turn(&self) -> Option<TurnTimes> {
        self.voice.last_turn()
    }

    /// The words of the caller's present turn, if they changed since the last call; empty once it is over.
    pub fn take_words_so_far(&mut self) -> Option<&str> {
        self.voice.take_words_so_far()
    }

    /// The failures of speech providers since the last call.
    pub fn take_failures(&mut self) -> Vec<SpeechFailure> {
        std::mem::take(&mut self.failures)
    }

    fn media(&mut self, now_ms: i64, event: MediaEvent) {
        match event {
            MediaEvent::Started { .. } => {
                self.started_at_ms.get_or_insert(now_ms);
            }
            MediaEvent::Audio(samples) => self.audio(now_ms, &samples),
            MediaEvent::Dtmf(key) => {
                // Pressed keys interrupt the assistant as speech does.
                self.voice.key_pressed(now_ms);
                self.key(now_ms, key);
            }
            MediaEvent::Played(name) => {
                if let Ok(mark) = name.parse() {
                    self.voice.played(now_ms, mark);
                }
            }
            MediaEvent::Cleared => {}
            MediaEvent::Stopped => self.ended = Some(PeerEvent::Gone),
            MediaEvent::Complaint(_) => self.wrong_message(),
        }
    }

    fn audio(&mut self, now_ms: i64, samples: &[i16]) {
        if self.arrived(now_ms, samples.len()) {
            let until = self.voice.hear(now_ms, samples);
            if let Some(recorder) = &mut self.recorder {
                recorder.hear(until, samples);
            }
        }
    }

    /// Counts audio, and ends a call whose audio runs ahead: telephones send in real time. Whether it goes on.
    fn arrived(&mut self, now_ms: i64, samples: usize) -> bool {
        self.samples = self.samples.saturating_add(i64::try_from(samples).unwrap_or(i64::MAX));
        let audio_ms = self.samples.saturating_mul(1_000) / i64::from(self.rate.hz());
        let burst = |at_ms: i64| audio_ms > (now_ms - at_ms).saturating_add(PHONE_BURST_MS);
        let is_too_fast = self.started_at_ms.is_none_or(burst);
        if is_too_fast {
            self.ended = Some(self.lost());
        }
        !is_too_fast
    }

    fn take_voice_events(&mut self) {
        while let Some(event) = self.voice.poll_event() {
            match event {
                VoiceEvent::Said { text, duration_ms, silence_ms } => {
                    self.events.push_back(PeerEvent::Said { text, duration_ms, silence_ms });
                }
                VoiceEvent::LineBegan { at_ms } => self.events.push_back(PeerEvent::LineBegan { at_ms }),
                VoiceEvent::Cut(heard) => self.events.extend(PeerEvent::lines_cut(&heard)),
                VoiceEvent::BrokeOff { heard_permille } => {
                    self.events.push_back(PeerEvent::BrokeOff { heard_permille });
                }
                VoiceEvent::VoiceBegan => self.events.push_back(PeerEvent::VoiceBegan),
                VoiceEvent::VoiceEnded => self.events.push_back(PeerEvent::VoiceEnded),
                VoiceEvent::Paused => self.events.push_back(PeerEvent::Paused),
                VoiceEvent::Resumed => self.events.push_back(PeerEvent::Resumed),
                VoiceEvent::Spoken { until_ms } => self.events.push_back(PeerEvent::Spoken { until_ms }),
                VoiceEvent::KeysPressed { id, pressed } => {
                    self.events.push_back(PeerEvent::KeysPressed { id, pressed });
                }
                VoiceEvent::Noise => self.events.push_back(PeerEvent::Noise),
                VoiceEvent::NotUnderstood => self.events.push_back(PeerEvent::NotUnderstood),
                VoiceEvent::Failed(failure) => {
                    self.failures.push(failure);
                    // So that the failure is taken. It is no activity of the caller.
                    self.events.push_back(PeerEvent::Nothing);
                }
                VoiceEvent::ProbablySaid(text) => self.events.push_back(PeerEvent::ProbablySaid(text)),
                VoiceEvent::WentOn => self.events.push_back(PeerEvent::WentOn),
            }
        }
    }

    fn key(&mut self, now_ms: i64, key: char) {
        let first_ms = if self.keys.is_empty() { now_ms } else { self.pressed_ms.0 };
        self.pressed_ms = (first_ms, now_ms);
        self.keys.push(key);
        let is_complete = key == '#' || self.keys.len() >= PHONE_KEYS_MAX;
        self.keys_at_ms = if is_complete { now_ms } else { now_ms + PHONE_KEYS_MS };
    }

    /// Reports pressed keys as one line after a short pause without keys.
    fn report_keys(&mut self, now_ms: i64) {
        if !self.keys.is_empty() && now_ms >= self.keys_at_ms {
            let (first_ms, last_ms) = self.pressed_ms;
            self.events.push_back(PeerEvent::Keys {
                keys: std::mem::take(&mut self.keys),
                duration_ms: last_ms - first_ms,
                silence_ms: now_ms - last_ms,
            });
        }
    }

    fn wrong_message(&mut self) {
        self.wrong_messages += 1;
        if self.wrong_messages >= PHONE_WRONG_MESSAGES_MAX {
            self.ended = Some(self.lost());
        }
    }

    const fn lost(&self) -> PeerEvent {
        PeerEvent::Stop { reason: EndedReason::MediaLost, fault: self.fault }
    }
}

#[cfg(test)]
mod tests;
