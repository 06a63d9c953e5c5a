//! An in-memory WebSocket. The conversation advances whenever the test acts, and its timeouts use the manual clock.
use std::collections::VecDeque;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard};
use std::task::{Context, Poll, Waker};

use bytes::Bytes;
use serde_json::Value;
use sidetone_engine::ports::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};

use super::lock;
use super::ports::ManualClock;

/// The client's end of a socket from [`super::Sandbox::connect`]. Dropping it closes the socket, like closing a browser
/// tab.
pub struct SandboxSocket<'a> {
    state: Arc<Mutex<SocketState>>,
    sessions: &'a Sessions,
}

/// The state that both ends share.
#[derive(Default)]
struct SocketState {
    /// Messages to the service.
    to_service: VecDeque<Received>,
    /// Messages to the client.
    to_client: VecDeque<SocketMessage>,
    /// The close code of the service.
    closed: Option<u16>,
    /// Whether the client has disconnected.
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

    /// Takes the messages received since the last call as JSON, oldest first.
    pub fn received(&self) -> Vec<Value> {
        let json = |message: SocketMessage| match message {
            SocketMessage::Text(text) => serde_json::from_str(&text).unwrap_or(Value::Null),
            SocketMessage::Binary(_) => Value::Null,
        };
        self.messages().into_iter().map(json).collect()
    }

    /// The same as raw messages.
    pub fn messages(&self) -> Vec<SocketMessage> {
        std::mem::take(&mut self.state().to_client).into()
    }

    /// The service's close code; `None` while the socket is open.
    pub fn closed(&self) -> Option<u16> {
        self.state().closed
    }

    /// Notifies the service that its host is shutting down.
    pub fn stop_host(&self) {
        self.put(Received::Stopping);
    }

    fn put(&self, received: Received) {
        self.state().to_service.push_back(received);
        self.sessions.poll_all();
    }

    fn state(&self) -> MutexGuard<'_, SocketState> {
        lock(&self.state)
    }
}

impl Drop for SandboxSocket<'_> {
    fn drop(&mut self) {
        self.state().gone = true;
        self.sessions.poll_all();
    }
}

/// The conversations of a sandbox.
#[derive(Default)]
pub(super) struct Sessions {
    running: Mutex<Vec<BoxFuture<'static, Option<String>>>>,
    /// Whether the test wants them to fail.
    may_fail: AtomicBool,
}

impl Sessions {
    /// Starts a conversation over a new socket.
    pub(super) fn open(
        &self,
        clock: Arc<ManualClock>,
        run: impl FnOnce(ServiceEnd) -> BoxFuture<'static, Option<String>>,
    ) -> SandboxSocket<'_> {
        let state = Arc::<Mutex<SocketState>>::default();
        let session = run(ServiceEnd { state: state.clone(), clock });
        lock(&self.running).push(session);
        self.poll_all();
        SandboxSocket { state, sessions: self }
    }

    /// Runs every conversation until it waits.
    pub(super) fn poll_all(&self) {
        self.poll(&mut lock(&self.running));
    }

    /// The same, unless they run: a conversation may have caused what the test does now.
    pub(super) fn poll_idle(&self) {
        if let Ok(mut sessions) = self.running.try_lock() {
            self.poll(&mut sessions);
        }
    }

    fn poll(&self, sessions: &mut Vec<BoxFuture<'static, Option<String>>>) {
        let mut context = Context::from_waker(Waker::noop());
        sessions.retain_mut(|session| match session.as_mut().poll(&mut context) {
            Poll::Pending => true,
            Poll::Ready(incident) => {
                assert!(
                    self.may_fail.load(Ordering::Relaxed) || incident.is_none(),
                    "a conversation failed: {incident:?}"
                );
                false
            }
        });
    }

    /// From now on, a conversation that fails is no failure of the test.
    pub(super) fn may_fail(&self) {
        self.may_fail.store(true, Ordering::Relaxed);
    }

    /// Drops all conversations, like a killed process.
    pub(super) fn kill(&self) {
        lock(&self.running).clear();
    }
}

/// The service's end.
pub(super) struct ServiceEnd {
    state: Arc<Mutex<SocketState>>,
    clock: Arc<ManualClock>,
}

impl Socket for ServiceEnd {
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
        Box::pin(std::future::poll_fn(move |_| {
            let mut state = lock(&self.state);
            match state.to_service.pop_front() {
                Some(received) => Poll::Ready(received),
                None if state.gone => Poll::Ready(Received::Gone),
                None if self.clock.now_ms() >= until_ms => Poll::Ready(Received::Nothing),
                None => Poll::Pending,
            }
        }))
    }

    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        let mut state = lock(&self.state);
        let open = !state.gone && state.closed.is_none();
        if open {
            state.to_client.push_back(message);
        }
        Box::pin(async move { if open { Ok(()) } else { Err(Gone) } })
    }

    fn close(&mut self, code: u16, _: &'static str) -> BoxFuture<'_, ()> {
        let mut state = lock(&self.state);
        if !state.gone {
            state.closed.get_or_insert(code);
        }
        Box::pin(async {})
    }
}
