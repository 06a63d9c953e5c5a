//! The carrier's end of a media socket, on its own thread: plays received audio, confirms marks, and sends a frame every 20 ms
//! like a telephone line, with silence in pauses.
use std::collections::VecDeque;
use std::io::ErrorKind;
use std::net::{Shutdown, SocketAddr, TcpStream};
use std::sync::mpsc::{Receiver, Sender, TryRecvError, channel};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::{Duration, Instant};

use tungstenite::client::IntoClientRequest;
use tungstenite::protocol::CloseFrame;
use tungstenite::protocol::frame::coding::CloseCode;
use tungstenite::{Error, HandshakeError, Message, WebSocket};

use super::speaker::Speaker;
use super::wire::{FromService, MediaWire, WireMessage};

/// Polling interval for messages.
const LOOK_MS: u64 = 3;
/// Size of the carrier's playback buffer: the smallest documented one (Plivo: 40 s).
const BUFFER_MS_MAX: u64 = 40_000;
/// Timeout for the answer to a close frame.
const CLOSE_MS: u64 = 5_000;

/// How a media socket ended.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Closed {
    /// The service closed it with this code.
    ByService(Option<u16>),
    /// The carrier closed it, or the connection was dropped.
    ByCarrier,
    /// The connection broke.
    Broken(String),
}

/// An open media socket.
pub(super) struct Line {
    shared: Arc<Shared>,
    orders: Sender<LineCommand>,
}

struct Shared {
    state: Mutex<State>,
    changed: Condvar,
    media: Mutex<Box<dyn MediaWire>>,
}

pub(super) struct State {
    pub(super) speaker: Speaker,
    pub(super) closed: Option<Closed>,
    /// Violations of the carrier's protocol by the service.
    pub(super) problems: Vec<String>,
    /// Number of messages from the service.
    pub(super) messages: usize,
}

enum LineCommand {
    Begin,
    Say(Vec<i16>, Sender<()>),
    SayAtOnce(Vec<i16>),
    Key(char),
    Raw(WireMessage),
    Mute,
    Stop,
    Close,
    DropConnection,
}

/// Why the socket was not opened.
#[derive(Debug)]
pub enum OpenError {
    /// The service responded with this status and body instead.
    Refused(u16, String),
    /// The connection broke.
    Broken(String),
}

