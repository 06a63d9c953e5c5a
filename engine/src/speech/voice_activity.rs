//! Voice activity detection: when a person speaks, and for how long.
use std::collections::VecDeque;

use earshot::Detector;

use super::audio::Rate;
use super::resample::Resampler;

/// The detector's rate and the length of its frames in samples.
const DETECTOR_HZ: u32 = 16_000;
const FRAME_SAMPLES: usize = 256;
/// Duration of one of its frames.
const FRAME_MS: i64 = FRAME_SAMPLES as i64 * 1_000 / DETECTOR_HZ as i64;

/// A score from here on is voice. Silence scores up to a quarter, speech on a telephone line 0.8 to 0.95. Half, which suits
/// other detectors, takes the quiet hiss of a line that opens for a voice.
const VOICE_SCORE: f32 = 0.6;
/// A score from here on continues voice: words have quiet parts.
const STILL_VOICE_SCORE: f32 = 0.45;
/// Voice is this much louder than the quietest frame before it, as a factor of the energy (4 dB). Noise that stays the same
/// is not, whatever its score.
const VOICE_ABOVE_FLOOR: u64 = 5;
const FLOOR_DIVISOR: u64 = 2;
/// Frames in which the quietest is found: 2 s. Speech has a pause or a quiet consonant within that time.
const FLOOR_FRAMES: u64 = 125;
/// The beginning of speech is heard before the detector is sure of it: the sound of so many frames before belongs to it, if
/// it is no more quiet than this, as a divisor of the energy (30 dB).
const ONSET_FRAMES: usize = 10;
const ONSET_DIVISOR: u64 = 1_000;
/// Sound that is this much more quiet than the loudest of the speech is its echo in the detector, as a divisor of the energy
/// (40 dB).
const SILENCE_DIVISOR: u64 = 10_000;
/// This much voice without interruption is speech; a click is not.
pub const SPEECH_BEGINS_MS: i64 = 64;
/// This much silence ends speech; a pause between words does not.
pub const SPEECH_ENDS_MS: i64 = 250;
/// The detector's score depends on about this many frames before.
const CONTEXT_FRAMES: usize = 8;
/// This many frames at the floor are still scored: by then the resampler has returned all that was louder.
const SCORED_AT_FLOOR: usize = 2;
/// After this much silence the detector has forgotten what was before.
const FORGETS_MS: i64 = 1_000;

/// The beginning or end of speech. Positions are samples of the input since its beginning.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum VoiceEvent {
    /// Speech began: it has lasted [`SPEECH_BEGINS_MS`].
    SpeechBegan {
        /// The first sample of its sound.
        at: u64,
    },
    /// Speech ended: it has been silent for [`SPEECH_ENDS_MS`].
    SpeechEnded {
        /// The end of the last voice.
        at: u64,
    },
}

/// Detects speech in a stream of audio.
///
/// The state is carried from piece to piece, so any division of the audio gives the same events. A decision is made for
/// frames of 16 ms, from their sound and the sound before. Callers that pause the assistant at the first sign of voice and
/// stop it when that sign was no cough read [`voiced_ms`](Self::voiced_ms).
///
/// Speech begins where its sound does. On a line with noise its end is placed up to 60 ms late, because the detector's frames
/// overlap. Noise and tones that begin at
/// once can be taken for speech for 2 s, until they are known to stay the same; pressed keys and music can be, too.
///
/// ```
/// use sidetone_engine::speech::audio::Rate;
/// use sidetone_engine::speech::voice_activity::VoiceActivity;
///
/// let mut voice = VoiceActivity::new(Rate::Khz8);
/// assert!(voice.hear(&[0; 8_000]).is_empty());
/// assert_eq!(voice.voiced_ms(), 0);
/// ```
pub struct VoiceActivity {
    rate: Rate,
    /// Samples that wait for a full frame.
    waiting: Vec<i16>,
    resampler: Resampler,
    /// What the resampler has returned and the detector has not heard.
    resampled: Vec<i16>,
    detector: Box<Detector>,
    /// The energy above the floor of frames whose score is not known yet; 0 at the floor. The resampler delays them.
    unscored: VecDeque<u64>,
    /// The same of the last frames that were decided.
    decided: VecDeque<u64>,
    /// Scores that come next and belong to frames that were decided without them.
    surplus: usize,
    /// The end of the last decided frame, in samples at the detector's rate.
    position: u64,
    /// The number of frames heard.
    frames: u64,
    /// Of the last [`FLOOR_FRAMES`], those that are quieter than all after them: number and energy. The first is the quietest.
    quietest: VecDeque<(u64, u64)>,
    /// Frames at the floor since the last louder one.
    at_floor: usize,
    /// The last frames that were neither resampled nor scored: most of a conversation is one side's silence.
    skipped: VecDeque<Vec<i16>>,
    /// The speech or the beginning of it, if there is any.
    voice: Option<Voice>,
}

