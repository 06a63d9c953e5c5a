//! A transcriber for tests that understands what it is told to.
use std::collections::VecDeque;
use std::sync::{Arc, Mutex};

use crate::speech::audio::Rate;
use crate::speech::exchange::{Arrival, ExchangeId, Transmit};
use crate::speech::transcriber::{Transcriber, TranscriberEvent};

/// The events to come; copies share them.
#[derive(Clone, Default)]
pub struct Script {
    events: Arc<Mutex<VecDeque<TranscriberEvent>>>,
    detects_turns: bool,
}

impl Script {
    /// Of a provider that detects turns.
    pub fn with_turns() -> Self {
        Self { detects_turns: true, ..Self::default() }
    }

    /// The transcriber reports this next.
    pub fn transcribed(&self, event: TranscriberEvent) {
        self.events.lock().unwrap().push_back(event);
    }
}

impl Transcriber for Script {
    fn rate(&self) -> Rate {
        Rate::Khz16
    }

    fn detects_turns(&self) -> bool {
        self.detects_turns
    }

    fn final_wait_ms(&self) -> i64 {
        1_000
    }

    fn hear(&mut self, _: i64, _: &[i16]) {}

    fn speech_began(&mut self, _: i64) {}

    fn speech_ended(&mut self, _: i64) {}

    fn close(&mut self, _: i64) {}

    fn arrived(&mut self, _: i64, _: ExchangeId, _: Arrival) {}

    fn tick(&mut self, _: i64) {}

    fn poll_transmit(&mut self) -> Option<Transmit> {
        None
    }

    fn poll_event(&mut self) -> Option<TranscriberEvent> {
        self.events.lock().unwrap().pop_front()
    }

    fn poll_timeout(&self) -> Option<i64> {
        None
    }

    fn billed_ms(&self) -> i64 {
        0
    }
}
