//! A webhook receiver on this machine: accepts events over real sockets and responds, correctly or not, as configured.
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use http::HeaderMap;
use http::header::{HeaderName, HeaderValue};

/// The behaviour of a receiver.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum ReceiverBehaviour {
    /// Answers with this status.
    Status(u16),
    /// Answers with this status and this header.
    With(u16, &'static str, String),
    /// Answers 200 with this text, as a page.
    Says(&'static str),
    /// Reads the request and never answers.
    Hang,
    /// Reads the request and answers once the behaviour is another one.
    Hold,
    /// Closes the connection.
    Reset,
    /// Answers with this status and an endless body.
    Flood(u16),
    /// Answers with this status and the beginning of a body that never ends.
    Stall(u16),
}

/// A received request.
#[derive(Debug, Clone)]
pub struct Received {
    /// When it was complete.
    pub at: Instant,
    /// `POST`, …
    pub method: String,
    /// Its headers.
    pub headers: HeaderMap,
    /// Its body.
    pub body: Vec<u8>,
    /// Whether the response is a 2xx, after which the sender must record the delivery.
    pub accepted: bool,
}

impl Received {
    /// A header as text.
    #[track_caller]
    pub fn header(&self, name: &str) -> &str {
        self.headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_else(|| panic!("no {name}"))
    }
}

/// A listening receiver; it lives as long as the process.
#[derive(Clone)]
pub struct Receiver {
    address: SocketAddr,
    state: Arc<Mutex<State>>,
}

struct State {
    behaviour: ReceiverBehaviour,
    received: Vec<Received>,
}

impl Receiver {
    /// Starts one on a free port.
    pub fn start(behaviour: ReceiverBehaviour) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").expect("a free port");
        let address = listener.local_addr().expect("an address");
        let state = Arc::new(Mutex::new(State { behaviour, received: Vec::new() }));
        let receiver = Self { address, state };
        let ours = receiver.clone();
        std::thread::spawn(move || {
            for stream in listener.incoming().map_while(Result::ok) {
                let ours = ours.clone();
                std::thread::spawn(move || ours.serve(stream));
            }
        });
        receiver
    }

    /// Its URL.
    pub fn url(&self) -> String {
        format!("http://{}/events", self.address)
    }

    /// Changes the behaviour.
    pub fn set(&self, behaviour: ReceiverBehaviour) {
        self.lock().behaviour = behaviour;
    }

    /// The requests so far.
    pub fn received(&self) -> Vec<Received> {
        self.lock().received.clone()
    }

    /// The number of requests so far.
    pub fn count(&self) -> usize {
        self.lock().received.len()
    }

    /// Waits for this many requests.
    #[track_caller]
    pub fn wait_for(&self, count: usize, timeout: Duration) -> Vec<Received> {
        let deadline = Instant::now() + timeout;
        while self.count() < count {
            assert!(Instant::now() < deadline, "{} of {count} requests arrived", self.count());
            std::thread::sleep(Duration::from_millis(5));
        }
        self.received()
    }

    fn once_released(&self, mut behaviour: ReceiverBehaviour) -> ReceiverBehaviour {
        while behaviour == ReceiverBehaviour::Hold {
            std::thread::sleep(Duration::from_millis(5));
            behaviour = self.lock().behaviour.clone();
        }
        behaviour
    }

    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn serve(&self, stream: TcpStream) {
        let _ = stream.set_nodelay(true);
        let mut reader = BufReader::new(stream);
        // An error means that the other side closed the connection.
        while let Ok(Some(mut received)) = read(&mut reader) {
            let behaviour = {
                let mut state = self.lock();
                received.accepted = matches!(
                    state.behaviour,
                    ReceiverBehaviour::Status(200..300)
                        | ReceiverBehaviour::Flood(200..300)
                        | ReceiverBehaviour::Stall(200..300)
                        | ReceiverBehaviour::Says(_)
                );
                state.received.push(received);
                state.behaviour.clone()
            };
            let behaviour = self.once_released(behaviour);
            if !answer(reader.get_mut(), &behaviour).unwrap_or(false) {
                return;
            }
        }
    }
}

/// Whether the connection stays open.
fn answer(stream: &mut TcpStream, behaviour: &ReceiverBehaviour) -> std::io::Result<bool> {
    match behaviour {
        // A response without content has no body (RFC 9110, 15.3.5): one would be read as the next response.
        ReceiverBehaviour::Status(204) => {
            write!(stream, "HTTP/1.1 204 X\r\n\r\n")?;
            Ok(true)
        }
        ReceiverBehaviour::Status(status) => {
            write!(stream, "HTTP/1.1 {status} X\r\ncontent-length: 2\r\n\r\nok")?;
            Ok(true)
        }
        ReceiverBehaviour::With(status, name, value) => {
            write!(stream, "HTTP/1.1 {status} X\r\n{name}: {value}\r\ncontent-length: 2\r\n\r\nno")?;
            Ok(true)
        }
        ReceiverBehaviour::Says(text) => {
            let length = text.len();
            write!(
                stream,
                "HTTP/1.1 200 X\r\ncontent-type: text/html\r\ncontent-length: {length}\r\n\r\n{text}"
            )?;
            Ok(true)
        }
        ReceiverBehaviour::Hang | ReceiverBehaviour::Hold => {
            // Waits until the other side gives up.
            let _ = stream.read(&mut [0; 1]);
            Ok(false)
        }
        ReceiverBehaviour::Reset => Ok(false),
        ReceiverBehaviour::Stall(status) => {
            write!(stream, "HTTP/1.1 {status} X\r\ntransfer-encoding: chunked\r\n\r\n2\r\nok\r\n")?;
            Ok(true)
        }
        ReceiverBehaviour::Flood(status) => {
            write!(stream, "HTTP/1.1 {status} X\r\nconnection: close\r\n\r\n")?;
            loop {
                stream.write_all(&[b'x'; 16 * 1024])?;
            }
        }
    }
}

fn read(reader: &mut BufReader<TcpStream>) -> std::io::Result<Option<Received>> {
    let mut line = String::new();
    if reader.read_line(&mut line)? == 0 {
        return Ok(None);
    }
    let method = line.split(' ').next().unwrap_or_default().to_owned();
    let mut headers = HeaderMap::new();
    loop {
        line.clear();
        reader.read_line(&mut line)?;
        let Some((name, value)) = line.trim_end().split_once(':') else { break };
        let name = HeaderName::from_bytes(name.as_bytes()).map_err(std::io::Error::other)?;
        headers.append(name, HeaderValue::from_str(value.trim()).map_err(std::io::Error::other)?);
    }
    let length = headers.get("content-length").and_then(|value| value.to_str().ok()?.parse().ok());
    let mut body = vec![0; length.unwrap_or(0)];
    reader.read_exact(&mut body)?;
    Ok(Some(Received { at: Instant::now(), method, headers, body, accepted: false }))
}
