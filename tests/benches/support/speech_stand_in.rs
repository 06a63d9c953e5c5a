//! A server with OpenAI's API for speech and completions that answers each request after a fixed time, and remembers when
//! it was asked and when it had answered. What a caller says names the call and the turn, so that the three requests of a
//! turn are found again.
use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::{Duration, Instant};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::extract::State;
use axum::http::header;
use axum::response::{IntoResponse, Response};
use axum::routing::post;
use serde_json::{Value, json};
use sidetone_engine::speech::audio::Rate;
use sidetone_engine::speech::speech_like::speech_like;

/// How long each answer takes.
pub const LATENCY_MS: u64 = 100;
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
    pub address: SocketAddr,
    seen: Arc<Seen>,
}

#[derive(Default)]
struct Seen {
    /// Utterances so far, by the call's key term.
    utterances: Mutex<BTreeMap<String, usize>>,
    exchanges: Mutex<BTreeMap<(String, Service), Exchange>>,
}

impl StandIn {
    /// Starts it on a thread of its own.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("a socket can be told not to block");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::<Seen>::default();
        let router = Router::new()
            .route("/v1/audio/transcriptions", post(transcription))
            .route("/v1/chat/completions", post(completion))
            .route("/v1/audio/speech", post(speech))
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

    /// The request of a turn; `None` if it was not made.
    pub fn exchange(&self, turn: &str, service: Service) -> Option<Exchange> {
        lock(&self.seen.exchanges).get(&(turn.to_owned(), service)).copied()
    }
}

/// The key term of a call, as its assistant has it.
pub fn term(call: usize) -> String {
    format!("call {call:03}")
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
    const CHARS: usize = "call 000 turn 00".len();
    let names = text.match_indices("call ").filter_map(|(at, _)| text.get(at..at + CHARS));
    names.filter(|name| name.contains(" turn ")).last().map(str::to_owned)
}

/// What the caller of a turn says. The turn after the last one of the measurement asks for the long answer.
fn said(turn: &str) -> String {
    let long = if turn.ends_with(&format!("{:02}", super::conversations::TURNS)) { " in detail" } else { "" };
    format!("Is this {turn}{long}?")
}

async fn transcription(State(seen): State<Arc<Seen>>, body: Bytes) -> Response {
    let asked = Instant::now();
    // The parts before the file are text; the call's key term is one of them.
    let text = String::from_utf8_lossy(&body);
    let at = text.find("call ").expect("the request has the call's key term");
    let term = text[at..].chars().take("call 000".len()).collect::<String>();
    let nth = {
        let mut utterances = lock(&seen.utterances);
        let count = utterances.entry(term.clone()).or_default();
        *count += 1;
        *count - 1
    };
    let name = format!("{term} turn {nth:02}");
    let answer = json_response(&json!({"text": said(&name)}));
    seen.answer(name, Service::Transcriber, asked, answer).await
}

async fn completion(State(seen): State<Arc<Seen>>, body: Bytes) -> Response {
    let asked = Instant::now();
    let body: Value = serde_json::from_slice(&body).expect("the request is JSON");
    let last = body["messages"].as_array().and_then(|all| all.iter().rfind(|one| one["role"] == "user"));
    let said = last.map(|one| one["content"].to_string()).unwrap_or_default();
    let name = named(&said).unwrap_or_default();
    let text = answer(&name, said.contains("in detail"));
    let message = json!({"role": "assistant", "content": text, "refusal": null});
    let answer = json!({"id": "chatcmpl-1", "object": "chat.completion", "created": 1_700_000_000, "model": body["model"],
        "choices": [{"index": 0, "message": message, "logprobs": null, "finish_reason": "stop"}],
        "usage": {"prompt_tokens": 50, "completion_tokens": 10, "total_tokens": 60}});
    seen.answer(name, Service::Model, asked, json_response(&answer)).await
}

async fn speech(State(seen): State<Arc<Seen>>, body: Bytes) -> Response {
    let asked = Instant::now();
    let body: Value = serde_json::from_slice(&body).expect("the request is JSON");
    let text = body["input"].as_str().unwrap_or_default();
    let samples = speech_like(text.chars().count() as i64 * CHAR_MS, Rate::Khz24, 200.0);
    let bytes: Vec<u8> = samples.iter().flat_map(|sample| sample.to_le_bytes()).collect();
    let answer = ([(header::CONTENT_TYPE, "audio/pcm")], bytes).into_response();
    seen.answer(named(text).unwrap_or_default(), Service::Voice, asked, answer).await
}

impl Seen {
    async fn answer(&self, turn: String, service: Service, asked: Instant, answer: Response) -> Response {
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
