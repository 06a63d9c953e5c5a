//! The homes of live calls: whoever changes something about a call tells the conversation that holds it, and whoever follows
//! the call is told what the conversation has written.
//!
//! A signal says "look", and nothing else: what has changed is in storage. So a signal that is lost, late or doubled changes
//! nothing but a delay, because both sides look without one, too, after a while.
use std::collections::BTreeMap;
use std::future::poll_fn;
use std::pin::pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Waker};

use futures_util::future::{Either, select};

use super::relay::{RelayedSocket, SocketHolder, relay};
use super::{BoxFuture, Clock, Port};
use crate::base::ids::CallId;

/// Reaches a call wherever its conversation runs.
pub trait Live: Port {
    /// Owns a call until the result is dropped.
    fn own(&self, call_id: &CallId) -> Home;

    /// Tells the owner of a call and its followers to look. A failure is no error: they look later.
    fn signal<'a>(&'a self, call_id: &'a CallId) -> BoxFuture<'a, ()>;

    /// Waits until something may have changed about a call since the change `seen`, at most for `for_ms`, and returns the
    /// latest change. 0 was never seen: returns at once. The owner learns that somebody follows.
    fn follow<'a>(&'a self, call_id: &'a CallId, seen: u64, for_ms: u64) -> BoxFuture<'a, u64>;

    /// Gives the owner of a call, if it is here and waits for this one ([`Home::await_visit`]), a socket, which the result
    /// holds.
    fn visit(&self, call_id: &CallId, visit: u32) -> Option<SocketHolder>;
}

/// What an owner is told.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    /// Something about the call has changed in storage.
    Look,
    /// Somebody follows the call, and sees what is written.
    Watched,
    /// Another socket of the call is there: [`Home::take_socket`].
    Visited,
}

/// The homes of one process.
#[derive(Clone)]
pub struct Homes {
    clock: Arc<dyn Clock>,
    calls: Arc<Mutex<Calls>>,
}

#[derive(Default)]
struct Calls {
    /// Numbers changes and followers.
    latest: u64,
    /// The latest change that nobody noted, because nobody held or followed its call.
    unnoted: u64,
    by_id: BTreeMap<CallId, Entry>,
}

/// A call with an owner or followers.
#[derive(Default)]
struct Entry {
    change: u64,
    owners: usize,
    must_look: bool,
    /// The socket that the owner waits for.
    awaited: Option<u32>,
    visitor: Option<RelayedSocket>,
    is_watched_anew: bool,
    owner: Option<Waker>,
    followers: BTreeMap<u64, Option<Waker>>,
}

impl Homes {
    /// No call has an owner yet.
    pub fn new(clock: Arc<dyn Clock>) -> Self {
        Self { clock, calls: Arc::default() }
    }
}

impl Live for Homes {
    fn own(&self, call_id: &CallId) -> Home {
        lock(&self.calls).entry(call_id).owners += 1;
        Home { calls: self.calls.clone(), call_id: call_id.clone() }
    }

    fn signal<'a>(&'a self, call_id: &'a CallId) -> BoxFuture<'a, ()> {
        Box::pin(async move {
            let mut calls = lock(&self.calls);
            let mut wakers = calls.changed(call_id);
            if let Some(entry) = calls.by_id.get_mut(call_id) {
                entry.must_look = true;
                wakers.extend(entry.owner.take());
            }
            drop(calls);
            wakers.into_iter().for_each(Waker::wake);
        })
    }

    fn follow<'a>(&'a self, call_id: &'a CallId, seen: u64, for_ms: u64) -> BoxFuture<'a, u64> {
        Box::pin(async move {
            let follower = Follower::new(self.calls.clone(), call_id, seen);
            if let Poll::Ready(change) = follower.poll(seen, None) {
                return change;
            }
            let changed = poll_fn(|context| follower.poll(seen, Some(context.waker())));
            match select(pin!(changed), self.clock.sleep(for_ms)).await {
                Either::Left((change, _)) => change,
                Either::Right(_) => seen,
            }
        })
    }

    fn visit(&self, call_id: &CallId, visit: u32) -> Option<SocketHolder> {
        let mut calls = lock(&self.calls);
        let entry = calls.by_id.get_mut(call_id)?;
        // Each of them once.
        entry.awaited.take_if(|awaited| *awaited == visit)?;
        let (holder, socket) = relay(self.clock.clone());
        entry.visitor = Some(socket);
        let owner = entry.owner.take();
        drop(calls);
        owner.into_iter().for_each(Waker::wake);
        Some(holder)
    }
}

/// The owner's side of a call.
pub struct Home {
    calls: Arc<Mutex<Calls>>,
    call_id: CallId,
}

