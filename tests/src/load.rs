//! A simple load generator: many keep-alive connections on one thread, each with one request in flight.
use std::net::SocketAddr;
use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::net::TcpStream;

use crate::process::request_head;

/// The parameters of a load.
#[derive(Clone)]
pub struct Load {
    /// The server's address.
    pub address: SocketAddr,
    /// The number of connections.
    pub connections: usize,
    /// The duration.
    pub time: Duration,
    /// Serialized requests, sent in turn.
    pub requests: Arc<[Vec<u8>]>,
    /// The status that every response must have.
    pub status: u16,
}

/// The result of a load.
#[derive(Debug, Clone, Default)]
pub struct Measured {
    /// Number of responses.
    pub answers: usize,
    /// Time from the first request to the last response.
    pub time: Duration,
    /// Latencies in microseconds, sorted.
    pub latencies_us: Vec<u32>,
}

impl Measured {
    /// Responses per second.
    pub fn rate(&self) -> f64 {
        self.answers as f64 / self.time.as_secs_f64()
    }

    /// The latency at this quantile (0 to 1).
    pub fn latency_us(&self, share: f64) -> u32 {
        let last = self.latencies_us.len().saturating_sub(1);
        self.latencies_us.get((last as f64 * share) as usize).copied().unwrap_or(0)
    }
}

/// Serialized requests: one for each path, or, with bodies, one to the first path for each body.
pub fn requests(method: &str, paths: &[&str], key: &str, bodies: &[Value]) -> Arc<[Vec<u8>]> {
    let request = |path: &str, body: Option<&Value>| {
        let body = body.map(Value::to_string).unwrap_or_default();
        (request_head(method, path, key, &[], body.len()) + &body).into_bytes()
    };
    match bodies {
        [] => paths.iter().map(|path| request(path, None)).collect(),
        some => some.iter().map(|body| request(paths[0], Some(body))).collect(),
    }
}

/// Runs the load on its own thread.
pub fn run(load: &Load) -> Measured {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().expect("a runtime");
    runtime.block_on(async {
        let next = Arc::new(AtomicUsize::new(0));
        // Connecting is not measured.
        let mut streams = Vec::new();
        for _ in 0..load.connections {
            let stream = TcpStream::connect(load.address).await.expect("the server accepts");
            stream.set_nodelay(true).expect("a TCP option");
            streams.push(stream);
        }
        let started = Instant::now();
        let deadline = started + load.time;
        let tasks: Vec<_> = streams
            .into_iter()
            .map(|stream| tokio::spawn(ask(stream, load.clone(), next.clone(), deadline)))
            .collect();
        let mut measured = Measured::default();
        for task in tasks {
            measured.latencies_us.extend(task.await.expect("no connection fails"));
        }
        measured.time = started.elapsed();
        measured.answers = measured.latencies_us.len();
        measured.latencies_us.sort_unstable();
        measured
    })
}

async fn ask(mut stream: TcpStream, load: Load, next: Arc<AtomicUsize>, deadline: Instant) -> Vec<u32> {
    let mut latencies_us = Vec::new();
    let mut buffer = Vec::with_capacity(128 * 1024);
    while Instant::now() < deadline {
        let request = &load.requests[next.fetch_add(1, Ordering::Relaxed) % load.requests.len()];
        let asked = Instant::now();
        stream.write_all(request).await.expect("the server reads");
        let status = read_answer(&mut stream, &mut buffer).await;
        assert_eq!(status, load.status, "{}", String::from_utf8_lossy(&buffer));
        latencies_us.push(u32::try_from(asked.elapsed().as_micros()).unwrap_or(u32::MAX));
    }
    latencies_us
}

/// Reads one response with a Content-Length; returns its status.
async fn read_answer(stream: &mut TcpStream, buffer: &mut Vec<u8>) -> u16 {
    buffer.clear();
    let mut whole = None;
    loop {
        let read = stream.read_buf(buffer).await.expect("the server answers");
        assert!(read > 0, "the server closed the connection");
        if whole.is_none()
            && let Some(end) = buffer.windows(4).position(|bytes| bytes == b"\r\n\r\n")
        {
            whole = Some(end + 4 + content_length(&buffer[..end]));
        }
        if whole.is_some_and(|whole| buffer.len() >= whole) {
            return std::str::from_utf8(&buffer[9..12]).ok().and_then(|text| text.parse().ok()).unwrap_or(0);
        }
    }
}

fn content_length(head: &[u8]) -> usize {
    const NAME: &[u8] = b"\r\ncontent-length: ";
    let at = head
        .windows(NAME.len())
        .position(|bytes| bytes.eq_ignore_ascii_case(NAME))
        .expect("answers have a length");
    head[at + NAME.len()..]
        .iter()
        .take_while(|byte| byte.is_ascii_digit())
        .fold(0, |number, digit| number * 10 + usize::from(digit - b'0'))
}
