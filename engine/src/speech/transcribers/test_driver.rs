//! A driver for tests: performs nothing, keeps what a transcriber transmits and tells, and lets time pass.
use crate::base::setting::Secret;
use crate::ports::{HttpRequest, Party, SocketMessage};
use crate::speech::audio::{FRAME_MS, Rate};
use crate::speech::exchange::{Arrival, ExchangeFailure, ExchangeId, SocketRequest, Transmit};
use crate::speech::transcriber::{Transcriber, TranscriberEvent};
use crate::speech::transcribers::{TranscriberKind, TranscriberSettings, new};

pub(super) struct Driver {
    pub(super) transcriber: Box<dyn Transcriber>,
    pub(super) now_ms: i64,
    events: Vec<TranscriberEvent>,
    transmits: Vec<Transmit>,
    /// The socket that was opened last.
    pub(super) socket: ExchangeId,
}

pub(super) fn settings(model: &str) -> TranscriberSettings {
    TranscriberSettings {
        party: Party::speech("test"),
        base_url: "https://stt.example".into(),
        api_key: Secret::new("key-of-the-operator"),
        model: model.into(),
        language: Some("en-GB".into()),
        keyterms: vec!["Sidetone".into(), "blue whale".into()],
        turn_ends_ms: 3_000,
    }
}

impl Driver {
    pub(super) fn new(kind: TranscriberKind, settings: TranscriberSettings, line_rate: Rate) -> Self {
        let transcriber = new(kind, settings, line_rate);
        Self { transcriber, now_ms: 0, events: vec![], transmits: vec![], socket: 0 }
    }

    fn drain(&mut self) {
        while let Some(transmit) = self.transcriber.poll_transmit() {
            if let Transmit::Connect { id, .. } = transmit {
                self.socket = id;
            }
            self.transmits.push(transmit);
        }
        self.events.extend(std::iter::from_fn(|| self.transcriber.poll_event()));
    }

    /// Audio of this length with this volume, in frames.
    pub(super) fn hear(&mut self, ms: i64, volume: i16) {
        for _ in 0..ms / FRAME_MS {
            self.now_ms += FRAME_MS;
            let frame = vec![volume; self.transcriber.rate().frame_samples()];
            self.transcriber.hear(self.now_ms, &frame);
            self.drain();
            self.tick();
        }
    }

    pub(super) fn began(&mut self) {
        self.transcriber.speech_began(self.now_ms);
        self.drain();
    }

    pub(super) fn ended(&mut self) {
        self.transcriber.speech_ended(self.now_ms);
        self.drain();
    }

    /// An utterance of this length, with the silence that its end needs.
    pub(super) fn utter(&mut self, ms: i64) {
        self.began();
        self.hear(ms, 1_000);
        self.hear(240, 0);
        self.ended();
    }

    pub(super) fn close(&mut self) {
        self.transcriber.close(self.now_ms);
        self.drain();
    }

    pub(super) fn arrive_at(&mut self, id: ExchangeId, arrival: Arrival) {
        self.transcriber.arrived(self.now_ms, id, arrival);
        self.drain();
    }

    pub(super) fn arrive(&mut self, arrival: Arrival) {
        self.arrive_at(self.socket, arrival);
    }

    pub(super) fn open(&mut self) {
        self.arrive(Arrival::Opened);
    }

    pub(super) fn text(&mut self, text: impl ToString) {
        self.arrive(Arrival::Message(SocketMessage::Text(text.to_string())));
    }

    pub(super) fn break_off(&mut self) {
        self.arrive(Arrival::Closed { code: 1006, reason: String::new() });
    }

    pub(super) fn refuse(&mut self, status: u16, body: &str) {
        self.arrive(Arrival::Failed(ExchangeFailure::Rejected { status, body: body.into() }));
    }

    fn tick(&mut self) {
        while let Some(due_ms) = self.transcriber.poll_timeout()
            && due_ms <= self.now_ms
        {
            self.transcriber.tick(self.now_ms);
            self.drain();
            let next_ms = self.transcriber.poll_timeout();
            assert_ne!(next_ms, Some(due_ms), "a tick that changes nothing would be repeated without end");
        }
    }

    /// Time passes without audio.
    pub(super) fn wait(&mut self, ms: i64) {
        let until_ms = self.now_ms + ms;
        while let Some(due_ms) = self.transcriber.poll_timeout()
            && due_ms <= until_ms
        {
            self.now_ms = self.now_ms.max(due_ms);
            self.tick();
        }
        self.now_ms = until_ms;
    }

    pub(super) fn events(&mut self) -> Vec<TranscriberEvent> {
        std::mem::take(&mut self.events)
    }

    pub(super) fn transmits(&mut self) -> Vec<Transmit> {
        std::mem::take(&mut self.transmits)
    }

    /// What was sent since the last call, in a line: texts as they are, audio as its bytes.
    pub(super) fn sent(&mut self) -> Vec<SocketMessage> {
        let sent = self.transmits().into_iter().filter_map(|transmit| match transmit {
            Transmit::Send { message, .. } => Some(message),
            _ => None,
        });
        sent.collect()
    }

    pub(super) fn sent_texts(&mut self) -> Vec<String> {
        let texts = self.sent().into_iter().filter_map(|message| match message {
            SocketMessage::Text(text) => Some(text),
            SocketMessage::Binary(_) => None,
        });
        texts.collect()
    }

    /// The bytes of binary messages since the last call.
    pub(super) fn sent_bytes(&mut self) -> Vec<u8> {
        let binary = self.sent().into_iter().filter_map(|message| match message {
            SocketMessage::Binary(bytes) => Some(bytes),
            SocketMessage::Text(_) => None,
        });
        binary.flatten().collect()
    }

    pub(super) fn connection(&mut self) -> SocketRequest {
        let connect = self.transmits().into_iter().find_map(|transmit| match transmit {
            Transmit::Connect { request, .. } => Some(request),
            _ => None,
        });
        connect.expect("a connection")
    }

    pub(super) fn requests(&mut self) -> Vec<(ExchangeId, HttpRequest)> {
        let requests = self.transmits().into_iter().filter_map(|transmit| match transmit {
            Transmit::Request { id, request } => Some((id, request)),
            _ => None,
        });
        requests.collect()
    }
}

pub(super) fn partial(text: &str) -> TranscriberEvent {
    TranscriberEvent::Partial(text.into())
}

pub(super) fn final_(text: &str) -> TranscriberEvent {
    TranscriberEvent::Final(text.into())
}

pub(super) fn late(told: &str, text: &str) -> TranscriberEvent {
    TranscriberEvent::Late { told: told.into(), text: text.into() }
}

/// The failure of the only event.
pub(super) fn failure(events: &[TranscriberEvent]) -> &crate::speech::exchange::SpeechFailure {
    match events {
        [TranscriberEvent::Failed(failure)] => failure,
        other => panic!("not one failure: {other:?}"),
    }
}
