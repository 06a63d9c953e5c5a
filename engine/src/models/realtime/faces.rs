//! What a voice sees of a session: a transcriber and a synthesizer.
use super::Realtime;
use crate::speech::audio::Rate;
use crate::speech::exchange::{Arrival, ExchangeId, Transmit};
use crate::speech::synthesizer::{LineId, Synthesizer, SynthesizerEvent};
use crate::speech::transcriber::{Transcriber, TranscriberEvent};

/// Hears the person. It also carries all that the session sends and receives.
pub struct RealtimeEar(pub Realtime);

/// Speaks the lines of the assistant.
pub struct RealtimeMouth(pub Realtime);

impl Transcriber for RealtimeEar {
    fn rate(&self) -> Rate {
        self.0.session().ear().rate()
    }

    fn has_words_meanwhile(&self) -> bool {
        false
    }

    fn final_wait_ms(&self) -> i64 {
        self.0.session().ear().final_wait_ms()
    }

    fn hear(&mut self, now_ms: i64, samples: &[i16]) {
        self.0.session().heard(now_ms, |ear| ear.hear(now_ms, samples));
    }

    fn speech_began(&mut self, now_ms: i64) {
        self.0.session().heard(now_ms, |ear| ear.speech_began(now_ms));
    }

    fn speech_ended(&mut self, now_ms: i64) {
        self.0.session().heard(now_ms, |ear| ear.speech_ended(now_ms));
    }

    fn close(&mut self, now_ms: i64) {
        self.0.session().close(now_ms);
    }

    fn arrived(&mut self, now_ms: i64, id: ExchangeId, arrival: Arrival) {
        self.0.session().heard(now_ms, |ear| ear.arrived(now_ms, id, arrival));
    }

    fn tick(&mut self, now_ms: i64) {
        self.0.session().tick(now_ms);
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        self.0.session().ear_mut().poll_transmit()
    }

    fn poll_event(&mut self) -> Option<TranscriberEvent> {
        self.0.session().ear_mut().poll_event()
    }

    fn poll_timeout(&self) -> Option<i64> {
        self.0.session().timeout()
    }

    fn billed_ms(&self) -> i64 {
        self.0.session().ear().billed_ms()
    }
}

impl Synthesizer for RealtimeMouth {
    fn rate(&self) -> Rate {
        self.0.session().ear().rate()
    }

    fn speaks_its_own_text(&self) -> bool {
        true
    }

    fn speak(&mut self, now_ms: i64, line: LineId, text: &str) {
        self.0.session().respond(now_ms, |responses| responses.speak(line, text));
    }

    fn finish(&mut self, now_ms: i64, line: LineId) {
        self.0.session().respond(now_ms, |responses| responses.finish(line));
    }

    fn heard(&mut self, line: LineId, heard_ms: i64) {
        self.0.session().responses().heard(line, heard_ms);
    }

    fn cancel(&mut self, now_ms: i64, line: LineId) {
        self.0.session().respond(now_ms, |responses| responses.cancel(line));
    }

    fn close(&mut self, now_ms: i64) {
        self.0.session().close(now_ms);
    }

    fn arrived(&mut self, _: i64, _: ExchangeId, _: Arrival) {}

    // The rule model's session has no ear.
    fn tick(&mut self, now_ms: i64) {
        self.0.session().tick(now_ms);
    }

    fn poll_transmit(&mut self) -> Option<Transmit> {
        None
    }

    fn poll_event(&mut self) -> Option<SynthesizerEvent> {
        self.0.session().responses().poll_event()
    }

    fn poll_timeout(&self) -> Option<i64> {
        self.0.session().timeout()
    }

    fn billed_chars(&self) -> Vec<u64> {
        Vec::new()
    }
}
