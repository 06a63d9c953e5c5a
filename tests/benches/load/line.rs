//! The carrier's end of many media sockets on one thread, in Twilio's protocol ("Media Streams: WebSocket messages"): sends
//! a frame every 20 ms like a telephone line, notes when audio arrives, and confirms marks once they would have been played.
//!
//! The fakes of the tests have a thread for each line, which is too much work for a thousand beside the process under test:
//! here a frame is one format and one write.
use std::cell::{Cell, RefCell};
use std::collections::VecDeque;
use std::fmt::Write as _;
use std::rc::Rc;
use std::time::{Duration, Instant};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::Value;
use sidetone_engine::speech::g711;
use tokio::net::TcpStream;

const FRAME_MS: u64 = 20;
/// Mu-law bytes of a frame.
const FRAME_BYTES: usize = 160;
/// Base64 of mu-law silence has no other character.
const SILENT: u8 = b'/';
const TEXT: u8 = 0x1;
const CLOSE: u8 = 0x8;
const PING: u8 = 0x9;
const PONG: u8 = 0xA;

/// What a caller says in each turn, as payloads of frames.
pub struct Speech(Vec<String>);

impl Speech {
    pub fn new(samples: &[i16]) -> Self {
        let mut coded = g711::encode(samples);
        coded.resize(coded.len().next_multiple_of(FRAME_BYTES), g711::SILENCE);
        Self(coded.chunks(FRAME_BYTES).map(|frame| STANDARD.encode(frame)).collect())
    }
}

/// Audio that arrived in one message.
#[derive(Debug, Clone, Copy)]
pub struct Chunk {
    pub at: Instant,
    /// How much audio arrived before it, since the last [`Line::take_heard`].
    pub from_ms: u64,
    pub ms: u64,
}

/// All lines. Those of a slot send in the same millisecond of each frame.
pub struct Lines {
    slots: RefCell<Vec<Vec<Rc<Line>>>>,
    next: Cell<usize>,
    speech: Speech,
    silence: String,
    /// By how much frames were sent after they were due: the generator's own lateness.
    late: RefCell<Vec<Duration>>,
}

impl Lines {
    pub fn new(speech: Speech) -> Rc<Self> {
        let lines = Rc::new(Self {
            slots: RefCell::new((0..FRAME_MS).map(|_| Vec::new()).collect()),
            next: Cell::new(0),
            speech,
            silence: STANDARD.encode([g711::SILENCE; FRAME_BYTES]),
            late: RefCell::default(),
        });
        tokio::task::spawn_local(lines.clone().pace());
        lines
    }

    /// Starts a line on a socket whose handshake is done. `opening` is what the carrier sends first.
    pub fn open(&self, socket: std::net::TcpStream, opening: &[String]) -> std::io::Result<Rc<Line>> {
        socket.set_nonblocking(true)?;
        let sid = opening.iter().filter_map(|text| serde_json::from_str::<Value>(text).ok());
        let sid = sid.filter_map(|message| Some(message["streamSid"].as_str()?.to_owned())).next_back();
        let line = Rc::new(Line {
            socket: TcpStream::from_std(socket)?,
            stream_sid: sid.unwrap_or_default(),
            state: RefCell::new(State::new()),
        });
        let mut state = line.state.borrow_mut();
        opening.iter().for_each(|text| state.put(TEXT, text.as_bytes()));
        drop(state);
        line.flush();
        let slot = self.next.get();
        self.next.set((slot + 1) % FRAME_MS as usize);
        self.slots.borrow_mut()[slot].push(line.clone());
        tokio::task::spawn_local(line.clone().listen());
        Ok(line)
    }

    /// How late frames were sent, since the last call.
    pub fn take_late(&self) -> Vec<Duration> {
        self.late.take()
    }

