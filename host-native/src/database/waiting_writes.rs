//! Batches that wait to be written. Askers take turns, one batch each, and the service itself has every other turn: whoever
//! sends a thousand changes waits for them, and the next one does not.
use std::collections::{BTreeMap, VecDeque};
use std::sync::{Condvar, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use sidetone_engine::base::fair_pool::{FairPool, Kept};

/// Maximum number of waiting batches; beyond it, requests are asked to retry later. Askers share them fairly.
const WAITING_MAX: u64 = 8_192;
/// What they leave to the service: rows of calls that are going on, and jobs.
const KEPT_FOR_SERVICE: u64 = WAITING_MAX / 8;

/// Work that waits for a thread, of type `T`.
pub struct WaitingWrites<T> {
    state: Mutex<State<T>>,
    changed: Condvar,
}

struct State<T> {
    /// Of the service.
    own: VecDeque<T>,
    by_asker: BTreeMap<String, VecDeque<T>>,
    /// Those who have something in `by_asker`, the next one first.
    turns: VecDeque<String>,
    /// How much of each waits; the service is `""`.
    places: FairPool<String>,
    was_own: bool,
    is_closed: bool,
}

/// Nothing more is taken.
pub struct Closed;

impl<T> WaitingWrites<T> {
    pub fn new() -> Self {
        let state = State {
            own: VecDeque::new(),
            by_asker: BTreeMap::new(),
            turns: VecDeque::new(),
            places: FairPool::new(WAITING_MAX),
            was_own: false,
            is_closed: false,
        };
        Self { state: Mutex::new(state), changed: Condvar::new() }
    }

    /// Adds work of an asker, or of the service; says why it is refused.
    pub fn push(&self, asker: Option<&str>, work: T) -> Result<(), &'static str> {
        let mut state = self.state();
        if state.is_closed {
            return Err("the writer has stopped");
        }
        let kept = Kept::from(if asker.is_some() { KEPT_FOR_SERVICE } else { 0 });
        if !state.places.take(&asker.unwrap_or_default().to_owned(), 1, kept) {
            return Err("the writer's queue is full");
        }
        match asker {
            None => state.own.push_back(work),
            Some(asker) => state.of(asker).push_back(work),
        }
        self.changed.notify_one();
        Ok(())
    }

    /// The next piece of work, when there is one within `wait`; an error when it is closed and empty.
    pub fn next_within(&self, wait: Duration) -> Result<Option<(Option<String>, T)>, Closed> {
        let idle = |state: &mut State<T>| !state.is_closed && state.own.is_empty() && state.turns.is_empty();
        let (mut state, _) =
            self.changed.wait_timeout_while(self.state(), wait, idle).unwrap_or_else(PoisonError::into_inner);
        match state.next() {
            None if state.is_closed => Err(Closed),
            next => Ok(next),
        }
    }

    /// The next piece of work, if there is one now.
    pub fn next(&self) -> Option<(Option<String>, T)> {
        self.state().next()
    }

    /// Puts work back that was not done, in the order in which it was taken: it is next.
    pub fn put_back(&self, taken: impl DoubleEndedIterator<Item = (Option<String>, T)>) {
        let mut state = self.state();
        for (asker, work) in taken.rev() {
            state.places.add(&asker.clone().unwrap_or_default(), 1);
            match asker {
                None => state.own.push_front(work),
                Some(asker) => {
                    state.of(&asker).push_front(work);
                    state.turns.retain(|other| *other != asker);
                    state.turns.push_front(asker);
                }
            }
        }
    }

    /// Takes nothing more. What waits is still handed out.
    pub fn close(&self) {
        self.state().is_closed = true;
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State<T>> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<T> State<T> {
    /// The work of an asker, who has a turn from now on.
    fn of(&mut self, asker: &str) -> &mut VecDeque<T> {
        if !self.by_asker.contains_key(asker) {
            self.turns.push_back(asker.to_owned());
        }
        self.by_asker.entry(asker.to_owned()).or_default()
    }

    fn next(&mut self) -> Option<(Option<String>, T)> {
        let is_own = !self.own.is_empty() && (!self.was_own || self.turns.is_empty());
        self.was_own = is_own;
        if is_own {
            self.places.give_back(&String::new(), 1);
            return self.own.pop_front().map(|work| (None, work));
        }
        let asker = self.turns.pop_front()?;
        self.places.give_back(&asker, 1);
        let waiting = self.by_asker.get_mut(&asker)?;
        let work = waiting.pop_front()?;
        if waiting.is_empty() {
            self.by_asker.remove(&asker);
        } else {
            self.turns.push_back(asker.clone());
        }
        Some((Some(asker), work))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn drained(waiting: &WaitingWrites<u32>) -> Vec<u32> {
        std::iter::from_fn(|| waiting.next().map(|(_, work)| work)).collect()
    }

    #[test]
    fn askers_take_turns_and_the_service_has_every_other_one() {
        let waiting = WaitingWrites::new();
        for work in 0..4 {
            assert!(waiting.push(Some("greedy"), work).is_ok());
        }
        assert!(waiting.push(Some("honest"), 10).is_ok());
        assert!(waiting.push(None, 20).is_ok() && waiting.push(None, 21).is_ok());
        assert_eq!(drained(&waiting), [20, 0, 21, 10, 1, 2, 3]);
    }

    #[test]
    fn what_was_not_done_is_next() {
        let waiting = WaitingWrites::new();
        for (asker, work) in [(Some("a"), 0), (Some("a"), 1), (Some("b"), 10), (None, 20)] {
            assert!(waiting.push(asker, work).is_ok());
        }
        let taken: Vec<_> = std::iter::from_fn(|| waiting.next()).take(3).collect();
        assert_eq!(taken.iter().map(|(_, work)| *work).collect::<Vec<_>>(), [20, 0, 10]);
        waiting.put_back(taken.into_iter());
        assert_eq!(drained(&waiting), [20, 0, 10, 1]);
        assert_eq!(waiting.state().places.free(), WAITING_MAX, "nothing is counted twice");
    }

    #[test]
    fn a_full_queue_of_one_leaves_room_for_the_next_and_for_the_service() {
        let waiting = WaitingWrites::new();
        let greedy =
            std::iter::repeat_with(|| waiting.push(Some("greedy"), 0)).take_while(Result::is_ok).count();
        assert!(greedy > 4_096 && (greedy as u64) < WAITING_MAX - KEPT_FOR_SERVICE + 1);
        assert!(waiting.push(None, 0).is_ok());
        let other = std::iter::repeat_with(|| waiting.push(None, 0)).take_while(Result::is_ok).count();
        assert!(other >= 100, "{other}");
    }

    #[test]
    fn a_closed_queue_is_emptied_first() {
        let waiting = WaitingWrites::new();
        assert!(waiting.push(None, 1).is_ok());
        waiting.close();
        assert!(waiting.push(None, 2).is_err());
        let next = waiting.next_within(Duration::ZERO).ok().flatten();
        assert_eq!(next.map(|(_, work)| work), Some(1));
        assert!(waiting.next_within(Duration::from_secs(60)).is_err());
    }
}
