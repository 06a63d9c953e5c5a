//! A fake for an OpenAI-compatible server: `/v1/chat/completions`, complete and streamed, and `/v1/models`. A model's name
//! describes its behaviour, which makes tests readable: see [`behaviour::MODELS`]. The official clients are tested
//! against it, which verifies its wire format.
pub mod behaviour;
mod check;
pub mod refusal;
mod shape;
pub mod speech;

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::convert::Infallible;
use std::net::SocketAddr;
use std::sync::{Arc, Mutex, MutexGuard};

use axum::Router;
use axum::body::Body;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode, header};
use axum::response::Response;
use axum::routing::{get, post};
use bytes::Bytes;
use futures_util::stream::{self, StreamExt};
use serde_json::{Value, json};

use behaviour::{Act, FIRST_SENTENCE, Reply};
use shape::Shape;

/// The only rejected key. Any other key is accepted, and no key is required.
pub const WRONG_KEY: &str = "wrong";

/// The pause of a model that writes slowly.
const SLOW_MS: u64 = 5_000;

/// A running fake. It lives as long as the process.
pub struct OpenAi {
    /// The address it listens on.
    pub address: SocketAddr,
    seen: Arc<Seen>,
}

/// A received request.
#[derive(Debug, Clone, PartialEq)]
pub struct Asked {
    /// The `Authorization` header; empty for none.
    pub authorization: String,
    /// `model`.
    pub model: String,
    /// The whole body.
    pub body: Value,
}

#[derive(Default)]
struct Seen {
    asked: Mutex<Vec<Asked>>,
    /// Pairs of key and model seen so far: some models behave differently the first time.
    known: Mutex<BTreeSet<(String, String)>>,
    /// What is said on the telephone, by the key term of the transcription.
    said: Mutex<BTreeMap<String, VecDeque<String>>>,
    spoken: Mutex<Vec<String>>,
}