/// Voice that is speech, or may become it. Positions are samples at the detector's rate.
#[derive(Debug, Clone, Copy)]
struct Voice {
    from: u64,
    /// The end of the last frame with voice.
    until: u64,
    /// Voice since `from`, without pauses.
    voiced_ms: i64,
    /// The energy of its loudest frame.
    loudest: u64,
    is_speech: bool,
}

impl VoiceActivity {
    /// A detector at the beginning of audio of this rate.
    #[must_use]
    pub fn new(rate: Rate) -> Self {
        Self {
            rate,
            waiting: Vec::new(),
            resampler: Resampler::new(rate.hz(), DETECTOR_HZ),
            resampled: Vec::new(),
            detector: Box::default(),
            unscored: VecDeque::new(),
            decided: VecDeque::new(),
            surplus: 0,
            position: 0,
            frames: 0,
            quietest: VecDeque::new(),
            at_floor: 0,
            skipped: VecDeque::new(),
            voice: None,
        }
    }

    /// Hears the next samples.
    pub fn hear(&mut self, samples: &[i16]) -> Vec<VoiceEvent> {
        self.waiting.extend(samples);
        let mut events = Vec::new();
        let mut waiting = std::mem::take(&mut self.waiting);
        let mut frames = waiting.chunks_exact(FRAME_SAMPLES * self.rate.hz() as usize / DETECTOR_HZ as usize);
        for frame in &mut frames {
            self.frame(frame, &mut events);
        }
        let rest = frames.remainder().len();
        waiting.drain(..waiting.len() - rest);
        self.waiting = waiting;
        events
    }

    /// This many samples of the input were lost. They count as silence.
    pub fn gap(&mut self, samples: u64) -> Vec<VoiceEvent> {
        let heard = samples.min(self.rate.hz() as u64 * FORGETS_MS as u64 / 1_000);
        let events = self.hear(&vec![0; heard as usize]);
        // The rest of a long gap changes nothing but the position.
        self.position += (samples - heard) * u64::from(DETECTOR_HZ) / u64::from(self.rate.hz());
        events
    }

    /// Whether the person is speaking: between [`VoiceEvent::SpeechBegan`] and [`VoiceEvent::SpeechEnded`].
    #[must_use]
    pub fn is_speech(&self) -> bool {
        self.voice.is_some_and(|voice| voice.is_speech)
    }

    /// How much voice the current speech has had so far, without its pauses; 0 while nobody speaks.
    #[must_use]
    pub fn voiced_ms(&self) -> i64 {
        self.voice.filter(|voice| voice.is_speech).map_or(0, |voice| voice.voiced_ms)
    }

    /// The end of the last voice of the current speech, as a position in the input.
    #[must_use]
    pub fn voiced_until(&self) -> Option<u64> {
        self.voice.filter(|voice| voice.is_speech).map(|voice| self.in_input(voice.until))
    }

    fn frame(&mut self, frame: &[i16], events: &mut Vec<VoiceEvent>) {
        let above = self.above_floor(frame);
        self.at_floor = if above > 0 { 0 } else { self.at_floor + 1 };
        if self.at_floor <= SCORED_AT_FLOOR {
            for earlier in std::mem::take(&mut self.skipped) {
                self.surplus += 1;
                self.detect(&earlier, events);
            }
            self.unscored.push_back(above);
            self.detect(frame, events);
            return;
        }
        for _ in 0..self.unscored.len() {
            self.surplus += 1;
            events.extend(self.decide(0.0, 0));
        }
        self.unscored.clear();
        events.extend(self.decide(0.0, 0));
        let is_full = self.skipped.len() == CONTEXT_FRAMES;
        let mut kept = if is_full { self.skipped.pop_front() } else { None }.unwrap_or_default();
        kept.clear();
        kept.extend_from_slice(frame);
        self.skipped.push_back(kept);
    }

