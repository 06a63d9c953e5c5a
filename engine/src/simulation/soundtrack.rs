//! The recording of a voice run, computed from what was spoken: segment by segment, so that memory is bounded.
use super::conditions::telephone;
use super::voice_line::{RATE, SILENCE, Utterance, VoiceLine, frame_of};
use crate::conversation::Party;
use crate::speech::audio::FRAME_MS;
use crate::speech::player::HeardFrame;
use crate::speech::recorder::{Recorder, Segment};
use crate::speech::tone::ToneEncoder;

/// The audio of a voice run, in segments.
pub struct Soundtrack<'a> {
    line: &'a VoiceLine,
    recorder: Recorder,
    caller: Channel<'a>,
    assistant: Channel<'a>,
    now_ms: i64,
    ends_ms: i64,
}

impl VoiceLine {
    /// The recording of a conversation of this duration.
    #[must_use]
    pub fn soundtrack(&self, duration_ms: i64, segment_ms: i64) -> Soundtrack<'_> {
        let mut recorder = Recorder::new(RATE);
        recorder.begin(0, segment_ms);
        let channel = |speaker| Channel {
            utterances: self.utterances.iter().filter(|one| one.speaker == speaker).collect(),
            place: 0,
            samples: Vec::new(),
        };
        let (caller, assistant) = (channel(Party::User), channel(Party::Assistant));
        Soundtrack { line: self, recorder, caller, assistant, now_ms: 0, ends_ms: duration_ms }
    }
}

impl Iterator for Soundtrack<'_> {
    type Item = Segment;

    fn next(&mut self) -> Option<Segment> {
        while self.now_ms < self.ends_ms {
            if let Some(segment) = self.recorder.take_segment(self.now_ms, None) {
                return Some(segment);
            }
            let at_ms = self.now_ms;
            self.now_ms += FRAME_MS;
            let until = RATE.samples_in(self.now_ms);
            let spoken = self.caller.frame(at_ms);
            if self.line.line.loses(at_ms) {
                self.recorder.lose(until, SILENCE.len());
            } else if spoken.is_some() || self.line.line.has_noise() {
                self.recorder.hear(until, &self.line.line.carried(at_ms, spoken.unwrap_or(&SILENCE)));
            } else {
                self.recorder.hear(until, &SILENCE);
            }
            if let Some(frame) = self.assistant.frame(at_ms) {
                let samples = telephone(frame);
                let until_ms = self.now_ms;
                self.recorder.played(&HeardFrame { until_ms, samples });
            }
        }
        self.recorder.finish(self.ends_ms)
    }
}

/// What one side says, one utterance in memory at a time.
struct Channel<'a> {
    utterances: Vec<&'a Utterance>,
    place: usize,
    samples: Vec<i16>,
}

impl Channel<'_> {
    fn frame(&mut self, at_ms: i64) -> Option<&[i16]> {
        while let Some(utterance) = self.utterances.get(self.place).filter(|one| one.until_ms <= at_ms) {
            debug_assert!(utterance.from_ms <= at_ms);
            self.place += 1;
            self.samples.clear();
        }
        let utterance = self.utterances.get(self.place).filter(|one| one.from_ms <= at_ms)?;
        if self.samples.is_empty() {
            self.samples = ToneEncoder::speak(&utterance.text, RATE);
        }
        frame_of(&self.samples, at_ms - utterance.from_ms)
    }
}
