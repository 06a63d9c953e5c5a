//! A server with OpenAI's API for speech and completions that answers each request after a fixed time, and remembers when
//! it was asked and when it had answered. What a caller says names the call and the turn, so that the three requests of a
//! turn are found again.
//!
//! Transcriber and voice have Deepgram's sockets, too, for those who know no other protocol: the end of an utterance is the
//! client's `Finalize`, and the call is the last part of the path.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::ws::{Message, WebSocket, WebSocketUpgrade};
use axum::extract::{Path, State};
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::{any, post};
use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::speech_like::speech_like;

/// How long each answer takes.
pub const LATENCY_MS: u64 = 100;
/// Audio in a message of a socket.
const SPOKEN_BYTES: usize = 8 * 1024;
/// How long a character is spoken.
pub const CHAR_MS: i64 = 60;

/// A request to one of the three services.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub enum Service {
    Transcriber,
    Model,
    Voice,
}

/// When it was asked, and when its answer was complete.
#[derive(Debug, Clone, Copy)]
pub struct Exchange {
    pub asked: Instant,
    pub answered: Instant,
}

/// The running server.
pub struct StandIn {
    address: SocketAddr,
    seen: Arc<Seen>,
}

struct Seen {
    /// The turn that asks for the long answer.
    long_turn: usize,
    /// Audio of a text with so many characters.
    spoken: Mutex<BTreeMap<usize, Bytes>>,
    /// Utterances so far, by the call's key term.
    utterances: Mutex<BTreeMap<String, usize>>,
    exchanges: Mutex<BTreeMap<(String, Service), Exchange>>,
}

impl StandIn {
    /// Starts it on a thread of its own. The turn with this number asks for the long answer.
    pub fn start(long_turn: usize) -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("a socket can be told not to block");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::new(Seen {
            long_turn,
            spoken: Mutex::default(),
            utterances: Mutex::default(),
            exchanges: Mutex::default(),
        });
        let router = Router::new()
            .route("/v1/audio/transcriptions", post(transcription))
            .route("/v1/chat/completions", post(completion))
            .route("/v1/audio/speech", post(speech))
            .route("/v1/listen/{call}", any(listen))
            .route("/v1/speak", any(speak))
            .with_state(seen.clone());
        std::thread::spawn(move || {
            let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build();
            runtime.expect("a runtime can be made").block_on(async {
                let listener = tokio::net::TcpListener::from_std(listener).expect("it is a socket");
                axum::serve(listener, router).await.expect("it serves");
            });
        });
        Self { address, seen }
    }

    /// Settings of a service for which it is the provider `local`.
    pub fn settings(&self) -> Vec<(&'static str, String)> {
        let mut settings = super::desk::settings();
        let providers = settings.iter_mut().find(|(name, _)| *name == "SIDETONE_PROVIDERS");
        let providers = &mut providers.expect("the fakes are providers").1;
        let mut all: Value = serde_json::from_str(providers).expect("the setting is JSON");
        all["local"] = json!({"base_url": self.base_url()});
        *providers = all.to_string();
        settings
    }

    /// Where its API is.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The request of a turn; `None` if it was not made.
    pub fn exchange(&self, turn: &str, service: Service) -> Option<Exchange> {
        lock(&self.seen.exchanges).get(&(turn.to_owned(), service)).copied()
    }
}

/// The key term of a call, as its assistant has it.
pub fn term(call: usize) -> String {
    format!("call {call:04}")
}

/// The name of a call's turn, counted from 0.
pub fn turn(call: usize, nth: usize) -> String {
    format!("{} turn {nth:02}", term(call))
}

/// What the assistant answers to a turn. The long one is interrupted.
pub fn answer(turn: &str, is_long: bool) -> String {
    match is_long {
        false => format!("Thank you, that was {turn}."),
        true => format!("Listen to {turn}{}.", ", and to something more".repeat(8)),
    }
}

/// The turn that a text names.
fn named(text: &str) -> Option<String> {
    const CHARS: usize = "call 0000 turn 00".len();
    let names = text.match_indices("call ").filter_map(|(at, _)| text.get(at..at + CHARS));
    names.filter(|name| name.contains(" turn ")).last().map(str::to_owned)
}

async fn transcription(State(seen): State<Arc<Seen>>, body: Bytes) -> Response {
    let asked = Instant::now();
    // The parts before the file are text; the call's key term is one of them.
    let at = body.windows(5).position(|text| text == b"call ").expect("the request has the call's key term");
    let term = String::from_utf8_lossy(&body[at..at + "call 0000".len()]).into_owned();
    let (name, text) = seen.said(&term);
    seen.answer(name, Service::Transcriber, asked, json_response(&json!({"text": text}))).await
}

