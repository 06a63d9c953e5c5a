//! A server of the Realtime protocol that answers each turn after a fixed time, and remembers when audio came and when its
//! answers left. Each model that it has is one call's. `tests/src/fakes/speech/conversation.rs` is the strict one.
use std::collections::BTreeMap;
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::g711;
use sidetone_engine::speech::speech_like::speech_like;
use tungstenite::handshake::server::{Request, Response};
use tungstenite::protocol::Role;
use tungstenite::{Message, WebSocket};

/// How long a character is spoken.
pub const CHAR_MS: i64 = 60;
/// What the model answers.
pub const ANSWER: &str = "Thank you, I will see to that.";
/// How long an answer takes.
const LATENCY_MS: u64 = 100;
/// Audio in a message.
const PIECE_MS: i64 = 200;

/// A piece of audio of the caller, when it came.
#[derive(Debug, Clone, Copy)]
pub struct Heard {
    pub at: Instant,
    pub ms: i64,
}

/// One turn of a caller.
#[derive(Debug, Clone, Default)]
pub struct Turn {
    pub heard: Vec<Heard>,
    /// When the first audio of the answer was sent.
    pub answered: Option<Instant>,
}

/// The running server.
pub struct StandIn {
    pub address: SocketAddr,
    turns: Arc<Turns>,
}

#[derive(Default)]
struct Turns(Mutex<BTreeMap<String, Vec<Turn>>>);

/// The model of a call.
pub fn model(call: usize) -> String {
    format!("call-{call:03}")
}

impl StandIn {
    /// Starts it.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it is bound");
        let turns = Arc::<Turns>::default();
        let shared = turns.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let turns = shared.clone();
                // An error is the end of the connection.
                std::thread::spawn(move || _ = serve(stream, &turns));
            }
        });
        Self { address, turns }
    }

    /// A turn of a call, counted from 0; `None` if it was not heard.
    pub fn turn(&self, call: usize, nth: usize) -> Option<Turn> {
        self.turns.lock().get(&model(call))?.get(nth).cloned()
    }
}

impl Turns {
    fn lock(&self) -> MutexGuard<'_, BTreeMap<String, Vec<Turn>>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn of(&self, model: &str, change: impl FnOnce(&mut Vec<Turn>)) {
        change(self.lock().entry(model.to_owned()).or_default());
    }
}

/// Where events are sent: by the thread that reads, and by one that answers.
#[derive(Clone)]
struct Writer(Arc<Mutex<WebSocket<TcpStream>>>);

impl Writer {
    fn tell(&self, event: &Value) {
        let mut socket = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        // The service may have closed it.
        let _ = socket.send(Message::text(event.to_string()));
    }
}

#[expect(clippy::result_large_err, reason = "the handshake's own type")]
fn serve(stream: TcpStream, turns: &Arc<Turns>) -> Result<(), Box<dyn std::error::Error>> {
    stream.set_nodelay(true)?;
    let mut model = String::new();
    let written = stream.try_clone()?;
    let mut socket = tungstenite::accept_hdr(stream, |request: &Request, response: Response| {
        let query = request.uri().query().unwrap_or_default();
        model = query.split('&').find_map(|part| part.strip_prefix("model=")).unwrap_or_default().to_owned();
        Ok(response)
    })
    .map_err(|error| error.to_string())?;
    let writer = Writer(Arc::new(Mutex::new(WebSocket::from_raw_socket(written, Role::Server, None))));
    writer.tell(&json!({"type": "session.created", "session": {}}));
    let (mut rate, mut made, mut heard) = (Rate::Khz24, 0, Vec::new());
    loop {
        let Message::Text(text) = socket.read()? else { continue };
        let at = Instant::now();
        let event: Value = serde_json::from_str(&text)?;
        match event["type"].as_str().unwrap_or_default() {
            "session.update" => {
                let is_mulaw = event["session"]["audio"]["input"]["format"]["type"] == "audio/pcmu";
                rate = if is_mulaw { Rate::Khz8 } else { Rate::Khz24 };
            }
            "input_audio_buffer.append" => {
                let bytes = STANDARD.decode(event["audio"].as_str().unwrap_or_default())?.len();
                let samples = if rate == Rate::Khz8 { bytes } else { bytes / 2 };
                heard.push(Heard { at, ms: rate.ms_of(samples) });
            }
            "input_audio_buffer.commit" => {
                made += 1;
                let id = format!("item_{made}");
                turns.of(&model, |turns| {
                    turns.push(Turn { heard: std::mem::take(&mut heard), answered: None });
                });
                writer.tell(&json!({"type": "input_audio_buffer.committed", "item_id": id}));
                writer.tell(
                    &json!({"type": "conversation.item.input_audio_transcription.completed", "item_id": id,
                    "transcript": "Please see to it."}),
                );
            }
            "response.create" => {
                made += 1;
                let answer = Answer { id: format!("resp_{made}"), rate, writer: writer.clone() };
                match event["response"]["instructions"].as_str().and_then(|told| told.split_once("\n\n")) {
                    Some((_, line)) => answer.speak(line, || {}),
                    None => {
                        let (turns, model) = (turns.clone(), model.clone());
                        std::thread::spawn(move || {
                            std::thread::sleep(Duration::from_millis(LATENCY_MS));
                            answer.speak(ANSWER, || {
                                let now = Instant::now();
                                turns.of(&model, |turns| {
                                    turns
                                        .iter_mut()
                                        .last()
                                        .into_iter()
                                        .for_each(|turn| turn.answered = Some(now));
                                });
                            });
                        });
                    }
                }
            }
            _ => {}
        }
    }
}

/// A response.
struct Answer {
    id: String,
    rate: Rate,
    writer: Writer,
}

impl Answer {
    /// Sends words and audio; `before_audio` is called before the first of it.
    fn speak(&self, text: &str, before_audio: impl FnOnce()) {
        let Self { id, rate, writer } = self;
        let item = format!("item_{id}");
        let message = json!({"id": item, "type": "message", "role": "assistant"});
        let samples = speech_like(text.chars().count() as i64 * CHAR_MS, *rate, 200.0);
        let mut pieces =
            samples.chunks(usize::try_from(rate.samples_in(PIECE_MS)).unwrap_or(1)).map(|piece| {
                let bytes: Vec<u8> = match rate {
                    Rate::Khz8 => g711::encode(piece),
                    _ => piece.iter().flat_map(|sample| sample.to_le_bytes()).collect(),
                };
                json!({"type": "response.output_audio.delta", "response_id": id, "item_id": item,
                "delta": STANDARD.encode(bytes)})
            });
        let first = pieces.next();
        writer.tell(&json!({"type": "response.created", "response": {"id": id}}));
        writer.tell(&json!({"type": "response.output_item.added", "response_id": id, "item": message}));
        writer.tell(
            &json!({"type": "response.output_audio_transcript.delta", "response_id": id, "item_id": item,
            "delta": text}),
        );
        before_audio();
        first.into_iter().chain(pieces).for_each(|piece| writer.tell(&piece));
        writer.tell(
            &json!({"type": "response.done", "response": {"id": id, "status": "completed", "output": [message],
            "usage": {"input_tokens": 50, "output_tokens": 10}}}),
        );
    }
}
