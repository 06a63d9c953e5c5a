use std::sync::atomic::{AtomicBool, Ordering};

use futures_util::FutureExt;
use futures_util::future::BoxFuture as Boxed;

use super::*;

/// A clock whose waits never end.
struct Stopped;

impl Clock for Stopped {
    fn now_ms(&self) -> i64 {
        0
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
        match ms {
            0 => Box::pin(async {}),
            _ => Box::pin(std::future::pending()),
        }
    }
}

/// A client that has sent these messages, and disconnects once they were read.
#[derive(Default)]
struct Client {
    sends: VecDeque<&'static str>,
    got: Vec<SocketMessage>,
    closed: Option<u16>,
}

impl Socket for Client {
    fn receive(&mut self, _: i64) -> BoxFuture<'_, Received> {
        let next = self.sends.pop_front().map(|text| Received::Message(SocketMessage::Text(text.to_owned())));
        Box::pin(async { next.unwrap_or(Received::Gone) })
    }

    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        let outcome = if self.closed.is_some() { Err(Gone) } else { Ok(()) };
        self.got.push(message);
        Box::pin(async move { outcome })
    }

    fn close(&mut self, code: u16, _: &'static str) -> BoxFuture<'_, ()> {
        self.closed = Some(code);
        Box::pin(async {})
    }
}

fn text(text: &str) -> SocketMessage {
    SocketMessage::Text(text.to_owned())
}

/// Whether a task was woken.
struct Woken(AtomicBool);

impl std::task::Wake for Woken {
    fn wake(self: Arc<Self>) {
        self.0.store(true, Ordering::SeqCst);
    }
}

/// A task that is polled when it is woken.
struct Task<'a, T> {
    future: Boxed<'a, T>,
    woken: Arc<Woken>,
    result: Option<T>,
}

impl<'a, T> Task<'a, T> {
    fn new(future: Boxed<'a, T>) -> Self {
        Self { future, woken: Arc::new(Woken(AtomicBool::new(true))), result: None }
    }

    /// Whether it was woken.
    fn run(&mut self) -> bool {
        let is_woken = self.result.is_none() && self.woken.0.swap(false, Ordering::SeqCst);
        if is_woken {
            let waker = Waker::from(self.woken.clone());
            if let Poll::Ready(result) = self.future.as_mut().poll(&mut Context::from_waker(&waker)) {
                self.result = Some(result);
            }
        }
        is_woken
    }
}

/// Runs both ends to their end.
fn run<T>(client: &mut Client, user: impl FnOnce(RelayedSocket) -> Boxed<'static, T>) -> T {
    let (holder, socket) = relay(Arc::new(Stopped));
    let (mut holder, mut user) = (Task::new(holder.hold(client).boxed()), Task::new(user(socket)));
    while holder.run() | user.run() {}
    assert!(holder.result.is_some(), "the holder waits");
    user.result.expect("the user waits")
}

#[test]
fn messages_pass_in_order_in_both_directions() {
    let mut client = Client {
        sends: (0..40).map(|n| if n % 2 == 0 { "even" } else { "odd" }).collect(),
        ..Client::default()
    };
    let received = run(&mut client, |mut socket| {
        async move {
            assert_eq!(socket.send_all(vec![text("1"), text("2")]).await, Ok(()));
            let mut received = Vec::new();
            loop {
                match socket.receive(1_000).await {
                    Received::Gone => break,
                    other => received.push(other),
                }
            }
            assert_eq!(socket.send(text("3")).await, Ok(()));
            socket.close(1000, "over").await;
            assert_eq!(socket.send(text("4")).await, Err(Gone));
            received
        }
        .boxed()
    });
    assert_eq!(received.len(), 40);
    assert_eq!(received[..2], ["even", "odd"].map(|one| Received::Message(text(one))));
    assert_eq!((client.got.len(), client.closed), (4, Some(1000)));
}

#[test]
fn whoever_is_left_alone_notices() {
    // The user.
    let (holder, mut socket) = relay(Arc::new(Stopped));
    assert_eq!(socket.receive(1_000).now_or_never(), None);
    assert_eq!(socket.receive(0).now_or_never(), Some(Received::Nothing));
    drop(holder);
    assert_eq!(socket.receive(1_000).now_or_never(), Some(Received::Gone));
    assert_eq!(socket.send(text("1")).now_or_never(), Some(Err(Gone)));
    socket.close(1000, "over").now_or_never().expect("nobody is waited for");
    // The holder.
    let (holder, socket) = relay(Arc::new(Stopped));
    let mut client = Client { sends: vec!["1"; 100].into(), ..Client::default() };
    let mut holding = holder.hold(&mut client).boxed();
    assert_eq!((&mut holding).now_or_never(), None);
    drop(socket);
    assert_eq!(holding.now_or_never(), Some(()));
    assert_eq!(client.sends.len(), 100 - WAITING_MAX, "it has read no more than has room");
}