    async fn pace(self: Rc<Self>) {
        let began = Instant::now();
        for tick in 0_u64.. {
            let due = began + Duration::from_millis(tick);
            tokio::time::sleep_until(due.into()).await;
            let mut slots = self.slots.borrow_mut();
            let slot = &mut slots[(tick % FRAME_MS) as usize];
            slot.retain(|line| !line.state.borrow().is_over);
            for line in slot.iter() {
                line.send_frame(&self);
            }
            if !slot.is_empty() {
                self.late.borrow_mut().push(due.elapsed());
            }
        }
    }
}

/// One line.
pub struct Line {
    socket: TcpStream,
    stream_sid: String,
    state: RefCell<State>,
}

struct State {
    frames: u64,
    /// The next frame of what is being said.
    saying: Option<usize>,
    said_at: Instant,
    unsent: Vec<u8>,
    text: String,
    heard: Vec<Chunk>,
    heard_ms: u64,
    /// When everything that arrived will have been played.
    plays_until: Instant,
    /// Marks with the time at which they are confirmed.
    marks: VecDeque<(Instant, String)>,
    is_over: bool,
}

impl State {
    fn new() -> Self {
        let now = Instant::now();
        Self {
            frames: 0,
            saying: None,
            said_at: now,
            unsent: Vec::new(),
            text: String::new(),
            heard: Vec::new(),
            heard_ms: 0,
            plays_until: now,
            marks: VecDeque::new(),
            is_over: false,
        }
    }

    /// A frame of a client (RFC 6455, 5.2). The masking key is zero, so that the payload stays as it is.
    fn put(&mut self, opcode: u8, payload: &[u8]) {
        self.unsent.push(0x80 | opcode);
        match payload.len() {
            bytes @ ..126 => self.unsent.push(0x80 | bytes as u8),
            bytes => {
                self.unsent.push(0x80 | 126);
                self.unsent.extend_from_slice(&(bytes as u16).to_be_bytes());
            }
        }
        self.unsent.extend_from_slice(&[0; 4]);
        self.unsent.extend_from_slice(payload);
    }

    fn read(&mut self, opcode: u8, payload: &[u8], now: Instant) {
        match opcode {
            TEXT => self.read_text(payload, now),
            PING => self.put(PONG, payload),
            CLOSE => self.is_over = true,
            _ => {}
        }
    }

    fn read_text(&mut self, text: &[u8], now: Instant) {
        if let Some(payload) = payload_of(text) {
            if payload.iter().all(|byte| *byte == SILENT) {
                return;
            }
            let padding = payload.iter().rev().take_while(|byte| **byte == b'=').count();
            let ms = (payload.len() / 4 * 3 - padding) as u64 / 8;
            self.heard.push(Chunk { at: now, from_ms: self.heard_ms, ms });
            self.heard_ms += ms;
            self.plays_until = self.plays_until.max(now) + Duration::from_millis(ms);
            return;
        }
        let message: Value = serde_json::from_slice(text).unwrap_or_default();
        match message["event"].as_str() {
            Some("mark") => {
                let name = message["mark"]["name"].as_str().unwrap_or_default().to_owned();
                self.marks.push_back((self.plays_until.max(now), name));
            }
            Some("clear") => {
                self.plays_until = now;
                self.marks.iter_mut().for_each(|(at, _)| *at = now);
            }
            _ => {}
        }
    }
}

/// The audio of a `media` message.
fn payload_of(text: &[u8]) -> Option<&[u8]> {
    const NAME: &[u8] = b"\"payload\"";
    let at = text.windows(NAME.len()).position(|window| window == NAME)?;
    text[at + NAME.len()..].split(|byte| *byte == b'"').nth(1)
}

impl Line {
    /// Begins to say the speech.
    pub fn say(&self) {
        self.state.borrow_mut().saying = Some(0);
    }

    /// What arrived since the last call.
    pub fn take_heard(&self) -> Vec<Chunk> {
        let mut state = self.state.borrow_mut();
        state.heard_ms = 0;
        std::mem::take(&mut state.heard)
    }

    /// When the last frame of the speech was sent.
    pub fn said_at(&self) -> Instant {
        self.state.borrow().said_at
    }

