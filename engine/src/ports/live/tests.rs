use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::FutureExt;

use super::*;
use crate::base::ids::Id;

/// A clock whose waits never end.
struct Stopped;

impl Clock for Stopped {
    fn now_ms(&self) -> i64 {
        0
    }

    fn sleep(&self, _: u64) -> BoxFuture<'_, ()> {
        Box::pin(std::future::pending())
    }
}

#[derive(Default)]
struct Counted(AtomicUsize);

impl std::task::Wake for Counted {
    fn wake(self: Arc<Self>) {
        self.0.fetch_add(1, Ordering::SeqCst);
    }
}

fn homes() -> (Homes, CallId) {
    (Homes::new(Arc::new(Stopped)), CallId::from_stored("call_1"))
}

fn told(home: &mut Home) -> Poll<Told> {
    home.poll(&mut Context::from_waker(Waker::noop()))
}

#[test]
fn an_owner_is_told_once_however_often_it_was_signaled() {
    let (homes, id) = homes();
    let mut home = homes.own(&id);
    assert_eq!(told(&mut home), Poll::Pending);
    let woken = Arc::new(Counted::default());
    let waker = Waker::from(woken.clone());
    assert_eq!(home.poll(&mut Context::from_waker(&waker)), Poll::Pending);
    for _ in 0..3 {
        homes.signal(&id).now_or_never().unwrap();
    }
    assert_eq!(woken.0.load(Ordering::SeqCst), 1);
    assert_eq!((told(&mut home), told(&mut home)), (Poll::Ready(Told::Look), Poll::Pending));
    homes.signal(&CallId::from_stored("call_2")).now_or_never().unwrap();
    assert_eq!(told(&mut home), Poll::Pending, "the signal of another call");
}

#[test]
fn a_follower_waits_for_what_it_has_not_seen() {
    let (homes, id) = homes();
    let mut home = homes.own(&id);
    let first = homes.follow(&id, 0, 1_000).now_or_never().unwrap();
    assert_eq!(told(&mut home), Poll::Ready(Told::Watched), "also one who only looks in");
    assert!(!home.is_watched());
    let mut waiting = homes.follow(&id, first, 1_000);
    assert_eq!((&mut waiting).now_or_never(), None);
    assert_eq!(told(&mut home), Poll::Ready(Told::Watched));
    assert!(home.is_watched());
    home.has_written();
    let second = waiting.now_or_never().unwrap();
    assert_ne!(second, first);
    // Between two waits, too.
    home.has_written();
    assert!(homes.follow(&id, second, 1_000).now_or_never().is_some());
    assert!(!home.is_watched());
}

#[test]
fn all_who_follow_are_woken_by_a_signal_and_by_the_end() {
    let (homes, id) = homes();
    let home = homes.own(&id);
    let seen = homes.follow(&id, 0, 1).now_or_never().unwrap();
    let mut waiting: Vec<_> = (0..100).map(|_| homes.follow(&id, seen, 1)).collect();
    let woken = Arc::new(Counted::default());
    let waker = Waker::from(woken.clone());
    for one in &mut waiting {
        assert!(one.poll_unpin(&mut Context::from_waker(&waker)).is_pending());
    }
    homes.signal(&id).now_or_never().unwrap();
    assert_eq!(woken.0.load(Ordering::SeqCst), 100);
    let seen = waiting.pop().unwrap().now_or_never().unwrap();
    drop(waiting);
    let last = homes.follow(&id, seen, 1);
    let mut last = last;
    assert!((&mut last).now_or_never().is_none());
    drop(home);
    assert!(last.now_or_never().is_some());
}

#[test]
fn nothing_is_kept_of_a_call_that_nobody_holds() {
    let (homes, id) = homes();
    drop(homes.own(&id));
    let before = homes.follow(&id, 0, 1).now_or_never().unwrap();
    homes.signal(&id).now_or_never().unwrap();
    assert!(lock(&homes.calls).by_id.is_empty());
    // What happened in between is not missed.
    assert!(homes.follow(&id, before, 1).now_or_never().is_some());
}

#[test]
fn a_follower_of_a_call_that_nobody_holds_waits() {
    let (homes, id) = homes();
    let seen = homes.follow(&id, 0, 1).now_or_never().unwrap();
    assert_eq!(homes.follow(&id, seen, 1).now_or_never(), None);
    // A change while it looks, and a call that begins and ends then.
    homes.signal(&id).now_or_never().unwrap();
    let seen = homes.follow(&id, seen, 1).now_or_never().unwrap();
    assert_eq!(homes.follow(&id, seen, 1).now_or_never(), None);
    drop(homes.own(&id));
    let seen = homes.follow(&id, seen, 1).now_or_never().unwrap();
    assert_eq!(homes.follow(&id, seen, 1).now_or_never(), None);
    // A home that is new does not give a number twice.
    let (other, _) = self::homes();
    let mut waiting = other.follow(&id, seen, 1);
    assert_eq!((&mut waiting).now_or_never(), None);
    other.signal(&id).now_or_never().unwrap();
    assert_ne!(waiting.now_or_never(), Some(seen));
}

#[test]
fn an_owner_gets_the_socket_that_it_waits_for_once() {
    let (homes, id) = homes();
    assert!(homes.visit(&id, 1).is_none(), "nobody owns the call");
    let mut home = homes.own(&id);
    assert!(homes.visit(&id, 1).is_none(), "the owner waits for none");
    home.await_visit(Some(2));
    assert!(homes.visit(&id, 1).is_none(), "it waits for another one");
    let holder = homes.visit(&id, 2);
    assert!(holder.is_some() && homes.visit(&id, 2).is_none());
    assert_eq!(told(&mut home), Poll::Ready(Told::Visited));
    assert!(home.take_socket().is_some());
    assert_eq!((told(&mut home), home.take_socket().is_none()), (Poll::Pending, true));
    // Who leaves lets go of a socket that has come.
    home.await_visit(Some(3));
    let holder = homes.visit(&id, 3).unwrap();
    drop(home);
    let mut gone = Box::pin(async { holder.hold(&mut NoSocket).await });
    assert_eq!((&mut gone).now_or_never(), Some(()));
}

struct NoSocket;

impl crate::ports::Socket for NoSocket {
    fn receive(&mut self, _: i64) -> BoxFuture<'_, crate::ports::Received> {
        Box::pin(std::future::pending())
    }

    fn send(&mut self, _: crate::ports::SocketMessage) -> BoxFuture<'_, Result<(), crate::ports::Gone>> {
        Box::pin(async { Ok(()) })
    }

    fn close(&mut self, _: u16, _: &'static str) -> BoxFuture<'_, ()> {
        Box::pin(async {})
    }
}
