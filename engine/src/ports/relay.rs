//! A socket that one task holds and another one uses: a host gives the socket of a caller who has come back to the task that
//! accepted it, and the conversation, which waits, runs in another.
use std::collections::VecDeque;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::future::{Either, select};

use super::{BoxFuture, Clock, Gone, Received, Socket, SocketMessage};

/// Messages that wait for the conversation; while there are as many, the holder reads no more.
const WAITING_MAX: usize = 16;
/// How long the holder waits for a message before it looks again.
const LOOK_MS: i64 = 60_000;

/// The two ends.
pub(super) fn relay(clock: Arc<dyn Clock>) -> (SocketHolder, RelayedSocket) {
    let shared = Arc::<Mutex<Shared>>::default();
    (SocketHolder { shared: shared.clone(), clock: clock.clone() }, RelayedSocket { shared, clock })
}

#[derive(Default)]
struct Shared {
    received: VecDeque<Received>,
    /// Nothing is received any more: the socket is closed, or its holder is gone.
    is_gone: bool,
    to_do: Option<ToDo>,
    /// What came of what was to do.
    done: Option<Result<(), Gone>>,
    is_holder_gone: bool,
    is_user_gone: bool,
    holder: Option<Waker>,
    user: Option<Waker>,
}

/// What the user asks for.
enum ToDo {
    Send(Vec<SocketMessage>),
    Close(u16, &'static str),
}

/// The task that holds the socket.
pub struct SocketHolder {
    shared: Arc<Mutex<Shared>>,
    clock: Arc<dyn Clock>,
}

impl SocketHolder {
    /// Passes messages on in both directions, until the user has closed the socket or is gone.
    pub async fn hold(self, socket: &mut dyn Socket) {
        loop {
            let reads = lock(&self.shared).has_room();
            let to_do = pin!(poll_fn(|context| self.poll(context, reads)));
            let next = if reads {
                let until_ms = self.clock.now_ms() + LOOK_MS;
                match select(to_do, socket.receive(until_ms)).await {
                    Either::Left((next, _)) => next,
                    Either::Right((received, _)) => {
                        self.pass_on(received);
                        Next::Look
                    }
                }
            } else {
                to_do.await
            };
            let done = match next {
                Next::Look => continue,
                Next::Over => return,
                Next::Do(ToDo::Send(messages)) => socket.send_all(messages).await,
                Next::Do(ToDo::Close(code, reason)) => {
                    socket.close(code, reason).await;
                    Ok(())
                }
            };
            let mut shared = lock(&self.shared);
            shared.done = Some(done);
            wake(shared.user.take());
        }
    }

    fn poll(&self, context: &Context<'_>, reads: bool) -> Poll<Next> {
        let mut shared = lock(&self.shared);
        if let Some(to_do) = shared.to_do.take() {
            return Poll::Ready(Next::Do(to_do));
        }
        if shared.is_user_gone {
            return Poll::Ready(Next::Over);
        }
        if !reads && shared.has_room() {
            return Poll::Ready(Next::Look);
        }
        shared.holder = Some(context.waker().clone());
        Poll::Pending
    }

    fn pass_on(&self, received: Received) {
        let mut shared = lock(&self.shared);
        match received {
            Received::Nothing => return,
            Received::Gone => shared.is_gone = true,
            other => shared.received.push_back(other),
        }
        wake(shared.user.take());
    }
}

impl Drop for SocketHolder {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        (shared.is_holder_gone, shared.is_gone) = (true, true);
        wake(shared.user.take());
    }
}

enum Next {
    Do(ToDo),
    /// Something has changed.
    Look,
    Over,
}

impl Shared {
    /// Whether another message may be read.
    fn has_room(&self) -> bool {
        !self.is_gone && self.received.len() < WAITING_MAX
    }
}

/// The socket, as the conversation uses it.
pub struct RelayedSocket {
    shared: Arc<Mutex<Shared>>,
    clock: Arc<dyn Clock>,
}

impl RelayedSocket {
    fn poll_received(&self, context: &Context<'_>) -> Poll<Received> {
        let mut shared = lock(&self.shared);
        if let Some(received) = shared.received.pop_front() {
            wake(shared.holder.take());
            return Poll::Ready(received);
        }
        if shared.is_gone {
            return Poll::Ready(Received::Gone);
        }
        shared.user = Some(context.waker().clone());
        Poll::Pending
    }

    fn order(&self, to_do: ToDo) {
        let mut shared = lock(&self.shared);
        shared.to_do = Some(to_do);
        shared.done = None;
        wake(shared.holder.take());
    }

    async fn ask(&self, to_do: ToDo) -> Result<(), Gone> {
        self.order(to_do);
        poll_fn(|context| {
            let mut shared = lock(&self.shared);
            match shared.done.take() {
                Some(done) => Poll::Ready(done),
                None if shared.is_holder_gone => Poll::Ready(Err(Gone)),
                None => {
                    shared.user = Some(context.waker().clone());
                    Poll::Pending
                }
            }
        })
        .await
    }
}

impl Socket for RelayedSocket {
    fn receive(&mut self, until_ms: i64) -> BoxFuture<'_, Received> {
        Box::pin(async move {
            let received = poll_fn(|context| self.poll_received(context));
            match select(pin!(received), self.clock.sleep_until(until_ms)).await {
                Either::Left((received, _)) => received,
                Either::Right(_) => Received::Nothing,
            }
        })
    }

    fn send(&mut self, message: SocketMessage) -> BoxFuture<'_, Result<(), Gone>> {
        self.send_all(vec![message])
    }

    fn send_all(&mut self, messages: Vec<SocketMessage>) -> BoxFuture<'_, Result<(), Gone>> {
        Box::pin(self.ask(ToDo::Send(messages)))
    }

    fn close(&mut self, code: u16, reason: &'static str) -> BoxFuture<'_, ()> {
        Box::pin(async move {
            // Nobody is there any more, or it is closed.
            let _ = self.ask(ToDo::Close(code, reason)).await;
        })
    }
}

impl Drop for RelayedSocket {
    fn drop(&mut self) {
        let mut shared = lock(&self.shared);
        shared.is_user_gone = true;
        wake(shared.holder.take());
    }
}

fn lock(shared: &Mutex<Shared>) -> MutexGuard<'_, Shared> {
    shared.lock().unwrap_or_else(PoisonError::into_inner)
}

fn wake(waker: Option<Waker>) {
    waker.into_iter().for_each(Waker::wake);
}

#[cfg(test)]
mod tests;