    /// Whether the other end has closed the socket, or it broke.
    pub fn is_over(&self) -> bool {
        self.state.borrow().is_over
    }

    /// Hangs up.
    pub fn close(&self) {
        let mut state = self.state.borrow_mut();
        let sid = &self.stream_sid;
        let stop =
            format!(r#"{{"event":"stop","sequenceNumber":"{}","streamSid":"{sid}"}}"#, state.frames + 2);
        state.put(TEXT, stop.as_bytes());
        state.put(CLOSE, &1_000_u16.to_be_bytes());
        drop(state);
        self.flush();
        self.state.borrow_mut().is_over = true;
    }

    /// Sends the frame that is due, and the marks that were played.
    fn send_frame(&self, lines: &Lines) {
        let now = Instant::now();
        let mut state = self.state.borrow_mut();
        let sid = &self.stream_sid;
        let said = state.saying.and_then(|next| Some((next, lines.speech.0.get(next)?)));
        let payload = match said {
            Some((next, payload)) => {
                (state.saying, state.said_at) = (Some(next + 1), now);
                payload
            }
            None => {
                state.saying = None;
                &lines.silence
            }
        };
        let (timestamp, chunk, number) = (state.frames * FRAME_MS, state.frames + 1, state.frames + 2);
        state.frames += 1;
        let mut text = std::mem::take(&mut state.text);
        text.clear();
        let _ = write!(
            text,
            r#"{{"event":"media","sequenceNumber":"{number}","media":{{"track":"inbound","chunk":"{chunk}","timestamp":"{timestamp}","payload":"{payload}"}},"streamSid":"{sid}"}}"#,
        );
        state.put(TEXT, text.as_bytes());
        while let Some((_, name)) = state.marks.pop_front_if(|(at, _)| *at <= now) {
            text.clear();
            let _ = write!(
                text,
                r#"{{"event":"mark","sequenceNumber":"{number}","mark":{{"name":"{name}"}},"streamSid":"{sid}"}}"#
            );
            state.put(TEXT, text.as_bytes());
        }
        state.text = text;
        drop(state);
        self.flush();
    }

    /// What the socket does not take now goes with the next frame.
    fn flush(&self) {
        let mut state = self.state.borrow_mut();
        while !state.unsent.is_empty() {
            match self.socket.try_write(&state.unsent) {
                Ok(bytes) => drop(state.unsent.drain(..bytes)),
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => return,
                Err(_) => {
                    state.is_over = true;
                    return;
                }
            }
        }
    }

    async fn listen(self: Rc<Self>) {
        let mut received = Vec::with_capacity(16 * 1024);
        while !self.is_over() && self.socket.readable().await.is_ok() {
            match self.socket.try_read_buf(&mut received) {
                Ok(0) => break,
                Ok(_) => {
                    let now = Instant::now();
                    let mut read = 0;
                    while let Some((opcode, payload, bytes)) = frame(&received[read..]) {
                        self.state.borrow_mut().read(opcode, payload, now);
                        read += bytes;
                    }
                    received.drain(..read);
                }
                Err(error) if error.kind() == std::io::ErrorKind::WouldBlock => {}
                Err(_) => break,
            }
        }
        self.state.borrow_mut().is_over = true;
    }
}

/// The first whole frame of a server: its opcode, its payload, and how many bytes it takes.
fn frame(bytes: &[u8]) -> Option<(u8, &[u8], usize)> {
    let (opcode, short) = (bytes.first()? & 0xf, bytes.get(1)? & 0x7f);
    let (head, length) = match short {
        126 => (4, usize::from(u16::from_be_bytes(bytes.get(2..4)?.try_into().ok()?))),
        127 => (10, u64::from_be_bytes(bytes.get(2..10)?.try_into().ok()?) as usize),
        length => (2, usize::from(length)),
    };
    Some((opcode, bytes.get(head..head + length)?, head + length))
}
