//! A driver for the tests of protocols: plays the server, and holds the protocol to the rules of the trait.
use std::collections::BTreeMap;

use proptest::prelude::*;
use serde_json::{Value, json};

use super::SynthesizerSettings;
use crate::base::setting::Secret;
use crate::ports::{HttpRequest, Party, SocketMessage};
use crate::speech::exchange::{Arrival, ExchangeFailure, ExchangeId, SocketRequest, SpeechFailure, Transmit};
use crate::speech::synthesizer::{LineId, Synthesizer, SynthesizerEvent, WordTime};

/// Settings with a key and a voice.
pub(super) fn settings(base_url: &str) -> SynthesizerSettings {
    SynthesizerSettings {
        party: Party::speech("test"),
        base_url: base_url.to_owned(),
        api_key: Some(Secret::new("key-1")),
        model: Some("model-1".to_owned()),
        voice: "voice-1".to_owned(),
        language: Some("en".to_owned()),
        speed: Some(1.5),
    }
}

/// What was reported of a line.
#[derive(Debug, Default, Clone, PartialEq)]
pub(super) struct Told {
    pub(super) samples: Vec<i16>,
    pub(super) words: Vec<WordTime>,
    pub(super) part_ends: Vec<usize>,
    pub(super) voice_failures: Vec<SpeechFailure>,
    pub(super) is_done: bool,
    pub(super) failure: Option<SpeechFailure>,
}

impl Told {
    /// The words of `text` that were reported, with their times.
    pub(super) fn words_of<'a>(&self, text: &'a str) -> Vec<(&'a str, i64)> {
        self.words.iter().map(|word| (&text[..word.text_end], word.end_ms)).collect()
    }
}

/// A protocol, its driver and everything that happened.
pub(super) struct Bench {
    pub(super) voice: Box<dyn Synthesizer>,
    pub(super) now_ms: i64,
    /// What was transmitted and not yet looked at.
    pub(super) sent: Vec<Transmit>,
    pub(super) told: BTreeMap<LineId, Told>,
    cancelled: Vec<LineId>,
    finished: Vec<LineId>,
    last_line: LineId,
}

impl Bench {
    pub(super) fn new(voice: impl Synthesizer + 'static) -> Self {
        Self {
            voice: Box::new(voice),
            now_ms: 1_000,
            sent: Vec::new(),
            told: BTreeMap::new(),
            cancelled: Vec::new(),
            finished: Vec::new(),
            last_line: 0,
        }
    }

    /// A line of one part.
    pub(super) fn line(&mut self, line: LineId, text: &str) {
        self.speak(line, text);
        self.finish(line);
    }

    pub(super) fn speak(&mut self, line: LineId, text: &str) {
        self.last_line = self.last_line.max(line);
        self.voice.speak(self.now_ms, line, text);
        self.drain();
    }

    pub(super) fn finish(&mut self, line: LineId) {
        self.finished.push(line);
        self.voice.finish(self.now_ms, line);
        self.drain();
    }

    pub(super) fn cancel(&mut self, line: LineId) {
        self.cancelled.push(line);
        self.voice.cancel(self.now_ms, line);
        self.drain();
    }

    pub(super) fn close(&mut self) {
        self.voice.close(self.now_ms);
        self.cancelled.extend(1..=self.last_line);
        self.drain();
    }

    pub(super) fn arrive(&mut self, id: ExchangeId, arrival: Arrival) {
        self.voice.arrived(self.now_ms, id, arrival);
        self.drain();
    }

    /// Lets time pass, with every tick that falls due.
    pub(super) fn pass(&mut self, ms: i64) {
        let end_ms = self.now_ms + ms;
        for _ in 0..10_000 {
            let due_ms = self.voice.poll_timeout().filter(|due_ms| *due_ms <= end_ms);
            let Some(due_ms) = due_ms else {
                self.now_ms = end_ms;
                return;
            };
            self.now_ms = self.now_ms.max(due_ms);
            self.voice.tick(self.now_ms);
            self.drain();
        }
        panic!("ticks without end at {}", self.now_ms);
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.voice.poll_transmit() {
            self.sent.push(transmit);
        }
        while let Some(event) = self.voice.poll_event() {
            let line = super::lines::line_of(&event);
            assert!(!self.cancelled.contains(&line), "{event:?} of a cancelled line");
            let told = self.told.entry(line).or_default();
            assert!(!told.is_done && told.failure.is_none(), "{event:?} after the end of the line");
            match event {
                SynthesizerEvent::Audio { samples, .. } => told.samples.extend(samples),
                SynthesizerEvent::Words { words, .. } => told.words.extend(words),
                SynthesizerEvent::PartEnd { text_end, .. } => told.part_ends.push(text_end),
                SynthesizerEvent::VoiceFailed { failure, .. } => told.voice_failures.push(failure),
                SynthesizerEvent::Done { .. } => {
                    assert!(!told.samples.is_empty(), "a line without audio is done");
                    assert!(self.finished.contains(&line), "a line is done before it was finished");
                    told.is_done = true;
                }
                SynthesizerEvent::Failed { failure, .. } => told.failure = Some(failure),
            }
        }
    }

