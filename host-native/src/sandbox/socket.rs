//! A WebSocket in memory: the conversation at its other end moves on when the test does something,
//! and waits for the manual clock.
use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use serde_json::Value;
use sidetone_engine::ports::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};

use super::lock;
use super::ports::ManualClock;

/// The client's end of a socket of [`super::Sandbox::connect`]. Dropping it closes the socket, as a
/// browser does whose tab is closed.
pub struct SandboxSocket<'a> {
    line: Arc<Mutex<Line>>,
    sessions: &'a Sessions,
}

/// What is between the two ends.
#[derive(Default)]
struct Line {
    /// On its way to the service.
    up: VecDeque<Received>,
    /// On its way to the client.
    down: VecDeque<SocketMessage>,
    /// The service has closed, with this code.
    closed: Option<u16>,
    /// The client has.
    gone: bool,
}

impl SandboxSocket<'_> {
    /// Sends a text message.
    pub fn send(&self, text: impl Into<String>) {
        self.put(Received::message(SocketMessage::Text(text.into())));
    }

    /// Sends a line of the user.
    pub fn say(&self, text: &str) {
        self.send(serde_json::json!({"type": "user_text", "text": text}).to_string());
    }

    /// Sends a binary message.
    pub fn send_binary(&self, bytes: impl Into<Bytes>) {
        self.put(Received::message(SocketMessage::Binary(bytes.into())));
    }

    /// The messages that have come since the last look, oldest first.
    pub fn received(&self) -> Vec<Value> {
        let json = |message: SocketMessage| match message {
            SocketMessage::Text(text) => serde_json::from_str(&text).unwrap_or(Value::Null),
            SocketMessage::Binary(_) => Value::Null,
        };
        self.messages().into_iter().map(json).collect()
    }

    /// The same as they came.
    pub fn messages(&self) -> Vec<SocketMessage> {
        std::mem::take(&mut self.line().down).into()
    }

    /// The code the service has closed with.
    pub fn closed(&self) -> Option<u16> {
        self.line().closed
    }

    /// The service is told that its host is about to stop.
    pub fn stop_host(&self) {
        self.put(Received::Stopping);
    }

    fn put(&self, received: Received) {
        self.line().up.push_back(received);
        self.sessions.move_on();
    }

    fn line(&self) -> MutexGuard<'_, Line> {
        lock(&self.line)
    }
}

impl Drop for SandboxSocket<'_> {
    fn drop(&mut self) {
        self.line().gone = true;
        self.sessions.move_on();
    }
}

/// The conversations of a sandbox.
#[derive(Default)]
pub(super) struct Sessions(Mutex<Vec<BoxFuture<'static, Option<String>>>>);

impl Sessions {
    /// Starts a conversation over a new socket.
    pub(super) fn open(
        &self,
        clock: Arc<ManualClock>,
        run: impl FnOnce(ServiceEnd) -> BoxFuture<'static, Option<String>>,
    ) -> SandboxSocket<'_> {
        let line = Arc::<Mutex<Line>>::default();
        let session = run(ServiceEnd { line: line.clone(), clock });
        lock(&self.0).push(session);
        self.move_on();
        SandboxSocket { line, sessions: self }
    }

    /// Lets every conversation do what it can do now.
    pub(super) fn move_on(&self) {
        let mut context = Context::from_waker(Waker::noop());
        lock(&self.0).retain_mut(|session| match session.as_mut().poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(incident) => {
                assert_eq!(incident, None, "a conversation failed");
                false
            }
        });
    }

    /// Drops them half-way, as a process that is killed does.
    pub(super) fn kill(&self) {
        lock(&self.0).clear();
    }
}

/// The service's end.
pub(super) struct ServiceEnd {
    line: Arc<Mutex<Line>>,
    clock: Arc<ManualClock>,
}

impl Socket for ServiceEnd {
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
        Box::pin(std::future::poll_fn(move |_| {
            let mut line = lock(&self.line);
            match line.up.pop_front() {
                Some(received) => Poll::Ready(received),
                None if line.gone => Poll::Ready(Received::Gone),
                None if self.clock.now_ms() >= until_ms => Poll::Ready(Received::Nothing),
                None => Poll::Pending,
            }
        }))
    }

    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        let mut line = lock(&self.line);
        let open = !line.gone && line.closed.is_none();
        if open {
            line.down.push_back(message);
        }
        Box::pin(async move { if open { Ok(()) } else { Err(Gone) } })
    }

    fn close(&mut self, code: u16, _: &'static str) -> BoxFuture<'_, ()> {
        let mut line = lock(&self.line);
        if !line.gone {
            line.closed.get_or_insert(code);
        }
        Box::pin(async {})
    }
}
