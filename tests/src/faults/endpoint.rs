//! The endpoint for a scenario's tools: it records every call and answers at once or after a delay.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use bytes::Bytes;
use serde_json::Value;
use sidetone_engine::ports::{HttpError, HttpReply, HttpRequest};

/// The answer to every call.
const ANSWER: &str = r#"{"status":"on its way"}"#;
/// How long to wait for an expected call.
const CALL_MS: u64 = 30_000;

/// A received tool call.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ToolCall {
    /// The Idempotency-Key, which is also the body's `id`.
    pub id: String,
    /// The run that sent it.
    pub run_id: String,
}

/// A server on this machine. It listens until the process ends.
#[derive(Clone)]
pub struct Endpoint {
    address: SocketAddr,
    state: Arc<State>,
}

#[derive(Default)]
struct State {
    calls: Mutex<Vec<ToolCall>>,
    answer_after_ms: AtomicU64,
}

impl Endpoint {
    /// Starts listening.
    pub fn start() -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a port is free");
        let address = listener.local_addr().expect("it has an address");
        let endpoint = Self { address, state: Arc::default() };
        let served = endpoint.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let endpoint = served.clone();
                // The connection breaks if the caller is killed.
                std::thread::spawn(move || endpoint.serve(stream).ok());
            }
        });
        endpoint
    }

    /// The URL for a tool.
    pub fn url(&self) -> String {
        format!("http://{}/orders", self.address)
    }

    /// Delays the answers from now on by this many milliseconds.
    pub fn answer_after(&self, ms: u64) {
        self.state.answer_after_ms.store(ms, Ordering::SeqCst);
    }

    /// The calls so far, in order.
    pub fn calls(&self) -> Vec<ToolCall> {
        self.lock().clone()
    }

    /// Waits for this many calls.
    #[track_caller]
    pub fn wait_for_calls(&self, count: usize) {
        let started = Instant::now();
        while self.lock().len() < count {
            assert!(started.elapsed() < Duration::from_millis(CALL_MS), "no call came: {:?}", self.calls());
            std::thread::sleep(Duration::from_millis(5));
        }
    }

    /// Answers a call without a socket.
    pub fn answer(&self, request: &HttpRequest) -> Result<HttpReply, HttpError> {
        let key = request.headers.iter().find(|(name, _)| *name == "idempotency-key");
        self.note(key.map(|(_, value)| value.as_str()), &request.body);
        Ok(HttpReply { status: 200, headers: Vec::new(), body: Bytes::from_static(ANSWER.as_bytes()) })
    }

    fn serve(&self, stream: TcpStream) -> std::io::Result<()> {
        let mut reader = BufReader::new(stream);
        let (mut key, mut length) = (None, 0);
        loop {
            let mut line = String::new();
            if reader.read_line(&mut line)? == 0 {
                // Connections may close without a request.
                return Ok(());
            }
            let Some((name, value)) = line.trim_end().split_once(": ") else {
                if line.trim_end().is_empty() {
                    break;
                }
                continue;
            };
            match name.to_ascii_lowercase().as_str() {
                "idempotency-key" => key = Some(value.to_owned()),
                "content-length" => length = value.parse().map_err(std::io::Error::other)?,
                _ => {}
            }
        }
        let mut body = vec![0; length];
        reader.read_exact(&mut body)?;
        // Reads the delay first: a test that waits for this call may change it for the next one.
        let answer_after_ms = self.state.answer_after_ms.load(Ordering::SeqCst);
        self.note(key.as_deref(), &body);
        std::thread::sleep(Duration::from_millis(answer_after_ms));
        let mut stream = reader.into_inner();
        write!(
            stream,
            "HTTP/1.1 200 OK\r\ncontent-length: {}\r\nconnection: close\r\n\r\n{ANSWER}",
            ANSWER.len()
        )
    }

    fn note(&self, key: Option<&str>, body: &[u8]) {
        let body: Value = serde_json::from_slice(body).unwrap_or_default();
        let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
        if text(&body["type"]) != "tool.call" {
            // A webhook event. This endpoint ignores it.
            return;
        }
        let id = text(&body["id"]);
        let run_id = id.rsplit_once("_t").map(|(run_id, _)| run_id.to_owned()).unwrap_or_default();
        let call = ToolCall { id, run_id };
        assert_eq!(key, Some(call.id.as_str()), "key and body contain the same id");
        self.lock().push(call);
    }

    fn lock(&self) -> MutexGuard<'_, Vec<ToolCall>> {
        self.state.calls.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}