    /// What was reported of a line so far.
    pub(super) fn of(&self, line: LineId) -> Told {
        self.told.get(&line).cloned().unwrap_or_default()
    }

    /// The failure of a line.
    pub(super) fn failure(&self, line: LineId) -> SpeechFailure {
        self.of(line).failure.unwrap_or_else(|| panic!("line {line} did not fail: {:?}", self.of(line)))
    }

    /// The last socket that was asked for.
    pub(super) fn connect(&mut self) -> (ExchangeId, SocketRequest) {
        let found = self.sent.drain(..).rev().find_map(|transmit| match transmit {
            Transmit::Connect { id, request } => Some((id, request)),
            _ => None,
        });
        found.expect("no socket was asked for")
    }

    /// Opens the socket that was asked for.
    pub(super) fn open(&mut self) -> ExchangeId {
        let (id, _) = self.connect();
        self.arrive(id, Arrival::Opened);
        id
    }

    pub(super) fn json(&mut self, id: ExchangeId, message: Value) {
        self.arrive(id, Arrival::Message(SocketMessage::Text(message.to_string())));
    }

    pub(super) fn binary(&mut self, id: ExchangeId, bytes: &[u8]) {
        self.arrive(id, Arrival::Message(SocketMessage::Binary(bytes.to_vec().into())));
    }

    pub(super) fn broken(&mut self, id: ExchangeId) {
        self.arrive(id, Arrival::Failed(ExchangeFailure::Broken("reset by 10.0.0.1".to_owned())));
    }

    pub(super) fn closed(&mut self, id: ExchangeId, code: u16, reason: &str) {
        self.arrive(id, Arrival::Closed { code, reason: reason.to_owned() });
    }

    /// The messages sent since the last look.
    pub(super) fn messages(&mut self) -> Vec<Value> {
        let sent = self.sent.drain(..).filter_map(|transmit| match transmit {
            Transmit::Send { message: SocketMessage::Text(text), .. } => {
                Some(serde_json::from_str(&text).unwrap())
            }
            _ => None,
        });
        sent.collect()
    }

    /// The requests sent since the last look.
    pub(super) fn requests(&mut self) -> Vec<(ExchangeId, HttpRequest)> {
        let sent = self.sent.drain(..).filter_map(|transmit| match transmit {
            Transmit::Request { id, request } => Some((id, request)),
            _ => None,
        });
        sent.collect()
    }

    /// The head of a response.
    pub(super) fn head(&mut self, id: ExchangeId, status: u16, content_type: &str) {
        let headers = vec![("content-type".to_owned(), content_type.to_owned())];
        self.arrive(id, Arrival::Head { status, headers });
    }

    pub(super) fn body(&mut self, id: ExchangeId, bytes: &[u8]) {
        self.arrive(id, Arrival::Body(bytes.to_vec().into()));
    }
}

/// So many samples, which start at one.
pub(super) fn samples(count: usize) -> Vec<i16> {
    (0..count).map(|n| 1 + (n % 1_000) as i16).collect()
}

/// Samples as bytes.
pub(super) fn pcm(samples: &[i16]) -> Vec<u8> {
    samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
}

/// A step of a random dialogue.
#[derive(Debug, Clone)]
pub(super) enum Step {
    Speak(u64, String),
    Finish(u64),
    Cancel(u64),
    Pass(i64),
    Arrive(u32, Arrival),
    Close,
}