impl Line {
    /// Opens the socket without sending anything.
    pub(super) fn open(
        address: SocketAddr,
        path: &str,
        headers: &[(&'static str, String)],
        media: Box<dyn MediaWire>,
        pace: f64,
    ) -> Result<Self, OpenError> {
        let socket = connect(address, path, headers)?;
        let (orders, to_do) = channel();
        let speaker = Speaker::new(media.rate_hz(), pace, Instant::now());
        let state = Mutex::new(State { speaker, closed: None, problems: Vec::new(), messages: 0 });
        let shared = Arc::new(Shared { state, changed: Condvar::new(), media: Mutex::new(media) });
        let frame = Duration::from_secs_f64(0.020 / pace);
        let ours = shared.clone();
        std::thread::spawn(move || {
            let mut end = End {
                socket,
                shared: ours,
                frame,
                mic: VecDeque::new(),
                next: None,
                begun: false,
                closing: None,
            };
            let closed = end.run(&to_do);
            end.shared.lock().closed.get_or_insert(closed);
            end.shared.changed.notify_all();
        });
        Ok(Self { shared, orders })
    }

    /// Sends the first messages. The line is connected afterwards.
    pub(super) fn begin(&self) {
        self.order(LineCommand::Begin);
    }

    /// Sends audio in real time; returns when it was sent or the line is closed.
    pub(super) fn say(&self, samples: &[i16]) {
        let (done, said) = channel();
        self.order(LineCommand::Say(samples.to_vec(), done));
        let _ = said.recv();
    }

    pub(super) fn say_at_once(&self, samples: &[i16]) {
        self.order(LineCommand::SayAtOnce(samples.to_vec()));
    }

    pub(super) fn key(&self, key: char) {
        self.order(LineCommand::Key(key));
    }

    pub(super) fn raw(&self, message: WireMessage) {
        self.order(LineCommand::Raw(message));
    }

    /// Stops sending silence in pauses.
    pub(super) fn mute(&self) {
        self.order(LineCommand::Mute);
    }

    /// Sends the last messages; the socket stays open.
    pub(super) fn stop(&self) {
        self.order(LineCommand::Stop);
    }

    pub(super) fn close(&self) {
        self.order(LineCommand::Close);
    }

    pub(super) fn drop_connection(&self) {
        self.order(LineCommand::DropConnection);
    }

    pub(super) fn rate_hz(&self) -> u32 {
        self.shared.media().rate_hz()
    }

    /// Encodes a frame without sending it.
    pub(super) fn encode(&self, samples: &[i16]) -> WireMessage {
        self.shared.media().audio(samples)
    }

    /// Reads the state.
    pub(super) fn look<T>(&self, look: impl FnOnce(&State) -> T) -> T {
        look(&self.shared.lock())
    }

    /// Waits until `look` returns a value; `None` after the timeout. Calls `look` after every change, and every few milliseconds
    /// because conditions may depend on time.
    pub(super) fn wait<T>(&self, timeout: Duration, mut look: impl FnMut(&State) -> Option<T>) -> Option<T> {
        let deadline = Instant::now() + timeout;
        let mut state = self.shared.lock();
        loop {
            if let Some(found) = look(&state) {
                return Some(found);
            }
            if Instant::now() >= deadline {
                return None;
            }
            let moment = Duration::from_millis(10);
            state = self
                .shared
                .changed
                .wait_timeout(state, moment)
                .unwrap_or_else(|broken| broken.into_inner())
                .0;
        }
    }

    fn order(&self, order: LineCommand) {
        // A closed line ignores commands.
        let _ = self.orders.send(order);
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }

    fn media(&self) -> MutexGuard<'_, Box<dyn MediaWire>> {
        self.media.lock().unwrap_or_else(|poisoned| poisoned.into_inner())
    }
}

/// The state of the thread.
struct End {
    socket: WebSocket<TcpStream>,
    shared: Arc<Shared>,
    /// The interval of frames.
    frame: Duration,
    /// Audio to send, each with a channel for the notification afterwards.
    mic: VecDeque<(VecDeque<i16>, Sender<()>)>,
    /// When the next frame is due; `None` while muted without audio.
    next: Option<Instant>,
    /// Whether the first messages were sent; the last messages are sent only after them.
    begun: bool,
    /// When the close frame was sent.
    closing: Option<Instant>,
}

impl End {
    fn run(&mut self, to_do: &Receiver<LineCommand>) -> Closed {
        loop {
            match to_do.try_recv() {
                Ok(LineCommand::DropConnection) | Err(TryRecvError::Disconnected) => {
                    let _ = self.socket.get_ref().shutdown(Shutdown::Both);
                    return Closed::ByCarrier;
                }
                Ok(order) => {
                    self.execute(order);
                    continue;
                }
                Err(TryRecvError::Empty) => {}
            }
            self.play();
            self.speak();
            if self.closing.is_some_and(|since| since.elapsed() > Duration::from_millis(CLOSE_MS)) {
                return Closed::Broken("the service does not answer the close frame".to_owned());
            }
            if let Some(closed) = self.listen() {
                return closed;
            }
        }
    }

    fn execute(&mut self, order: LineCommand) {
        match order {
            LineCommand::Begin => {
                let opening = self.shared.media().opening();
                self.send_all(opening);
                (self.begun, self.next) = (true, Some(Instant::now()));
            }
            LineCommand::Say(samples, done) => {
                self.mic.push_back((samples.into(), done));
                self.next.get_or_insert_with(Instant::now);
            }
            LineCommand::SayAtOnce(samples) => {
                let frame_samples = self.frame_samples();
                for frame in samples.chunks(frame_samples) {
                    let mut frame = frame.to_vec();
                    frame.resize(frame_samples, 0);
                    let message = self.shared.media().audio(&frame);
                    self.send(message);
                }
            }
            LineCommand::Key(key) => {
                let message = self.shared.media().key(key);
                self.send(message);
            }
            LineCommand::Raw(message) => self.send(message),
            LineCommand::Mute => self.next = None,
            LineCommand::Stop => self.stop(),
            LineCommand::Close => {
                self.stop();
                let frame = CloseFrame { code: CloseCode::Normal, reason: "".into() };
                let _ = self.socket.close(Some(frame));
                self.closing = Some(Instant::now());
            }
            LineCommand::DropConnection => {}
        }
    }

    /// Sends the last messages, once.
    fn stop(&mut self) {
        self.next = None;
        if std::mem::take(&mut self.begun) {
            let closing = self.shared.media().closing();
            self.send_all(closing);
        }
    }

    /// Plays due audio and confirms the marks that were passed.
    fn play(&mut self) {
        let passed = self.shared.lock().speaker.play(Instant::now());
        for name in passed {
            let message = self.shared.media().played(&name);
            self.send(message);
        }
        self.shared.changed.notify_all();
    }

