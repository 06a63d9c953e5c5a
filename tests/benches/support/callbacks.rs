//! The four carriers' callbacks as bytes over keep-alive connections.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use sidetone_tests::fakes::carrier::all::BASE_URL;
use sidetone_tests::fakes::carrier::{CallEvent, CallbackRequest, Carriers, PhoneCall, Public, Wire};
use sidetone_tests::process::Server;

use crate::desk;

/// The shortest timeout of the carriers (Vonage, "Voice API Webhooks Reference").
const TIMEOUT_MS: u64 = 5_000;

/// The binary with an account at each carrier.
pub fn start(data: &Path, key: &str) -> Server {
    let mut settings = desk::settings();
    settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.to_owned()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::start(data, &settings);
    Carriers::shared().serve(server.address());
    server
}

/// The carrier's callback for an event that happens now; `None` if it has none.
pub fn callback(wire: &dyn Wire, call: &PhoneCall, event: &CallEvent, nth: u32) -> Option<CallbackRequest> {
    let public = Public { base_url: BASE_URL.to_owned() };
    wire.callback(&public, call, event, nth, now_ms() / 1_000)
}

pub fn now_ms() -> i64 {
    let since = SystemTime::now().duration_since(UNIX_EPOCH).expect("the clock is past 1970");
    i64::try_from(since.as_millis()).expect("a time")
}

/// The result of a callback.
pub struct Sent {
    /// From the first byte of the request to the last byte of the response.
    pub time: Duration,
    /// The problem with the response, if any.
    pub problem: Option<String>,
}

/// A carrier's connection to the service, with one callback at a time.
pub struct Line {
    address: SocketAddr,
    stream: Option<BufReader<TcpStream>>,
}

impl Line {
    /// Connects on first use.
    pub fn new(address: SocketAddr) -> Self {
        Self { address, stream: None }
    }

    /// Sends a callback and reads the response.
    pub fn send(&mut self, callback: &CallbackRequest) -> Sent {
        let target = callback.url.strip_prefix(BASE_URL).expect("a URL of the service");
        let mut request = format!("{} {target} HTTP/1.1\r\nhost: sidetone.example\r\n", callback.method);
        for (name, value) in &callback.headers {
            request.push_str(&format!("{name}: {value}\r\n"));
        }
        if callback.method != "GET" {
            request.push_str(&format!("content-length: {}\r\n", callback.body.len()));
        }
        request.push_str("\r\n");
        let request = [request.as_bytes(), &callback.body].concat();
        let began = Instant::now();
        let answer = self.exchange(&request);
        let time = began.elapsed();
        let problem = match answer {
            Err(error) => {
                self.stream = None;
                Some(format!("{}: {error}", callback.url))
            }
            Ok((200..=299, _)) if time > Duration::from_millis(TIMEOUT_MS) => {
                Some(format!("{}: {time:?} is too slow", callback.url))
            }
            Ok((200..=299, _)) => None,
            Ok((status, body)) => Some(format!("{}: {status} {body}", callback.url)),
        };
        Sent { time, problem }
    }

    fn exchange(&mut self, request: &[u8]) -> std::io::Result<(u16, String)> {
        let stream = match &mut self.stream {
            Some(stream) => stream,
            empty => {
                let stream = TcpStream::connect(self.address)?;
                stream.set_nodelay(true)?;
                stream.set_read_timeout(Some(Duration::from_millis(2 * TIMEOUT_MS)))?;
                empty.insert(BufReader::new(stream))
            }
        };
        stream.get_mut().write_all(request)?;
        let mut head = String::new();
        while !head.ends_with("\r\n\r\n") {
            if stream.read_line(&mut head)? == 0 {
                return Err(std::io::Error::other("the connection ended"));
            }
        }
        let length = |line: &str| {
            line.to_ascii_lowercase().strip_prefix("content-length:")?.trim().parse::<usize>().ok()
        };
        let mut body = vec![0; head.lines().find_map(length).unwrap_or(0)];
        stream.read_exact(&mut body)?;
        let status = head.split(' ').nth(1).and_then(|word| word.parse().ok());
        Ok((status.unwrap_or(0), String::from_utf8_lossy(&body).into_owned()))
    }
}