/// Arrivals as a provider could send them, right and wrong, and steps of the caller in between.
pub(super) fn steps(
    message: impl Strategy<Value = SocketMessage> + 'static,
) -> impl Strategy<Value = Vec<Step>> {
    let bytes = prop::collection::vec(any::<u8>(), 0..40);
    let arrival = prop_oneof![
        4 => Just(Arrival::Opened),
        12 => message.prop_map(Arrival::Message),
        1 => any::<u16>().prop_map(|code| Arrival::Closed { code, reason: "gone".to_owned() }),
        1 => Just(Arrival::Failed(ExchangeFailure::Broken(String::new()))),
        1 => Just(Arrival::Failed(ExchangeFailure::Timeout)),
        1 => (400u16..600).prop_map(|status| Arrival::Failed(ExchangeFailure::Rejected { status, body: "no".into() })),
        4 => prop_oneof![Just(200u16), 200u16..600].prop_map(|status| Arrival::Head { status, headers: Vec::new() }),
        4 => bytes.prop_map(|bytes| Arrival::Body(bytes.into())),
        2 => Just(Arrival::End),
    ];
    let line = 1u64..6;
    let text = prop_oneof!["[a-c ]{0,12}", Just("你好。 ".to_owned()), Just("…".to_owned())];
    let step = prop_oneof![
        3 => (line.clone(), text).prop_map(|(line, text)| Step::Speak(line, text)),
        2 => line.clone().prop_map(Step::Finish),
        1 => line.prop_map(Step::Cancel),
        2 => prop_oneof![0i64..50, 0i64..4_000].prop_map(Step::Pass),
        12 => (0u32..8, arrival).prop_map(|(back, arrival)| Step::Arrive(back, arrival)),
    ];
    let steps = prop::collection::vec(step, 0..60);
    (steps, prop::bool::weighted(0.1)).prop_map(|(mut steps, is_closed)| {
        if is_closed {
            steps.insert(steps.len() / 2, Step::Close);
        }
        steps
    })
}

/// Plays a random dialogue, then lets all time pass. Every finished line that was not cancelled must have ended by then.
pub(super) fn play(voice: impl Synthesizer + 'static, steps: Vec<Step>) {
    let mut bench = Bench::new(voice);
    let mut newest = 0;
    let mut is_closed = false;
    // Ids count up: one that comes after a higher one is nobody's.
    let (mut newest_line, mut lines) = (0, Vec::new());
    for step in steps {
        if let Step::Speak(line, _) | Step::Finish(line) | Step::Cancel(line) = step
            && line > newest_line
        {
            newest_line = line;
            lines.push(line);
        }
        for transmit in bench.sent.drain(..) {
            if let Transmit::Connect { id, .. } | Transmit::Request { id, .. } = transmit {
                newest = id;
            }
        }
        match step {
            Step::Speak(line, text) => bench.speak(line, &text),
            Step::Finish(line) => bench.finish(line),
            Step::Cancel(line) => bench.cancel(line),
            Step::Pass(ms) => bench.pass(ms),
            // Mostly of the newest exchange, sometimes of one that is over.
            Step::Arrive(back, arrival) => {
                bench.arrive(newest.saturating_sub(back.saturating_sub(4)), arrival)
            }
            Step::Close => {
                bench.close();
                is_closed = true;
            }
        }
    }
    if is_closed {
        assert_eq!(bench.voice.poll_timeout(), None);
        return;
    }
    // Lines that the caller left open would hold up the others.
    for line in 1..=bench.last_line {
        if !bench.finished.contains(&line) {
            bench.cancel(line);
        }
    }
    bench.pass(600_000);
    for line in lines.into_iter().filter(|line| bench.finished.contains(line)) {
        let told = bench.of(line);
        let is_over = told.is_done != told.failure.is_some();
        assert!(is_over || bench.cancelled.contains(&line), "line {line} is not over: {told:?}");
    }
}

/// Any JSON message with one of these values in each field.
pub(super) fn message(
    fields: &'static [(&'static str, &'static [&'static str])],
) -> impl Strategy<Value = SocketMessage> {
    let json = prop::collection::vec(0usize..8, fields.len()).prop_map(move |picks| {
        let mut message = json!({});
        for ((name, values), pick) in fields.iter().zip(picks) {
            if let Some(value) = values.get(pick) {
                message[*name] = serde_json::from_str(value).unwrap();
            }
        }
        SocketMessage::Text(message.to_string())
    });
    let bytes =
        prop::collection::vec(any::<u8>(), 0..40).prop_map(|bytes| SocketMessage::Binary(bytes.into()));
    prop_oneof![8 => json, 2 => bytes, 1 => "\\PC{0,20}".prop_map(SocketMessage::Text)]
}
