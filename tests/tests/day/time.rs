//! Virtual time: a clock that moves when nothing is left to do at its present time, and the tasks that wait for it.
//! Everything happens on one thread, in the same order each time.
use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap, VecDeque};
use std::pin::Pin;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::task::{Context, Poll, Wake, Waker};

use sidetone_engine::ports::{BoxFuture, Clock};

/// A day begins here: 2026-03-10T00:00:00Z, far from the end of a month.
pub const START_MS: i64 = 1_773_100_800_000;

/// The clock.
pub struct Time(Mutex<State>);

struct State {
    now_ms: i64,
    /// Who sleeps until when; of those with the same time, the first to sleep is the first to wake.
    alarms: BinaryHeap<Reverse<(i64, u64)>>,
    sleepers: BTreeMap<u64, Waker>,
    next: u64,
}

impl Time {
    pub fn new() -> Arc<Self> {
        Arc::new(Self(Mutex::new(State {
            now_ms: START_MS,
            alarms: BinaryHeap::new(),
            sleepers: BTreeMap::new(),
            next: 0,
        })))
    }

    /// When the next sleeper wakes.
    pub fn next_alarm_ms(&self) -> Option<i64> {
        let mut state = self.state();
        while let Some(Reverse((at_ms, id))) = state.alarms.peek().copied() {
            if state.sleepers.contains_key(&id) {
                return Some(at_ms);
            }
            state.alarms.pop();
        }
        None
    }

    /// Moves the clock and wakes whoever slept until then.
    pub fn move_to(&self, now_ms: i64) {
        let mut due = Vec::new();
        {
            let mut state = self.state();
            assert!(now_ms >= state.now_ms, "time does not go back");
            state.now_ms = now_ms;
            while let Some(Reverse((at_ms, id))) = state.alarms.peek().copied() {
                if at_ms > now_ms {
                    break;
                }
                state.alarms.pop();
                due.extend(state.sleepers.remove(&id));
            }
        }
        due.into_iter().for_each(Waker::wake);
    }

    /// Sleeps until this time.
    pub async fn until(self: &Arc<Self>, at_ms: i64) {
        let mut sleep = Sleep { time: self.clone(), at_ms, id: None };
        std::future::poll_fn(|context| sleep.poll(context)).await;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        lock(&self.0)
    }
}

struct Sleep {
    time: Arc<Time>,
    at_ms: i64,
    id: Option<u64>,
}

impl Sleep {
    fn poll(&mut self, context: &Context<'_>) -> Poll<()> {
        let mut state = self.time.state();
        if state.now_ms >= self.at_ms {
            return Poll::Ready(());
        }
        let id = match self.id {
            Some(id) => id,
            None => {
                state.next += 1;
                let id = state.next;
                state.alarms.push(Reverse((self.at_ms, id)));
                *self.id.insert(id)
            }
        };
        state.sleepers.insert(id, context.waker().clone());
        Poll::Pending
    }
}

impl Drop for Sleep {
    fn drop(&mut self) {
        if let Some(id) = self.id {
            self.time.state().sleepers.remove(&id);
        }
    }
}

/// The same clock as a port.
pub struct TimePort(pub Arc<Time>);

impl Clock for TimePort {
    fn now_ms(&self) -> i64 {
        self.0.state().now_ms
    }

    fn sleep(&self, ms: u64) -> BoxFuture<'_, ()> {
        let at_ms = self.now_ms().saturating_add(i64::try_from(ms).unwrap_or(i64::MAX));
        Box::pin(self.0.until(at_ms))
    }
}

type Task = Pin<Box<dyn Future<Output = ()>>>;

/// What runs.
#[derive(Default)]
pub struct Tasks {
    all: BTreeMap<u64, (Task, Waker)>,
    woken: Arc<Mutex<VecDeque<u64>>>,
    next: u64,
}

struct TaskWaker {
    id: u64,
    woken: Arc<Mutex<VecDeque<u64>>>,
}

impl Wake for TaskWaker {
    fn wake(self: Arc<Self>) {
        lock(&self.woken).push_back(self.id);
    }
}

impl Tasks {
    /// Adds a task; it starts with the next [`Tasks::run`].
    pub fn add(&mut self, task: impl Future<Output = ()> + 'static) -> u64 {
        self.next += 1;
        let waker = Waker::from(Arc::new(TaskWaker { id: self.next, woken: self.woken.clone() }));
        waker.wake_by_ref();
        self.all.insert(self.next, (Box::pin(task), waker));
        self.next
    }

    /// Runs the woken tasks until all wait. False if there was none.
    pub fn run(&mut self) -> bool {
        let mut ran = false;
        loop {
            let Some(id) = lock(&self.woken).pop_front() else { return ran };
            ran = true;
            let Some((task, waker)) = self.all.get_mut(&id) else { continue };
            let waker = waker.clone();
            if task.as_mut().poll(&mut Context::from_waker(&waker)).is_ready() {
                self.all.remove(&id);
            }
        }
    }

    /// Whether the task is not over.
    pub fn is_running(&self, id: u64) -> bool {
        self.all.contains_key(&id)
    }
}

pub fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