async fn listen(
    State(seen): State<Arc<Seen>>,
    Path(call): Path<usize>,
    upgrade: WebSocketUpgrade,
) -> Response {
    upgrade.on_upgrade(async move |mut socket: WebSocket| {
        while let Some(Ok(message)) = socket.recv().await {
            if !matches!(&message, Message::Text(text) if text.contains("Finalize")) {
                continue;
            }
            let (name, text) = seen.said(&term(call));
            let answer = json!({"type": "Results", "is_final": true, "speech_final": true, "from_finalize": true,
                "start": 0.0, "duration": 1.0, "channel": {"alternatives": [{"transcript": text, "confidence": 1.0}]}});
            let answer = seen.answer(name, Service::Transcriber, Instant::now(), answer).await;
            if socket.send(Message::text(answer.to_string())).await.is_err() {
                return;
            }
        }
    })
}

async fn speak(State(seen): State<Arc<Seen>>, upgrade: WebSocketUpgrade) -> Response {
    upgrade.on_upgrade(async move |mut socket: WebSocket| {
        let mut text = String::new();
        while let Some(Ok(message)) = socket.recv().await {
            let message: Value =
                message.to_text().ok().and_then(|text| serde_json::from_str(text).ok()).unwrap_or_default();
            match message["type"].as_str() {
                Some("Speak") => text.push_str(message["text"].as_str().unwrap_or_default()),
                Some("Flush") => {
                    let audio = seen.spoken(&text);
                    let turn = named(&std::mem::take(&mut text)).unwrap_or_default();
                    let audio = seen.answer(turn, Service::Voice, Instant::now(), audio).await;
                    for start in (0..audio.len()).step_by(SPOKEN_BYTES) {
                        let piece = audio.slice(start..audio.len().min(start + SPOKEN_BYTES));
                        let _ = socket.send(Message::Binary(piece)).await;
                    }
                    let _ = socket.send(Message::text(r#"{"type":"Flushed","sequence_id":0}"#)).await;
                }
                _ => {}
            }
        }
    })
}

async fn completion(State(seen): State<Arc<Seen>>, body: Bytes) -> Response {
    let asked = Instant::now();
    let body: Value = serde_json::from_slice(&body).expect("the request is JSON");
    let last = body["messages"].as_array().and_then(|all| all.iter().rfind(|one| one["role"] == "user"));
    let said = last.map(|one| one["content"].to_string()).unwrap_or_default();
    let name = named(&said).unwrap_or_default();
    let text = answer(&name, said.contains("in detail"));
    seen.answer(name, Service::Model, asked, streamed(&text, &body["model"])).await
}

/// The events of a streamed completion.
fn streamed(text: &str, model: &Value) -> Response {
    let event = |choices: Value, usage: Value| {
        let chunk = json!({"id": "chatcmpl-1", "object": "chat.completion.chunk", "created": 1_700_000_000, "model": model,
            "choices": choices, "usage": usage});
        format!("data: {chunk}\n\n")
    };
    let choice = |delta: Value, end: Value| json!([{"index": 0, "delta": delta, "finish_reason": end}]);
    let text = event(choice(json!({"role": "assistant", "content": text}), Value::Null), Value::Null);
    let end = event(choice(json!({}), json!("stop")), Value::Null);
    let usage = json!({"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60});
    let body = [text, end, event(json!([]), usage), "data: [DONE]\n\n".to_owned()].concat();
    ([(header::CONTENT_TYPE, "text/event-stream")], body).into_response()
}

async fn speech(State(seen): State<Arc<Seen>>, body: Bytes) -> Response {
    let asked = Instant::now();
    let body: Value = serde_json::from_slice(&body).expect("the request is JSON");
    let text = body["input"].as_str().unwrap_or_default();
    let answer = ([(header::CONTENT_TYPE, "audio/pcm")], seen.spoken(text)).into_response();
    seen.answer(named(text).unwrap_or_default(), Service::Voice, asked, answer).await
}

impl Seen {
    /// The next turn of a call, and what is said in it.
    fn said(&self, term: &str) -> (String, String) {
        let nth = {
            let mut utterances = lock(&self.utterances);
            let count = utterances.entry(term.to_owned()).or_default();
            *count += 1;
            *count - 1
        };
        let name = format!("{term} turn {nth:02}");
        let long = if nth == self.long_turn { " in detail" } else { "" };
        let text = format!("Is this {name}{long}?");
        (name, text)
    }

    /// The audio of a text: linear, 24 kHz.
    fn spoken(&self, text: &str) -> Bytes {
        let speak = |chars: &usize| {
            let samples = speech_like(*chars as i64 * CHAR_MS, Rate::Khz24, 200.0);
            samples.iter().flat_map(|sample| sample.to_le_bytes()).collect()
        };
        lock(&self.spoken).entry(text.chars().count()).or_insert_with_key(speak).clone()
    }

    async fn answer<A>(&self, turn: String, service: Service, asked: Instant, answer: A) -> A {
        tokio::time::sleep_until((asked + Duration::from_millis(LATENCY_MS)).into()).await;
        let exchange = Exchange { asked, answered: Instant::now() };
        // A longer answer is spoken in several parts; the first one counts.
        lock(&self.exchanges).entry((turn, service)).or_insert(exchange);
        answer
    }
}

fn json_response(value: &Value) -> Response {
    ([(header::CONTENT_TYPE, "application/json")], Body::from(value.to_string())).into_response()
}

fn lock<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