    /// Sends the frames that are due.
    fn speak(&mut self) {
        while let Some(due) = self.next.filter(|due| *due <= Instant::now()) {
            let frame_samples = self.frame_samples();
            let mut frame = Vec::with_capacity(frame_samples);
            if let Some((samples, _)) = self.mic.front_mut() {
                frame.extend(samples.drain(..frame_samples.min(samples.len())));
                if samples.is_empty()
                    && let Some((_, done)) = self.mic.pop_front()
                {
                    // The waiting test may have timed out.
                    let _ = done.send(());
                }
            }
            frame.resize(frame_samples, 0);
            let message = self.shared.media().audio(&frame);
            self.send(message);
            self.next = Some(due + self.frame);
        }
    }

    /// Processes the next message, if one arrives soon.
    fn listen(&mut self) -> Option<Closed> {
        let message = match self.socket.read() {
            Ok(Message::Text(text)) => WireMessage::Text(text.as_str().to_owned()),
            Ok(Message::Binary(bytes)) => WireMessage::Binary(bytes.to_vec()),
            Ok(Message::Close(_)) if self.closing.is_some() => return Some(Closed::ByCarrier),
            Ok(Message::Close(frame)) => {
                // Completes the closing handshake.
                let _ = self.socket.flush();
                return Some(Closed::ByService(frame.map(|frame| frame.code.into())));
            }
            Ok(_) => return None,
            Err(Error::Io(error))
                if matches!(
                    error.kind(),
                    ErrorKind::WouldBlock | ErrorKind::TimedOut | ErrorKind::Interrupted
                ) =>
            {
                return None;
            }
            Err(_) if self.closing.is_some() => return Some(Closed::ByCarrier),
            Err(error) => return Some(Closed::Broken(error.to_string())),
        };
        let read = self.shared.media().read(&message);
        let now = Instant::now();
        let mut state = self.shared.lock();
        state.messages += 1;
        let mut answers = Vec::new();
        match read {
            Ok(FromService::Audio(samples)) => {
                state.speaker.audio(samples, now);
                if state.speaker.waiting() > Duration::from_millis(BUFFER_MS_MAX) {
                    state.problems.push("more audio at once than a carrier buffers".to_owned());
                }
            }
            Ok(FromService::Mark(name)) => state.speaker.mark(name, now),
            Ok(FromService::Clear) => {
                let marks = state.speaker.clear();
                answers = self.shared.media().cleared(&marks);
            }
            Err(problem) => state.problems.push(format!("{problem}: {message:?}")),
        }
        drop(state);
        self.shared.changed.notify_all();
        self.send_all(answers);
        None
    }

    fn frame_samples(&self) -> usize {
        self.shared.media().rate_hz() as usize / 50
    }

    fn send_all(&mut self, messages: Vec<WireMessage>) {
        for message in messages {
            self.send(message);
        }
    }

    fn send(&mut self, message: WireMessage) {
        let message = match message {
            WireMessage::Text(text) => Message::text(text),
            WireMessage::Binary(bytes) => Message::binary(bytes),
        };
        // The service may have closed the socket. Its messages can still be read, and reading reports the end.
        let _ = self.socket.send(message);
    }
}

fn connect(
    address: SocketAddr,
    path: &str,
    headers: &[(&'static str, String)],
) -> Result<WebSocket<TcpStream>, OpenError> {
    let socket = handshake(address, path, headers)?;
    let look = Some(Duration::from_millis(LOOK_MS));
    socket.get_ref().set_read_timeout(look).expect("a socket takes timeouts");
    Ok(socket)
}

/// Opens a WebSocket.
pub fn handshake(
    address: SocketAddr,
    path: &str,
    headers: &[(&'static str, String)],
) -> Result<WebSocket<TcpStream>, OpenError> {
    let broken = |what: &dyn std::fmt::Display| OpenError::Broken(what.to_string());
    let stream = crate::wire::connect(address).map_err(|error| broken(&error))?;
    let mut request =
        format!("ws://{address}{path}").into_client_request().map_err(|error| broken(&error))?;
    for (name, value) in headers {
        request.headers_mut().append(*name, value.parse().expect("a header's value"));
    }
    match tungstenite::client(request, stream) {
        Ok((socket, _)) => Ok(socket),
        Err(HandshakeError::Failure(Error::Http(response))) => {
            let body = response.body().as_deref().unwrap_or_default();
            Err(OpenError::Refused(response.status().as_u16(), String::from_utf8_lossy(body).into_owned()))
        }
        Err(error) => Err(broken(&error)),
    }
}
