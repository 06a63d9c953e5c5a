//! Turns on threads: whatever computes is polled by turns of its workspace. A thousand jobs of one workspace, each of which
//! computes for long, so delay another workspace's job by one of their polls for each of its own, not by a thousand.
//!
//! The runtime's own queue is first in, first out. So these futures are no tasks of it: a few tasks poll them, the next lane's
//! first each time.
use std::collections::VecDeque;
use std::future::poll_fn;
use std::panic::AssertUnwindSafe;
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use tokio::sync::oneshot;

/// Futures in lanes, one for each workspace, and the tasks that poll them. Clones share them.
#[derive(Clone)]
pub struct Lanes(Arc<Mutex<State>>);

#[derive(Default)]
struct State {
    /// The lanes in which somebody is ready; the first is next.
    lanes: VecDeque<Lane>,
    /// Tasks that have nothing to poll.
    idle: Vec<Waker>,
}

struct Lane {
    name: String,
    ready: VecDeque<Arc<Item>>,
}

struct Item {
    lane: String,
    lanes: Lanes,
    work: Mutex<Work>,
}

struct Work {
    /// `None` while it is polled, and when it is over.
    future: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    /// Whether it waits in its lane, or is to be polled again.
    is_ready: bool,
}

impl Lanes {
    /// Starts `at_once` tasks on the runtime of the caller: so many futures compute at once.
    pub fn start(at_once: usize) -> Self {
        let lanes = Self(Arc::default());
        for _ in 0..at_once {
            tokio::spawn(lanes.clone().poll_by_turns());
        }
        lanes
    }

    /// Runs a future to its end in the lane with this name; `None` after a panic.
    pub async fn run<F>(&self, lane: &str, future: F) -> Option<F::Output>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        let (sender, over) = oneshot::channel();
        let future = async move {
            // Whoever asked may be gone.
            let _ = sender.send(future.await);
        };
        let work = Work { future: Some(Box::pin(future)), is_ready: false };
        let item = Item { lane: lane.to_owned(), lanes: self.clone(), work: Mutex::new(work) };
        Arc::new(item).wake();
        over.await.ok()
    }

    async fn poll_by_turns(self) {
        loop {
            let item = poll_fn(|context| self.next(context)).await;
            poll(&item);
            // The runtime looks at sockets and timers between.
            tokio::task::yield_now().await;
        }
    }

    /// The first of the next lane.
    fn next(&self, context: &Context<'_>) -> Poll<Arc<Item>> {
        let mut state = self.state();
        let Some(mut lane) = state.lanes.pop_front() else {
            state.idle.push(context.waker().clone());
            return Poll::Pending;
        };
        let item = lane.ready.pop_front();
        if !lane.ready.is_empty() {
            state.lanes.push_back(lane);
        }
        item.map_or(Poll::Pending, Poll::Ready)
    }

    fn add(&self, item: Arc<Item>) {
        let mut state = self.state();
        match state.lanes.iter_mut().find(|lane| lane.name == item.lane) {
            Some(lane) => lane.ready.push_back(item),
            None => {
                state.lanes.push_back(Lane { name: item.lane.clone(), ready: VecDeque::from([item]) });
            }
        }
        let idle = state.idle.pop();
        drop(state);
        if let Some(idle) = idle {
            idle.wake();
        }
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Item {
    fn work(&self) -> MutexGuard<'_, Work> {
        self.work.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Wake for Item {
    fn wake(self: Arc<Self>) {
        let mut work = self.work();
        let waits = std::mem::replace(&mut work.is_ready, true);
        // One that is being polled joins its lane again after that.
        let is_there = work.future.is_some();
        drop(work);
        if !waits && is_there {
            self.lanes.clone().add(self);
        }
    }
}

/// Polls an item once.
fn poll(item: &Arc<Item>) {
    let mut work = item.work();
    work.is_ready = false;
    let Some(mut future) = work.future.take() else { return };
    drop(work);
    let waker = Waker::from(item.clone());
    let polled =
        std::panic::catch_unwind(AssertUnwindSafe(|| future.as_mut().poll(&mut Context::from_waker(&waker))));
    match polled {
        Ok(Poll::Pending) => {
            let mut work = item.work();
            work.future = Some(future);
            let is_ready = work.is_ready;
            drop(work);
            if is_ready {
                item.lanes.add(item.clone());
            }
        }
        // Over, or broken; who waits for the latter is told by the sender that goes with it.
        Ok(Poll::Ready(())) | Err(_) => drop(future),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    use std::sync::atomic::{AtomicUsize, Ordering};

    /// Computes, and lets others go on, so many times.
    async fn computing(polls: usize, count: Arc<AtomicUsize>) {
        for _ in 0..polls {
            std::hint::black_box((0..10_000_u64).fold(0, |sum, n| std::hint::black_box(sum ^ n)));
            count.fetch_add(1, Ordering::Relaxed);
            tokio::task::yield_now().await;
        }
    }

    #[tokio::test]
    async fn many_of_one_workspace_delay_another_by_a_poll_for_each_of_its_own() {
        let lanes = Lanes::start(1);
        let (greedy, honest) = (Arc::new(AtomicUsize::new(0)), Arc::new(AtomicUsize::new(0)));
        for _ in 0..200 {
            let (lanes, greedy) = (lanes.clone(), greedy.clone());
            tokio::spawn(async move { lanes.run("greedy", computing(1_000_000, greedy)).await });
        }
        while greedy.load(Ordering::Relaxed) < 1_000 {
            tokio::task::yield_now().await;
        }
        let before = greedy.load(Ordering::Relaxed);
        lanes.run("honest", computing(50, honest.clone())).await.unwrap();
        let polled = greedy.load(Ordering::Relaxed) - before;
        assert_eq!(honest.load(Ordering::Relaxed), 50);
        // Without turns, each of the fifty waits for two hundred others.
        assert!(polled < 500, "{polled} polls of others during 50 of its own");
    }

    #[tokio::test]
    async fn what_waits_for_others_is_woken_and_has_an_answer() {
        let lanes = Lanes::start(2);
        let (sender, receiver) = oneshot::channel();
        let other = lanes.clone();
        let answer = tokio::spawn(async move { other.run("a", async { receiver.await.unwrap() + 1 }).await });
        let slept = lanes.run("b", async {
            tokio::time::sleep(std::time::Duration::from_millis(5)).await;
            sender.send(41).unwrap();
        });
        assert_eq!(slept.await, Some(()));
        assert_eq!(answer.await.unwrap(), Some(42));
        let state = lanes.state();
        assert!(state.lanes.is_empty() && state.idle.len() <= 2, "{} idle", state.idle.len());
    }

    #[tokio::test]
    async fn a_panic_ends_nothing_else() {
        let lanes = Lanes::start(1);
        assert_eq!(lanes.run("a", async { panic!("broken") }).await, None::<()>);
        assert_eq!(lanes.run("a", async { 1 }).await, Some(1));
    }
}