impl OpenAi {
    /// Starts one on a free port, on its own thread.
    pub fn start() -> Self {
        let listener = std::net::TcpListener::bind("127.0.0.1:0").expect("a port is free");
        listener.set_nonblocking(true).expect("a socket can be told not to block");
        let address = listener.local_addr().expect("it is bound");
        let seen = Arc::<Seen>::default();
        let router = Router::new()
            .route("/v1/chat/completions", post(completions))
            .route("/v1/models", get(models))
            .route("/v1/audio/speech", post(speech::speech))
            .route("/v1/audio/transcriptions", post(speech::transcription))
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

    /// The value for `base_url`.
    pub fn base_url(&self) -> String {
        format!("http://{}/v1", self.address)
    }

    /// The next utterances with this key term (`prompt`) are transcribed as these texts. Further ones have no words.
    pub fn will_hear(&self, term: &str, texts: &[&str]) {
        let texts = texts.iter().map(|text| (*text).to_owned());
        lock(&self.seen.said).entry(term.to_owned()).or_default().extend(texts);
    }

    /// The texts that its voices have spoken, oldest first.
    pub fn spoken(&self) -> Vec<String> {
        lock(&self.seen.spoken).clone()
    }

    /// The requests with this key, oldest first.
    pub fn asked(&self, key: &str) -> Vec<Asked> {
        let authorization = format!("Bearer {key}");
        let asked = lock(&self.seen.asked);
        asked.iter().filter(|asked| asked.authorization == authorization).cloned().collect()
    }
}

async fn models(headers: HeaderMap) -> Response {
    if let Some(refusal) = wrong_key(&headers) {
        return refusal;
    }
    let models = behaviour::MODELS.iter().map(
        |(name, _)| json!({"id": name, "object": "model", "created": 1_700_000_000, "owned_by": "fake"}),
    );
    json_response(200, &json!({"object": "list", "data": models.collect::<Vec<_>>()}))
}

async fn completions(State(seen): State<Arc<Seen>>, headers: HeaderMap, body: Bytes) -> Response {
    if let Some(refusal) = wrong_key(&headers) {
        return refusal;
    }
    let Ok(body) = serde_json::from_slice::<Value>(&body) else {
        return error(400, "We could not parse the JSON body of your request.", "invalid_request_error", "");
    };
    let text = |name: header::HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    let authorization = text(header::AUTHORIZATION).unwrap_or_default().to_owned();
    let model = body["model"].as_str().unwrap_or_default().to_owned();
    let asked = Asked { authorization: authorization.clone(), model: model.clone(), body: body.clone() };
    lock(&seen.asked).push(asked);
    if let Some(message) = check::problem(&body) {
        return error(400, &message, "invalid_request_error", "");
    }
    let first = lock(&seen.known).insert((authorization, model.clone()));
    match behaviour::act(&model, &body, first) {
        Act::Reply(reply) => completion(&body, &reply),
        Act::Error { status, message, kind, code, param } => {
            let mut response = error_with(status, &message, kind, code, param);
            if status == 429 {
                response.headers_mut().insert(header::RETRY_AFTER, header::HeaderValue::from_static("1"));
            }
            response
        }
        Act::Raw(status, content_type, text) => raw(status, content_type, Body::from(text)),
        Act::Cut(text) => {
            let begun = [Ok(Bytes::from(shape::text_event(&body, text)))];
            let cut = stream::once(async {
                // The pause makes sure that the first part is sent before the error.
                tokio::time::sleep(std::time::Duration::from_millis(50)).await;
                Err(std::io::Error::other("cut off on purpose"))
            });
            raw(200, "text/event-stream", Body::from_stream(stream::iter(begun).chain(cut)))
        }
        Act::Slow(reply) => {
            let events = shape::events(&body, &reply, reply.shape);
            let (mut text, mut begun) = (String::new(), 0);
            while !text.contains(FIRST_SENTENCE) {
                text.extend(shape::text_of(&events[begun]));
                begun += 1;
            }
            let pause = stream::once(async {
                tokio::time::sleep(std::time::Duration::from_millis(SLOW_MS)).await;
                Ok::<_, Infallible>(Bytes::new())
            });
            let (first, rest) = (events[..=begun].to_vec(), events[begun + 1..].to_vec());
            let pieces = stream::iter(first.into_iter().map(Ok)).chain(pause);
            let pieces = pieces.chain(stream::iter(rest.into_iter().map(Ok)));
            raw(200, "text/event-stream", Body::from_stream(pieces))
        }
        Act::Endless => {
            let piece = shape::text_event(&body, "and so on ".repeat(100).as_str());
            let pieces = stream::repeat(Ok::<_, Infallible>(Bytes::from(piece)));
            raw(200, "text/event-stream", Body::from_stream(pieces))
        }
        Act::Hang => std::future::pending().await,
        Act::HangHalfway => {
            let piece = shape::text_event(&body, "One moment");
            let begun = stream::iter([Ok::<_, Infallible>(Bytes::from(piece))]).chain(stream::pending());
            raw(200, "text/event-stream", Body::from_stream(begun))
        }
    }
}

/// The reply, streamed if requested and if the shape allows it.
fn completion(body: &Value, reply: &Reply) -> Response {
    if body["stream"] != true || reply.shape == Shape::NotStreamed {
        return json_response(200, &shape::whole(body, reply));
    }
    let events = shape::events(body, reply, reply.shape);
    let pieces = stream::iter(events.into_iter().map(Ok::<_, Infallible>));
    raw(200, "text/event-stream; charset=utf-8", Body::from_stream(pieces))
}

fn wrong_key(headers: &HeaderMap) -> Option<Response> {
    let key = headers.get(header::AUTHORIZATION)?.to_str().ok()?.strip_prefix("Bearer ")?;
    let message =
        format!("Incorrect API key provided: {key}. You can find your API key at https://x.example.");
    (key == WRONG_KEY).then(|| error(401, &message, "invalid_request_error", "invalid_api_key"))
}

fn error(status: u16, message: &str, kind: &str, code: &str) -> Response {
    error_with(status, message, kind, code, "")
}

fn error_with(status: u16, message: &str, kind: &str, code: &str, param: &str) -> Response {
    let or_null = |text: &str| if text.is_empty() { Value::Null } else { text.into() };
    let error = json!({"message": message, "type": kind, "param": or_null(param), "code": or_null(code)});
    json_response(status, &json!({ "error": error }))
}

fn json_response(status: u16, value: &Value) -> Response {
    raw(status, "application/json", Body::from(value.to_string()))
}

fn raw(status: u16, content_type: &'static str, body: Body) -> Response {
    let mut response = Response::new(body);
    *response.status_mut() = StatusCode::from_u16(status).expect("it is a status");
    response.headers_mut().insert(header::CONTENT_TYPE, header::HeaderValue::from_static(content_type));
    response
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
}
