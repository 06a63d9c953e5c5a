//! A browser on the audio socket of a test token: a microphone and a loudspeaker, 20 ms at a time, on any host.
use std::collections::VecDeque;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use sidetone_engine::ports::SocketMessage;
use sidetone_engine::speech::audio::{FRAME_MS, Rate};
use sidetone_engine::speech::tone::{ToneDecoder, ToneEncoder, ToneHeard};

use crate::{LiveClient, World};

/// The rate of the socket.
pub const RATE: Rate = Rate::Khz16;
/// How long an expected event may take.
const TIMEOUT_MS: i64 = 30_000;

/// The page's side of a conversation with audio.
pub struct Browser<'a> {
    world: &'a World,
    /// Its socket.
    pub client: LiveClient<'a>,
    /// What was sent as JSON, apart from marks and clears, and was not taken.
    pub messages: VecDeque<Value>,
    /// What the loudspeaker has, in order.
    queue: VecDeque<Piece>,
    /// What the loudspeaker has played, ever.
    pub played: Vec<i16>,
    /// How often it was told to discard what it had.
    pub clears: usize,
    ear: ToneDecoder,
    /// Texts that were heard in tones.
    texts: VecDeque<String>,
    started: Instant,
    passed_ms: i64,
}

enum Piece {
    Audio(Vec<i16>),
    Mark(u64),
}

impl<'a> Browser<'a> {
    /// Opens a conversation with audio; `audio` is `tone` or `speech`.
    #[track_caller]
    pub fn open(world: &'a World, assistant_id: &str, audio: &str) -> Self {
        let token = world.test_token(assistant_id);
        let url = token["websocket_url"].as_str().expect("a URL");
        let client = world.connect(&format!("{url}&audio={audio}")).expect("the token is good");
        Self {
            world,
            client,
            messages: VecDeque::new(),
            queue: VecDeque::new(),
            played: Vec::new(),
            clears: 0,
            ear: ToneDecoder::new(RATE),
            texts: VecDeque::new(),
            started: Instant::now(),
            passed_ms: 0,
        }
    }

    /// Passes 20 ms: the microphone has these samples, and the loudspeaker plays as much.
    pub fn step(&mut self, microphone: &[i16]) {
        self.passed_ms += FRAME_MS;
        match self.world.sandbox() {
            Some(sandbox) => sandbox.advance(FRAME_MS),
            None => {
                let at = self.started + Duration::from_millis(self.passed_ms.unsigned_abs());
                std::thread::sleep(at.saturating_duration_since(Instant::now()));
            }
        }
        if !microphone.is_empty() {
            self.send_audio(microphone);
        }
        self.receive();
        self.play();
    }

    /// Sends audio of any length at once.
    pub fn send_audio(&mut self, samples: &[i16]) {
        let bytes = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
        self.client.send_bytes(bytes);
    }

    /// Says this in tones, in real time.
    pub fn say(&mut self, text: &str) {
        self.speak(&ToneEncoder::speak(text, RATE));
    }

    /// Says these samples in real time.
    pub fn speak(&mut self, samples: &[i16]) {
        samples.chunks(RATE.frame_samples()).for_each(|frame| self.step(frame));
    }

    /// Is silent for this long, in real time.
    pub fn wait(&mut self, ms: i64) {
        self.speak(&vec![0; RATE.frame_samples() * (ms / FRAME_MS) as usize]);
    }

    /// Listens until the loudspeaker has played so much, and half a second longer.
    #[track_caller]
    pub fn hear_ms(&mut self, ms: i64) {
        self.until("so much sound", |browser| (browser.played_ms() >= ms).then_some(()));
        self.wait(500);
    }

    /// The next text that the loudspeaker plays in tones.
    #[track_caller]
    pub fn hear(&mut self) -> String {
        self.until("a spoken text", |browser| browser.texts.pop_front())
    }

    /// The next message of this type; those before it are dropped.
    #[track_caller]
    pub fn expect(&mut self, kind: &str) -> Value {
        self.until(kind, |browser| {
            let at = browser.messages.iter().position(|message| message["type"] == kind)?;
            browser.messages.drain(..=at).next_back()
        })
    }

    /// Is silent until something has happened.
    #[track_caller]
    pub fn until<T>(&mut self, what: &str, mut happened: impl FnMut(&mut Self) -> Option<T>) -> T {
        let until_ms = self.passed_ms + TIMEOUT_MS;
        self.receive();
        loop {
            if let Some(it) = happened(self) {
                return it;
            }
            let (messages, closed) = (&self.messages, self.client.closed());
            assert!(self.passed_ms < until_ms, "no {what}; {messages:?}, closed with {closed:?}");
            self.step(&vec![0; RATE.frame_samples()]);
        }
    }

    /// How much the loudspeaker has played.
    pub fn played_ms(&self) -> i64 {
        RATE.ms_of(self.played.len())
    }

    /// Hangs up, and returns the last message.
    #[track_caller]
    pub fn hang_up(&mut self) -> Value {
        self.client.send(&json!({"type": "hang_up"}).to_string());
        self.expect("call_ended")
    }

    fn receive(&mut self) {
        for message in self.client.arrived() {
            match message {
                SocketMessage::Binary(bytes) => {
                    let (samples, []) = bytes.as_chunks::<2>() else { panic!("half a sample") };
                    assert_eq!(samples.len(), RATE.frame_samples());
                    let samples = samples.iter().map(|sample| i16::from_le_bytes(*sample)).collect();
                    self.queue.push_back(Piece::Audio(samples));
                }
                SocketMessage::Text(text) => {
                    let message: Value = serde_json::from_str(&text).expect("JSON");
                    match message["type"].as_str() {
                        Some("mark") => {
                            self.queue.push_back(Piece::Mark(message["mark"].as_u64().expect("a number")));
                        }
                        Some("clear") => {
                            self.queue.clear();
                            self.clears += 1;
                        }
                        _ => self.messages.push_back(message),
                    }
                }
            }
        }
        self.return_marks();
    }

    fn play(&mut self) {
        if let Some(Piece::Audio(samples)) = self.queue.pop_front() {
            for heard in self.ear.hear(&samples) {
                if let ToneHeard::Said { text, .. } = heard {
                    self.texts.push_back(text);
                }
            }
            self.played.extend(samples);
        }
        self.return_marks();
    }

    fn return_marks(&mut self) {
        while let Some(Piece::Mark(mark)) = self.queue.front() {
            self.client.send(&json!({"type": "played", "mark": mark}).to_string());
            self.queue.pop_front();
        }
    }
}
