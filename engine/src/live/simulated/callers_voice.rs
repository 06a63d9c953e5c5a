//! Speaks the simulated caller's lines with a provider's voice.
use crate::simulation::callers_phone::RATE;
use crate::simulation::live_caller::{LiveCaller, PieceId};
use crate::speech::exchange::{Arrival, ExchangeId, SpeechFailure, Transmit};
use crate::speech::resample::Resampler;
use crate::speech::speakable::Speakable;
use crate::speech::synthesizer::{Synthesizer, SynthesizerEvent};
use crate::speech::synthesizers;

/// A voice and what it is speaking.
pub(super) struct CallersVoice {
    name: String,
    language: String,
    synthesizer: Box<dyn Synthesizer>,
    resampler: Resampler,
}

impl CallersVoice {
    pub(super) fn new(name: String, language: String, synthesizer: Box<dyn Synthesizer>) -> Self {
        let resampler = Resampler::new(synthesizers::RATE.hz(), RATE.hz());
        Self { name, language, synthesizer, resampler }
    }

    /// `provider/name`.
    pub(super) fn name(&self) -> &str {
        &self.name
    }

    /// Synthesizes a piece. False if there is nothing in it to speak.
    pub(super) fn speak(&mut self, now_ms: i64, piece: PieceId, text: &str) -> bool {
        let spoken = Speakable::new(text, &self.language);
        if spoken.text().trim().is_empty() {
            return false;
        }
        self.synthesizer.speak(now_ms, piece, spoken.text());
        self.synthesizer.finish(now_ms, piece);
        true
    }

    pub(super) fn tick(&mut self, now_ms: i64) {
        self.synthesizer.tick(now_ms);
    }

    pub(super) fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival) {
        self.synthesizer.arrived(now_ms, id, arrival);
    }

    pub(super) fn close(&mut self, now_ms: i64) {
        self.synthesizer.close(now_ms);
    }

    /// Gives the caller the audio that was made. Returns why a piece could not be spoken.
    pub(super) fn hand_over(&mut self, caller: &mut LiveCaller) -> Option<SpeechFailure> {
        let mut failed = None;
        while let Some(event) = self.synthesizer.poll_event() {
            match event {
                // Pieces come one after the other.
                SynthesizerEvent::Audio { line, samples } => {
                    caller.add_audio(line, &self.resampler.push(&samples));
                }
                SynthesizerEvent::Done { line } => {
                    caller.add_audio(line, &self.resampler.flush());
                    caller.audio_ended(line);
                }
                SynthesizerEvent::Failed { line, failure } => {
                    caller.add_audio(line, &self.resampler.flush());
                    caller.audio_ended(line);
                    failed = Some(failure);
                }
                SynthesizerEvent::Words { .. }
                | SynthesizerEvent::PartEnd { .. }
                | SynthesizerEvent::VoiceFailed { .. } => {}
            }
        }
        failed
    }

    pub(super) fn poll_transmit(&mut self) -> Option<Transmit> {
        self.synthesizer.poll_transmit()
    }

    pub(super) fn poll_timeout(&self) -> Option<i64> {
        self.synthesizer.poll_timeout()
    }

    pub(super) fn billed_chars(&self) -> Vec<u64> {
        self.synthesizer.billed_chars()
    }
}
