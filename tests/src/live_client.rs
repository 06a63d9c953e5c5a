//! A client of live conversations, on any host.
use std::collections::VecDeque;
use std::io::{BufReader, Cursor, ErrorKind, Read as _};
use std::net::{SocketAddr, TcpStream};

use serde_json::Value;
use sidetone::sandbox::SandboxSocket;
use sidetone_engine::ports::SocketMessage;
use tungstenite::{HandshakeError, Message, WebSocket};

use crate::reply::Reply;
use crate::wire;

/// The client's end of a conversation's WebSocket.
pub struct LiveClient<'a> {
    end: End<'a>,
    waiting: VecDeque<Value>,
    closed: Option<u16>,
}

enum End<'a> {
    Sandbox(SandboxSocket<'a>),
    Wire(Box<WebSocket<TcpStream>>),
}

impl<'a> LiveClient<'a> {
    /// In memory.
    pub fn in_memory(socket: SandboxSocket<'a>) -> Self {
        Self { end: End::Sandbox(socket), waiting: VecDeque::new(), closed: None }
    }

    /// Over TCP; `Err` is the response if the service does not upgrade.
    pub fn over_tcp(address: SocketAddr, path: &str) -> Result<Self, Box<Reply>> {
        let stream = wire::connect(address).expect("the service listens");
        let rest = stream.try_clone().expect("a second handle");
        match tungstenite::client(format!("ws://{address}{path}"), stream) {
            Ok((socket, _)) => {
                Ok(Self { end: End::Wire(Box::new(socket)), waiting: VecDeque::new(), closed: None })
            }
            Err(HandshakeError::Failure(tungstenite::Error::Http(response))) => {
                // The library has read as much of the body as came with the head.
                let (parts, begun) = response.into_parts();
                let mut body = Cursor::new(begun.unwrap_or_default()).chain(BufReader::new(rest));
                let body = wire::body(&mut body, &parts.headers).expect("the body of a rejection");
                Err(Box::new(Reply::new(parts.status.as_u16(), parts.headers, body.into())))
            }
            Err(error) => panic!("{path}: {error}"),
        }
    }

    /// Sends a text message.
    pub fn send(&mut self, text: &str) {
        match &mut self.end {
            End::Sandbox(socket) => socket.send(text),
            // The service may have closed the socket. Messages that it sent before can still be read.
            End::Wire(socket) => drop(socket.send(Message::text(text))),
        }
    }

    /// Sends a binary message of this size.
    pub fn send_binary(&mut self, bytes: usize) {
        self.send_bytes(vec![7; bytes]);
    }

    /// Sends a binary message.
    pub fn send_bytes(&mut self, bytes: Vec<u8>) {
        match &mut self.end {
            End::Sandbox(socket) => socket.send_binary(bytes),
            End::Wire(socket) => drop(socket.send(Message::binary(bytes))),
        }
    }

    /// Sends frames over TCP, until the service takes no more.
    pub fn send_frames(&mut self, frames: impl Iterator<Item = Message>) {
        let End::Wire(socket) = &mut self.end else { panic!("only a wire has frames") };
        for frame in frames {
            if socket.write(frame).is_err() {
                return;
            }
        }
        let _ = socket.flush();
    }

    /// The messages that have arrived, without waiting.
    pub fn arrived(&mut self) -> Vec<SocketMessage> {
        let mut messages = Vec::new();
        match &mut self.end {
            End::Sandbox(socket) => {
                messages = socket.messages();
                self.closed = socket.closed();
            }
            End::Wire(socket) => {
                socket.get_ref().set_nonblocking(true).expect("a socket");
                while self.closed.is_none() {
                    match socket.read() {
                        Ok(Message::Text(text)) => {
                            messages.push(SocketMessage::Text(text.as_str().to_owned()))
                        }
                        Ok(Message::Binary(bytes)) => messages.push(SocketMessage::Binary(bytes)),
                        Ok(Message::Close(frame)) => {
                            self.closed = Some(frame.map_or(1005, |frame| frame.code.into()));
                            // Completes the closing handshake.
                            let _ = socket.flush();
                        }
                        Ok(_) => {}
                        Err(tungstenite::Error::Io(error)) if error.kind() == ErrorKind::WouldBlock => break,
                        Err(_) => self.closed = Some(1006),
                    }
                }
                socket.get_ref().set_nonblocking(false).expect("a socket");
            }
        }
        messages
    }

    /// The close code, once the service has closed the socket.
    pub const fn closed(&self) -> Option<u16> {
        self.closed
    }

    /// Sends a text of the user.
    pub fn say(&mut self, text: &str) {
        self.send(&serde_json::json!({"type": "user_text", "text": text}).to_string());
    }

    /// The next message; `None` after the service closed the socket.
    pub fn message(&mut self) -> Option<Value> {
        loop {
            if let Some(message) = self.waiting.pop_front() {
                return Some(message);
            }
            match &mut self.end {
                End::Sandbox(socket) => {
                    self.waiting.extend(socket.received());
                    if self.waiting.is_empty() {
                        self.closed = socket.closed();
                        return None;
                    }
                }
                End::Wire(socket) => match socket.read() {
                    Ok(Message::Text(text)) => {
                        self.waiting.push_back(serde_json::from_str(text.as_str()).expect("JSON"));
                    }
                    Ok(Message::Close(frame)) => {
                        self.closed = frame.map(|frame| frame.code.into());
                        // Completes the closing handshake.
                        let _ = socket.flush();
                        return None;
                    }
                    Ok(_) => {}
                    Err(_) => return None,
                },
            }
        }
    }

    /// Expects a message of this type next.
    #[track_caller]
    pub fn expect(&mut self, kind: &str) -> Value {
        let message = self.message();
        match message {
            Some(message) if message["type"] == kind => message,
            other => panic!("not a {kind}: {other:?}, closed with {:?}", self.closed),
        }
    }

    /// All messages until the service closes, and the close code.
    pub fn rest(&mut self) -> (Vec<Value>, Option<u16>) {
        let messages = std::iter::from_fn(|| self.message()).collect();
        (messages, self.closed)
    }

    /// The text of the next `assistant_text`.
    #[track_caller]
    pub fn hear(&mut self) -> String {
        self.expect("assistant_text")["text"].as_str().expect("words").to_owned()
    }
}
