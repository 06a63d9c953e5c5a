//! The four carriers' callbacks as bytes over keep-alive connections, and a binary with an account at each.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use serde_json::json;
use sidetone_tests::fakes::carrier::all::BASE_URL;
use sidetone_tests::fakes::carrier::plivo::PlivoWire;
use sidetone_tests::fakes::carrier::telnyx::TelnyxWire;
use sidetone_tests::fakes::carrier::twilio::TwilioWire;
use sidetone_tests::fakes::carrier::{
    CallEvent, CallbackRequest, CarrierServer, Carriers, PhoneCall, Public, Wire,
};
use sidetone_tests::process::{Client, Server};

/// The shortest timeout of the carriers (Vonage, "Voice API Webhooks Reference").
const TIMEOUT_MS: u64 = 5_000;
/// The secret that signs URLs for carriers.
const SECRET: &str = "a secret of the benchmark's, long enough for anybody";

/// Settings of a service with an account at each carrier.
pub fn settings() -> Vec<(&'static str, String)> {
    let mut settings = Carriers::shared().settings();
    settings.push(("SIDETONE_SECRET", SECRET.to_owned()));
    settings
}

/// The binary with those settings.
pub fn start(data: &Path, key: &str) -> Server {
    let mut settings = settings();
    settings.push(("SIDETONE_BOOTSTRAP_KEYS", key.to_owned()));
    let settings: Vec<(&str, &str)> = settings.iter().map(|(name, value)| (*name, value.as_str())).collect();
    let server = Server::start(data, &settings);
    Carriers::shared().serve(server.address());
    server
}

/// An assistant with a number at each carrier, in a workspace that allows this number of concurrent calls: the assistant's
/// id, and the numbers in the order of [`wires`].
pub fn desk(client: &mut Client, calls_at_once: usize) -> (String, Vec<String>) {
    client.expect(200, "PATCH", "/workspace", Some(&json!({ "calls_at_once": calls_at_once })));
    let assistant = json!({"name": "Front desk", "instructions": "Be kind.", "voice": "builtin/tone"});
    let assistant = client.expect(201, "POST", "/assistants", Some(&assistant));
    let assistant_id = assistant["id"].as_str().expect("an id").to_owned();
    let bind = |(nth, (carrier, _)): (usize, &(&CarrierServer, Arc<dyn Wire>))| {
        let number = format!("+4420700000{nth}7");
        let body = json!({"assistant_id": assistant_id, "provider": carrier.provider()});
        client.expect(200, "PUT", &format!("/numbers/{number}"), Some(&body));
        number
    };
    let numbers = wires().iter().enumerate().map(bind).collect();
    (assistant_id, numbers)
}

/// Each carrier's fake and protocol.
pub fn wires() -> [(&'static CarrierServer, Arc<dyn Wire>); 4] {
    let carriers = Carriers::shared();
    [
        (carriers.get("twilio"), Arc::new(TwilioWire)),
        (carriers.get("telnyx"), Arc::new(TelnyxWire)),
        (carriers.get("plivo"), Arc::new(PlivoWire)),
        (carriers.get("vonage"), carriers.vonage.clone()),
    ]
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

/// The quantile `share` (0 to 1) of the times, in microseconds.
pub fn quantile_us(times: &[Duration], share: f64) -> f64 {
    let mut times = times.to_vec();
    times.sort_unstable();
    let last = times.len().saturating_sub(1);
    times.get((last as f64 * share) as usize).map_or(f64::NAN, |time| time.as_secs_f64() * 1e6)
}