    /// Resamples a frame, and scores what is complete.
    fn detect(&mut self, frame: &[i16], events: &mut Vec<VoiceEvent>) {
        self.resampled.extend(self.resampler.push(frame));
        let mut resampled = std::mem::take(&mut self.resampled);
        let (frames, rest) = resampled.as_chunks::<FRAME_SAMPLES>();
        let rest = rest.len();
        for frame in frames {
            let score = self.detector.predict_i16(frame);
            if self.surplus > 0 {
                self.surplus -= 1;
                continue;
            }
            let above = self.unscored.pop_front().unwrap_or(0);
            events.extend(self.decide(if above > 0 { score } else { 0.0 }, above));
        }
        resampled.drain(..resampled.len() - rest);
        self.resampled = resampled;
    }

    /// The energy of a frame that is louder than the quietest of the last ones; 0 of others.
    fn above_floor(&mut self, frame: &[i16]) -> u64 {
        // Squares of 16 bits fit into 32, so that several are made at once.
        let energy = frame.iter().map(|sample| u64::from(i32::from(*sample).pow(2).unsigned_abs())).sum();
        while self.quietest.pop_back_if(|(_, louder)| *louder >= energy).is_some() {}
        self.quietest.push_back((self.frames, energy));
        self.frames += 1;
        self.quietest.pop_front_if(|(number, _)| *number + FLOOR_FRAMES < self.frames);
        let floor = self.quietest.front().map_or(0, |(_, quietest)| *quietest);
        // Audio may begin with voice, whose quietest frame is not known yet.
        let is_above = self.frames < FLOOR_FRAMES || energy * FLOOR_DIVISOR > floor * VOICE_ABOVE_FLOOR;
        if is_above { energy.max(1) } else { 0 }
    }

    /// Takes the score of the next frame.
    fn decide(&mut self, score: f32, above: u64) -> Option<VoiceEvent> {
        let begin = self.position;
        self.position += FRAME_SAMPLES as u64;
        let onset = self.decided.iter().rev().take_while(|before| **before > above / ONSET_DIVISOR).count();
        if self.decided.len() == ONSET_FRAMES {
            self.decided.pop_front();
        }
        self.decided.push_back(above);
        let Some(mut voice) = self.voice.take() else {
            let from = begin.saturating_sub((onset * FRAME_SAMPLES) as u64);
            let (until, voiced_ms) = (self.position, FRAME_MS);
            let first = Voice { from, until, voiced_ms, loudest: above, is_speech: false };
            self.voice = (score >= VOICE_SCORE).then_some(first);
            return None;
        };
        if score >= VOICE_SCORE && above > voice.loudest / SILENCE_DIVISOR {
            voice.loudest = voice.loudest.max(above);
            voice.until = self.position;
            voice.voiced_ms += FRAME_MS;
            let begins = !voice.is_speech && voice.voiced_ms >= SPEECH_BEGINS_MS;
            voice.is_speech |= begins;
            self.voice = Some(voice);
            return begins.then(|| VoiceEvent::SpeechBegan { at: self.in_input(voice.from) });
        }
        let is_still_voice = score >= STILL_VOICE_SCORE;
        if !voice.is_speech && !is_still_voice {
            return None;
        }
        let silent_ms = (self.position - voice.until) as i64 * 1_000 / i64::from(DETECTOR_HZ);
        if !is_still_voice && silent_ms >= SPEECH_ENDS_MS {
            return Some(VoiceEvent::SpeechEnded { at: self.in_input(voice.until) });
        }
        self.voice = Some(voice);
        None
    }

    /// Converts a position at the detector's rate.
    fn in_input(&self, position: u64) -> u64 {
        position * u64::from(self.rate.hz()) / u64::from(DETECTOR_HZ)
    }
}

#[cfg(test)]
mod tests;