impl Home {
    /// What the owner is told, each thing once.
    pub fn poll(&mut self, context: &mut Context<'_>) -> Poll<Told> {
        let mut calls = lock(&self.calls);
        let entry = calls.entry(&self.call_id);
        if entry.visitor.is_some() {
            return Poll::Ready(Told::Visited);
        }
        if std::mem::take(&mut entry.must_look) {
            return Poll::Ready(Told::Look);
        }
        if std::mem::take(&mut entry.is_watched_anew) {
            return Poll::Ready(Told::Watched);
        }
        entry.owner = Some(context.waker().clone());
        Poll::Pending
    }

    /// From now on, the owner waits for the socket with this number; `None`: for none.
    pub fn await_visit(&mut self, visit: Option<u32>) {
        let mut calls = lock(&self.calls);
        let entry = calls.entry(&self.call_id);
        entry.awaited = visit;
        let unwanted = entry.visitor.take();
        drop(calls);
        drop(unwanted);
    }

    /// The socket that has come.
    pub fn take_socket(&mut self) -> Option<RelayedSocket> {
        lock(&self.calls).entry(&self.call_id).visitor.take()
    }

    /// Whether somebody waits for changes now.
    pub fn is_watched(&self) -> bool {
        lock(&self.calls).by_id.get(&self.call_id).is_some_and(|entry| !entry.followers.is_empty())
    }

    /// Tells the followers that something was written.
    pub fn has_written(&self) {
        let wakers = lock(&self.calls).changed(&self.call_id);
        wakers.into_iter().for_each(Waker::wake);
    }
}

impl Drop for Home {
    fn drop(&mut self) {
        self.await_visit(None);
        self.has_written();
        let mut calls = lock(&self.calls);
        calls.entry(&self.call_id).owners -= 1;
        // What is forgotten now can have changed since a follower looked.
        calls.unnoted = calls.latest;
        calls.forget(&self.call_id);
    }
}

/// One that follows a call.
struct Follower<'a> {
    calls: Arc<Mutex<Calls>>,
    call_id: &'a CallId,
    number: u64,
}

impl<'a> Follower<'a> {
    /// A follower of a call that nobody holds waits too, unless it may have missed something since the change `seen`.
    fn new(shared: Arc<Mutex<Calls>>, call_id: &'a CallId, seen: u64) -> Self {
        let mut calls = lock(&shared);
        // Another process may have given the number.
        calls.latest = calls.latest.max(seen);
        if seen > calls.unnoted && !calls.by_id.contains_key(call_id) {
            calls.by_id.insert(call_id.clone(), Entry { change: seen, ..Entry::default() });
        }
        calls.latest += 1;
        let number = calls.latest;
        let entry = calls.entry(call_id);
        entry.followers.insert(number, None);
        entry.is_watched_anew = true;
        let owner = entry.owner.take();
        drop(calls);
        owner.into_iter().for_each(Waker::wake);
        Self { calls: shared, call_id, number }
    }

    /// The latest change, if it is not the one that was `seen`.
    fn poll(&self, seen: u64, waker: Option<&Waker>) -> Poll<u64> {
        let mut calls = lock(&self.calls);
        let entry = calls.entry(self.call_id);
        if entry.change != seen {
            return Poll::Ready(entry.change);
        }
        entry.followers.insert(self.number, waker.cloned());
        Poll::Pending
    }
}

impl Drop for Follower<'_> {
    fn drop(&mut self) {
        let mut calls = lock(&self.calls);
        calls.entry(self.call_id).followers.remove(&self.number);
        calls.forget(self.call_id);
    }
}

impl Calls {
    fn entry(&mut self, call_id: &CallId) -> &mut Entry {
        let latest = &mut self.latest;
        self.by_id.entry(call_id.clone()).or_insert_with(|| {
            *latest += 1;
            Entry { change: *latest, ..Entry::default() }
        })
    }

    /// Notes a change of a call that anybody knows; returns whom to wake.
    fn changed(&mut self, call_id: &CallId) -> Vec<Waker> {
        self.latest += 1;
        let Some(entry) = self.by_id.get_mut(call_id) else {
            self.unnoted = self.latest;
            return Vec::new();
        };
        entry.change = self.latest;
        entry.followers.values_mut().filter_map(Option::take).collect()
    }

    fn forget(&mut self, call_id: &CallId) {
        if self.by_id.get(call_id).is_some_and(|entry| entry.owners == 0 && entry.followers.is_empty()) {
            self.by_id.remove(call_id);
        }
    }
}

fn lock(calls: &Mutex<Calls>) -> MutexGuard<'_, Calls> {
    calls.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests;
